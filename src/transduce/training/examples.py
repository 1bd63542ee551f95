"""Held-out sentences that go into the model file: what the explorer opens on is then of the model's own domain."""

from collections.abc import Sequence

import numpy as np

from transduce.tasks.base import Task
from transduce.tasks.protocols import Dataset
from transduce.training.validation import spread

WORDS = range(4, 13)  # of a sentence that is worth looking at and fits its box
LETTERS = 80
DRAWN = 2000  # of an input that is no text
BEGINNING = 6  # words that a language model is to go on from
ROWS, TOKENS = 200, 120  # of a store without texts: how many rows are looked at, and how far


def examples(task: Task, held_out: Dataset | None, count: int, first: Sequence[str] = ()) -> list[str]:
    """`first`, and behind them short sources of `held_out`, evenly spread over it; `count` in all, none twice.

    Of a task without sources the beginnings of lines.
    """
    texts = list(dict.fromkeys(_sources(task, held_out))) if held_out else []
    longest = DRAWN if task.drawn_alone else LETTERS
    fitting = [text for text in texts if len(text) <= longest and text not in first]
    telling = [text for text in fitting if len(text.split()) in WORDS]
    more = spread([(text, "") for text in telling or fitting], max(0, count - len(first)))
    return [*first[:count], *(text for text, _ in more)]


def _sources(task: Task, held_out: Dataset) -> list[str]:
    if "source" not in task.columns:
        return _beginnings(task, held_out)
    if task.columns["source"].is_sound:
        return []  # names of files, which whoever has the model has not
    return [source.strip() for source, _ in held_out.texts if source.strip()]


def _beginnings(task: Task, held_out: Dataset) -> list[str]:
    """The first words of the first line that begins in each row, where there are enough of them."""
    store, tokenizer = held_out.store, task.tokenizers["target"]
    end = tokenizer.end
    found = []
    for ids in store.read("target", np.arange(min(len(store), ROWS))):
        line = ids[:TOKENS].tolist()
        line = line[line.index(end) + 1 :] if end in line else line
        line = line[: line.index(end)] if end in line else line
        found.append(" ".join(tokenizer.decode(line).split()[:BEGINNING]))
    return [text for text in found if len(text.split()) == BEGINNING]
