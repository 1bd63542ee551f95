"""A lexical baseline for questions on texts: the span in whose neighbourhood most of the question's words stand.

    v(w)     = log(1 + 1 / C(w)) for each word and each pair of neighbours w that the question has too, else 0
    sentence = the one with the largest sum of v over different w
    answer   = the candidate span A of this sentence with the largest sum of v in a window of |Q| + |A| words around it

C counts in the text, Q are the question's words. A Chinese character is a word. The weights and the window are those of
Richardson et al. 2013 (section 5.1); first taking the sentence that overlaps with the question is from Rajpurkar et al.
2016 (section 5.1). Their candidates are constituents of a parse tree. Here they are sentences, clauses, or the runs of
words between punctuation marks that the question does not have.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple, get_args

from transduce.data.structures.squad import cut
from transduce.inference.sentences import sentences

Candidates = Literal["sentence", "clause", "run"]
CANDIDATES: tuple[Candidates, ...] = get_args(Candidates)

WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")  # a Chinese character, or letters and digits
CLAUSE_ENDS = re.compile(r"[,;:，；：]")
MARKS = re.compile(r"[^\w\s]")


class TextWord(NamedTuple):
    """A word of a text, in lower case, with its characters [start, end)."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class SlidingWindow:
    """The equations above, for one kind of candidates in texts of a language."""

    candidates: Candidates
    language: str = ""

    def answers(self, texts: Sequence[str]) -> list[str]:
        """One a question and text (see `cut`)."""
        return [self.answer(*cut(text)) for text in texts]

    def answer(self, question: str, context: str) -> str:
        """The best candidate, of equals the first; "" where the text has no word."""
        asked = [word.text for word in words(question)]
        known = {*asked, *pairwise(asked)}
        found = [words(context, start, end) for start, end in sentences(context, self.language)]
        counts = Counter(each for sentence in found for each in _terms([word.text for word in sentence]))
        value = {each: math.log(1 + 1 / count) for each, count in counts.items() if each in known}
        terms = [{*_terms([word.text for word in sentence])} for sentence in found]
        sums = [math.fsum(value.get(each, 0.0) for each in of_sentence) for of_sentence in terms]  # sets have no order
        best: tuple[float, str] = (-1.0, "")
        for place in sorted(range(len(found)), key=lambda place: (-sums[place], place)):
            for first, last in self._candidates(found[place], context, {*asked}):
                around = _around(found, place, first, last, value, len({*asked}))
                if around > best[0] + 1e-9:
                    best = around, context[found[place][first].start : found[place][last].end]
            if best[1]:
                break
        return best[1]

    def _candidates(
        self, sentence: list[TextWord], context: str, question_words: set[str]
    ) -> Iterator[tuple[int, int]]:
        """First and last word of each."""
        ends = {"sentence": None, "clause": CLAUSE_ENDS, "run": MARKS}[self.candidates]
        first: int | None = None
        for place, word in enumerate(sentence):
            apart = place and ends and ends.search(context, sentence[place - 1].end, word.start)
            if first is not None and apart:
                yield first, place - 1
                first = None
            if self.candidates == "run" and word.text in question_words:
                if first is not None:
                    yield first, place - 1
                first = None
            elif first is None:
                first = place
        if first is not None:
            yield first, len(sentence) - 1


def words(text: str, start: int = 0, end: int | None = None) -> list[TextWord]:
    """Of the characters [start, end) of a text."""
    found = WORD.finditer(text, start, len(text) if end is None else end)
    return [TextWord(each.group().lower(), each.start(), each.end()) for each in found]


def _terms(texts: Sequence[str]) -> list[str | tuple[str, str]]:
    """The words, and the pairs of neighbours."""
    return [*texts, *pairwise(texts)]


def _around(
    found: list[list[TextWord]],
    place: int,
    first: int,
    last: int,
    value: dict[str | tuple[str, str], float],
    question_length: int,
) -> float:
    """The largest sum in a window around the words first .. last of a sentence."""
    texts = [word.text for sentence in found for word in sentence]
    before = sum(map(len, found[:place]))
    first, last = first + before, last + before
    size = min(len(texts), last - first + 1 + question_length)
    low, high = max(0, last + 1 - size), min(len(texts), first + size)
    each = [
        value.get(texts[at], 0.0) + (value.get((texts[at], texts[at + 1]), 0.0) if at + 1 < len(texts) else 0.0)
        for at in range(low, high)
    ]
    sums = list(accumulate(each, initial=0.0))
    starts = range(low, min(first, len(texts) - size) + 1)
    return max(sums[start + size - low] - sums[start - low] for start in starts)
