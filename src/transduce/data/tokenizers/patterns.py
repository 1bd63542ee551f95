r"""What the library `tokenizers` cannot take as it is: patterns that take long, texts that are none.

A tokenizer.json may hold a pattern such as ` +\z`, "spaces at the end". In a long run of spaces that ends elsewhere it
is tried from every space to the end of the run: 100,000 spaces take a minute. `(?<! ) ++\z` finds the same and is tried
once a run. In general, for X of one character and an assertion A about a place: where `X+A` is found, it begins where
its run of X begins, since it would have been found from there first.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from transduce.core.errors import InputError, TransduceError

RUN_UP_TO = re.compile(r"(?P<one>[^\\\[\](){}.*+?|^$]|\\[sShHdDwW]|\[\^?[^\[\]\\&^]+\])\+(?P<end>\\z|\\Z|\$)")
PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")  # of a tokenizer.json, that may hold patterns
SURROGATE = re.compile("[\ud800-\udfff]")


def linear(text: str) -> str:
    """A tokenizer.json that gives the same tokens, with patterns of a run at the end that are tried once a run."""
    table = json.loads(text)
    if not isinstance(table, dict):
        return text
    parts = {name: table[name] for name in PARTS if name in table}
    mended = _mended(parts)
    return text if mended == parts else json.dumps({**table, **mended}, ensure_ascii=False)


def once_a_run(pattern: str) -> str:
    """A pattern that finds what `pattern` does; another one only where that is one character's run up to an end."""
    found = RUN_UP_TO.fullmatch(pattern)
    if found is None:
        return pattern
    one, end = found["one"], found["end"]
    return f"(?<!{one}){one}+{'+' if end == chr(92) + 'z' else ''}{end}"  # the possessive ++ never goes back


def _mended(part: Any) -> Any:
    if isinstance(part, list):
        return [_mended(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        name: once_a_run(each) if name == "Regex" and isinstance(each, str) else _mended(each)
        for name, each in part.items()
    }


def refuse_surrogates(texts: Sequence[str]) -> None:
    """Raises InputError for texts that no encoding can write; all are named."""
    problems = [
        f"text {number}: its character {found.start() + 1} is U+{ord(found[0]):04X}, half of a character (a lone "
        'surrogate), which UTF-8 cannot hold; remove it: text.encode("utf-8", "replace").decode().'
        for number, text in enumerate(texts, 1)
        if isinstance(text, str) and (found := SURROGATE.search(text))
    ]
    if problems:
        raise InputError(problems)


@contextmanager
def as_our_errors(texts: Sequence[str]) -> Iterator[None]:
    """What the library raises over `texts`, as errors of ours."""
    try:
        yield
    except (TypeError, UnicodeEncodeError):
        refuse_surrogates(texts)
        raise
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # pyo3's, which cannot be imported
            raise
        raise TransduceError(f"the tokenizer failed on this text: {error}.") from error
