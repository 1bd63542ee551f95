"""BPE-dropout: a word cut in another way each time it is looked at (Provilkov et al. 2020).

Byte-pair encoding merges, again and again, the neighbouring pieces whose merge was learnt first. Here each possible
merge is left out with probability `rate` each time, so that a model sees rare pieces more often, and learns that
different pieces spell one word. It is for training text alone.
"""

import json
import random
from collections.abc import Sequence

from transduce.core.errors import InputError
from transduce.data.tokenizers.tokenizer import Tokenizer

LONGEST = 500  # characters of a word that is cut anew, which takes time by their square; longer ones stay as they are
BYTES = {f"<0x{byte:02X}>" for byte in range(256)}  # what a foreign tokenizer spells unknown characters with


def cut_anew(
    source: Tokenizer, target: Tokenizer, rate: float, seed: int
) -> "tuple[Tokenizer | Resegmenter, Tokenizer | Resegmenter]":
    """What encodes each side: with BPE-dropout where its tokenizer merges, else the tokenizer itself.

    Raises:
        InputError: neither is BPE.
    """
    sides = {side: tokenizer for side, tokenizer in enumerate((source, target)) if _merges(tokenizer)}
    if not sides:
        raise InputError('data.bpe_dropout is for tokenizer.kind = "bpe"; this tokenizer has no merges.')
    cut = {side: Resegmenter(tokenizer, rate, 2 * seed + side) for side, tokenizer in sides.items()}
    return cut.get(0, source), cut.get(1, target)


def _merges(tokenizer: Tokenizer) -> bool:
    model = json.loads(tokenizer.to_json())["model"]
    return model.get("type") == "BPE" and bool(model["merges"])


class Resegmenter:
    """Encodes as a BPE tokenizer does, but for the merges left out. What it makes depends on `seed` and the texts.

    Args:
        rate: of merges left out; 0 = none: the tokenizer's own pieces. The paper uses 0.1.
    """

    def __init__(self, tokenizer: Tokenizer, rate: float, seed: int) -> None:
        model = json.loads(tokenizer.to_json())["model"]
        self.unknown = tokenizer.unknown
        self._tokenizer, self._rate = tokenizer, rate
        self._ids: dict[str, int] = model["vocab"]
        spelt = BYTES if model.get("byte_fallback") else set()
        self._pieces = {index: piece for piece, index in self._ids.items() if piece not in spelt}
        pairs = [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in model["merges"]]
        self._rank = {pair: rank for rank, pair in enumerate(pairs)}
        self._random = random.Random(seed).random

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without start and end."""
        words = self._tokenizer.encode_words(texts)
        return [[index for word in text for index in self._cut(word)] for text in words]

    def _cut(self, word: list[int]) -> list[int]:
        if self.unknown in word or not all(index in self._pieces for index in word):
            return word  # what merges do not make: an unknown character, its bytes, an added token
        pieces = list("".join(self._pieces[index] for index in word))
        if len(pieces) > LONGEST:
            return word
        while (place := self._next_merge(pieces)) is not None:
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
        return [self._ids[piece] for piece in pieces]

    def _next_merge(self, pieces: list[str]) -> int | None:
        """Where the earliest learnt merge is of those not left out this time; None = all were, or there are none."""
        best, best_rank = None, len(self._rank)
        for place in range(len(pieces) - 1):
            rank = self._rank.get((pieces[place], pieces[place + 1]), best_rank)
            if rank < best_rank and (not self._rate or self._random() >= self._rate):
                best, best_rank = place, rank
        return best
