"""A state that is carried from row to row equals one long pass, in evaluation; in training, a plain loop in torch.

Shapes: T tokens, B streams, V vocabulary, D width.
"""

import hashlib
import math
import signal
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import forked
import transduce as package
from forked import UNHARMED, Fate
from random_models import _pipeline as pipeline_of
from random_models import sentences
from transduce.core.cache import cache_folder
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.batches import BatchConfig
from transduce.data.collate import collate
from transduce.data.store import Store
from transduce.data.stream_batches import StreamBatches
from transduce.inference.likelihood import dataset_likelihood, dataset_log_probabilities
from transduce.layers.stack import Stack
from transduce.objectives.next_token import CarriedNextToken
from transduce.pipeline.pipeline import Pipeline
from transduce.recipe.recipe import parse_recipe
from transduce.tasks.language_modelling import LanguageModelling, LanguageModellingData
from transduce.tasks.protocols import TaskData
from transduce.training.average import MovingAverage
from transduce.training.checkpoint import Carried, TrainingState
from transduce.training.loop import make_update
from transduce.training.microbatches import add_gradients
from transduce.training.optimizer import Optimizers
from transduce.training.progress import Progress

CONTEXT = 7
SMALL: dict[str, Any] = {"d_model": 16, "layers": 2, "dropout": 0.0}
STACK: dict[str, Any] = {**SMALL, "heads": 2, "feed_forward": 24}
RECURRENT = {cell: {**SMALL, "kind": "rnn_decoder", "cell": cell} for cell in ("tanh", "gru", "lstm", "lstmn", "ntm")}
LINEAR = {"linear": {**STACK, "kind": "linear_transformer_decoder"}}
TRANSFORMERS = {
    positions: {**STACK, "kind": "transformer_decoder", "positions": positions}
    for positions in ("rotary", "alibi", "shaw", "t5", "none")
}
MODELS: dict[str, dict[str, Any]] = {**RECURRENT, **LINEAR, **TRANSFORMERS}


def carrying(model: dict[str, Any], carry: bool = True, context: int = CONTEXT) -> Pipeline:
    task = {"kind": "language_modelling", "context": context, "carry_state": carry}
    return pipeline_of({"task": task, "data": {"train": [{"text": "a"}]}, "model": model}, "whitespace", 1)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in sentences(14, seed=5)))
    return tmp_path / "text"


def store_of(pipeline: Pipeline, text: Path) -> Store:
    task = pipeline.task
    assert isinstance(task, LanguageModelling)
    data = LanguageModellingData.model_validate({"root": str(text.parent), "train": [{"text": text.name}]})
    opened = LanguageModelling(task.config, data, task.columns).open(cache_folder(), lambda line: None)
    return opened.corpora[0][0]


def stream_of(store: Store) -> Tensor:
    """(1, T): the whole text, from the first </s> on."""
    rows = store.read("target", np.arange(len(store)))
    return torch.from_numpy(np.concatenate([rows[0], *(row[1:] for row in rows[1:])]).astype(np.int64))[None]


def rows_seen(length: int) -> Tensor:
    """(T, T) bool: each position sees those of its own row before it, and all of the row before."""
    row_T = torch.arange(length) // CONTEXT
    return (row_T[None] >= row_T[:, None] - 1) & torch.ones(length, length).tril().bool()


@torch.no_grad()
def long_pass(model: Any, stream_1T: Tensor) -> Tensor:
    """(T - 1,): the log-probability of each token but the first, from one pass over all of the text."""
    said_1T, next_T = stream_1T[:, :-1], stream_1T[0, 1:]
    decoder = getattr(model, "decoder", None)
    if isinstance(decoder, Stack):
        hidden_1TD, _ = decoder.extend(model.embedding(said_1T), None, allowed=rows_seen(said_1T.shape[1]))
        logits_TV = model.output.logits(hidden_1TD)[0]
    else:
        logits_TV = model(None, Padded(said_1T, torch.tensor([said_1T.shape[1]])))[0]
    return logits_TV.log_softmax(-1).gather(1, next_T[:, None])[:, 0]


@pytest.mark.parametrize("name", [name for name in MODELS if name != "lstmn"])
def test_rows_with_a_carried_state_equal_one_long_pass(name: str, text: Path) -> None:
    pipeline = carrying(MODELS[name])
    store = store_of(pipeline, text)
    assert len(store) > 8
    found_T = torch.cat([each_BN[0] for _, each_BN in dataset_log_probabilities(pipeline.model, pipeline.task, store)])
    wanted_T = long_pass(pipeline.model, stream_of(store))
    assert found_T.tolist() == pytest.approx(wanted_T.tolist(), abs=1e-5)
    likelihood = dataset_likelihood(pipeline.model, pipeline.task, store)
    assert likelihood.tokens == len(wanted_T) == store.metadata["predicted"]
    assert likelihood.perplexity == pytest.approx(math.exp(-float(wanted_T.double().mean())), rel=1e-6)
    plain = carrying(MODELS[name], carry=False)
    assert dataset_likelihood(plain.model, plain.task, store).loss != pytest.approx(likelihood.loss, rel=1e-4)
    assert "carried between rows of 7" in pipeline.task.context


