"""A running text as parallel streams, read in order, so that a state can be carried from batch to batch.

The rows of a text (`transduce.data.encoding.windows`) are cut into as many contiguous streams of equal length as a
batch has rows. Batch t holds the t-th row of every stream. Nothing is left out: where the rows cannot be shared evenly,
the last batch holds a row of the first streams only. The text's last row, which may be short, is the last of its
stream.
"""

from collections.abc import Iterator

import numpy as np

from transduce.data.batches import Rows
from transduce.data.store import BLOCK, Store


class StreamBatches:
    """The batches of one text in `streams` streams; the same in every epoch.

    Args:
        store: rows of running text, in order.
        streams: rows of a batch; at most as many as the text has.
    """

    def __init__(self, store: Store, streams: int) -> None:
        self.stores = [store]
        rows, streams = len(store), max(1, min(streams, len(store)))
        self._lengths = np.full(streams, rows // streams)
        self._lengths[: rows % streams] += 1
        self._firsts = np.cumsum(self._lengths) - self._lengths

    def epoch(self, number: int, start: int = 0) -> Iterator[Rows]:
        """The batches from the `start`-th on; all but the first go on where the one before stopped."""
        for step in range(start, self.count(number)):
            firsts = self._firsts[self._lengths > step]
            yield Rows(np.zeros(len(firsts), dtype=np.int64), firsts + step, step > 0)
            if step % BLOCK == BLOCK - 1:
                self.stores[0].release()

    def count(self, number: int) -> int:
        """Rows of the longest stream."""
        return int(self._lengths[0])
