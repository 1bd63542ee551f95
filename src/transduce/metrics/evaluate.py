"""Several metrics by name over the same sentences."""

from collections.abc import Callable, Sequence

from transduce.errors import InputError
from transduce.metrics.bleu import bleu, moses_bleu
from transduce.metrics.chrf import chrf
from transduce.metrics.exact_match import exact_match
from transduce.metrics.score import Score, check_corpus
from transduce.names import suggest

NAMES = ["bleu", "bleu-lc-moses", "chrf", "exact_match"]


def evaluate(
    names: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_language: str | None = None,
) -> list[Score]:
    """The scores `names` ask for, in that order.

    Args:
        names: of `NAMES`.
        hypotheses: plain sentences.
        references: one a hypothesis, in the same order.
        target_language: two-letter code; bleu-lc-moses needs it.

    Raises:
        InputError: unknown names or a missing language, all at once; no sentences; not equally many.
    """
    problems = [
        f'metrics: there is no "{name}".{suggest(name, NAMES)} Known: {", ".join(NAMES)}.'
        for name in names
        if name not in NAMES
    ]
    problems += [
        f"metrics: {name} tokenises by language; say which the target is (target_language)."
        for name in names
        if name == "bleu-lc-moses" and target_language is None
    ]
    if problems:
        raise InputError(problems)
    check_corpus(hypotheses, references)
    compute: dict[str, Callable[[], Score]] = {
        "bleu": lambda: bleu(hypotheses, references),
        "bleu-lc-moses": lambda: moses_bleu(hypotheses, references, str(target_language)),
        "chrf": lambda: chrf(hypotheses, references),
        "exact_match": lambda: exact_match(hypotheses, references),
    }
    return [compute[name]() for name in names]
