"""Evaluate trained models on a test set: metrics of their outputs, and likelihood of the references.

Two or more systems are also compared: which is better, and how certain that is.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from transduce.data.files import fingerprint
from transduce.data.tags import addressed, require_language
from transduce.evaluation.result import EvaluatedSystem, Evaluation, PairedComparison
from transduce.evaluation.texts import Files, Texts, read_files
from transduce.inference.likelihood import Likelihood
from transduce.inference.options import PredictionOptions
from transduce.inference.prediction import count_unfinished
from transduce.inference.protocols import Advance
from transduce.inference.sentences import Split
from transduce.metrics.bits import cost_tally
from transduce.metrics.evaluate import tallies
from transduce.metrics.groups import group_tables, with_means
from transduce.metrics.paired import Difference, paired_bootstrap
from transduce.metrics.score import decimals
from transduce.metrics.tally import Tally
from transduce.pipeline.pipeline import Pipeline
from transduce.runtime.environment import library_versions, machine

DEFAULT_METRICS = ("bleu", "chrf")  # of outputs that come without a model, whose recipe would say


@dataclass(frozen=True)
class Settings:
    """How models are run: metrics by name (None: the first model's), lines at once, keys of `search` to replace.

    split: see `Pipeline.predict`. By default lines are read whole, as in the tests at the end of a training.
    """

    metrics: Sequence[str] | None = None
    batch_size: int = 64
    search: Mapping[str, Any] = field(default_factory=dict)
    split: Split = "none"


def evaluate_files(
    models: Mapping[str, Pipeline], files: Files, settings: Settings, advance: Advance
) -> dict[str, Any]:
    """Decode, compare with the references; a JSON-ready report of scores, likelihood, data and machine.

    One system's figures stand at the top of the report. Those of several stand under "systems" by name, and
    "comparisons" holds each of them against the first, metric by metric, with a sentence that says what it means.

    Raises:
        InputError: unequal line counts, a source too many or too few, unknown metrics, no system at all; a model writes
            several languages, and it is not said which.
    """
    return evaluate_texts(models, read_files(models, files), files, settings, advance).to_dict()


def evaluate_texts(
    models: Mapping[str, Pipeline], texts: Texts, files: Files, settings: Settings, advance: Advance
) -> Evaluation:
    """As `evaluate_files`, of texts that were read.

    Args:
        files: what they were read from, and the languages.
    """
    files, spoken = replace(files, language=files.language or files.to or None), texts
    for model in models.values():
        if files.to:
            spoken = replace(spoken, sources=addressed(model.task.tokenizers.get("source"), spoken.sources, files.to))
        else:
            require_language(model.task.tokenizers.get("source"), texts.sources)
    names = _metrics(models, texts, files, settings)
    systems = {name: _judge(name, model, spoken, names, files, settings, advance) for name, model in models.items()}
    for name, outputs in texts.outputs.items():
        counted = _tallies(models, files, outputs, texts.references, names)
        systems[name] = _system(name, {}, counted, texts.groups, outputs=outputs)
    read = [path for path in files.all() if path != files.source or not texts.files]
    data = {str(path): fingerprint(path) for path in [*read, *texts.files]}
    environment = {"machine": machine(), "versions": library_versions()}
    return Evaluation(systems, _comparisons(systems), texts, data, environment)


def _judge(
    name: str,
    pipeline: Pipeline,
    texts: Texts,
    names: Sequence[str] | None,
    files: Files,
    settings: Settings,
    advance: Advance,
) -> EvaluatedSystem:
    report: dict[str, Any] = {"precision": pipeline.precision}
    found: dict[str, Tally] = {}
    lines: list[str] = []
    if "source" in pipeline.task.columns:
        start = time.monotonic()
        how = PredictionOptions(settings.batch_size, settings.split, advance=advance, search=dict(settings.search))
        how = replace(how, protect=False)  # what the model says by itself, as in the tests of its training
        outputs = pipeline.predict_all(texts.sources, how)
        report["seconds"] = round(time.monotonic() - start, 2)
        if cut := [each.cut.read for each in outputs if each.cut]:
            report["cut"] = {"count": len(cut), "texts": len(outputs), "room": max(cut)}
        if pipeline.searches:
            report["search"] = {**pipeline.recipe.search.model_dump(mode="json", exclude_none=True), **settings.search}
            report["unfinished"] = count_unfinished(outputs)
            report |= _read_as(pipeline, texts.sources, settings.split)
            report |= _unfamiliar(pipeline, texts.sources)
        lines = [each.text for each in outputs]
        found = pipeline.task.tallies(lines, texts.references, names, files.language)
    confusion = pipeline.task.confusion(lines, texts.references) if lines else None
    pairs = [(source, several[0]) for source, several in zip(texts.sources, texts.references, strict=True)]
    known = [pipeline.task.can_answer(answer) for _, answer in pairs]
    possible = [pair for pair, able in zip(pairs, known, strict=True) if able]
    told: dict[str, Any] = {"confusion": confusion.to_dict()} if confusion else {}
    told |= {"unknown_answers": len(pairs) - len(possible)} if len(possible) < len(pairs) else {}
    if not possible:
        return _system(name, report, found, texts.groups, told, lines)
    each = pipeline.score(possible, batch_size=settings.batch_size)
    total = Likelihood(sum(one.log_probability for one in each), sum(one.tokens for one in each), unit=each[0].unit)
    told["likelihood"] = {**total.to_dict(), "context": "each line alone"}
    likelihoods = iter(each)
    by_text = [next(likelihoods) if able else None for able in known]
    more = {"bits": _bits(each, [answer for _, answer in possible])} if total.unit == "token" else {}
    more |= {"cost": cost_tally([one.log_probability for one in each])} if total.unit == "bit" else {}
    return _system(name, report, found, texts.groups, told, lines, by_text, more)


def _read_as(pipeline: Pipeline, sources: Sequence[str], split: Split) -> dict[str, Any]:
    """How lines were cut; and how many `predict` would cut into their sentences where none was."""
    if split != "none":
        return {"split": split}
    if not pipeline.splits("auto"):
        return {}
    several = sum(len(cut) > 1 for cut in pipeline.pieces(sources).cuts)
    return {"several_sentences": several} if several else {}


def _unfamiliar(pipeline: Pipeline, sources: Sequence[str]) -> dict[str, Any]:
    """What of the inputs is in no training text, as far as the model file says."""
    return {"unfamiliar": pipeline.familiarity.of_inputs(pipeline.source_columns.joined(sources)).to_dict()}


def _system(
    name: str,
    report: dict[str, Any],
    found: Mapping[str, Tally],
    groups: Sequence[str],
    entries: Mapping[str, Any] = MappingProxyType({}),
    outputs: Sequence[str] = (),
    likelihoods: Sequence[Likelihood | None] = (),
    more: Mapping[str, Tally] = MappingProxyType({}),
) -> EvaluatedSystem:
    """With a table of the groups in the report, and the means over them among the scores.

    Args:
        found: of the outputs. more: of the references' likelihood.
    """
    tables = group_tables(found, groups)
    every = {**with_means(found, groups), **more}
    scores = {metric: tally.score() for metric, tally in every.items()}
    report = {**report, **({"groups": tables} if tables else {}), **entries}
    return EvaluatedSystem(name, scores, [*outputs], [*likelihoods], every, [*found], report)


def verdict(first: str, second: str, name: str, difference: Difference, digits: int = 2) -> str:
    """Say in one sentence whether `second` is better than `first` by the metric `name`, and how certain that is.

    The difference is that of the system called better less the other's; where neither is, of `second` less `first`.
    """
    if difference.p_value is None or difference.interval is None or difference.wins is None:
        return f"{name}: at least two sentences are needed to tell {first} and {second} apart."
    form = f"+z.{digits}f"  # z: what rounds to 0 has no sign
    told, (low, high), wins = difference.value, difference.interval, difference.wins
    better, worse = second, first
    if difference.better == "first":
        better, worse, told, low, high, wins = first, second, -told, -high, -low, 1 - wins
    direction = " (lower is better)" if difference.lower_is_better else ""
    figures = f"{told:{form}} [{low:{form}}, {high:{form}}]{direction}, p = {difference.p_value:.3f}"
    change = f"from {first} to {second} {name} changes by {figures}"
    if difference.better and not round(told, digits):
        return f"The difference between {first} and {second} rounds to 0: {change}."
    if not difference.better:
        return f"No difference was found between {first} and {second}: {change}; more sentences might show one."
    return f"{better} is better than {worse}: {name} {figures}; it wins in {wins:.1%} of resampled test sets."


def _comparisons(systems: Mapping[str, EvaluatedSystem]) -> list[PairedComparison]:
    """Every system against the first one, by every figure that both have."""
    (first, base), *others = systems.items()
    found = []
    for second, other in others:
        for metric, one in base.tallies.items():
            if two := other.tallies.get(metric):
                difference = paired_bootstrap(one, two)
                said = verdict(first, second, one.name, difference, decimals(one.signature))
                found.append(
                    PairedComparison(first, second, metric, one.name, one.signature, difference, said, one.note)
                )
    return found


def _bits(likelihoods: Sequence[Likelihood], answers: Sequence[str]) -> Tally:
    """Bits that a model needs for a character of the answers: comparable whatever its tokens are."""
    rows_S2 = np.array(
        [
            [-one.log_probability / math.log(2), len(answer) + 1]
            for one, answer in zip(likelihoods, answers, strict=True)
        ]
    )
    signature = "base:2|unit:character|ends:counted|nrefs:1|context:each line alone"
    return Tally(
        "bits a character", signature, rows_S2, lambda sums_2: float(sums_2[0] / sums_2[1]), lower_is_better=True
    )


def _metrics(models: Mapping[str, Pipeline], texts: Texts, files: Files, settings: Settings) -> list[str]:
    """The metrics by name; a wrong one, or references that it cannot read, are told now, not after the decoding."""
    several = texts.references[:1]
    return list(_tallies(models, files, [each[0] for each in several], several, settings.metrics))


def _tallies(
    models: Mapping[str, Pipeline],
    files: Files,
    outputs: Sequence[str],
    references: Sequence[list[str]],
    names: Sequence[str] | None,
) -> dict[str, Tally]:
    """As the first model's task counts them; without a model, by name."""
    for model in models.values():
        return model.task.tallies(outputs, references, names, files.language)
    wanted = DEFAULT_METRICS if names is None else names
    return dict(zip(wanted, tallies(wanted, outputs, references, files.language), strict=True))
