"""What is drawn at random from data is the same in every version, or has another version: a figure names what it drew.

Where a test here fails, runs that have begun would go on with other examples, and figures could not be compared: give
the draw a new version, as `transduce.data.hold_out` has, and keep the old one.
"""

import hashlib
import random
from pathlib import Path

import numpy as np
import pytest

from transduce.data.corpus import chosen_numbers
from transduce.data.hold_out import VERSION, HoldOut, split_pairs
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.structures.graphs import folds_of
from transduce.tasks.extractive_qa import _drawn

WORDS = ["ba", "ke", "lira", "modol", "nu", "sa", "te", "wi", "fim", "gus"]
HELD_OUT = {1: "ba76d725f1a08a5e", 2: "b475631e844db451"}


@pytest.fixture
def pairs(tmp_path: Path) -> PairFiles:
    """Some with an empty side, some of one large group, which the versions of the draw take differently."""
    drawn = random.Random(3)
    rows = [[" ".join(drawn.choice(WORDS) for _ in range(drawn.randint(0, 9))) for _ in range(2)] for _ in range(1000)]
    rows += [[f"x {number} {drawn.choice(WORDS)}", "the same target"] for number in range(60)]
    (tmp_path / "a.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    return PairFiles(tsv="a.tsv")


@pytest.mark.parametrize("version", HELD_OUT)
def test_held_out_pairs_are_those_of_their_version(pairs: PairFiles, tmp_path: Path, version: int) -> None:
    amounts = HoldOut.model_validate({"validation": 50, "test": 30, "version": version})
    [parts] = split_pairs([pairs], tmp_path, amounts).parts
    assert hashlib.sha256(parts.tobytes()).hexdigest()[:16] == HELD_OUT[version]


def test_the_newest_version_is_usual() -> None:
    assert HoldOut().version == VERSION == max(HELD_OUT)


def test_other_draws_are_as_they_were() -> None:
    assert sorted(chosen_numbers(5, 1000, Path("a"))) == [607, 634, 669, 906, 958]
    assert folds_of([*"abcabcabcb"], 3, 7).tolist() == [0, 1, 0, 2, 2, 2, 1, 0, 1, 0]
    assert np.round([_drawn(text) for text in ("", "a text", "二")], 6).tolist() == [0.889416, 0.450219, 0.032398]
