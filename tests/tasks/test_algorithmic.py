"""Algorithmic tasks: what their examples are, that they are functions of their numbers, and the way through the CLI."""

import json
import math
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import forked
import transduce
from forked import Fate
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.algorithmic import BITS, NAMES, Algorithm, bayes_optimum, scaled
from transduce.data.batches import BatchConfig
from transduce.data.collate import Batch, collate, units_of_each
from transduce.data.columns.vectors import Vectors
from transduce.data.generated import EPOCH, generator
from transduce.explore.exploration import explore
from transduce.inference.likelihood import dataset_likelihood, pair_likelihoods
from transduce.interpret.capabilities import described
from transduce.metrics.bits import cost_tally, wrong_bits_tally
from transduce.models.protocols import Processes
from transduce.objectives.binary import BinaryCrossEntropy, answer_logits
from transduce.pipeline.outline import make_model, make_task
from transduce.recipe.recipe import parse_recipe
from transduce.tasks.algorithmic import Algorithmic
from transduce.training.validation import target_entropy

MODEL = {"kind": "neural_turing_machine", "hidden": 8, "slots": 8, "width": 4}
LENGTHS = {"associative_recall": 4, "dynamic_ngrams": 30}


def recipe(name: str = "copy", **data: Any) -> Any:
    table: dict[str, Any] = {"task": {"kind": "algorithmic"}, "model": MODEL}
    length = LENGTHS.get(name, 3)
    sets = {"train": {"length": [length, length + 3]}, "validation": {"length": length, "examples": 5}}
    table["data"] = {"name": name, **sets, "test": {"long": {"length": 2 * length, "examples": 7}}, **data}
    return parse_recipe(table, "test")


def task_of(given: Any) -> Any:
    return make_task(given, Algorithmic.learn_columns(given.tokenizer, given.data))


def example(name: str, length: int = 5, repeats: int = 3, seed: int = 1, **settings: Any) -> Any:
    algorithm = Algorithm(name, BITS[name], **settings)
    x_SF, answer_AO = algorithm.example(length, repeats, generator(seed))
    assert (x_SF.shape[1], answer_AO.shape[1]) == algorithm.widths
    assert algorithm.answers(x_SF) == len(answer_AO)
    return x_SF, answer_AO


# ---- what the examples are ---------------------------------------------------------------------------------


def test_copy() -> None:
    x_SF, answer_AO = example("copy")
    assert x_SF.shape == (11, 9)
    assert np.array_equal(x_SF[:5, :8], answer_AO)
    assert x_SF[5].tolist() == [0] * 8 + [1]
    assert not x_SF[6:].any()
    assert not x_SF[:5, 8].any()
    assert set(np.unique(answer_AO)) == {0, 1}


def test_repeat_copy() -> None:
    x_SF, answer_AO = example("repeat_copy")
    assert x_SF.shape == (5 + 1 + 15 + 1, 10)
    assert np.array_equal(answer_AO[:-1, :8], np.concatenate([x_SF[:5, :8]] * 3))
    assert answer_AO[-1].tolist() == [0] * 8 + [1]
    assert not answer_AO[:-1, 8].any()
    assert x_SF[5, 8] == 1
    assert x_SF[5, 9] == np.float32(scaled(3))
    numbers = [scaled(each) for each in range(1, 11)]
    assert math.isclose(float(np.mean(numbers)), 0, abs_tol=1e-12)
    assert math.isclose(float(np.std(numbers)), 1)


def test_associative_recall() -> None:
    x_SF, answer_AO = example("associative_recall", 6)
    assert x_SF.shape == (8 * 4, 8)
    starts, asks = (np.flatnonzero(x_SF[:, channel]).tolist() for channel in (6, 7))
    assert starts == [0, 4, 8, 12, 16, 20]
    assert asks == [24, 28]
    items = [x_SF[first + 1 : first + 4, :6].tolist() for first in starts]
    assert answer_AO.tolist() == items[1 + items.index(x_SF[25:28, :6].tolist())]
    assert not x_SF[29:].any()


def test_dynamic_ngrams_are_drawn_by_a_table_of_the_bits_before() -> None:
    x_SF, answer_AO = example("dynamic_ngrams", 20_000, order=3)
    assert np.array_equal(x_SF[2:, 0], answer_AO[:-1, 0])
    bits = np.append(x_SF[:, 0], answer_AO[-1, 0]).astype(int)
    random = generator(1)
    table = np.sin(0.5 * math.pi * random.random(4)) ** 2
    context = 2 * bits[:-2] + bits[1:-1]
    for each in range(4):
        seen = bits[2:][context == each]
        assert abs(seen.mean() - table[each]) < 5 * math.sqrt(0.25 / len(seen))


