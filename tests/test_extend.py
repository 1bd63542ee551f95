"""docs/extend.md runs: its files are written out as they stand, trained with, and predicted with."""

import json
import re
import shlex
import sys
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

import forked
import transduce
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.pipeline.pipeline import Pipeline
from transduce.recipe.recipe import load_recipe
from transduce.training.display import Display
from transduce.training.run import run_training

PAGE = Path(__file__).parent.parent / "docs" / "extend.md"
FILES = dict(re.findall(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S))
RECIPES = [name for name in FILES if name.endswith(".toml")]

BASE = """
[task]
kind = "translation"
metrics = ["exact_match"]
[data]
root = "{root}"
train = [{{ source = "train.digits", target = "train.words" }}]
validation = {{ source = "valid.digits", target = "valid.words" }}
[tokenizer]
kind = "whitespace"
[batch]
tokens = 200
[training]
threads = 1
updates = 40
learning_rate = 1e-2
warmup = 5
precision = "fp32"
validate_every = 20
decode_sentences = 8
checkpoint_every = 20
log_every = 5
[search]
beam = 3
"""


@pytest.fixture
def folder(tmp_path: Path, tiny_corpus: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader of the page stands: its files, a base recipe, and nothing imported from there before."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    (tmp_path / "base.toml").write_text(BASE.format(root=tiny_corpus), encoding="utf-8")
    sides = ((tiny_corpus / f"train.{side}").read_text(encoding="utf-8").splitlines() for side in ("digits", "words"))
    entries = [f"{digits} : {words}" for digits, words in zip(*sides, strict=True)]
    (tmp_path / "numbers.dict").write_text("\n".join(["# numbers", *entries]) + "\n", encoding="utf-8")
    for name in ("train.digits", "valid.digits", "valid.words"):
        (tmp_path / name).write_bytes((tiny_corpus / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


TRANSFORMER = ["model.d_model=32", "model.feed_forward=64", "model.encoder_layers=1", "model.decoder_layers=1"]
SMALL = {  # the page does not say so: its reader has more time
    "my_score.toml": ["model.d_model=32", "model.hidden=32"],
    "my_task.toml": ["training.threads=1", "training.updates=100"],
    "my_metric.toml": TRANSFORMER,
    "my_normalizer.toml": TRANSFORMER,
}


def train(folder: Path, recipe: str) -> Pipeline:
    """Trained, and loaded as somebody does who trusts the code; without trust it is refused."""
    run_training(load_recipe(folder / recipe, SMALL.get(recipe, [])), folder / "run", Display(Console(file=StringIO())))
    with pytest.raises(InputError, match="names code outside Transduce: my_"):
        transduce.load(folder / "run")
    return transduce.load(folder / "run", trust_code=True)


def test_the_page_shows_a_recipe_for_each_file() -> None:
    assert sorted(name.removesuffix(".toml") for name in RECIPES) == [
        *("my_format", "my_metric", "my_model", "my_normalizer", "my_score", "my_task")
    ]
    assert all(name.replace(".toml", ".py") in FILES for name in RECIPES)


@pytest.mark.parametrize("recipe", RECIPES)
def test_it_trains_and_predicts(folder: Path, recipe: str) -> None:
    """And what its kind of extension is for, which `OF_EACH` asks of the one training."""
    pipeline = train(folder, recipe)
    losses = [event["loss"] for event in events(folder / "run" / "log.jsonl") if "loss" in event]
    assert losses[-1] < 0.8 * losses[0]
    predictions = pipeline.predict(["1 2 3", "4"])
    assert [each.text for each in pipeline.predict(["1 2 3", "4"], batch_size=1)] == [each.text for each in predictions]
    mine = recipe.removesuffix(".toml")
    files = [files.reader for files in pipeline.recipe.data.train if getattr(files, "file", None)]
    used = [type(each) for each in (pipeline.task, *pipeline.model.modules(), *files)]
    used += [tally.aggregate for tally in pipeline.task.tallies(["one"], ["one"]).values()]
    assert any(each.__module__ == mine for each in used), f"{mine} was not used"
    OF_EACH.get(recipe, lambda pipeline: None)(pipeline)


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_the_next_commands_work_as_printed(folder: Path) -> None:
    """Of a task of one's own, whose model file names code: what is typed next is not refused."""
    done = forked.transduce(folder, "train", "my_task.toml", "training.updates=3", "--run", "run")
    assert done.code == 0, done.err
    commands = [shlex.split(line)[1:] for line in done.out.split("Next:")[1].splitlines() if "transduce " in line]
    assert [each[0] for each in commands] == ["predict", "explore"]
    more = {"predict": ["--text", "1 2 3"], "explore": ["--file", "page.html", "--text", "1 2 3"]}
    for verb, *arguments in commands:
        shown = forked.transduce(folder, verb, *arguments, *more[verb])
        assert shown.code == 0, shown.err


def the_task_learns_what_it_is_for(pipeline: Pipeline) -> None:
    texts = ["1 2 3", "9 8", "2 7 1", "4 4 6"]
    assert [each.text for each in pipeline.predict(texts)] == ["low", "high", "low", "high"]


def the_model_keeps_the_contracts(pipeline: Pipeline) -> None:
    model = pipeline.model
    source = Padded(torch.tensor([[3, 4, 5], [6, 7, 3]]), torch.tensor([3, 2]))
    target = torch.tensor([[1, 4, 5, 6], [1, 7, 8, 9]])
    whole_BTV = model(source, Padded(target, torch.tensor([4, 4]))).log_softmax(-1)
    memory, state = model.start(source, 2)
    for t, token_B in enumerate(target.unbind(1)):
        log_probability_BV, state = model.step(token_B, memory, state)
        torch.testing.assert_close(log_probability_BV, whole_BTV[:, t], rtol=1e-5, atol=1e-5)
    padded = source._replace(values=torch.tensor([[3, 4, 5], [6, 7, 8]]))
    assert torch.equal(model(padded, Padded(target, torch.tensor([4, 4]))).log_softmax(-1), whole_BTV)


def the_weighing_may_read_nothing_and_sums_to_less_than_one(pipeline: Pipeline) -> None:
    with transduce.capture(pipeline.model) as record:
        pipeline.predict(["1 2 3 4"])
    sums = [alpha_BHTS.sum(-1) for calls in record.values() for alpha_BHTS in calls]
    assert sums
    assert all(((sum_BHT > 0) & (sum_BHT < 1)).all() for sum_BHT in sums)


def the_metric_is_measured_as_the_others(pipeline: Pipeline) -> None:
    """With signature and interval, in validation and evaluation; a paired bootstrap says which system is better."""
    name = "my_metric:my_metric"
    assert any(name in event for event in events(Path("run/log.jsonl")))
    measured = json.loads(Path("run/report.json").read_text(encoding="utf-8"))["validation_signatures"]
    assert measured[name].startswith("nrefs:1|case:mixed|search:")
    pairs = [("1 2", "one two"), ("3 4", "three four"), ("5", "five")]
    outputs = {"right": [target for _, target in pairs], "wrong": ["one three", "three three", "five"]}
    found = transduce.evaluate(None, pairs, outputs=outputs, metrics=[name, "exact_match"])
    scores = [each.scores[name] for each in found.systems.values()]
    assert [score.value for score in scores] == [100, 60]
    assert str(scores[1]).startswith("words in place 60.0 [50.0, ") and scores[1].signature == "nrefs:1|case:mixed"
    assert [each.metric for each in found.comparisons] == [name, "exact_match"]
    assert found.comparisons[0].difference.value == -40


OF_EACH = {
    "my_metric.toml": the_metric_is_measured_as_the_others,
    "my_task.toml": the_task_learns_what_it_is_for,
    "my_model.toml": the_model_keeps_the_contracts,
    "my_normalizer.toml": the_weighing_may_read_nothing_and_sums_to_less_than_one,
}


def events(log: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
