"""Evaluate trained models on a test set: metrics of their outputs, and likelihood of the references.

Two or more systems are also compared: which is better, and how certain that is.
"""

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from transduce.core.errors import InputError
from transduce.data.corpus import TsvColumn, lines_of
from transduce.data.files import fingerprint
from transduce.data.tags import addressed, require_language
from transduce.inference.likelihood import Likelihood
from transduce.inference.protocols import Advance
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
class Files:
    """The inputs of systems and the answers expected from them.

    source: one input a line, or a file in the format of the model's task, which holds the correct answers as well; None
        for language models, and where all outputs are given.
    references: files with one correct answer a line; several files hold several correct answers.
    outputs: the outputs of other systems, by name; of a file in a task's format as `InputFile` has them.
    language: the code of the target language, which decides how words are split; by default each model's own, or `to`.
    to: code of the language to write, for models of several; see `transduce.data.tags`.
    """

    source: Path | TsvColumn | None
    references: Sequence[Path | TsvColumn]
    outputs: Mapping[str, Path] = field(default_factory=dict)
    language: str | None = None
    to: str = ""

    def all(self) -> list[Path]:
        """Every file once."""
        named = [*([self.source] if self.source else []), *self.references, *self.outputs.values()]
        return list(dict.fromkeys(each.path if isinstance(each, TsvColumn) else each for each in named))


@dataclass(frozen=True)
class Settings:
    """How models are run: metrics by name (None: the first model's), lines at once, keys of `search` to replace."""

    metrics: Sequence[str] | None = None
    batch_size: int = 64
    search: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Texts:
    """What the files hold: sources ("" where there are none), for each its references, and outputs by system.

    left_out: how many inputs have no correct answer. groups: of each source, or none; see `transduce.metrics.groups`.
    files: what was read in the place of the source.
    """

    sources: list[str]
    references: list[list[str]]
    outputs: dict[str, list[str]]
    left_out: int = 0
    groups: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)


@dataclass(frozen=True)
class _Judged:
    """A system's part of the report, and what its figures were computed from."""

    report: dict[str, Any]
    tallies: dict[str, Tally]


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
    texts = _read(models, files)
    if files.to:
        files = replace(files, language=files.language or files.to)
        for model in models.values():
            texts = replace(texts, sources=addressed(model.task.tokenizers.get("source"), texts.sources, files.to))
    else:
        for model in models.values():
            require_language(model.task.tokenizers.get("source"), texts.sources)
    names = _metrics(models, texts, files, settings)
    judged = {name: _judge(model, texts, names, files, settings, advance) for name, model in models.items()}
    for name, outputs in texts.outputs.items():
        counted = _tallies(models, files, outputs, texts.references, names)
        judged[name] = _Judged(*_grouped({}, counted, texts.groups))
    report: dict[str, Any] = {"sentences": len(texts.references)}
    if texts.left_out:
        report["left_out"] = texts.left_out
    if len(judged) == 1:
        [alone] = judged.values()
        report |= {"scores": _scores(alone.tallies, without={"bits"}), **alone.report}
    else:
        report["systems"] = {name: {"scores": _scores(each.tallies), **each.report} for name, each in judged.items()}
        report["comparisons"] = _comparisons(judged)
    read = [path for path in files.all() if path != files.source or not texts.files]
    report["data"] = {str(path): fingerprint(path) for path in [*read, *texts.files]}
    report["environment"] = {"machine": machine(), "versions": library_versions()}
    return report


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


def _comparisons(judged: dict[str, _Judged]) -> list[dict[str, Any]]:
    """Every system against the first one, by every figure that both have."""
    (first, base), *others = judged.items()
    found = []
    for second, other in others:
        for metric in base.tallies:
            if metric in other.tallies:
                one, two = base.tallies[metric], other.tallies[metric]
                difference = paired_bootstrap(one, two)
                said = verdict(first, second, one.name, difference, decimals(one.signature))
                entry = {"first": first, "second": second, "metric": metric, "name": one.name, "verdict": said}
                entry |= {"note": one.note} if one.note else {}
                found.append({**entry, "signature": one.signature, **difference.to_dict()})
    return found