def test_priority_sort() -> None:
    x_SF, answer_AO = example("priority_sort", 20)
    assert answer_AO.shape == (16, 8)
    assert x_SF.shape == (20 + 1 + 16, 10)
    order = sorted(range(20), key=lambda place: -x_SF[place, 9])
    assert np.array_equal(answer_AO, x_SF[order[:16], :8])
    assert (np.abs(x_SF[:20, 9]) <= 1).all()
    assert example("priority_sort", 4)[1].shape == (4, 8)


def test_the_bayes_optimum_is_its_formula_and_better_than_a_coin() -> None:
    x_SF, answer_AO = example("dynamic_ngrams", 300, order=3)
    bits = [*x_SF[:, 0].astype(int).tolist(), int(answer_AO[-1, 0])]
    found = bayes_optimum(x_SF[:, 0], 3)
    assert len(found) == len(answer_AO)
    for place in range(2, len(bits)):
        followed = [bits[i] for i in range(2, place) if bits[i - 2 : i] == bits[place - 2 : place]]
        assert math.isclose(found[place - 2], (sum(followed) + 0.5) / (len(followed) + 1))
    cost = -np.log2(np.where(answer_AO[:, 0] == 1, found, 1 - found)).mean()
    assert cost < 1


@pytest.mark.parametrize("name", NAMES)
def test_texts_read_back_bit_by_bit(name: str) -> None:
    task = task_of(recipe(name))
    data = task.open(Path(), print)
    for side, place in (("source", 0), ("target", 1)):
        column = task.columns[side]
        stored = data.validation.store.read(side, np.arange(5))
        read = column.encode([texts[place] for texts in data.validation.texts])
        for one, other in zip(stored, read, strict=True):
            assert np.array_equal(one, other)


# ---- generated, never stored -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_functions_of_seed_and_number(name: str) -> None:
    task = task_of(recipe(name, batch_size=4))
    plan, again, other = (task.open(Path(), print).batches(BatchConfig(), seed) for seed in (3, 3, 4))
    rows = list(plan.epoch(2))
    assert len(rows) == EPOCH == plan.count(2)
    late = next(iter(again.epoch(2, start=1000)))
    found, same, different = (
        collate(each.stores, place, task.columns) for each, place in ((plan, rows[1000]), (again, late), (other, late))
    )
    assert torch.equal(found.inputs.values, same.inputs.values)
    assert not torch.equal(found.inputs.values[:, :3], different.inputs.values[:, :3])
    assert len(set(found.inputs.lengths.tolist())) == 1  # no padding


