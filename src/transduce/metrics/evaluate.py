"""Several metrics by name over the same sentences: those of `KNOWN`, and one's own as `my_file:my_metric`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from unicodedata import is_normalized, normalize

from transduce.core.errors import InputError
from transduce.core.registry import resolve, suggest
from transduce.metrics.bits import wrong_bits_tally
from transduce.metrics.bleu import bleu_tally, moses_bleu_tally
from transduce.metrics.bleu_formula import notes_bleu_tally
from transduce.metrics.entities import entity_tally, label_accuracy_tally, label_macro_f1_tally, word_f1_tally
from transduce.metrics.error_rate import (
    character_error_rate_tally,
    phoneme_error_rate_tally,
    word_error_rate_tally,
)
from transduce.metrics.evalb import evalb_tally
from transduce.metrics.exact_match import exact_match_tally, length_match_tally
from transduce.metrics.labels import accuracy_tally, error_tally, macro_f1_tally
from transduce.metrics.rouge import notes_rouge_tally, rouge_tally
from transduce.metrics.sacrebleu_score import chrf_tally, ter_tally
from transduce.metrics.score import References, Score, checked_references
from transduce.metrics.span import cmrc_tally, drcd_tally, squad2_tally, squad_tally
from transduce.metrics.tally import Tally
from transduce.metrics.tree_labels import node_accuracy_tally

Texts = Sequence[str]
Metric = Callable[[Texts, References, str | None], Tally]
"""Hypotheses, the references of each, and the target's language code or None."""

METRICS: dict[str, Metric] = {
    "accuracy": lambda texts, references, _: accuracy_tally(texts, references),
    "bleu": lambda texts, references, language: bleu_tally(texts, references, language=language),
    "bleu-lc-moses": lambda texts, references, language: moses_bleu_tally(texts, references, str(language)),
    "bleu-notes": lambda texts, references, _: notes_bleu_tally(texts, references),
    "cer": lambda texts, references, _: character_error_rate_tally(texts, references),
    "chrf": lambda texts, references, _: chrf_tally(texts, references),
    "chrf++": lambda texts, references, _: chrf_tally(texts, references, word_order=2),
    "cmrc_em": lambda texts, references, _: cmrc_tally(texts, references, "em"),
    "cmrc_f1": lambda texts, references, _: cmrc_tally(texts, references, "f1"),
    "drcd_em": lambda texts, references, _: drcd_tally(texts, references, "em"),
    "drcd_f1": lambda texts, references, _: drcd_tally(texts, references, "f1"),
    "error": lambda texts, references, _: error_tally(texts, references),
    "exact_match": lambda texts, references, _: exact_match_tally(texts, references),
    "length_match": lambda texts, references, _: length_match_tally(texts, references),
    "macro_f1": lambda texts, references, _: macro_f1_tally(texts, references),
    "per": lambda texts, references, _: phoneme_error_rate_tally(texts, references),
    "rouge1": lambda texts, references, _: rouge_tally(texts, references, "1"),
    "rouge2": lambda texts, references, _: rouge_tally(texts, references, "2"),
    "rougeL": lambda texts, references, _: rouge_tally(texts, references, "L"),
    "rouge1-notes": lambda texts, references, _: notes_rouge_tally(texts, references, 1),
    "rouge2-notes": lambda texts, references, _: notes_rouge_tally(texts, references, 2),
    "squad_em": lambda texts, references, _: squad_tally(texts, references, "em"),
    "squad_f1": lambda texts, references, _: squad_tally(texts, references, "f1"),
    "squad2_em": lambda texts, references, _: squad2_tally(texts, references, "em"),
    "squad2_f1": lambda texts, references, _: squad2_tally(texts, references, "f1"),
    "ter": lambda texts, references, language: ter_tally(texts, references, language=language),
    "wer": word_error_rate_tally,
}
NAMES = list(METRICS)  # of texts
TREE_METRICS: dict[str, Metric] = {
    "evalb_f1": lambda trees, references, _: evalb_tally(trees, references, "f1"),
    "evalb_precision": lambda trees, references, _: evalb_tally(trees, references, "precision"),
    "evalb_recall": lambda trees, references, _: evalb_tally(trees, references, "recall"),
    "evalb_complete": lambda trees, references, _: evalb_tally(trees, references, "complete"),
    "node_accuracy": lambda trees, references, _: node_accuracy_tally(trees, references),
}
BIT_METRICS: dict[str, Metric] = {
    "wrong_bits": lambda rows, references, _: wrong_bits_tally(rows, references),
    "wrong_bits_per_vector": lambda rows, references, _: wrong_bits_tally(rows, references, "vector"),
}
WORD_METRICS: dict[str, Metric] = {  # of rows of labels, one a word
    "entity_f1": lambda rows, references, _: entity_tally(rows, references, "f1"),
    "entity_precision": lambda rows, references, _: entity_tally(rows, references, "precision"),
    "entity_recall": lambda rows, references, _: entity_tally(rows, references, "recall"),
    "strict_entity_f1": lambda rows, references, _: entity_tally(rows, references, "f1", strict=True),
    "label_accuracy": lambda rows, references, _: label_accuracy_tally(rows, references),
    "label_macro_f1": lambda rows, references, _: label_macro_f1_tally(rows, references),
    "word_f1": lambda rows, references, _: word_f1_tally(rows, references),
}
KNOWN = {**METRICS, **TREE_METRICS, **BIT_METRICS, **WORD_METRICS}


