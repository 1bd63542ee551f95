"""Transduce on a model file, as `transduce predict` decodes; arguments in `decoding`, --precision and --prune.

Batches: a worker of one thread for each core; one sentence at a time: one thread.
"""

from functools import partial

import numpy as np
import torch
from decoding import END, WORKERS, Rows, arguments, in_batches, measure
from work import PAD, START

import transduce
from transduce.allocator import keep_freed_memory
from transduce.data.collate import padded
from transduce.search.run import search
from transduce.search.settings import Search
from transduce.workers import each

if __name__ == "__main__":
    asked = arguments(("--precision", "fp32"), ("--prune", None))
    keep_freed_memory()
    model = transduce.load(asked.model, precision=asked.precision).model
    prune = float(asked.prune) if asked.prune else None
    settings = Search(method="beam" if asked.beam > 1 else "greedy", beam=asked.beam, prune=prune)
    torch.set_num_threads(1)
    side_by_side = partial(each, workers=1 if asked.batch == 1 else WORKERS)

    def translate(sources: Rows) -> Rows:
        source = padded([np.asarray(ids, np.int32) for ids in sources], end=END)
        limits = [settings.limit(int(length)) for length in source.lengths]
        found = search(
            model, source, len(sources), settings, start=START, end=END, limits=limits, forbidden=[PAD, START]
        )
        return [[token for token in best[0].tokens if token != END] for best in found]

    measure(asked, lambda sources: in_batches(sources, asked.batch, translate, side_by_side))
