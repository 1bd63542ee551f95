"""Add a lexicon, learnt from the training pairs, to a model file, so that search can use shortlists of words.

Search with shortlists is in `transduce.search.shortlist`, learning a lexicon in `transduce.data.lexicon`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from transduce.core.errors import InputError
from transduce.core.model_file import ModelFile
from transduce.data.columns.packed import tokenizers_of as text_columns
from transduce.data.columns.packed import unpack
from transduce.data.encoding import open_pairs_store
from transduce.data.filters import NO_LIMITS, Dropped
from transduce.data.hold_out import TRAIN, VALIDATION
from transduce.data.lexicon import Lexicon
from transduce.data.pairs.pair_data import PairData
from transduce.data.store import BLOCK, Store
from transduce.data.tokenizers.tokenizer import Tokenizer

SENTENCES = 2000  # that a lexicon is tried on

Sides = tuple[Tokenizer, Tokenizer]
Progress = Callable[[int], None]  # told how many more lines are done


@dataclass(frozen=True)
class ShortlistUse:
    """Shortlists of a given size on some sentences: mean number of words, and share of reference tokens covered."""

    candidates: int
    words: float
    covered: float


class HeldOut(NamedTuple):
    """Sentences that a lexicon is tried on: token ids, and what they are called."""

    sources: list[list[int]]
    references: list[list[int]]
    name: str


def tokenizers_of(file: ModelFile) -> Sides:
    """The tokenizers of both sides.

    Raises:
        InputError: the model reads no source.
    """
    found = text_columns(unpack(file.tokenizers, file.columns))
    if not {"source", "target"} <= found.keys():
        raise InputError("a shortlist is for translation models; this one is not.")
    return found["source"], found["target"]


def training_stores(
    data: PairData, sides: Sides, cache: Path, tell: Callable[[str], None], progress: Progress
) -> list[Store]:
    """The training pairs as token ids, without those that `data.hold_out` draws; what was dropped is told.

    They come from `cache` where training has left them there.
    """
    stores = []
    split, corpora, root = data.split(), data.corpora(), Path(data.root)
    parts = split.parts if split else (None,) * len(corpora)
    for files, drawn in zip(corpora, parts, strict=True):
        kept = None if drawn is None else (drawn, TRAIN)
        store = open_pairs_store(files, root, sides, data.filters, cache, held_out=kept, progress=_more(progress))
        named = ", ".join(str(path) for path in files.paths(root))
        tell(f"{named}: {Dropped.from_dict(store.metadata['dropped']).report()}")
        stores.append(store)
    return stores


def held_out(data: PairData, sides: Sides, cache: Path, stores: Sequence[Store]) -> HeldOut:
    """The first validation pairs; where there are none, the first training pairs."""
    name, store, root = "training", stores[0], Path(data.root)
    if data.validation is not None:
        name, store = "validation", open_pairs_store(data.validation, root, sides, NO_LIMITS, cache)
    elif (split := data.split()) and split.count(VALIDATION):
        drawn = zip(data.corpora(), split.parts, strict=True)
        files, parts = next((files, parts) for files, parts in drawn if VALIDATION in parts)
        held = (parts, VALIDATION)
        name, store = "validation", open_pairs_store(files, root, sides, NO_LIMITS, cache, held_out=held)
    row_N = np.arange(min(len(store), SENTENCES, BLOCK))
    sources, references = ([ids.tolist() for ids in store.read(field, row_N)] for field in ("source", "target"))
    return HeldOut(sources, references, name)


def use(lexicon: Lexicon, candidates: Iterable[int], tried: HeldOut, size: int) -> list[ShortlistUse]:
    """What shortlists of so many candidates do to sentences; size: of the target's vocabulary."""
    found = []
    for count in candidates:
        allowed_BV = lexicon.allowed(tried.sources, count, count, size)
        covered = sum(int(allowed_V[ids].sum()) for allowed_V, ids in zip(allowed_BV, tried.references, strict=True))
        share = covered / sum(map(len, tried.references))
        found.append(ShortlistUse(count, float(allowed_BV.sum(1).mean()), share))
    return found


def with_lexicon(file: ModelFile, lexicon: Lexicon) -> ModelFile:
    """The same file with this lexicon, in place of another that it may have had."""
    tensors = torch.from_numpy(lexicon.candidates_SC), torch.from_numpy(lexicon.frequent_F)
    return replace(file, lexicon=tensors)


def _more(progress: Progress) -> Progress:
    """For a file's lines counted from its first."""
    done = 0

    def more(lines: int) -> None:
        nonlocal done
        progress(lines - done)
        done = lines

    return more
