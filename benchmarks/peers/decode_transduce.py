"""Transduce on a model file, as `transduce predict` decodes; arguments in `decoding` and below.

The lexicon that shortlists are made of is learnt from the work's training pairs, before the clock starts.
Batches: a worker of one thread for each core; one sentence at a time: one thread.
"""

from functools import partial
from pathlib import Path

import numpy as np
import torch
from decoding import END, WORKERS, Rows, arguments, in_batches, measure
from work import PAD, START, Work

import transduce
from transduce.data.collate import padded
from transduce.data.lexicon import Lexicon, LinkedPairs, learn
from transduce.runtime.allocator import keep_freed_memory
from transduce.runtime.workers import parallel_map
from transduce.search.dispatch import search
from transduce.search.request import Request
from transduce.search.settings import Search


def lexicon_of(path: Path, candidates: int) -> tuple[Lexicon, int]:
    """What the training pairs of the work teach, and how many words there are."""
    work = Work(path)
    sides = [np.concatenate([np.asarray(ids, np.int64) for ids in rows]) for rows in (work.source, work.target)]
    lengths = [np.array([len(ids) for ids in rows]) for rows in (work.source, work.target)]
    pairs = LinkedPairs(*sides, *lengths, of=len(work.source))
    return learn(pairs, (work.vocabulary, work.vocabulary), candidates, candidates), work.vocabulary


if __name__ == "__main__":
    asked = arguments(("--precision", "fp32"), ("--prune", None), ("--shortlist", None))
    keep_freed_memory()
    model = transduce.load(asked.model, precision=asked.precision).model
    prune = float(asked.prune) if asked.prune else None
    candidates = int(asked.shortlist) if asked.shortlist else None
    lexicon, words = lexicon_of(asked.work, candidates) if candidates else (None, 0)
    settings = Search(method="beam" if asked.beam > 1 else "greedy", beam=asked.beam, prune=prune)
    torch.set_num_threads(1)
    side_by_side = partial(parallel_map, workers=1 if asked.batch == 1 else WORKERS, releases_gil=True)

    def translate(sources: Rows) -> Rows:
        source = padded([np.asarray(ids, np.int32) for ids in sources], end=END)
        limits = [settings.limit(int(length)) for length in source.lengths]
        allowed_BV = lexicon.allowed(sources, candidates, candidates, words) if lexicon and candidates else None
        found = search(
            model,
            source,
            [Request(limit) for limit in limits],
            settings,
            start=START,
            end=END,
            forbidden=[PAD, START],
            shortlist=None if allowed_BV is None else torch.from_numpy(allowed_BV),
        )
        return [[token for token in best[0].tokens if token != END] for best in found]

    measure(asked, lambda sources: in_batches(sources, asked.batch, translate, side_by_side))
