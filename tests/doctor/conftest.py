"""A made-up parallel corpus with a lexicon of its own, in which one fault at a time can be planted."""

import gzip
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

LINES = 400
SYLLABLES = ["ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu"]

Write = Callable[..., Path]


def _word(number: int, ending: str) -> str:
    return SYLLABLES[number // 10] + SYLLABLES[number % 10] + ending


@pytest.fixture
def corpus() -> tuple[list[str], list[str]]:
    """400 pairs of 5 to 12 words out of 100, target words in reverse order; no pair twice, nothing odd."""
    dice = random.Random(7)
    sentences = [[dice.randrange(100) for _ in range(dice.randint(5, 12))] for _ in range(LINES)]
    return (
        [" ".join(_word(word, "n") for word in sentence) + "." for sentence in sentences],
        [" ".join(_word(99 - word, "x") for word in reversed(sentence)) + "!" for sentence in sentences],
    )


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes lines (text or bytes) to a file in a folder of the test's own."""

    def write_lines(name: str, lines: list[str] | list[bytes]) -> Path:
        path = tmp_path / name
        raws = [line if isinstance(line, bytes) else line.encode() for line in lines]
        path.write_bytes(b"".join(raw + b"\n" for raw in raws))
        return path

    return write_lines


@pytest.fixture(scope="session")
def multi30k(data_root: Path) -> Callable[[str], list[str]]:
    """The training lines of Multi30k in one language."""
    folder = data_root / "multi30k" / "raw"

    @cache
    def lines_of(language: str) -> list[str]:
        return gzip.decompress((folder / f"train.{language}.gz").read_bytes()).decode().split("\n")[:-1]

    return lines_of
