"""Whether a tokenizer.json can be used at all: the library takes it at its word, and has no limit of time or memory.

| what it says | what would become of it |
|---|---|
| a normalizer that writes several characters for one, ten times over | a text of a few characters fills the memory |
| a pattern that repeats what repeats, `(a*)*b` | minutes for a line |
| a template that holds the text several times | the text several times |
| random cuts (`dropout`) | another prediction each time |
| a table of characters that points beyond its end | the process is aborted |
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from transduce.core.errors import InputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

GROWTH = 1000  # a text becomes at most so many times as long
STEPS = 100  # of a normalizer, a pre-tokenizer, a decoder
PATTERN, DEPTH, REPEATS = 4000, 30, 1000  # characters, groups in groups, and the largest number in braces
CHARACTERS, BRACKETS = 60_000_000, 1_000_000  # of a tokenizer.json: what is longer takes too much room as objects
EXPANDS = {"NFC": 3, "NFD": 4, "NFKC": 18, "NFKD": 18, "Lowercase": 3, "BertNormalizer": 12}  # the longest, in Unicode
PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
PROBE = "a b, A1 \u00e4 \u4e2d \U0001f600\t\u0001\n"
PARTS_OF_A_PATTERN = re.compile(
    r"""
    (?P<count> (?: [*+?] | \{\d+(?:,\d*)?\} | \{,\d+\} ) [?+]? )
  | (?P<plain> \\[pPx]\{[^}]*\} | \\[^gk1-9] | \(\?(?:\#[^)]*|[a-zA-Z-]+)\) | [^()\\] )
  | (?P<open> \( (?: \?(?: <?[=!] | > | <\w+> | [a-zA-Z-]*: ) | (?![?*]) ) )
  | (?P<close> \) )
    """,
    re.VERBOSE | re.DOTALL,
)


def check_tokenizer(text: str, name: str) -> None:
    """What is no tokenizer.json of the library is left to the library to explain.

    Raises:
        InputError: the library would take it, and fail or take too long with a text; all problems are named.
    """
    if len(text) > CHARACTERS or text.count("[") + text.count("{") > BRACKETS:
        raise InputError(f"{name}: too large for a tokenizer.json: {len(text):,} characters.")
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(table, dict):
        return
    problems = []
    for part in PARTS:
        steps = list(_steps(table.get(part)))
        if len(steps) > STEPS:
            problems.append(f"its {part} has {len(steps)} steps; the limit is {STEPS}.")
            continue
        problems += [f"its {part}: {problem}" for step in steps for problem in _problems_of(step)]
    grown = _growth(_steps(table.get("normalizer"))) * _growth(_steps(table.get("pre_tokenizer")))
    for what, growth in (("normalizer and pre_tokenizer", grown), ("decoder", _growth(_steps(table.get("decoder"))))):
        if growth > GROWTH:
            problems.append(f"its {what} can make a text {growth:.3g} times as long; the limit is {GROWTH:,}.")
    model = table.get("model")
    if isinstance(model, dict) and model.get("dropout"):
        problems.append("its model.dropout splits a text differently each time: set it to null.")
    if problems:
        raise InputError(f"{name}: {problem}" for problem in problems)


def probe(inner: "Tokenizer", name: str) -> None:
    """Reads one text with many kinds of characters, and writes it and the first tokens.

    Raises:
        InputError: the tokenizer fails over it.
    """
    try:
        for encoding in inner.encode_batch_fast([PROBE, "a b"], add_special_tokens=False):
            inner.decode(encoding.ids, skip_special_tokens=False)
        inner.decode(list(range(min(1000, inner.get_vocab_size()))), skip_special_tokens=False)
    except BaseException as error:
        if not is_the_librarys(error):
            raise
        raise InputError(f"{name}: it fails on a text: {error}.") from error


def is_the_librarys(error: BaseException) -> bool:
    """Whether the library raised it: Exception itself for flaws, PanicException, which is none, where it breaks."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _steps(part: Any) -> Iterator[dict[str, Any]]:
    """A normalizer, pre-tokenizer, .. as its single steps, whatever is nested in what."""
    waiting = [part]
    while waiting:
        step = waiting.pop()
        if isinstance(step, dict):
            yield step
            for key in ("normalizers", "pretokenizers", "processors", "decoders"):
                if isinstance(step.get(key), list):
                    waiting += reversed(step[key])


def _problems_of(step: dict[str, Any]) -> Iterator[str]:
    pattern = step.get("pattern")
    if isinstance(pattern, dict) and isinstance(pattern.get("Regex"), str):
        regex = pattern["Regex"]
        if problem := pattern_problem(regex):
            shown = regex if len(regex) < 100 else regex[:100] + ".."
            yield f'the pattern "{shown}" {problem}.'
    if step.get("type") == "Precompiled" and (problem := _charsmap_problem(step.get("precompiled_charsmap"))):
        yield problem
    pieces = step.get("single")
    if step.get("type") == "TemplateProcessing" and isinstance(pieces, list):
        texts = [
            each["Sequence"] for each in pieces if isinstance(each, dict) and isinstance(each.get("Sequence"), dict)
        ]
        if len(texts) != 1 or texts[0].get("id") != "A":
            yield "its template for a single text must hold that text exactly once."


def _growth(steps: Iterator[dict[str, Any]]) -> float:
    """How many times as long a text can become."""
    growth, seen = 1.0, set()
    for step in steps:
        kind = str(step.get("type"))
        pattern, content = step.get("pattern"), step.get("content")
        if kind == "Replace" and isinstance(content, str) and isinstance(pattern, dict):
            found = pattern.get("String")
            # A regular expression may match nothing, before and behind each character.
            growth *= max(1.0, len(content) / max(1, len(found)) if isinstance(found, str) else 1 + len(content))
        elif kind == "Prepend" and isinstance(step.get("prepend"), str):
            growth *= 1 + len(step["prepend"])
        elif "" in (step.get("word_delimiter_token"), step.get("suffix")):  # of CTC and BPE decoders
            growth *= 3  # nothing is found around each character, and becomes a space
        elif kind == "ByteLevel":
            growth *= 2 if kind in seen else 4
        elif kind == "Precompiled":
            growth *= max([1, *map(len, _charsmap(step.get("precompiled_charsmap"))[1].split(b"\0"))])
        elif kind in EXPANDS and kind not in seen:  # a second time there is nothing left to do
            growth *= EXPANDS[kind]
        seen.add(kind)
        growth = min(growth, 1e300)
    return growth


def _charsmap(encoded: Any) -> tuple[bytes, bytes]:
    """The trie and the texts of a SentencePiece table of characters; nothing of what is none."""
    try:
        blob = base64.b64decode(encoded or "", validate=True)
    except (binascii.Error, TypeError, ValueError):
        return b"", b""
    length = int.from_bytes(blob[:4], "little")
    return blob[4 : 4 + length], blob[4 + length :]


def _charsmap_problem(encoded: Any) -> str | None:
    if not encoded:
        return None
    trie, texts = _charsmap(encoded)
    try:
        size = int.from_bytes(base64.b64decode(encoded, validate=True)[:4], "little")
    except (binascii.Error, TypeError, ValueError):
        return "its precompiled_charsmap is not Base64."
    if not size or size % 4 or size != len(trie) or not texts:
        return "its precompiled_charsmap is damaged: its parts do not have the stated length."
    return None


def pattern_problem(pattern: str) -> str | None:
    """Why finding a regular expression could take longer than any text is worth; None where it could not.

    What is asked is that nothing repeats what repeats itself, and nothing is referred to.
    """
    if len(pattern) > PATTERN:
        return f"has {len(pattern):,} characters; the limit is {PATTERN:,}"
    return next(_pattern_problems(pattern), None)


def _pattern_problems(pattern: str) -> Iterator[str]:
    groups = [False]  # whether there is something in each open one that repeats
    inner = repeated = False  # of the part before: whether it holds such, and whether it is repeated itself
    for kind, part in _parts(pattern):
        if kind == "count":
            if max([0, *map(int, re.findall(r"\d+", part))]) > REPEATS:
                yield f"repeats something more than {REPEATS} times"
            if repeated or (inner and not part.startswith("?")):
                yield "repeats a part that repeats already"
            groups[-1] = repeated = True
            continue
        inner = repeated = False
        if kind == "open":
            groups.append(False)
        elif kind == "close" and len(groups) > 1:
            inner = groups.pop()
            groups[-1] |= inner
        elif kind == "other":
            yield f"has a part that Transduce does not know: {part}"
        if len(groups) > DEPTH:
            yield f"nests groups more than {DEPTH} deep"


def _parts(pattern: str) -> Iterator[tuple[str, str]]:
    """Its signs, each with its kind: count, open, close, plain (finds one character or a place), other."""
    at = 0
    while at < len(pattern):
        found = PARTS_OF_A_PATTERN.match(pattern, at)
        end = _end_of_class(pattern, at) if pattern[at] == "[" else found.end() if found else at + 3
        yield (found.lastgroup or "plain") if found else "other", pattern[at:end]
        at = end


def _end_of_class(pattern: str, at: int) -> int:
    """Behind the class of characters that begins here."""
    depth = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == "[":
            depth += 1
            at += pattern[at + 1 : at + 2] == "^"
            at += pattern[at + 1 : at + 2] == "]"  # the first one stands for itself
        elif pattern[at] == "]":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return len(pattern)
