"""Predicting as a bulk job: of each text the line that is written, and what is told about it."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.bulk.blocks import LineBlock, blocks_of
from transduce.bulk.job import Advance, BulkEngine, BulkJob
from transduce.inference.options import PredictionOptions
from transduce.inference.prediction import OutputFaults, Prediction, cut_line, doubtful, doubtful_line

if TYPE_CHECKING:
    from transduce.inference.constraints import Constraints
    from transduce.inference.loaded_model import LoadedModel

Row = dict[str, Any]


class PredictingWorker:
    """Holds a model, or an ensemble, and predicts.

    A row has its "text", and may have an "id" and "constraints" on the output, as `constraints_row` writes them.

    Args:
        settings: "load", of `transduce.load`; "predict", as `PredictionOptions.to_table` writes them; "form", a name in
            `FORMS`. With "parts" each block is a file of its own, whose lines are counted from 0; with "part_seeds" it
            has a seed of its own.
        models: the model files.
        pipeline: the model, where it is loaded already: a `Pipeline`, or a `Translator` of the kernels alone.
    """

    def __init__(self, settings: dict[str, Any], models: list[Path], pipeline: "LoadedModel | None" = None) -> None:
        self._settings = settings
        self._pipeline = pipeline or _loaded(models, settings["load"])

    def answer(self, block: LineBlock, advance: Advance) -> dict[str, Any]:
        """{"outputs": one for each row, "told": what a person should know, "cut": how many texts were cut, to what,
        "doubtful": how many recordings have outputs without an end, and how many repeat themselves; "faults": of
        `transduce.inference.prediction.OutputFaults`}."""
        told: list[str] = []
        options = self._options_of(block)
        found = self._pipeline.predict_all(
            [row["text"] for row in block.rows], replace(options, tell=told.append, advance=advance)
        )
        form = FORMS[self._settings["form"]]
        outputs = [form(each, row) for each, row in zip(found, block.rows, strict=True)]
        read = [each.cut.read for each in found if each.cut]
        cut = [len(read), max(read, default=0)]
        faults = OutputFaults.of(found, options.first).values()
        return {"outputs": outputs, "told": told, "cut": cut, "doubtful": [*doubtful(found)], "faults": faults}

    def _options_of(self, block: LineBlock) -> PredictionOptions:
        """Those of the job, with what is a block's own."""
        settings, options = self._settings, PredictionOptions.of(self._settings["predict"])
        if settings.get("part_seeds"):
            options = replace(options, search={**options.search, "seed": options.search["seed"] + block.number})
        if any("constraints" in row for row in block.rows):
            options = replace(options, constraints=[_constraints(row) for row in block.rows])
        return replace(options, first=0 if settings.get("parts") else block.first)


def outputs(
    engine: BulkEngine, job: BulkJob, rows: Iterable[Row], advance: Advance, tell: Callable[[str], None]
) -> Iterator[Any]:
    """What is made of each row, in their order.

    Raises:
        InputError: see `BulkEngine.answers`.
    """
    cuts, texts, room, cut_off, repeating, faults = 0, 0, 0, 0, 0, OutputFaults()
    for answer in engine.answers(job, blocks_of(rows), advance):
        for each in answer["told"]:
            tell(each)
        count, read = answer["cut"]
        cuts, texts, room = cuts + count, texts + len(answer["outputs"]), max(room, read)
        cut_off, repeating = (a + b for a, b in zip((cut_off, repeating), answer["doubtful"], strict=True))
        faults = faults.plus(OutputFaults(*answer["faults"]))
        yield from answer["outputs"]
    for line in faults.lines(texts):
        tell(line)
    if line := doubtful_line(cut_off, repeating, texts):
        tell(line)
    if cuts:
        tell(cut_line(cuts, texts, room))


def _loaded(models: list[Path], use: dict[str, Any]) -> "LoadedModel":
    from transduce.pipeline.pipeline import load

    return load(models, **use)


def constraints_row(constraints: "Constraints") -> list[Any]:
    """Constraints for JSON."""
    return [constraints.must, constraints.must_not, constraints.prefix]


def _constraints(row: Row) -> "Constraints":
    from transduce.inference.constraints import Constraints

    must, must_not, prefix = row.get("constraints", ((), (), ""))
    return Constraints(tuple(map(tuple, must)), tuple(must_not), prefix)


def as_text(prediction: Prediction, row: Row) -> str:
    """Its text."""
    return prediction.text


def as_json(prediction: Prediction, row: Row) -> str:
    """All of the prediction, behind what its text is called."""
    named = {"id": row["id"]} if "id" in row else {}
    return json.dumps({**named, **prediction.to_dict()}, ensure_ascii=False)


def as_pair(prediction: Prediction, row: Row) -> tuple[str, bool]:
    """One line, and whether it came to its end."""
    return prediction.text.replace("\n", " "), prediction.ended


def as_form(form: str) -> Callable[[Prediction, Row], str]:
    """As `Prediction.written_as` has it."""
    return lambda prediction, row: prediction.written_as(form)


FORMS: dict[str, Callable[[Prediction, Row], Any]] = {
    **{"text": as_text, "json": as_json, "pair": as_pair},
    **{f"format {each}": as_form(each) for each in ("conll", "entities", "text")},
}
