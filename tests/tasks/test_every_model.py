"""Every task with every model: it learns from an example, or the recipe is refused with what fits."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import drawn_models
from drawn_models import CONTEXT, GRAPH, STORY, VECTORS
from random_models import language_model, translator
from transduce.core.errors import InputError
from transduce.core.registry import known, resolve
from transduce.data.collate import Batch, units_of_each
from transduce.data.columns import Column
from transduce.data.columns.frames import Frames
from transduce.pipeline.outline import make_model, make_task
from transduce.pipeline.pipeline import Pipeline
from transduce.recipe.recipe import parse_recipe

NARROW = {"d_model": 24, "feed_forward": 8, "layers": 1, "encoder_layers": 1, "decoder_layers": 1, "hidden": 8}
PARTS = {"blocks": 1, "character_filters": 4, "character_width": 4, "modeling_layers": 1, "slots": 9}
RECURRENT = ("chart_parser", "classifier", "sentence_encoder", "span_reader", "tagger", "vector_decoder")
UNREAD = {**{kind: {"feed_forward"} for kind in RECURRENT}, "masked_language_model": {"hidden"}}


def speech() -> Pipeline:
    """Frames in, text out."""
    columns: dict[str, Column] = {"source": Frames(8, None), "target": translator().task.columns["target"]}
    table = {"kind": "transformer", "heads": 2, "d_model": 24}
    return drawn_models.made({"kind": "speech_recognition"}, {"train": [{"file": "a.tsv"}]}, columns, table, 1)


PARSED = "(S (NP (XX ba) (XX de)) (VP (XX fi) (NP (XX go))))"
LABELLED = "(good (bad ba) (so-so (good de) (bad (good fi) (bad go))))"
TASKS: dict[str, tuple[Callable[[], Pipeline], Any, str]] = {  # a pipeline of each, an input and its target
    "algorithmic": (drawn_models.machine, VECTORS, "[[0, 1], [1, 1]]"),
    "classification": (drawn_models.classifier, "ba de fi", "good"),
    "extractive_qa": (drawn_models.answerer, f"ba de ? \t{CONTEXT}", "0 1"),
    "graph_classification": (drawn_models.graphs, GRAPH, "good"),
    "language_modelling": (language_model, None, "ba de fi go"),
    "masked_language_modelling": (drawn_models.masked, "ba de fi", "ba de fi"),
    "node_classification": (drawn_models.nodes, "7", "1"),
    "parsing": (drawn_models.parser, "ba de fi go", PARSED),
    "question_answering": (drawn_models.listener, STORY, "ba"),
    "speech_recognition": (speech, torch.randn(40, 8).numpy(), "ba de"),
    "tagging": (drawn_models.tagger, "ba de fi", "B-PER I-PER O"),
    "text_encoding": (drawn_models.sentence_encoder, "ba de fi", "[0, 0, 0, 0, 0, 0, 0, 1]"),
    "translation": (translator, "ba de fi", "go ku"),
    "tree_classification": (drawn_models.tree_labeller, LABELLED, LABELLED),
}
BOTH_SIDES = {"convolution", "linear_transformer", "rnn", "ssru_transformer", "transformer"}
GRAPHS = {"graph_attention", "graph_transformer"}
SUITED = {
    "algorithmic": {"neural_turing_machine", "vector_decoder"},
    "classification": {"classifier"},
    "extractive_qa": {"bidaf", "qanet", "span_reader"},
    "graph_classification": GRAPHS,
    "language_modelling": {"linear_transformer_decoder", "rnn_decoder", "transformer_decoder"},
    "masked_language_modelling": {"masked_language_model"},
    "node_classification": GRAPHS,
    "parsing": BOTH_SIDES,
    "question_answering": {"memory_network"},
    "speech_recognition": {"ctc", "rnn", "transformer"},
    "tagging": {"tagger"},
    "text_encoding": set(),  # is not trained
    "translation": {*BOTH_SIDES, "ctc", "non_autoregressive"},
    "tree_classification": {"tree_lstm", "tree_transformer"},
}


def sizes(kind: str) -> dict[str, int]:
    """Small ones, of those that the kind of model has."""
    fields = resolve("models", kind).Config.model_fields.keys() - UNREAD.get(kind, set())
    return {key: value for key, value in {**NARROW, **PARTS}.items() if key in fields}


def loss(pipeline: Pipeline, kind: str, source: Any, target: str) -> float:
    """Of one example, by an untrained model of this kind.

    Raises:
        InputError: this model is not for this task.
    """
    recipe = parse_recipe({**pipeline.recipe.to_table(), "model": {"kind": kind, **sizes(kind)}}, "recipe")
    task = make_task(recipe, pipeline.task.columns)
    model = make_model(recipe, task)
    objective = task.objective(model, recipe.training)
    sides = {name: _read(column, {"source": source, "target": target}[name]) for name, column in task.columns.items()}
    batch = Batch(sides.get("source"), sides["target"], int(units_of_each(sides["target"]).sum()))
    with torch.no_grad():
        return float(objective.loss(model, batch, objective.draw(model, batch)).minimised)


def _read(column: Column, side: Any) -> Any:
    return column.collate([np.asarray(ids) for ids in column.encode([side])] if isinstance(side, str) else [side])


@pytest.mark.parametrize("task", TASKS)
def test_every_model_learns_or_is_refused_with_what_fits(task: str) -> None:
    make, source, target = TASKS[task]
    pipeline, learns = make(), set()
    for kind in known("models"):
        try:
            assert math.isfinite(loss(pipeline, kind, source, target))
            learns.add(kind)
        except InputError as error:
            assert "kind" in str(error)
            assert "expected" in str(error) or "wants" in str(error), (kind, error)
    assert learns == SUITED[task]


def test_all_tasks_are_walked() -> None:
    assert {*TASKS} == {*known("tasks")} == {*SUITED}


@pytest.mark.parametrize("task", TASKS)
def test_a_recipe_without_a_model_has_one_that_suits_its_task(task: str) -> None:
    pipeline = TASKS[task][0]()
    table = {key: each for key, each in pipeline.recipe.to_table().items() if key != "model"}
    found = parse_recipe(table, "recipe").model.kind  # type: ignore[attr-defined]
    assert found in (SUITED[task] or {"sentence_encoder"})
