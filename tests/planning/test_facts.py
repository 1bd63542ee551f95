"""What a corpus is, in numbers, is not decided by a few odd lines of it."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from transduce.core.errors import InputError
from transduce.data.corpus import PairFiles
from transduce.planning.facts import facts_of

WORDS = [f"word{number}" for number in range(500)]


def written(path: Path, pairs: list[tuple[str, str]]) -> tuple[PairFiles]:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return (PairFiles(tsv=str(path)),)


def test_a_file_in_one_line_changes_nothing(tmp_path: Path) -> None:
    drawn = random.Random(1)
    pairs = [tuple(" ".join(drawn.choices(WORDS, k=9)) + "." for _ in "st") for _ in range(200)]
    usual = facts_of(written(tmp_path / "a.tsv", pairs), Path())
    assert usual.source.kind == "sentences"
    odd = facts_of(written(tmp_path / "b.tsv", [*pairs[:100], ("and " * 100_000, "x."), *pairs[100:]]), Path())
    assert odd == replace(usual, pairs=201)


def test_too_few_pairs_with_text_are_refused(tmp_path: Path) -> None:
    files = written(tmp_path / "a.tsv", [("a", "b"), ("", "b"), ("a", " "), ("c", "d")])
    with pytest.raises(InputError, match="expected at least 3 pairs with text on both sides; found 2"):
        facts_of(files, Path())