def test_lstmn_reads_no_more_than_a_row_of_its_tape(text: Path) -> None:
    pipeline = carrying(MODELS["lstmn"])
    store, model = store_of(pipeline, text), pipeline.model
    stream_1T = stream_of(store)
    state, wanted = model.stack.empty(1), []
    with torch.no_grad():
        for place in range(stream_1T.shape[1] - 1):
            if place and place % CONTEXT == 0:
                state = tuple((*each[:3], each[3][:, :, -CONTEXT:], each[4][:, :, -CONTEXT:]) for each in state)
            logged_1V, state = model.step(stream_1T[:, place], None, state)
            wanted.append(float(logged_1V[0, stream_1T[0, place + 1]]))
    found = [each_BN[0].tolist() for _, each_BN in dataset_log_probabilities(model, pipeline.task, store)]
    assert list(chain.from_iterable(found)) == pytest.approx(wanted, abs=1e-5)


def test_the_gradient_of_a_row_is_that_of_a_plain_loop_with_a_detached_state(text: Path) -> None:
    """Against torch's own LSTM over two streams, row after row."""
    pipeline = carrying(MODELS["lstm"])
    store, model = store_of(pipeline, text), pipeline.model.train()
    lstm = torch.nn.LSTM(16, 16, 2, batch_first=True)
    for layer, cell in enumerate(model.stack.cells):
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(lstm, f"{name}_l{layer}").data.copy_(getattr(cell, name).data)
    matrix_VD = model.embedding.weight.detach().clone().requires_grad_()
    objective, carried, plain_state = CarriedNextToken(memory=CONTEXT), Carried(), None
    for rows in StreamBatches(store, 2).epoch(0):
        batch = collate([store], rows, pipeline.task.columns)
        if batch.examples < 2 or int(batch.targets.lengths.min()) <= CONTEXT:
            break
        model.zero_grad()
        loss, _ = add_gradients(model, objective, [batch], [[batch.examples]], "fp32", carried)
        lstm.zero_grad()
        matrix_VD.grad = None
        said_BT, next_BT = batch.targets.values[:, :-1], batch.targets.values[:, 1:]
        hidden_BTD, plain_state = lstm(F.embedding(said_BT, matrix_VD) * 4.0, plain_state)
        wanted = F.cross_entropy((hidden_BTD @ matrix_VD.T).flatten(0, 1), next_BT.flatten())
        wanted.backward()
        plain_state = tuple(each.detach() for each in plain_state)
        assert loss == pytest.approx(float(wanted.detach()), abs=1e-5)
        torch.testing.assert_close(model.embedding.weight.grad, matrix_VD.grad, atol=1e-5, rtol=1e-4)
        for layer, cell in enumerate(model.stack.cells):
            torch.testing.assert_close(
                cell.weight_hh.grad, getattr(lstm, f"weight_hh_l{layer}").grad, atol=1e-5, rtol=1e-4
            )
    assert carried.state is not None
    assert not any(each.requires_grad for layer in carried.state for each in layer)


def test_pieces_of_a_batch_and_several_batches_carry_the_same_state(text: Path) -> None:
    pipeline = carrying(MODELS["rotary"])
    store, model = store_of(pipeline, text), pipeline.model.train()
    batches = [collate([store], rows, pipeline.task.columns) for rows in StreamBatches(store, 3).epoch(0)]
    objective = CarriedNextToken(memory=CONTEXT)
    states, gradients = [], []
    for cuts in ([[3], [3]], [[2, 1], [1, 1, 1]]):
        carried = Carried()
        model.zero_grad()
        add_gradients(model, objective, batches[:2], cuts, "fp32", carried)
        states.append(carried.state)
        gradients.append(model.embedding.weight.grad.clone())
    torch.testing.assert_close(states[0], states[1], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-5, rtol=1e-4)
    assert [each.length for each in states[0]] == [CONTEXT, CONTEXT]


@pytest.mark.parametrize("streams", [1, 2, 3, 5, 100])
def test_streams_hold_every_row_once_in_order(streams: int, text: Path) -> None:
    store = store_of(carrying(MODELS["lstm"]), text)
    batches = StreamBatches(store, streams)
    plan = list(batches.epoch(3))
    assert len(plan) == batches.count(0)
    assert [rows.follows for rows in plan] == [False] + [True] * (len(plan) - 1)
    found: list[int] = []
    for stream in range(len(plan[0].rows)):
        found += [int(rows.rows[stream]) for rows in plan if stream < len(rows.rows)]
    assert found == list(range(len(store)))
    assert max(len(rows.rows) for rows in plan) == min(streams, len(store))
    later = list(batches.epoch(0, start=1))
    assert [rows.rows.tolist() for rows in later] == [rows.rows.tolist() for rows in plan[1:]]


