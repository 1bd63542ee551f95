"""The picture of a memory shows what the model computed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from transduce.attention import capture
from transduce.core.errors import InputError
from transduce.core.registry import resolve
from transduce.data.columns import ColumnSpec, Specs
from transduce.data.columns.vectors import Vectors
from transduce.inference.prediction import Prediction
from transduce.inference.vectors import VectorPrediction, VectorPredictor
from transduce.interpret.memory_drawing import MemoryDrawing
from transduce.pipeline.outline import make_model, make_task
from transduce.recipe.recipe import parse_recipe
from transduce.tasks.algorithmic import Algorithmic
from transduce.training.plots import write_figures

NTM = {"hidden": 7, "slots": 6, "width": 3, "read_heads": 2, "write_heads": 2}
X = [[0, 1, 1], [1, 0, 1], [0, 0, 0], [0, 0, 0]]


def model_of(kind: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    found = resolve("models", kind)
    return found(found.Config.model_validate(settings), Specs(ColumnSpec("vectors", 3), ColumnSpec("vectors", 2)))


def prediction_of(model: Any) -> VectorPrediction:
    predictor = VectorPredictor({"source": Vectors(3), "target": Vectors(2)}, lambda rows: 2)
    [prediction] = predictor.predict(model, [json.dumps(X)])
    return prediction


@pytest.mark.parametrize("controller", ["lstm", "feed_forward"])
def test_it_is_what_the_model_did(controller: str) -> None:
    model = model_of("neural_turing_machine", controller=controller, **NTM)
    prediction = prediction_of(model)
    drawing = MemoryDrawing.of(prediction)
    panels = {each.title: each.values for each in drawing.panels}
    assert panels["inputs"].T.tolist() == X
    assert not panels["outputs"][:, :2].any()
    np.testing.assert_allclose(panels["outputs"][:, 2:].T, prediction.probabilities)
    x_BTF, states = torch.tensor([X], dtype=torch.float32), []
    state = model.initial(1)
    with torch.no_grad(), capture(model) as record:
        for place in range(4):
            _, state = model.process(x_BTF[:, place : place + 1], state)
            states.append(state.memory)
    for head in (0, 1):
        for name, room in (("read", "read_head"), ("write", "write_head")):
            weights = torch.cat([each[0, 0] for each in record[f"memory.{room}.{head}"]])
            found = panels[f"{name} weighting (head {head + 1})"]
            np.testing.assert_allclose(found.T, weights[:, list(drawing.slots)], atol=1e-6)
        read = torch.cat([each.read[:, head] for each in states])
        np.testing.assert_allclose(panels[f"read (head {head + 1})"].T, read, atol=1e-6)
    assert drawing.memory is not None
    for place, each in enumerate(states):
        np.testing.assert_allclose(drawing.memory[place], each.memory[0, list(drawing.slots)], atol=1e-6)
    told = json.loads(json.dumps(drawing.to_dict()))
    assert [each["title"] for each in told["panels"]] == list(panels)


def test_it_shows_itself_everywhere() -> None:
    drawing = MemoryDrawing.of(prediction_of(model_of("neural_turing_machine", **NTM)))
    console = Console(width=80)
    with console.capture() as printed:
        console.print(drawing)
    assert all(each.title in printed.get() for each in drawing.panels)
    html = drawing._repr_html_()
    assert html.count("<img") == len(drawing.panels)
    pytest.importorskip("matplotlib")
    assert [axes.get_title("left") for axes in drawing.plot().axes] == [each.title for each in drawing.panels]


def test_a_model_without_memory_has_inputs_and_outputs() -> None:
    drawing = MemoryDrawing.of(prediction_of(model_of("vector_decoder", d_model=8)))
    assert [each.title for each in drawing.panels] == ["inputs", "outputs"]
    assert drawing.memory is None


def test_it_is_of_no_other_prediction() -> None:
    with pytest.raises(InputError, match="prediction of vectors"):
        MemoryDrawing.of(Prediction("a", "b", 0.0, 0.0, ("b",), (0.0,)))


def test_a_finished_run_has_its_figure(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    data = {"train": {"length": 2}, "validation": {"length": 2, "examples": 2}}
    model = {"kind": "neural_turing_machine", **NTM}
    given = parse_recipe({"task": {"kind": "algorithmic"}, "data": data, "model": model}, "test")
    task = make_task(given, Algorithmic.learn_columns(given.tokenizer, given.data))
    log = {"event": "train", "update": 1, "loss": 0.5}
    (tmp_path / "log.jsonl").write_text(json.dumps(log) + "\n", encoding="utf-8")
    told: list[str] = []
    write_figures(tmp_path, make_model(given, task), task, task.open(tmp_path, print), {}, told.append)
    assert told == []
    assert (tmp_path / "figures" / "memory.png").is_file()
