"""The shortlist of a Firefox or Bergamot model, `lex.*.bin`, as a lexicon of ours.

    magic, checksum                   u64
    frequent, best                    u64: the first so many target ids are on every list; how many a source id adds
    offsets, entries                  u64: how many numbers follow of each
    offsets                           u64 of each source id, and one: where its entries begin
    entries                           uint32: target ids, in rising order

(`data/shortlist.h` of Marian, BinaryShortlistGenerator.) As entries are in order of their ids, not of probability, the
lists are used whole: `search.shortlist` is the number that a source id adds.

Shapes: S source ids, C candidates of each.
"""

import struct
from pathlib import Path

import numpy as np

from transduce.core.bounded_file import bounded_bytes
from transduce.core.errors import InputError
from transduce.data.lexicon import NOTHING, Lexicon

MAGIC = 0xF11A48D5013417F5
HEAD = struct.Struct("<6Q")
MOST = 2**30  # bytes of a file
LONGEST = 10_000  # candidates of a source id


def read_shortlist(path: Path, sizes: tuple[int, int]) -> Lexicon:
    """The lexicon in a file.

    Args:
        sizes: of the vocabularies of source and target, which may have further ids behind those of the file.

    Raises:
        InputError: it cannot be read, is damaged, or of another vocabulary.
    """
    data = bounded_bytes(path, MOST)
    if len(data) < HEAD.size or (head := HEAD.unpack_from(data))[0] != MAGIC:
        raise InputError(f"{path}: expected a shortlist of Marian (lex.*.bin); it does not begin as one does.")
    _, _, frequent, _, offsets, entries = head
    if len(data) != HEAD.size + 8 * offsets + 4 * entries or not offsets:
        raise _damaged(path, f"{offsets:,} offsets and {entries:,} entries are not {len(data):,} bytes")
    offset_S = np.frombuffer(data, "<u8", offsets, HEAD.size)
    entry_N = np.frombuffer(data, "<u4", entries, HEAD.size + 8 * offsets)
    if offset_S[0] or offset_S[-1] != entries or (offset_S[1:] < offset_S[:-1]).any():
        raise _damaged(path, "its offsets are not in order")
    greatest = max(frequent - 1, int(entry_N.max(initial=0)))
    if offsets - 1 > sizes[0] or greatest >= sizes[1]:
        raise InputError(
            f"{path}: of {offsets - 1:,} source tokens, and target tokens up to {greatest:,}; the model has "
            f"{sizes[0]:,} and {sizes[1]:,}. Name the shortlist of this model."
        )
    count_S = (offset_S[1:] - offset_S[:-1]).astype(np.int64)
    widest = max(1, int(count_S.max(initial=0)))
    if widest > LONGEST:
        raise _damaged(path, f"a source token has {widest:,} candidates")
    candidates_SC = np.full((sizes[0], widest), NOTHING, np.int32)
    row_N = np.repeat(np.arange(len(count_S)), count_S)
    candidates_SC[row_N, np.arange(entries) - offset_S[row_N].astype(np.int64)] = entry_N
    return Lexicon(candidates_SC, np.arange(max(1, frequent), dtype=np.int32))


def _damaged(path: Path, what: str) -> InputError:
    return InputError(f"{path}: the shortlist is damaged: {what}.")
