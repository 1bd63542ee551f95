"""Scoring as a bulk job: the log-probability of each text."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from transduce.bulk.blocks import LineBlock, blocks_of
from transduce.bulk.job import Advance, BulkEngine, BulkJob
from transduce.inference.likelihood import Likelihood
from transduce.pipeline.pipeline import Pipeline, load


class ScoringWorker:
    """Holds a model, or an ensemble, and scores. A row has the "source", "" where there is none, and the "text".

    Args:
        settings: "load", of `transduce.load`; "batch_size", of `Pipeline.score`.
        models: the model files.
        pipeline: the model, where it is loaded already.
    """

    def __init__(self, settings: dict[str, Any], models: list[Path], pipeline: Pipeline | None = None) -> None:
        self._settings = settings
        self._pipeline = pipeline or load(models, **settings["load"])

    def answer(self, block: LineBlock, advance: Advance) -> list[dict[str, Any]]:
        """Each likelihood's fields, floats as they are."""
        pairs = [(row["source"], row["text"]) for row in block.rows]
        found = self._pipeline.score(pairs, batch_size=self._settings["batch_size"], advance=advance)
        return [vars(each) for each in found]


def scored(
    engine: BulkEngine, job: BulkJob, pairs: Iterable[tuple[str, str]], advance: Advance
) -> Iterator[Likelihood]:
    """The likelihood of each (source, target), in their order. Raises InputError, see `BulkEngine.answers`."""
    rows = ({"source": source, "text": text} for source, text in pairs)
    for answer in engine.answers(job, blocks_of(rows), advance):
        yield from map(_likelihood, answer)


def _likelihood(fields: dict[str, Any]) -> Likelihood:
    """As it was: JSON keeps every bit of a float."""
    pieces, each = (tuple(fields[name]) for name in ("pieces", "token_log_probabilities"))
    return Likelihood(**{**fields, "pieces": pieces, "token_log_probabilities": each})
