"""How alike line i of one side and line i + k of the other are, judged by what the corpus itself teaches.

The corpus is cut into blocks. Even blocks are judged by word vectors learned from odd blocks and the other
way round, so that having been seen together in training cannot pass for being alike.

Shape letters: L source lines, S offsets, D dimensions, N and M lines of a block and of its target window.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from transduce.doctor.alignment import Stretch, partners_of
from transduce.doctor.association import Association, embed, learn, vocabulary
from transduce.doctor.scan import Progress, ScannedSide

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

LEARNED_FROM = 40_000  # lines at most
NEIGHBOURS = 100  # offsets this near one another share a window of the target


class Comparison:
    """Two sides and the word vectors learned from them so far (one set per half of the blocks)."""

    def __init__(self, source: ScannedSide, target: ScannedSide, progress: Progress) -> None:
        self.source, self.target = vocabulary(source.words), vocabulary(target.words)
        self.lines = len(source)
        self.block = int(np.clip(len(source) // 20, 16, 1024))
        self.learned: list[Association] = []
        self._progress = progress

    def sample(self, max_lines: int) -> Rows:
        """Numbers of blocks spread evenly over the corpus, in neighbouring pairs: both halves must teach."""
        pairs = max(self.lines // (2 * self.block), 1)
        wanted = min(pairs, max(max_lines // (2 * self.block), 1))
        chosen = np.unique(np.linspace(0, pairs - 1, wanted).astype(np.int64))
        return np.stack([2 * chosen, 2 * chosen + 1], axis=1).reshape(-1)

    def rows_of(self, blocks: Rows) -> Rows:
        """The source rows in those blocks."""
        rows = (blocks[:, None] * self.block + np.arange(self.block)).reshape(-1)
        return rows[rows < self.lines]

    def learn_from(self, parts: list[Stretch], max_lines: int = LEARNED_FROM) -> None:
        """Learn word vectors from the lines that `parts` puts together, or a sample of them."""
        self._progress("learning which words go together", 0)
        pairs = partners_of(self.rows_of(self.sample(max_lines)), parts, len(self.target))
        half = pairs.source_rows // self.block % 2
        self.learned = [
            learn(self.source, self.target, pairs.source_rows[half != judged], pairs.target_rows[half != judged])
            for judged in (0, 1)
        ]

    def similarity(self, offsets: list[int], blocks: Rows | None = None) -> dict[int, Floats]:
        """For each offset the cosine of line i and line i + offset, for all rows or for those of `blocks`.

        NaN where there is no such line, or where either line has no telling word.
        """
        if blocks is None:
            blocks = np.arange(-(-self.lines // self.block))
        alike_LS = np.concatenate([self._similarity_of_block(int(block), offsets) for block in blocks])
        return dict(zip(offsets, alike_LS.T, strict=True))

    def _similarity_of_block(self, block: int, offsets: list[int]) -> Floats:
        first, last = block * self.block, min((block + 1) * self.block, self.lines)
        words = self.learned[block % 2]
        source_ND = embed(self.source, words.source_vectors, first, last)
        alike_NS = np.full((len(source_ND), len(offsets)), np.nan, np.float32)
        for columns in near_one_another(offsets):
            window = min(offsets[c] for c in columns), max(offsets[c] for c in columns)
            start = max(first + window[0], 0)
            stop = min(last + window[1], len(self.target))
            if start < stop:
                target_MD = embed(self.target, words.target_vectors, start, stop)
                for column in columns:
                    fill_cosines(alike_NS[:, column], source_ND, target_MD, first + offsets[column] - start)
        self._progress("comparing lines", len(source_ND))
        return alike_NS


def near_one_another(offsets: list[int]) -> Iterator[list[int]]:
    """Places in `offsets`, grouped so that no group has a wide gap."""
    group: list[int] = []
    for place in sorted(range(len(offsets)), key=lambda place: offsets[place]):
        if group and offsets[place] - offsets[group[-1]] > NEIGHBOURS:
            yield group
            group = []
        group.append(place)
    yield group


def fill_cosines(alike_N: Floats, source_ND: Floats, target_MD: Floats, shift: int) -> None:
    """Write the cosine of source line n and target line n + shift; leave NaN where one is missing or zero."""
    first, last = max(0, -shift), min(len(source_ND), len(target_MD) - shift)
    if first >= last:
        return
    left_ND, right_ND = source_ND[first:last], target_MD[first + shift : last + shift]
    spoken = left_ND.any(axis=1) & right_ND.any(axis=1)
    alike_N[first:last] = np.where(spoken, np.einsum("nd,nd->n", left_ND, right_ND), np.nan)
