"""When each word of a recording is said: what is written is aligned with the sound, by the CTC output of the model.

The likeliest alignment of the tokens (`transduce.layers.ctc.best_alignment`) gives each token its first and its last
place, and a place so many frames of 10 ms. A word lasts from the first place of its first token to the end of the last
place of its last token. CTC holds a token in few places, often in one, and blanks in the others: words begin about
where they are heard, and end early.

A word is what stands between white space, with the marks beside it. Each character of a script without spaces between
words, such as Chinese, is one.

Shapes: P places of a recording, T tokens, B recordings.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import regex
import torch

from transduce.data.collate import padded
from transduce.data.columns.tokens import Tokens
from transduce.data.speech.filterbank import SHIFT
from transduce.inference.decode import SearchedModel, reads
from transduce.inference.inputs import sources
from transduce.inference.prediction import Prediction, SpokenWord
from transduce.inference.splitting import Pieces
from transduce.interpret.token_spans import frames_a_place, written_tokens
from transduce.interpret.words import SPACELESS, Span
from transduce.layers.ctc import IMPOSSIBLE, aligned_tokens
from transduce.models.protocols import Aligns, PredictsJointly

Times = tuple[float, float]  # seconds
CUTS = regex.compile(rf"(?=[{SPACELESS}])\P{{M}}|(?<=[{SPACELESS}][\p{{M}}\p{{P}}]*)(?![{SPACELESS}])[\p{{L}}\p{{N}}]")
LETTER = regex.compile(r"[\p{L}\p{N}]")


def times_words(searched: SearchedModel) -> bool:
    """Whether a model reads recordings and aligns what it writes with them."""
    model: Any = searched.model
    aligns = isinstance(model, Aligns) or (isinstance(model, PredictsJointly) and bool(model.ctc_weight))
    return aligns and not searched.others and reads(searched.task).is_sound


def with_word_times(
    searched: SearchedModel, pieces: Pieces, found: Sequence[Prediction], batch_size: int
) -> list[Prediction]:
    """The predictions of all pieces with their `words`, whose times count from the beginning of the piece.

    One that the alignment cannot hold, as it has more tokens than places, has none. So have all of a model that does
    not align.
    """
    timed = list(found)
    if not times_words(searched):
        return timed
    target = searched.task.columns["target"]
    assert isinstance(target, Tokens)
    for batch in pieces.batches(batch_size):
        ids = [target.ids(found[place].tokens) for place in batch]
        spans = _token_times(searched, [pieces.ids[place] for place in batch], ids)
        for place, tokens, times in zip(batch, ids, spans, strict=True):
            words = _words_of(target, tokens, times) if times else ()
            timed[place] = replace(timed[place], spoken_words=words)
    return timed


@torch.inference_mode()
def _token_times(searched: SearchedModel, frames: Sequence[Any], ids: Sequence[Sequence[int]]) -> list[list[Times]]:
    """From when to when each token of each recording lasts; [] where there is no alignment."""
    model: Any = searched.model
    device = next(model.parameters()).device
    source = sources([list(frames)], device)
    assert source is not None
    places = model.align(source) if isinstance(model, Aligns) else model.align_encoder(source)
    token_BT, length_B = (each.to(device) for each in padded([torch.tensor(row).int().numpy() for row in ids]))
    normed_BPV = places.values.log_softmax(-1, dtype=torch.float32)
    aligned = aligned_tokens(normed_BPV, places.lengths, token_BT, length_B, searched.task.start)
    rows = zip(*(each.tolist() for each in (*aligned, places.lengths, source.lengths)), ids, strict=True)
    return [
        _seconds(first[: len(row)], last[: len(row)], count, total) if likely > IMPOSSIBLE / 2 else []
        for first, last, likely, count, total, row in rows
    ]


def _seconds(first: Sequence[int], last: Sequence[int], places: int, frames: int) -> list[Times]:
    """Of places, in a recording of so many frames."""
    step = _frames_of_a_place(frames, places) * SHIFT
    return [(a * step, min((b + 1) * step, frames * SHIFT)) for a, b in zip(first, last, strict=True)]


def _frames_of_a_place(frames: int, places: int) -> float:
    """How many frames a place stands for: a power of 2 where that gives as many places, else on average."""
    step = frames_a_place(frames, places)
    return step if -(-frames // step) == places else frames / places


def _words_of(target: Tokens, ids: Sequence[int], times: Sequence[Times]) -> tuple[SpokenWord, ...]:
    """The words of an output, from the times of its tokens. A token of several characters is divided evenly."""
    text = target.decode(ids)
    begins, ends = [float("inf")] * len(text), [0.0] * len(text)
    for token, (start, end) in zip(written_tokens(target.tokenizer, ids, text), times, strict=True):
        share = (end - start) / max(1, token.end - token.start)
        for number, place in enumerate(range(token.start, token.end)):
            begins[place] = min(begins[place], start + number * share)
            ends[place] = max(ends[place], start + (number + 1) * share)
    heard = [(span, min(begins[slice(*span)]), max(ends[slice(*span)])) for span in spoken_words(text)]
    return tuple(SpokenWord(text[a:b], round(start, 3), round(end, 3)) for (a, b), start, end in heard)


def spoken_words(text: str) -> list[Span]:
    """The words of a text, with the marks beside them; together they are the text without its white space."""
    return [span for match in regex.finditer(r"\S+", text) for span in _cut(match[0], match.start())]


def _cut(run: str, first: int) -> list[Span]:
    """The words of a run without white space, which begins at character `first`."""
    cuts = [place for place in (each.start() for each in CUTS.finditer(run)) if LETTER.search(run[:place])]
    bounds = [0, *cuts, len(run)]
    return [(first + a, first + b) for a, b in pairwise(bounds) if a < b]