def evaluate(
    names: Sequence[str], hypotheses: Texts, references: References, target_language: str | None = None
) -> list[Score]:
    """The scores `names` ask for, in that order. Arguments and errors are those of `tallies`."""
    return [tally.score() for tally in tallies(names, hypotheses, references, target_language)]


def tallies(
    names: Sequence[str], hypotheses: Texts, references: References, target_language: str | None = None
) -> list[Tally]:
    """What the metrics `names` count, in that order.

    Args:
        names: of `KNOWN`, or one's own.
        hypotheses: plain sentences; trees in brackets for the metrics of trees.
        references: one a hypothesis, or several, in the same order. Where some are not in Unicode's normal form C, all
            texts are brought into it, and the signatures say so.
        target_language: its code, which says how words are split; without one the references' script does, but
            bleu-lc-moses needs it.

    Raises:
        InputError: unknown names or a missing language, all at once; no sentences, not equally many, or one without a
            reference; a library that a metric needs is not installed; a metric of one's own is not allowed, or gives
            something else than a `Tally` of these sentences.
    """
    problems = [f"metrics: {problem}" for problem in unknown(names)]
    problems += [
        f"metrics: {name} tokenizes by language; name the target's with target_language."
        for name in names
        if name == "bleu-lc-moses" and target_language is None
    ]
    if problems:
        raise InputError(problems)
    listed = checked_references(hypotheses, references)
    metrics = [KNOWN.get(name) or _own(name) for name in names]
    if all(is_normalized("NFC", text) for texts in listed for text in texts):
        return [metric(hypotheses, listed, target_language) for metric in metrics]
    # Models write composed letters: é as one character. References in another form could never be matched.
    composed = [normalize("NFC", text) for text in hypotheses]
    listed = [[normalize("NFC", text) for text in texts] for texts in listed]
    found = [metric(composed, listed, target_language) for metric in metrics]
    return [replace(tally, signature=f"{tally.signature}|unicode:NFC") for tally in found]


def unknown(names: Sequence[str]) -> list[str]:
    """A sentence for each name that is no metric, and is not written as one of one's own."""
    return [
        f'there is no "{name}".{suggest(name, list(KNOWN))} Known: {", ".join(KNOWN)}; or name a function of your own '
        "as my_file:my_metric."
        for name in names
        if name not in KNOWN and ":" not in name
    ]


def _own(name: str) -> Metric:
    """The user's function, which is held to its contract."""
    count = resolve("metrics", name)

    def metric(hypotheses: Texts, references: References, language: str | None) -> Tally:
        found = count(hypotheses, references, language)
        if not isinstance(found, Tally) or len(found.statistics_SN) != len(hypotheses):
            rows = f"a Tally of {len(found.statistics_SN)}" if isinstance(found, Tally) else type(found).__name__
            raise InputError(
                f'metrics: "{name}": expected a Tally with a row for each of {len(hypotheses)} texts; got {rows}.'
            )
        return found

    return metric
