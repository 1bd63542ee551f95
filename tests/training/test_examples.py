"""What a model file keeps for the explorer to open on: short sentences of its own domain."""

import json
from pathlib import Path

import numpy as np
import pytest

from random_models import language_model, translator
from transduce.core.model_file import load_model_file
from transduce.core.model_summary import describe
from transduce.data.store import Store
from transduce.interpret.capabilities import described
from transduce.tasks.protocols import Dataset
from transduce.training.examples import LETTERS, examples

PIPELINE = translator()


class Rows:
    """A store of encoded lines."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.rows = [np.asarray(row, np.int32) for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, field: str, rows: np.ndarray) -> list[np.ndarray]:
        return [self.rows[row] for row in rows]


def held_out(texts: list[str], store: Store | None = None) -> Dataset:
    return Dataset(store, [(text, "target") for text in texts])  # type: ignore[arg-type]


def test_a_run_keeps_sources_of_its_validation_data(tiny_run: Path, tiny_corpus: Path) -> None:
    kept = load_model_file(tiny_run).provenance["examples"]
    lines = (tiny_corpus / "valid.digits").read_text(encoding="utf-8").splitlines()
    assert len(set(kept)) == 4 and set(kept) <= set(lines)
    assert all(4 <= len(text.split()) <= 12 for text in kept)
    assert describe(tiny_run)["provenance"]["examples"] == kept


def test_they_are_short_and_none_is_there_twice() -> None:
    texts = ["a", "one two three four", "", "one two three four", "w " * 200, "five six seven eight nine"]
    found = examples(PIPELINE.task, held_out(texts), 4)
    assert found == ["one two three four", "five six seven eight nine"]
    assert examples(PIPELINE.task, held_out(["两只狗在跑。", "x" * (LETTERS + 1)]), 4) == ["两只狗在跑。"]
    assert examples(PIPELINE.task, None, 4) == examples(PIPELINE.task, held_out([]), 0) == []


def test_those_asked_for_come_first() -> None:
    texts = [f"one two three {number}" for number in range(100)]
    found = examples(PIPELINE.task, held_out(texts), 4, ("the pair", "one two three 0"))
    assert found[:2] == ["the pair", "one two three 0"] and len(set(found)) == 4
    assert examples(PIPELINE.task, held_out(texts), 1, ("the pair", "its other half")) == ["the pair"]


def test_a_language_model_is_given_beginnings_of_lines() -> None:
    task = language_model().task
    words = task.tokenizers["target"]
    lines = ["ba de fi go ku ba de fi", "go ku ba de fi go ku", "ba de"]
    encoded = [words.encode([line])[0] for line in lines]
    row = [*encoded[0][3:], task.end, *encoded[1], task.end, *encoded[0]]
    found = examples(task, held_out([], Rows([encoded[0], row, encoded[2]])), 4)  # type: ignore[arg-type]
    assert found == ["ba de fi go ku ba", "go ku ba de fi go"]


@pytest.mark.parametrize("found", [None, "text", {"a": 1}, [1, None, ["x"], " ", "y" * 2001, "\ud800"], 7])
def test_a_file_may_hold_anything(found: object) -> None:
    """A file whose JSON says \\ud800 as well, which is no text."""
    told = described("m", PIPELINE.model, PIPELINE.task, PIPELINE.recipe, False, {"examples": found})
    assert told["examples"] == []
    json.dumps(told, ensure_ascii=False).encode()
