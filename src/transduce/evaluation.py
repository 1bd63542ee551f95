"""A trained model against texts with known answers: metrics of what it finds, likelihood of what it should find."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transduce.data.corpus import PairFiles, read_pairs
from transduce.data.files import fingerprint, read_lines
from transduce.environment import library_versions, machine
from transduce.errors import InputError
from transduce.inference import Advance, Likelihood
from transduce.pipeline import Pipeline


def evaluate_files(
    pipeline: Pipeline,
    source: Path | None,
    reference: Path,
    metrics: Sequence[str] | None,
    batch_size: int,
    advance: Advance,
    search: dict[str, Any],
) -> dict[str, Any]:
    """Decode `source`, compare with `reference`; a JSON-ready report of scores, likelihood, data and machine.

    Raises:
        InputError: unequal line counts, a source too many or too few, unknown metrics.
    """
    needs_source = "source" in pipeline.task.tokenizers
    if needs_source != (source is not None):
        raise InputError(
            "This model translates: name --source." if needs_source else "A language model has no --source."
        )
    pairs = _read(source, reference)
    if source:
        pipeline.task.evaluate(["."], ["."], metrics)  # a wrong name is told now, not after the decoding
    report: dict[str, Any] = {"scores": {}, "sentences": len(pairs)}
    if source:
        start = time.monotonic()
        found = pipeline.predict([text for text, _ in pairs], batch_size=batch_size, advance=advance, **search)
        report["seconds"] = round(time.monotonic() - start, 2)
        report["search"] = {**pipeline.recipe.search.model_dump(mode="json", exclude_none=True), **search}
        scores = pipeline.task.evaluate([each.text for each in found], [text for _, text in pairs], metrics)
        report["scores"] = {name: score.to_dict() for name, score in scores.items()}
    each = pipeline.score(pairs, batch_size)
    total = Likelihood(sum(one.log_probability for one in each), sum(one.tokens for one in each))
    report["likelihood"] = {**total.to_dict(), "context": "each line alone"}
    report["data"] = {str(path): fingerprint(path) for path in (source, reference) if path}
    report["environment"] = {"machine": machine(), "versions": library_versions()}
    return report


def _read(source: Path | None, reference: Path) -> list[tuple[str, str]]:
    if source is None:
        return [("", line) for line in read_lines(reference)]
    files = PairFiles(source=str(source), target=str(reference))
    return [(text, answer) for _, text, answer in read_pairs(files, Path())]