def _judge(
    pipeline: Pipeline, texts: _Texts, names: Sequence[str] | None, files: Files, settings: Settings, advance: Advance
) -> _Judged:
    report: dict[str, Any] = {"precision": pipeline.precision}
    found: dict[str, Tally] = {}
    if "source" in pipeline.task.columns:
        start = time.monotonic()
        outputs = pipeline.predict(
            texts.sources, split="none", batch_size=settings.batch_size, advance=advance, **dict(settings.search)
        )
        report["seconds"] = round(time.monotonic() - start, 2)
        if pipeline.searches:
            report["search"] = {**pipeline.recipe.search.model_dump(mode="json", exclude_none=True), **settings.search}
        lines = [each.text for each in outputs]
        found = pipeline.task.tallies(lines, texts.references, names, files.language)
        report, found = _grouped(report, found, texts.groups)
        confusion = pipeline.task.confusion(lines, texts.references)
        report |= {"confusion": confusion.to_dict()} if confusion else {}
    pairs = [(source, several[0]) for source, several in zip(texts.sources, texts.references, strict=True)]
    possible = [pair for pair in pairs if pipeline.task.can_answer(pair[1])]
    report |= {"unknown_answers": len(pairs) - len(possible)} if len(possible) < len(pairs) else {}
    if not possible:
        return _Judged(report, found)
    each = pipeline.score(possible, batch_size=settings.batch_size)
    total = Likelihood(sum(one.log_probability for one in each), sum(one.tokens for one in each), unit=each[0].unit)
    report["likelihood"] = {**total.to_dict(), "context": "each line alone"}
    if total.unit == "token":
        found["bits"] = _bits(each, [answer for _, answer in possible])
    if total.unit == "bit":
        found["cost"] = cost_tally([one.log_probability for one in each])
    return _Judged(report, found)


def _grouped(
    report: dict[str, Any], found: dict[str, Tally], groups: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Tally]]:
    """With a table of the groups in the report, and the means over them among what was found."""
    tables = group_tables(found, groups)
    return {**report, **({"groups": tables} if tables else {})}, with_means(found, groups)


def _bits(each: Sequence[Likelihood], answers: Sequence[str]) -> Tally:
    """Bits that a model needs for a character of the answers: comparable whatever its tokens are."""
    rows_S2 = np.array(
        [[-one.log_probability / math.log(2), len(answer) + 1] for one, answer in zip(each, answers, strict=True)]
    )
    signature = "base:2|unit:character|ends:counted|nrefs:1|context:each line alone"
    return Tally(
        "bits a character", signature, rows_S2, lambda sums_2: float(sums_2[0] / sums_2[1]), lower_is_better=True
    )


def _scores(found: Mapping[str, Tally], without: Collection[str] = ()) -> dict[str, Any]:
    return {name: tally.score().to_dict() for name, tally in found.items() if name not in without}


def _metrics(models: Mapping[str, Pipeline], texts: _Texts, files: Files, settings: Settings) -> list[str]:
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


def _read(models: Mapping[str, Pipeline], files: Files) -> _Texts:
    """Raises InputError for everything that does not fit, before any work is done."""
    if not models and not files.outputs:
        raise InputError("name a model, or outputs to score.")
    if found := _in_a_file(models, files):
        return found
    if not files.references:
        raise InputError("name a file of references.")
    needs = {"source" in model.task.columns for model in models.values()}
    if len(needs) > 1:
        raise InputError("Translation models and language models share no metric; compare models of one kind.")
    if needs == {True} and files.source is None:
        raise InputError("This model translates: name the texts to translate with --source.")
    if needs == {False} and files.source is not None:
        raise InputError("A language model reads no --source; leave it out.")
    if needs == {False} and files.outputs:
        raise InputError("A language model is judged by likelihood, which --outputs do not have; leave them out.")
    first = files.references[0]
    references = [_paired(first, path) for path in files.references]
    sources = _paired(first, files.source) if files.source else [""] * len(references[0])
    outputs = {name: _paired(first, path) for name, path in files.outputs.items()}
    return _Texts(sources, [list(several) for several in zip(*references, strict=True)], outputs)


def _in_a_file(models: Mapping[str, Pipeline], files: Files) -> _Texts | None:
    """What a source in the format of the first model's task holds; None where it has one input a line.

    Raises:
        InputError: it holds no answers; references were named besides.
    """
    if not models or not isinstance(files.source, Path):
        return None
    found = next(iter(models.values())).task.read_inputs(files.source)
    if found is None:
        return None
    if files.references:
        raise InputError(f"{files.source} holds the correct answers itself: leave out --reference.")
    if not any(found.references):
        raise InputError(f"{files.source}: no input has a correct answer, so there is nothing to compare with.")
    answered = [place for place, several in enumerate(found.references) if several]
    given = {name: found.outputs(path) for name, path in files.outputs.items()}
    outputs = {name: [lines[place] for place in answered] for name, lines in given.items()}
    texts, references = [found.texts[place] for place in answered], [found.references[place] for place in answered]
    groups = [found.groups[place] for place in answered] if found.groups else []
    return _Texts(texts, references, outputs, len(found.texts) - len(answered), groups, found.files)


def _paired(first: Path | TsvColumn, other: Path | TsvColumn) -> list[str]:
    """The lines of `other`, as many as `first` has.

    Raises:
        InputError: unequal line counts, a missing file or column, text that is not UTF-8.
    """
    lines = lines_of(other)
    if other != first and len(lines) != (wanted := len(lines_of(first))):
        raise InputError(f"{other} has {len(lines):,} lines and {first} has {wanted:,}: line n must belong to line n.")
    return lines