def test_sets_differ_and_lengths_are_as_asked() -> None:
    task = task_of(recipe(train={"length": [2, 4]}))
    data = task.open(Path(), print)
    plan = data.batches(BatchConfig(), 1)
    lengths = {
        len(plan.stores[0].read("target", rows.rows)[0]) for rows, _ in zip(plan.epoch(0), range(100), strict=False)
    }
    assert lengths == {2, 3, 4}
    assert {len(each) for each in data.tests["long"].store.read("target", np.arange(7))} == {6}
    assert len(set(data.tests["long"].texts)) == 7
    assert data.provenance["train"] == [{"name": "copy", "bits": 8, "length": [2, 4], "sha256": []}]
    assert 0.6 < target_entropy(plan.stores[0], task.columns["target"]) <= math.log(2) + 1e-9


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"name": "copi"}, "copy"),
        ({"item": 2}, "item: not read with this algorithm"),
        ({"name": "dynamic_ngrams", "bits": 2}, "bits: not read"),
        ({"name": "associative_recall", "train": {"length": 1}}, "a length of at least 2"),
        ({"train": {"length": [5, 2]}}, "the smaller number first"),
    ],
)
def test_wrong_settings_are_refused(data: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        recipe(**{"train": {"length": [2, 5]}, "validation": None, "test": {}, **data})


def test_what_is_not_read_is_refused() -> None:
    table = {"task": {"kind": "algorithmic"}, "model": MODEL, "batch": {"tokens": 10}}
    with pytest.raises(InputError, match="leave out the section"):
        parse_recipe(table, "test")


# ---- loss, metrics, predictions ----------------------------------------------------------------------------


def test_the_loss_is_that_of_the_answers_bits_alone() -> None:
    given = recipe("copy")
    task = task_of(given)
    torch.manual_seed(1)
    model = make_model(given, task)
    assert isinstance(model, Processes)
    store = task.open(Path(), print).tests["long"].store
    short = task.open(Path(), print).validation.store
    inputs = [store.read("source", np.arange(1))[0], short.read("source", np.arange(1))[0]]
    answers = [store.read("target", np.arange(1))[0], short.read("target", np.arange(1))[0]]
    batch = Batch(task.columns["source"].collate(inputs), task.columns["target"].collate(answers), 0)
    objective = BinaryCrossEntropy()
    loss, each_BN = objective.loss(model, batch), objective.log_probabilities(model, batch)
    expected = 0.0
    for row, (x_SF, answer_AO) in enumerate(zip(inputs, answers, strict=True)):
        logits = model.process(torch.tensor(x_SF)[None], model.initial(1))[0][0, -len(answer_AO) :].sigmoid()
        nats = [
            math.log(p if bit else 1 - p)
            for said, right in zip(logits.tolist(), answer_AO.tolist(), strict=True)
            for p, bit in zip(said, right, strict=True)
        ]
        expected -= sum(nats)
        torch.testing.assert_close(each_BN[row, : len(nats)], torch.tensor(nats).double(), rtol=1e-4, atol=1e-5)
        assert not each_BN[row, len(nats) :].any()
    assert math.isclose(loss.minimised.item(), expected, rel_tol=1e-5)
    assert units_of_each(batch.targets).tolist() == [each.size for each in answers]
    parts = [objective.loss(model, batch.rows(slice(row, row + 1))).minimised for row in (0, 1)]
    torch.testing.assert_close(sum(parts), loss.minimised)


def test_logits_are_those_of_the_last_steps() -> None:
    class Echo:
        def initial(self, rows: int) -> None:
            return None

        def process(self, x_BTF: torch.Tensor, state: None) -> tuple[torch.Tensor, None]:
            return x_BTF, None

    x_BTF = torch.arange(10.0).view(2, 5, 1)
    found = answer_logits(Echo(), Padded(x_BTF, torch.tensor([5, 3])), torch.tensor([2, 1]))
    assert found[0, :, 0].tolist() == [3, 4]
    assert found[1, 0, 0].item() == 7


def test_wrong_bits_and_cost() -> None:
    said = ["[[0, 1], [1, 1]]", "[[0, 0]]", "[[1, 1]]"]
    right = ["[[0, 1], [1, 0]]", "[[1, 1]]", "[[1, 1], [0, 1]]"]
    assert wrong_bits_tally(said, right).value == (1 + 2 + 2) / 3
    assert wrong_bits_tally(said, right, "vector").value == 5 / 5
    assert math.isclose(cost_tally([math.log(0.5), 3 * math.log(0.5)]).value, 2)
    with pytest.raises(InputError, match="rows of 0 and 1"):
        wrong_bits_tally(["x"], ["[[0]]"])


def test_predictions_and_likelihoods_are_the_same_in_any_batch() -> None:
    given = recipe("repeat_copy")
    task = task_of(given)
    torch.manual_seed(1)
    model, test = make_model(given, task), task.open(Path(), print).tests["long"]
    texts = [source for source, _ in test.texts]
    together, alone = (task.predictor.predict(model, texts, batch_size=size) for size in (7, 1))
    assert [each.text for each in together] == [each.text for each in alone]
    for one, other, (_, answer) in zip(together, alone, test.texts, strict=True):
        np.testing.assert_allclose(one.probabilities, other.probabilities, rtol=1e-4)
        assert [[int(p > 0.5) for p in row] for row in one.probabilities] == json.loads(one.text)
        assert len(json.loads(one.text)) == len(json.loads(answer))
    likelihoods = pair_likelihoods(model, task, test.texts, 3)
    never_split = dataset_likelihood(model, task, test.store)
    assert never_split.unit == "bit"
    assert sum(each.tokens for each in likelihoods) == never_split.tokens
    assert math.isclose(sum(each.log_probability for each in likelihoods), never_split.log_probability, rel_tol=1e-5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dog", r"expected rows of 9 numbers as JSON, such as \[\[0, 1"),
        ("[[0, 1]]", "got a row of 2"),
        ("[]", "got"),
        ("[[0, 0, 0, 0, 0, 0, 0, 0, NaN]]", "got"),
        ("[[0, 0, 0, 0, 0, 0, 0, 0, 0]]", "expected rows of 0 behind its last delimiter"),
    ],
)
def test_wrong_inputs_are_refused(text: str, said: str) -> None:
    given = recipe()
    task = task_of(given)
    with pytest.raises(InputError, match=said):
        task.predictor.predict(make_model(given, task), [text])


def test_answers_of_another_length_are_refused() -> None:
    given = recipe()
    task = task_of(given)
    source, _ = task.open(Path(), print).validation.texts[0]
    with pytest.raises(InputError, match="expected 3 rows"):
        task.predictor.score(make_model(given, task), [(source, "[[0, 0, 0, 0, 0, 0, 0, 0]]")])


def test_a_model_of_text_is_refused() -> None:
    given = parse_recipe({"task": {"kind": "algorithmic"}, "model": {"kind": "transformer_decoder"}}, "test")
    task = task_of(given)
    with pytest.raises(InputError, match="processes no vectors"):
        task.objective(make_model(given, task))


def test_the_columns_are_kept() -> None:
    assert Vectors.from_dict(Vectors(4).to_dict()) == Vectors(4)
    with pytest.raises(InputError, match="expected a width"):
        Vectors.from_dict({"width": 0})


# ---- the whole way -----------------------------------------------------------------------------------------

TOML = """
[task]
kind = "algorithmic"
[data]
name = "NAME"
batch_size = 4
[data.train]
length = [LENGTH, LENGTH]
[data.validation]
length = LENGTH
examples = 8
[data.test]
long = { length = LONG, examples = 6 }
[model]
kind = "neural_turing_machine"
hidden = 16
slots = 8
width = 6
[training]
updates = 24
warmup = 0
learning_rate = 0.01
validate_every = 12
checkpoint_every = 6
log_every = 6
threads = 1
"""


def written(folder: Path, name: str = "copy") -> Path:
    length = LENGTHS.get(name, 2)
    path = folder / "algorithm.toml"
    path.write_text(TOML.replace("NAME", name).replace("LENGTH", str(length)).replace("LONG", str(2 * length)))
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_a_stopped_training_ends_in_the_same_bytes(tmp_path: Path) -> None:
    given, never_split, run = written(tmp_path), tmp_path / "whole", tmp_path / "run"
    done = forked.transduce(tmp_path, "train", given, "--run", never_split)
    assert done.code == 0, done.err
    stopped = forked.transduce(tmp_path, "train", given, "--run", run, fate=Fate(signal=signal.SIGTERM, at=10))
    assert stopped.code == 130
    assert forked.transduce(tmp_path, "train", given, "--run", run).code == 0
    first, second = ((each / "model.safetensors").read_bytes() for each in (never_split, run))
    assert first == second
    assert forked.transduce(tmp_path, "train", given, "--run", run).code == 0  # a finished run is left alone


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
@pytest.mark.parametrize("name", ["repeat_copy", "dynamic_ngrams"])
def test_train_predict_and_evaluate(name: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = forked.transduce(tmp_path, "train", written(tmp_path, name), "--run", run)
    assert done.code == 0, done.err
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    scores = report["tests"]["long"]["scores"]
    assert {"wrong_bits", "wrong_bits_per_vector", "exact_match", "cost"} <= scores.keys()
    likelihood = report["tests"]["long"]["likelihood"]
    assert math.isclose(scores["cost"]["value"], -likelihood["log_probability"] / math.log(2) / 6, rel_tol=1e-6)
    if name == "dynamic_ngrams":
        best = report["baseline"]["settings"]["bits_per_sequence"]["long"]
        assert 0 < best < likelihood["tokens"] / 6
    task = task_of(parse_recipe({**_table(written(tmp_path, name))}, "test"))
    texts = task.open(tmp_path, print).tests["long"].texts
    for side, place in (("in", 0), ("out", 1)):
        (tmp_path / side).write_text("".join(each[place] + "\n" for each in texts))
    evaluated = forked.transduce(
        tmp_path, "evaluate", run, "--source", tmp_path / "in", "--reference", tmp_path / "out", "--json"
    )
    assert evaluated.code == 0, evaluated.err
    found = json.loads(evaluated.out)["scores"]
    for metric in ("wrong_bits", "cost"):
        assert math.isclose(found[metric]["value"], scores[metric]["value"], rel_tol=1e-5)
    pipeline = transduce.load(run)
    [prediction] = pipeline.predict([texts[0][0]])
    explored = explore(pipeline, texts[0][0])
    assert explored["target"]["text"] == prediction.text
    assert [each["title"] for each in explored["drawing"]["panels"]][:2] == ["inputs", "outputs"]
    assert described("a", pipeline.model, pipeline.task, pipeline.recipe, False, {})["layers"] == []
    assert prediction.to_dict()["input"] == json.loads(texts[0][0])


def _table(path: Path) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(path.read_text(encoding="utf-8"))


def test_the_baseline_says_each_bit_as_it_mostly_is() -> None:
    given = recipe("repeat_copy", test={"long": {"length": 6, "repeats": 2, "examples": 7}})
    task = task_of(given)
    data = task.open(Path(), print)
    baseline = task.baseline(data, print)
    assert baseline.name == "most frequent bits"
    usual = np.array(baseline.settings["bits"])
    assert usual[-1] == 0  # the end of an answer is one vector of many
    for text, (_, answer) in zip(
        baseline.predict([each for each, _ in data.tests["long"].texts]), data.tests["long"].texts, strict=True
    ):
        assert np.array_equal(np.array(json.loads(text)), np.tile(usual, (len(json.loads(answer)), 1)))
