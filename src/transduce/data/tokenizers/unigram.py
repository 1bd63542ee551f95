"""Unigram pieces from word counts (Kudo 2018, "Subword Regularization"), learnt so that nothing is left to
chance.

Differs from the paper in one thing: a piece is counted in each word's best segmentation (hard EM) and not in
all of them by probability. Counts are then whole numbers, whose sum has no order, and the same text gives the
same pieces on every machine.
"""

import math
from collections import Counter

LONGEST_PIECE = 12
SEEDS_PER_PIECE = 6
SHRINK = 0.75
MOST_CHARACTERS = 500_000
"""Pieces are learnt from the most frequent words, so many characters of them in all: memory stays bounded."""

Scores = dict[str, float]


def learn_pieces(words: Counter[str], size: int, min_frequency: int) -> list[tuple[str, float]]:
    """At most `size` pieces with their log-probabilities, the likeliest first.

    Every character of `words` is a piece, so that any word of the same alphabet can be written; pieces longer
    than that occur at least `min_frequency` times. `size` must be at least the number of characters.
    """
    alphabet = set().union(*words)
    frequent = _most_frequent(words)
    scores = _score(_seeds(frequent, size * SEEDS_PER_PIECE, min_frequency), alphabet)
    while True:
        for _ in range(2):
            scores = _score(_count(frequent, scores), alphabet)
        if len(scores) <= size:
            return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        scores = _prune(_count(frequent, scores), scores, max(size, int(len(scores) * SHRINK)), alphabet)


def _most_frequent(words: Counter[str]) -> dict[str, int]:
    kept, room = {}, MOST_CHARACTERS
    for word in sorted(words, key=lambda word: (-words[word], word)):
        room -= len(word)
        if room < 0:
            break
        kept[word] = words[word]
    return kept


def _seeds(words: dict[str, int], limit: int, min_frequency: int) -> Counter[str]:
    """The substrings that cover most text: count x length, as in the paper's initial vocabulary."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for first in range(len(word)):
            for last in range(first + 2, min(first + LONGEST_PIECE, len(word)) + 1):
                counts[word[first:last]] += count
    often = [piece for piece, count in counts.items() if count >= min_frequency]
    often.sort(key=lambda piece: (-counts[piece] * len(piece), piece))
    return Counter({piece: counts[piece] for piece in often[:limit]})


def _score(counts: Counter[str], alphabet: set[str]) -> Scores:
    """Log-probabilities; no character falls out. Rounded: a logarithm's last bit differs by machine."""
    full = {**dict.fromkeys(alphabet, 1), **{piece: count for piece, count in counts.items() if count}}
    total = math.log(sum(full.values()))
    return {piece: round(math.log(count) - total, 6) for piece, count in full.items()}


def _count(words: dict[str, int], scores: Scores) -> Counter[str]:
    """How often each piece occurs in the best segmentations of the words."""
    from tokenizers import Tokenizer, models

    vocabulary = sorted(scores.items())
    tokenizer = Tokenizer(models.Unigram(vocabulary, None, False))
    counts = [0] * len(vocabulary)
    segmented = tokenizer.encode_batch_fast(list(words), add_special_tokens=False)
    for encoding, count in zip(segmented, words.values(), strict=True):
        for index in encoding.ids:
            counts[index] += count
    return Counter({piece: count for (piece, _), count in zip(vocabulary, counts, strict=True) if count})


def _prune(counts: Counter[str], scores: Scores, size: int, alphabet: set[str]) -> Scores:
    """Keep the alphabet and the pieces whose loss would cost the text most likelihood."""
    longer = [piece for piece in scores if piece not in alphabet]
    cost = {piece: counts[piece] * (scores[piece] - _best_without(piece, scores)) for piece in longer}
    longer.sort(key=lambda piece: (-cost[piece], piece))
    return {piece: scores[piece] for piece in [*sorted(alphabet), *longer[: size - len(alphabet)]]}


def _best_without(word: str, scores: Scores) -> float:
    """The score of the best segmentation of `word` into at least two pieces (Viterbi)."""
    best = [0.0] + [-math.inf] * len(word)
    for last in range(1, len(word) + 1):
        for first in range(last):
            piece = word[first:last]
            if piece in scores and piece != word:
                best[last] = max(best[last], best[first] + scores[piece])
    return best[-1]