def test_a_new_epoch_begins_without_a_state(text: Path) -> None:
    """Updates with a learning rate of 0: the loss of the first batch is the same in every epoch."""
    pipeline = carrying(MODELS["gru"])
    store, model = store_of(pipeline, text), pipeline.model
    config = parse_recipe(
        {
            "task": {"kind": "language_modelling"},
            "data": {"train": [{"text": "a"}]},
            "model": {"kind": "rnn_decoder"},
            "training": {"label_smoothing": 0.0, "precision": "fp32"},
        },
        "test",
    ).training
    objective = pipeline.task.objective(model, config)
    trained = TrainingState(model, objective, Optimizers(model, config), MovingAverage(model, 0.0), Progress())
    batches = [collate([store], rows, pipeline.task.columns) for rows in StreamBatches(store, 2).epoch(0)]
    first, second = ([make_update(config, trained, [each], "fp32", rate=0.0)[0] for each in batches] for _ in "ab")
    assert list(first) == list(second)


RECIPE = """
[task]
kind = "language_modelling"
context = 7
carry_state = true
[data]
train = [{ text = "train.words" }]
validation = { text = "valid.words" }
test.held_out = { text = "test.words" }
[tokenizer]
kind = "whitespace"
[batch]
tokens = 30
[model]
d_model = 16
layers = 1
dropout = 0.1
[training]
threads = 1
updates = 24
learning_rate = 5e-3
warmup = 5
accumulate = 2
average = 0.9
precision = "fp32"
label_smoothing = 0.0
validate_every = 6
checkpoint_every = 4
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with POSIX signals")
@pytest.mark.parametrize(
    ("model", "precision"),
    [
        ("lstmn", "fp32"),
        pytest.param("rotary", "bf16", marks=pytest.mark.slow),
        pytest.param("linear", "fp32", marks=pytest.mark.slow),
    ],
)
def test_a_run_that_is_killed_or_stopped_ends_in_the_same_bytes(
    model: str, precision: str, tiny_corpus: Path, tmp_path: Path
) -> None:
    (tmp_path / "recipe.toml").write_text(RECIPE)
    keys = [f"data.root={tiny_corpus}", f"training.precision={precision}"]
    keys += [f"model.{key}={value}" for key, value in MODELS[model].items() if key not in ("layers", "dropout")]

    def train(run: Path, fate: Fate = UNHARMED) -> forked.Ended:
        return forked.transduce(tmp_path, "train", tmp_path / "recipe.toml", *keys, "--run", run, fate=fate)

    def sha256(run: Path) -> str:
        return hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()

    never_split, killed, stopped = (tmp_path / name for name in ("whole", "killed", "stopped"))
    assert (done := train(never_split)).code == 0, done.shown
    assert train(killed, Fate(dies_in_write=5)).code == -signal.SIGKILL
    assert (done := train(killed)).code == 0, done.shown
    assert train(stopped, Fate(signal=signal.SIGTERM, at=10)).code == 130
    assert (done := train(stopped)).code == 0, done.shown
    assert "Going on after update 10." in done.shown
    assert sha256(never_split) == sha256(killed) == sha256(stopped)
    report = (never_split / "report.json").read_text()
    assert "carried between rows of 7" in report
    assert len(package.load(never_split).predict("seven two", method="greedy", max_length_offset=9).tokens) <= 11


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({**STACK, "kind": "transformer_decoder"}, "model.positions: .* must be relative: rotary"),
        ({**STACK, "kind": "transformer_decoder", "positions": "learned"}, ".* must be relative"),
        ({**TRANSFORMERS["rotary"], "pattern": "local", "stride": 4}, 'model.pattern = "local"'),
        ({**TRANSFORMERS["rotary"], "score": "additive"}, "model.score: .* must take keys as they are"),
        ({**LINEAR["linear"], "positions": "learned"}, ".* more positions than can be learned"),
    ],
)
def test_a_model_that_cannot_carry_its_state_is_refused(model: dict[str, Any], said: str) -> None:
    pipeline = carrying(model)
    with pytest.raises(InputError, match=f"task.carry_state: {said}"):
        pipeline.task.objective(pipeline.model)


def test_settings_that_do_not_go_together_are_all_named() -> None:
    table = {
        "task": {"kind": "language_modelling", "carry_state": True},
        "data": {"train": [{"text": "a"}, {"text": "b"}]},
        "model": {"kind": "rnn_decoder"},
        "batch": {"tokens": "auto"},
        "training": {"r_drop": 1.0},
    }
    with pytest.raises(InputError) as error:
        parse_recipe(table, "recipe")
    for word in ("data.train", "batch.tokens", "training.r_drop"):
        assert any(word in problem for problem in error.value.problems)
    with pytest.raises(InputError, match=r"batch\.tokens"):
        TaskData([], None, {}, {}, window=7).batches(BatchConfig(tokens="auto"), 1)
