"""Exact match and F1 of answers to questions, as the evaluation scripts of four data sets count them.

Each answer is compared with every reference of its question and keeps its best score; a figure is the mean over
questions, in per cent.

| names | script | what is compared |
|---|---|---|
| `squad_em`, `squad_f1` | SQuAD 1.1 | words in lower case without punctuation, a, an and the; F1 of bags of words |
| `squad2_em`, `squad2_f1` | SQuAD 2.0 | the same; "" says that there is no answer, and equals nothing else |
| `cmrc_em`, `cmrc_f1` | CMRC 2018 | Chinese characters and Latin words; F1 of the longest run that both contain |
| `drcd_em`, `drcd_f1` | DRCD | F1 of bags of characters, without punctuation and white space |

CMRC's script calls the run a common subsequence; what it computes has no gaps. It cuts Latin text into words with
nltk's `word_tokenize`, which first cuts it into sentences by a model that has to be downloaded. That step is left out
here: a full stop inside of a Latin text of several sentences stays with the word before it.

Sources: Rajpurkar et al. 2016, 2018; Cui et al. 2019; Shao et al. 2018.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from transduce.core.extras import library
from transduce.metrics.score import References, checked_references, reference_count
from transduce.metrics.tally import Tally, mean_tally

ARTICLES = re.compile(r"\b(a|an|the)\b")
ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
CMRC_PUNCTUATION = frozenset(
    "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』"
)  # the script also has "……", which no character equals
CHINESE = re.compile("[\u4e00-\u9fa5]")

Compare = Callable[[str, str], float]  # answer, reference


def squad_tally(hypotheses: Sequence[str], references: References, figure: str) -> Tally:
    """SQuAD 1.1's `figure`, "em" or "f1".

    Raises:
        InputError: no answers, not equally many, or one without a reference; so of all tallies here.
    """
    compare = {"em": _same(_squad_words), "f1": _squad_f1}[figure]
    return _tally("SQuAD", hypotheses, references, compare, f"case:lc|articles:removed|{_unit(figure, 'word')}")


def squad2_tally(hypotheses: Sequence[str], references: References, figure: str) -> Tally:
    """SQuAD 2.0's; references without a word are left out, and where none is left there is no answer."""
    listed = [
        [each for each in several if _squad_words(each)] or [""]
        for several in checked_references(hypotheses, references)
    ]
    compare = {"em": _same(_squad_words), "f1": _squad2_f1}[figure]
    return _tally("SQuAD 2.0", hypotheses, listed, compare, f"case:lc|articles:removed|{_unit(figure, 'word')}")


def cmrc_tally(hypotheses: Sequence[str], references: References, figure: str) -> Tally:
    """CMRC 2018's. Raises InputError for F1 where nltk is not installed."""
    if figure == "em":
        return _tally("CMRC 2018", hypotheses, references, _same(_without_cmrc_punctuation), "case:lc|unit:text")
    words = library("nltk.tokenize.destructive", "cmrc_f1", "cmrc", called="nltk")
    cut = words.NLTKWordTokenizer().tokenize
    segments = lru_cache(maxsize=4096)(lambda text: mixed_segments(text, cut))

    def compare(answer: str, reference: str) -> float:
        one, other = segments(reference), segments(answer)
        return _f1(longest_run(one, other), len(other), len(one))

    return _tally("CMRC 2018", hypotheses, references, compare, "case:lc|unit:mixed|words:nltk|overlap:longest run")


def drcd_tally(hypotheses: Sequence[str], references: References, figure: str) -> Tally:
    compare = {"em": _same(_drcd_characters), "f1": _drcd_f1}[figure]
    return _tally("DRCD", hypotheses, references, compare, f"case:lc|articles:kept|{_unit(figure, 'character')}")


def mixed_segments(text: str, cut: Callable[[str], list[str]]) -> list[str]:
    """Each Chinese character, and of what stands between them the words that `cut` gives; without punctuation."""
    found: list[str] = []
    waiting = ""
    for character in text.lower().strip():
        if character in CMRC_PUNCTUATION:
            continue
        if CHINESE.match(character):
            found += [*(cut(waiting) if waiting else []), character]
            waiting = ""
        else:
            waiting += character
    return [*found, *(cut(waiting) if waiting else [])]


def longest_run(one: Sequence[str], other: Sequence[str]) -> int:
    """How many neighbours the longest run has that stands in both."""
    longest, ends = 0, [0] * (len(other) + 1)  # ends[j]: of the run that ends in front of other[j]
    for each in one:
        ends = [0, *(before + 1 if each == there else 0 for before, there in zip(ends, other, strict=False))]
        longest = max(longest, *ends)
    return longest


def _tally(script: str, hypotheses: Sequence[str], references: References, compare: Compare, how: str) -> Tally:
    listed = checked_references(hypotheses, references)
    found = [
        max(compare(answer, reference) for reference in several)
        for answer, several in zip(hypotheses, listed, strict=True)
    ]
    name = "F1" if "overlap" in how else "EM"
    return mean_tally(f"{script} {name}", f"nrefs:{reference_count(listed)}|{how}|refs:best", found)


def _unit(figure: str, unit: str) -> str:
    return f"unit:{unit}|overlap:bag" if figure == "f1" else "unit:text"


def _same(normal: Callable[[str], Any]) -> Compare:
    return lambda answer, reference: float(normal(answer) == normal(reference))


def _f1(common: int, predicted: int, true: int) -> float:
    """In the order of operations of the scripts, so that the last digit is theirs."""
    if common == 0:
        return 0.0
    precision, recall = common / predicted, common / true
    return (2 * precision * recall) / (precision + recall)


def bag_f1(answer: Sequence[str], reference: Sequence[str]) -> float:
    """F1 of the words of a text, in any order, between 0 and 1."""
    common = Counter(answer) & Counter(reference)
    return _f1(sum(common.values()), len(answer), len(reference))


def _squad_words(text: str) -> list[str]:
    return ARTICLES.sub(" ", text.lower().translate(ASCII_PUNCTUATION)).split()


def _squad_f1(answer: str, reference: str) -> float:
    return bag_f1(_squad_words(answer), _squad_words(reference))


def _squad2_f1(answer: str, reference: str) -> float:
    one, other = _squad_words(answer), _squad_words(reference)
    return bag_f1(one, other) if one and other else float(one == other)


def _drcd_characters(text: str) -> list[str]:
    return list("".join(text.lower().translate(ASCII_PUNCTUATION).split()))


def _drcd_f1(answer: str, reference: str) -> float:
    return bag_f1(_drcd_characters(answer), _drcd_characters(reference))


def _without_cmrc_punctuation(text: str) -> str:
    return "".join(each for each in text.lower().strip() if each not in CMRC_PUNCTUATION)
