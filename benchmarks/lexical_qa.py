"""How well does counting words answer questions? The floor that a model of `extractive_qa` has to beat.

    python benchmarks/lexical_qa.py ../shared/data/qa_xquad/xquad.en.json.gz --metric squad
    python benchmarks/lexical_qa.py ../shared/data/qa_cmrc2018/cmrc2018_trial.json.gz --metric cmrc

Two baselines, each with the metrics' 95 % intervals:

- sentence: of the text's sentences the one that shares the most words with the question, each word weighted by how few
  sentences of the text have it (the sliding window of Richardson et al. 2013 with sentences as windows);
- window: of all windows of WORDS words the one beside which, within twice that distance, such words weigh the most,
  and which has none of them itself.

Words are Chinese characters, and runs of letters and digits in lower case. Nothing is learnt.
"""

import argparse
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from transduce.data.structures.squad import Question, read_squad
from transduce.inference.sentences import sentences
from transduce.metrics.evaluate import evaluate

WORD = re.compile("[\u4e00-\u9fff]|[^\\W\u4e00-\u9fff]+")
WORDS = 3  # of an answer


def words(text: str) -> list[tuple[str, int, int]]:
    """Each word in lower case with its characters [first, last)."""
    return [(found[0].lower(), *found.span()) for found in WORD.finditer(text)]


def weights(context: str, question: str, language: str) -> dict[str, float]:
    """log(1 + sentences / sentences with it) of each word of the question that stands in the text."""
    parts = [context[first:last] for first, last in sentences(context, language)] or [context]
    held = Counter(word for part in parts for word in {word for word, _, _ in words(part)})
    asked = {word for word, _, _ in words(question)}
    return {word: math.log(1 + len(parts) / held[word]) for word in asked if held[word]}


def best_sentence(question: Question, language: str) -> str:
    """The sentence whose words weigh the most; of equals the first."""
    context = question.context
    weight = weights(context, question.question, language)
    parts = [context[first:last] for first, last in sentences(context, language)] or [context]
    return max(parts, key=lambda part: sum(weight.get(word, 0.0) for word in {word for word, _, _ in words(part)}))


def best_window(question: Question, language: str) -> str:
    """WORDS words without one of the question's, beside which these weigh the most; of equals the first."""
    context, weight = question.context, weights(question.context, question.question, language)
    found = words(context)
    best, span = -1.0, (0, 0)
    for first in range(max(1, len(found) - WORDS + 1)):
        inside = found[first : first + WORDS]
        if not inside or any(word in weight for word, _, _ in inside):
            continue
        beside = {word for word, _, _ in found[max(0, first - 2 * WORDS) : first + 3 * WORDS]}
        value = sum(weight.get(word, 0.0) for word in beside)
        if value > best:
            best, span = value, (inside[0][1], inside[-1][2])
    return context[span[0] : span[1]]


BASELINES: dict[str, Callable[[Question, str], str]] = {"sentence": best_sentence, "window": best_window}


def main() -> None:
    """Print each baseline's EM and F1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="Questions in SQuAD's JSON.")
    parser.add_argument("--metric", choices=["squad", "squad2", "cmrc", "drcd"], default="squad")
    parser.add_argument("--language", default="", help="The code of the texts' language, by which sentences are cut.")
    asked = parser.parse_args()
    questions = read_squad(asked.file)
    language = asked.language or ("zh" if asked.metric in ("cmrc", "drcd") else "en")
    references = [[answer for answer, _ in each.answers] or [""] for each in questions]
    for name, answer in BASELINES.items():
        answers = [answer(each, language) for each in questions]
        for score in evaluate([f"{asked.metric}_em", f"{asked.metric}_f1"], answers, references):
            print(f"{name:8s} {score}")


if __name__ == "__main__":
    main()
