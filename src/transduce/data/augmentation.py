"""Training pairs that teach a model to copy placeholders and to use given terms.

    a red house | une maison rouge   ->   a ⟦3⟧ house | une maison ⟦3⟧              placeholders
                                     ->   a red ⟦term⟧ house ⟦as⟧ maison ⟦end⟧ | ..   terms

Words that translate each other are found by `transduce.data.word_alignment`. A number, address or code that stands in
both texts becomes a placeholder, too. Terms are annotated as by Dinu et al. 2019; half of them by another form of the
word than the one in the output, so that the model inflects them (Bergmanis and Pinnis 2021, "Facilitating terminology
translation with target lemma annotations", who annotate lemmas). All of it is for training text alone.
"""

import random
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from transduce.data.placeholders import AS, COUNT, NAMES, TERM, TERM_END, TERM_MARKS, replaced, shared_parts
from transduce.data.word_alignment import WordAligner, WordLink

VERSION = 1
MOST_WORDS = 3  # of a pair that become placeholders, or terms
BESIDE = 0.3  # of the pairs with placeholders, that get one beside their words: an address, an emoji
OTHER_FORM = 0.5  # of the annotated terms with several forms, that are given in another one
ENDS = ".!?。！？…"


class Augmented(NamedTuple):
    """Shares of training pairs, in their further versions, that are changed."""

    placeholders: float
    terms: float

    @property
    def source_names(self) -> tuple[str, ...]:
        """The tokens that its sources need."""
        return (*(NAMES if self.placeholders else ()), *(TERM_MARKS if self.terms else ()))

    @property
    def target_names(self) -> tuple[str, ...]:
        """The tokens that its targets need."""
        return NAMES if self.placeholders else ()

    def __bool__(self) -> bool:
        return bool(self.placeholders or self.terms)


Change = Callable[[str, str], tuple[str, str]]
NOT_AUGMENTED = Augmented(0.0, 0.0)


class Augmenter:
    """How pairs are changed. The same pairs in the same order and the same `seed` give the same.

    Args:
        learn: gives the aligner, when the first pair comes.
        learnt_from: says which texts it is learnt from, as text.
        seed: of the random numbers. 0 changes nothing: the first version of each pair is itself.
    """

    def __init__(self, learn: Callable[[], WordAligner], learnt_from: str, shares: Augmented, seed: int) -> None:
        self.shares, self.seed = shares, seed
        self._learn, self._learnt_from = learn, learnt_from

    @cached_property
    def aligner(self) -> WordAligner:
        """Which words translate each other."""
        return self._learn()

    @property
    def decides(self) -> list[Any]:
        """All that decides what becomes of a pair, for JSON."""
        return [VERSION, *self.shares, self.seed, self._learnt_from] if self.seed else []

    def begun(self) -> Change:
        """What changes the pairs of a file, from its first one on."""
        return _Changer(self).changed if self.seed else (lambda source, target: (source, target))


class _Changer:
    """Changes the pairs of a file, one after the other."""

    def __init__(self, augmenter: Augmenter) -> None:
        self.aligner, self.shares = augmenter.aligner, augmenter.shares
        self._random = random.Random(f"augmentation {VERSION} {augmenter.seed}")

    def changed(self, source: str, target: str) -> tuple[str, str]:
        """The pair, or what is made of it. What already holds one of our tokens stays as it is."""
        if "⟦" in source + target:
            return source, target
        with_terms = self._random.random() < self.shares.terms
        with_copies = self._random.random() < self.shares.placeholders
        natural = shared_parts(source, target) if self.shares.placeholders else ([], [])
        taken = _Pair(source, target, [*zip(*natural, strict=True)])
        links = self._links(taken) if with_terms or with_copies else []
        copies = self._some(links, with_copies)
        terms = self._some([link for link in links if link not in copies], with_terms)
        beside = with_copies and self._random.random() < BESIDE
        return self._written(taken, copies, terms, beside)

    def _links(self, pair: "_Pair") -> list[WordLink]:
        found = self.aligner.links(pair.source, pair.target)
        return [link for link in found if not pair.touches(link)]

    def _some(self, links: Sequence[WordLink], asked: bool) -> list[WordLink]:
        """One to `MOST_WORDS` of them, if asked for, fewer more often."""
        if not asked or not links:
            return []
        count = min(len(links), 1 + int(MOST_WORDS * self._random.random() ** 2))
        return sorted(self._random.sample(list(links), count))

    def _written(
        self, pair: "_Pair", copies: Sequence[WordLink], terms: Sequence[WordLink], beside: bool
    ) -> tuple[str, str]:
        first = self._random.randrange(COUNT)
        masked = sorted([*pair.shared, *copies])[: COUNT - 1]
        numbered = [(link, (first + place) % COUNT) for place, link in enumerate(masked)]
        changes = [(*link[0], NAMES[number]) for link, number in numbered]
        changes += [(*link.source, self._annotated(pair, link)) for link in terms]
        source = replaced(pair.source, changes)
        target = replaced(pair.target, [(*link[1], NAMES[number]) for link, number in numbered])
        if beside:
            name = NAMES[(first + len(numbered)) % COUNT]
            at_end = self._random.random() < 0.7
            return _beside(source, name, at_end), _beside(target, name, at_end)
        return source, target

    def _annotated(self, pair: "_Pair", link: WordLink) -> str:
        return f"{TERM} {pair.source[slice(*link.source)]} {AS} {self._given(pair, link)} {TERM_END}"

    def _given(self, pair: "_Pair", link: WordLink) -> str:
        """What a term is to be translated by: the word that is there, or another form of it."""
        word, written = pair.source[slice(*link.source)], pair.target[slice(*link.target)]
        forms = self.aligner.forms(word, written)
        if not forms or self._random.random() >= OTHER_FORM:
            return written
        other = self._random.choice(forms)
        return other.capitalize() if written[:1].isupper() else other


class _Pair(NamedTuple):
    """A pair of texts, and the places in both that are the same, as links."""

    source: str
    target: str
    shared: Sequence[tuple[tuple[int, int], tuple[int, int]]]

    def touches(self, link: WordLink) -> bool:
        """Whether a link shares a character with what stands in both texts."""
        return any(
            own[0] < other[1] and other[0] < own[1]
            for each in self.shared
            for own, other in zip(each, link, strict=True)
        )


def _beside(text: str, name: str, at_end: bool) -> str:
    """The text with a placeholder behind it, before a mark that ends it, or in front of it."""
    if not at_end:
        return f"{name} {text}"
    stripped = text.rstrip()
    if stripped[-1:] in ENDS and not stripped.endswith(".."):
        return f"{stripped[:-1].rstrip()} {name}{stripped[-1]}"
    return f"{stripped} {name}"
