"""Held-out sentences that go into the model file, and where to look: what the explorer opens on."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import nn

from transduce.core.errors import InputError
from transduce.data.columns.frames import Frames
from transduce.data.columns.story import Story
from transduce.data.columns.vectors import Vectors
from transduce.data.speech.audio import JOIN, name_of
from transduce.data.speech.uploads import uploaded
from transduce.data.speech.wav import wav
from transduce.data.structures.stories import story_of
from transduce.interpret.drawings import LOOK_BACK, drawing_name
from transduce.interpret.opening import opening
from transduce.interpret.words import words_in
from transduce.search.settings import Search
from transduce.tasks.base import Task
from transduce.tasks.protocols import Dataset
from transduce.training.plots import prediction_with_attention
from transduce.training.validation import spread

WORDS = range(8, 13)  # of a sentence that is worth looking at and fits its box
SHORT = range(4, 13)  # where no other is there
LETTERS = 80
DRAWN = 2000  # of an input that is no text, or of which all are longer
ROWS_SET = range(8, 13)  # of vectors, those that hold more than zeros
FACTS, SENTENCES = 3, 12  # of a story
BEGINNING = 6  # words that a language model is to go on from
ROWS, TOKENS = 200, 120  # of a store without texts: how many rows are looked at, and how far
RECORDINGS, SOUND_BYTES = 20, 100_000  # recordings that are listened to; 100 kB are 6 s at 8 kHz


def examples(task: Task, held_out: Dataset | None, count: int, first: Sequence[str] = ()) -> list[str]:
    """`first`, and behind them sources of `held_out` that are worth looking at, evenly spread over it; `count` in all,
    none twice.

    Of sentences those of 8 to 12 words, or at least of 4; of a script without spaces each character is a word. Of
    stories those with three supporting facts; of vectors 8 to 12 that are not zeros. Of a task without sources the
    beginnings of lines. Of speech one recording, the longest of some that fits into 100 kB, as a data: URL.
    """
    if held_out and count and "source" in task.columns and task.columns["source"].is_sound:
        return _recording(task, held_out)
    texts = list(dict.fromkeys(_sources(task, held_out))) if held_out else []
    wanted = max(0, count - len(first))
    fitting = _fitting(task, [text for text in texts if text not in first], wanted)
    return [*first[:count], *spread(_telling(task, fitting, wanted), wanted)]


def _fitting(task: Task, texts: list[str], wanted: int) -> list[str]:
    """Those that fit the box; where none does, as of questions with their texts, the shortest that can be drawn."""
    longest = DRAWN if task.drawn_alone else LETTERS
    fitting = [text for text in texts if len(text) <= longest]
    return fitting or sorted((text for text in texts if len(text) <= DRAWN), key=len)[:wanted]


def opening_of(model: nn.Module, task: Task, texts: Sequence[str], search: Search | None) -> dict[str, Any] | None:
    """The head and the row where the attention of these examples is best seen, as `transduce.interpret.opening` finds
    them; None where nothing attends, or the task draws another picture.

    Args:
        texts: what `examples` gave; the first two may be a pair.
        search: how outputs are found; None: the quickest way.
    """
    if task.drawn_alone or not task.explorable or drawing_name(model, task) not in ("", LOOK_BACK):
        return None
    try:
        found = opening([prediction_with_attention(model, task, text, search).attention() for text in texts[:2]])
    except InputError:  # an empty output of a model that writes all words at once
        return None
    return found and found._asdict()


def _telling(task: Task, texts: list[str], wanted: int) -> list[str]:
    """Those that show the most: of the first kind of which there are enough, or else any."""
    source = task.columns.get("source")
    if isinstance(source, Story):
        kinds = [[text for text in texts if _facts(text) == facts] for facts in (FACTS, 2)]
        return next(filter(None, kinds), texts)
    if isinstance(source, Vectors):
        return [text for text in texts if _rows_set(source, text) in ROWS_SET] or texts
    sizes = [_size(text) for text in texts]
    kinds = [[text for text, size in zip(texts, sizes, strict=True) if size in some] for some in (WORDS, SHORT)]
    return kinds[0] if len(kinds[0]) >= wanted else kinds[1] or texts


def _facts(text: str) -> int:
    """The supporting facts of a story that is short enough to be read at a glance; 0 of a longer one."""
    found = story_of(text)
    return len(found.facts) if len(found.parts) <= SENTENCES else 0


def _rows_set(source: Vectors, text: str) -> int:
    return int(np.any(source.encode([text])[0] != 0, 1).sum())


def _size(text: str) -> int:
    """Words of a text, without punctuation marks; a character of a script without spaces is one."""
    return sum(any(map(str.isalnum, text[first:last])) for first, last in words_in(text))


def _sources(task: Task, held_out: Dataset) -> list[str]:
    if "source" not in task.columns:
        return _beginnings(task, held_out)
    return [source.strip() for source, _ in held_out.texts if source.strip()]


def _recording(task: Task, held_out: Dataset) -> list[str]:
    """The bytes of one recording; none where features are read, or all are too long."""
    column, found = task.columns["source"], list[tuple[bytes, str]]()
    if not isinstance(column, Frames) or column.rate is None:
        return []
    for name, _ in spread(held_out.texts, RECORDINGS):
        try:
            sound_N = column.sound(name)
        except InputError:  # a file that has gone since it was read for training
            continue
        if sound_N is not None and 0 < 2 * len(sound_N) <= SOUND_BYTES:
            found.append((wav(sound_N, column.rate), name))
    if not found:
        return []
    content, name = max(found, key=lambda each: len(each[0]))
    files = [re.split("[/:]", each)[-1] for each in name_of(name).split(JOIN)]
    return [uploaded(content, JOIN.join(files))]


def _beginnings(task: Task, held_out: Dataset) -> list[str]:
    """The first words of the first line that begins in each row, where there are enough of them."""
    store, tokenizer = held_out.store, task.tokenizers["target"]
    end = tokenizer.end
    found = []
    for ids in store.read("target", np.arange(min(len(store), ROWS))):
        line = ids[:TOKENS].tolist()
        line = line[line.index(end) + 1 :] if end in line else line
        line = line[: line.index(end)] if end in line else line
        found.append(_beginning(tokenizer.decode(line)))
    return [text for text in found if text]


def _beginning(line: str) -> str:
    """Its first words; "" where it has fewer. Without spaces between words, these are characters."""
    words = line.split()
    if len(words) >= BEGINNING:
        return " ".join(words[:BEGINNING])
    spans = words_in(line)
    spaceless = len(spans) >= BEGINNING > 2 * len(words)
    return line[: spans[BEGINNING - 1][1]].strip() if spaceless else ""
