"""Counted operations against formulas; tokens that updates see against batches themselves."""

from itertools import count, islice
from pathlib import Path

import pytest
import torch
from rich.console import Console
from torch import nn

from text_columns import PAIRS
from transduce.attention import MultiHeadAttention
from transduce.compare.operations import count_operations, operations_a_token, updates_for_tokens
from transduce.data.batches import BatchConfig, Batches
from transduce.data.collate import collate
from transduce.pipeline.outline import make_model, make_task
from transduce.recipe.recipe import load_recipe, parse_recipe
from transduce.tasks.algorithmic import Algorithmic
from transduce.tasks.classification import Classification
from transduce.training.display import Display
from transduce.training.run import open_task


def forward(module: nn.Module, *inputs: torch.Tensor) -> int:
    return count_operations(lambda: module(*inputs))


def test_a_linear_map_is_two_operations_a_weight_and_row() -> None:
    assert forward(nn.Linear(8, 5), torch.ones(3, 8)) == 2 * 3 * 8 * 5


def test_the_backward_pass_costs_twice_the_forward_pass() -> None:
    layer, x_BD = nn.Linear(8, 5), torch.ones(3, 8, requires_grad=True)
    assert count_operations(lambda: layer(x_BD).sum().backward()) == 3 * 2 * 3 * 8 * 5


def test_fused_attention_is_counted() -> None:
    batch, length, width = 2, 10, 16
    attention = MultiHeadAttention(width, 4, 0.0)
    x_BTD = torch.ones(batch, length, width)
    projections = 4 * 2 * batch * length * width * width
    mixing = 2 * 2 * batch * length * length * width  # scores, then the weighted sum
    assert count_operations(lambda: attention(x_BTD, attention.keys_values(x_BTD), None)) == projections + mixing


@pytest.mark.parametrize(("cell", "gates"), [(nn.LSTM, 4), (nn.GRU, 3), (nn.RNN, 1)])
def test_fused_recurrence_is_counted(cell: type[nn.Module], gates: int) -> None:
    counted = forward(cell(16, 24, batch_first=True), torch.ones(2, 10, 16))
    assert counted == 2 * 2 * 10 * gates * 24 * (16 + 24)


def test_convolutions_are_counted() -> None:
    assert forward(nn.Conv1d(6, 8, 3, padding=1), torch.ones(2, 6, 10)) == 2 * 2 * 10 * 3 * 6 * 8


def test_operations_of_a_token_are_those_of_its_matrix_products(
    tiny_recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transduce.compare.operations.SAMPLED", 4)
    recipe = load_recipe(tiny_recipe)
    task, data = open_task(recipe, Display(Console(quiet=True)))
    model = make_model(recipe, task)
    batches = Batches(data.corpora, recipe.batch, 1)
    counted = operations_a_token(recipe, model, task, batches)
    weights = sum(
        weight.numel() for name, weight in model.named_parameters() if weight.ndim == 2 and "source" not in name
    )
    assert 6 * weights * 0.9 < counted < 6 * weights * 3  # six a weight and token, the source's and padding's on top


def test_updates_are_counted_as_training_takes_them(tiny_recipe: Path) -> None:
    recipe = load_recipe(tiny_recipe)
    _, data = open_task(recipe, Display(Console(quiet=True)))
    batches = Batches([(store, 1.5) for store, _ in data.corpora] * 2, BatchConfig(tokens=900), seed=3)
    stream = (collate(batches.stores, rows, PAIRS).units for epoch in count() for rows in batches.epoch(epoch))
    seen = 0
    for update in range(1, 20):
        before, seen = seen, seen + sum(islice(stream, 2))
        assert updates_for_tokens(batches, PAIRS, 2, seen) == update
        assert updates_for_tokens(batches, PAIRS, 2, before + 1) == update
    assert seen > 3 * sum(int(store.metadata["tokens"]["target"]) for store in batches.stores)  # across epochs


def test_a_budget_of_generated_examples_counts_their_bits() -> None:
    data = {"train": {"length": 3}, "batch_size": 2}
    given = parse_recipe({"task": {"kind": "algorithmic"}, "data": data, "model": {"kind": "vector_decoder"}}, "test")
    task = make_task(given, Algorithmic.learn_columns(given.tokenizer, given.data))
    batches = task.open(Path(), print).batches(given.batch, 1)
    assert updates_for_tokens(batches, task.columns, 1, 2 * 24 * 1500) == 1500  # more than an epoch has
    assert updates_for_tokens(batches, task.columns, 5, 2 * 24 * 5 + 1) == 2


def test_a_budget_of_labels_counts_each_once(tmp_path: Path) -> None:
    files = {"train": [{"generated": "find_eight", "examples": 640, "seed": 1}]}
    given = parse_recipe({"task": {"kind": "classification"}, "data": files, "model": {"kind": "classifier"}}, "test")
    task = make_task(given, Classification.learn_columns(given.tokenizer, given.data))
    batches = task.open(tmp_path, lambda told: None).batches(given.batch, 1)
    labels = [len(rows.rows) for rows in batches.epoch(0)]
    assert updates_for_tokens(batches, task.columns, 1, 640) == len(labels)
    assert updates_for_tokens(batches, task.columns, 1, labels[0] + 1) == 2
