"""What an evaluation found: each system's scores, what they came of, and which system is better."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.core.errors import InputError
from transduce.evaluation.report_tables import report_html, report_text
from transduce.evaluation.texts import Texts
from transduce.inference.likelihood import Likelihood
from transduce.metrics.paired import Difference
from transduce.metrics.score import Score
from transduce.metrics.tally import Tally

LIKELIHOOD = ("bits",)  # a score that is shown only where systems are compared: its unit is the perplexity's


@dataclass(frozen=True, eq=False)
class EvaluatedSystem:
    """One model, or the outputs of another system, over all texts.

    Args:
        name: what it was called.
        scores: by name of metric.
        outputs: one a text, in order; none of a language model.
        likelihoods: of each text's first reference; None for one that this model could never give; none of a system
            that is known by its outputs alone.
        tallies: what the scores were computed from, text by text.
        by_text: names of the metrics of outputs.
        report: everything else, ready for JSON.
    """

    name: str
    scores: Mapping[str, Score]
    outputs: Sequence[str]
    likelihoods: Sequence[Likelihood | None]
    tallies: Mapping[str, Tally]
    by_text: Sequence[str]
    report: Mapping[str, Any]

    def values(self, metric: str) -> list[float | None]:
        """The metric of each text alone, in the metric's unit; None where it has none, as of an empty reference."""
        tally = self.tallies[metric]
        return [_figure(tally, row) for row in tally.statistics_SN]


def _figure(tally: Tally, row: Any) -> float | None:
    try:
        with np.errstate(all="ignore"):
            value = float(tally.aggregate(row))
    except ZeroDivisionError:
        return None
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class PairedComparison:
    """Whether `second` is better than `first` by one metric.

    Args:
        first, second: names of systems.
        metric: its name; name, signature and note are those of its score.
        difference: second less first, its 95 % interval and p-value, by the paired bootstrap (Koehn 2004).
        verdict: the same in a sentence.
    """

    first: str
    second: str
    metric: str
    name: str
    signature: str
    difference: Difference
    verdict: str
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        entry = {"first": self.first, "second": self.second, "metric": self.metric, "name": self.name}
        entry |= {"verdict": self.verdict, **({"note": self.note} if self.note else {})}
        return {**entry, "signature": self.signature, **self.difference.to_dict()}


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What `transduce.evaluate` found. `print` shows it as the command does, a notebook as a table.

    Args:
        systems: by name, in the order in which they were given.
        comparisons: each further system against the first, metric by metric.
        texts: sources, references and outputs.
        data: SHA-256 of what was read, by name.
        environment: machine and versions of libraries.
    """

    systems: Mapping[str, EvaluatedSystem]
    comparisons: Sequence[PairedComparison]
    texts: Texts
    data: Mapping[str, str]
    environment: Mapping[str, Any]

    def __len__(self) -> int:
        """How many texts were scored."""
        return len(self.texts.references)

    @property
    def scores(self) -> Mapping[str, Score]:
        """By name of metric, of the only system.

        Raises:
            InputError: there are several: `systems[name].scores`.
        """
        return self._only.scores

    @property
    def outputs(self) -> Sequence[str]:
        """One a text, in order, of the only system. Raises InputError as `scores`."""
        return self._only.outputs

    @property
    def _only(self) -> EvaluatedSystem:
        if len(self.systems) > 1:
            raise InputError(
                f"this evaluation has several systems: {', '.join(self.systems)}. Say which: systems[name]."
            )
        [alone] = self.systems.values()
        return alone

    def per_sentence(self, name: str | None = None) -> list[dict[str, Any]]:
        """A row for each text, in order, as `pandas.DataFrame` takes them.

        Keys: source, references and output; each metric of that text alone, in the metric's unit, None where it has
        none; log_probability, in nats, and tokens of the first reference. Metrics of a corpus such as BLEU are not the
        mean of these. Keys that mean nothing for this system are left out.

        Args:
            name: of the system; None = the only one.

        Raises:
            InputError: there is no such system, or several and none was named.
        """
        if name is not None and name not in self.systems:
            raise InputError(f'there is no system "{name}"; there are {", ".join(self.systems)}.')
        system = self._only if name is None else self.systems[name]
        columns: dict[str, Sequence[Any]] = {"references": self.texts.references}
        if any(self.texts.sources):
            columns = {"source": self.texts.sources, **columns}
        if system.outputs:
            columns["output"] = system.outputs
        columns |= {metric: system.values(metric) for metric in system.by_text}
        if system.likelihoods:
            columns["log_probability"] = [each and each.log_probability for each in system.likelihoods]
            columns["tokens"] = [each and each.tokens for each in system.likelihoods]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """For JSON, as `transduce evaluate --json` writes it.

        One system's figures stand at the top; those of several under "systems" by name, with "comparisons".
        """
        report: dict[str, Any] = {"sentences": len(self)}
        if self.texts.left_out:
            report["left_out"] = self.texts.left_out
        if self.texts.note:
            report["note"] = self.texts.note
        if len(self.systems) == 1:
            [alone] = self.systems.values()
            report |= _system_report(alone, LIKELIHOOD)
        else:
            report["systems"] = {name: _system_report(each) for name, each in self.systems.items()}
            report["comparisons"] = [each.to_dict() for each in self.comparisons]
        return {**report, "data": dict(self.data), "environment": dict(self.environment)}

    def __str__(self) -> str:
        return report_text(self.to_dict())

    def __repr__(self) -> str:
        return f"<transduce.Evaluation of {', '.join(self.systems)} on {len(self):,} texts>"

    def _repr_html_(self) -> str:
        return report_html(self.to_dict())


def _system_report(system: EvaluatedSystem, without: Sequence[str] = ()) -> dict[str, Any]:
    scores = {metric: score.to_dict() for metric, score in system.scores.items() if metric not in without}
    return {"scores": scores, **system.report}
