"""Which checkpoint is the best: by any metric that validation measures, in its own direction."""

import io
import json
import signal
from pathlib import Path

import pytest
import torch
from rich.console import Console
from torch import Tensor

from forked import UNHARMED, Fate, transduce
from transduce.core.errors import InputError
from transduce.core.model_file import lasting_tensors
from transduce.data.batches import Batches
from transduce.inference.inputs import batches_of
from transduce.recipe.recipe import load_recipe, parse_recipe
from transduce.recipe.training import TrainingConfig
from transduce.runtime.event_log import Log, read_log
from transduce.training.checkpoint import Checkpoints
from transduce.training.display import Display
from transduce.training.initialization import new_training
from transduce.training.loop import Callbacks, train
from transduce.training.run import _check_metrics, open_task, run_training
from transduce.training.signals import StopRequest

METRICS = 'task.metrics=["chrf", "ter"]'
LEAST = {"data": {"train": [{"source": "a", "target": "b"}], "validation": {"source": "a", "target": "b"}}}


def run(recipe: Path, folder: Path, *overrides: str) -> tuple[dict, str]:  # type: ignore[type-arg]
    shown = io.StringIO()
    report = run_training(load_recipe(recipe, overrides), folder, Display(Console(file=shown, width=300)))
    return report, shown.getvalue()


def validations(folder: Path) -> list[dict[str, float]]:
    return [event for event in read_log(folder / "log.jsonl") if event["event"] == "validation"]


@pytest.mark.parametrize(
    ("best", "lower"),
    [("loss", True), ("perplexity", True), ("ter", True), ("chrf", False), ("bleu", False), ("exact_match", False)],
)
def test_the_direction_is_the_metrics_own(tiny_recipe: Path, best: str, lower: bool) -> None:
    every = 'task.metrics=["chrf", "ter", "bleu", "exact_match"]'
    recipe = load_recipe(tiny_recipe, [every, f"training.best={best}"])
    quiet = Display(Console(quiet=True))
    assert _check_metrics(recipe, *open_task(recipe, quiet), quiet) == lower


def test_the_best_of_a_run_is_the_best_of_its_log(tiny_recipe: Path, tmp_path: Path) -> None:
    wavering = ("training.best=perplexity", "training.average=0", "training.learning_rate=0.05", "training.updates=8")
    report, _ = run(tiny_recipe, tmp_path / "run", *wavering, "training.validate_every=1")
    values = {event["update"]: event["perplexity"] for event in validations(tmp_path / "run")}
    chosen = min(values, key=lambda update: values[update])  # the first of equals
    assert report["validation"]["update"] == chosen
    assert report["validation"]["perplexity"] == values[chosen] < max(values.values())


RISES = [1.0, 3.0, 2.0, 5.0, 5.0, 4.0, 6.0]


@pytest.mark.parametrize(
    ("values", "lower", "chosen", "ended"),
    [
        (RISES, False, 4, 6),  # the fifth is no better than the fourth, nor is the sixth
        ([-value for value in RISES], True, 4, 6),
        ([-value for value in RISES], False, 1, 3),
        (RISES, True, 1, 3),
    ],
)
def test_patience_and_best_weights_follow_its_direction(
    tiny_recipe: Path, tmp_path: Path, values: list[float], lower: bool, chosen: int, ended: int
) -> None:
    """Validations that say what is written here, one after each update, of a model that really trains."""
    recipe = load_recipe(tiny_recipe, ["training.average=0"])
    changes = {"best": "mine", "patience": 2, "validate_every": 1}
    config = TrainingConfig.model_validate({**recipe.training.model_dump(), **changes})
    quiet = Display(Console(quiet=True))
    task, data = open_task(recipe, quiet)
    trained = new_training(recipe, task)
    batches = Batches(data.corpora, recipe.batch, config.seed)
    checkpoints, log = Checkpoints(tmp_path, 2), Log(tmp_path, 0, False)
    seen: list[dict[str, Tensor]] = []

    def validate() -> dict[str, float]:
        seen.append({name: weight.detach().clone() for name, weight in lasting_tensors(trained.model).items()})
        return {"loss": 1.0, "mine": values[len(seen) - 1]}

    hands = Callbacks(validate, lambda *shown: None, pytest.fail, lambda store, row: "", lower)
    load = batches_of(batches.stores, task.columns, torch.device("cpu"))
    assert train(config, trained, batches, load, checkpoints, log, hands, StopRequest(), "fp32") == (
        "no better validation in 2"
    )
    log.close()
    assert len(seen) == ended
    assert trained.progress.best == {"update": chosen, "loss": 1.0, "mine": values[chosen - 1]}
    best = checkpoints.load_best(trained.progress)
    assert all(torch.equal(best[name], weight) for name, weight in seen[chosen - 1].items())


def test_a_training_whose_best_is_the_least_is_resumed_to_the_same_bytes(tiny_recipe: Path, tmp_path: Path) -> None:
    options = (METRICS, "training.best=ter", "training.validate_every=2")

    def trained(name: str, fate: Fate) -> int:
        return transduce(tmp_path, "train", tiny_recipe, *options, "--run", tmp_path / name, fate=fate).code

    assert trained("whole", UNHARMED) == 0
    assert trained("stopped", Fate(signal=signal.SIGTERM, at=4)) == 130
    assert trained("stopped", UNHARMED) == 0
    whole, stopped = (json.loads((tmp_path / name / "report.json").read_text()) for name in ("whole", "stopped"))
    assert stopped["model"] == whole["model"]
    assert stopped["validation"] == whole["validation"]


@pytest.mark.parametrize(
    ("best", "metrics", "said"),
    [
        ("blue", ["bleu", "chrf"], 'Did you mean "bleu"? Measured: loss, perplexity, bleu, chrf.'),
        ("BLEU", ["bleu", "chrf"], 'Did you mean "bleu"?'),
        ("bleu", ["chrf"], "Measured: loss, perplexity, chrf."),
        ("los", ["chrf"], 'Did you mean "loss"?'),
    ],
)
def test_what_validation_does_not_measure_is_refused_with_the_nearest(best: str, metrics: list[str], said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_recipe({**LEAST, "task": {"metrics": metrics}, "training": {"best": best}}, "here")
    assert f'here: training.best = "{best}", but validation does not measure it.' in str(caught.value)
    assert said in str(caught.value)


def test_a_task_without_outputs_is_judged_by_likelihood() -> None:
    text = {"task": {"kind": "language_modelling"}, "data": {"train": [{"text": "a"}], "validation": {"text": "b"}}}
    text["model"] = {"kind": "transformer_decoder"}
    parse_recipe({**text, "training": {"best": "perplexity"}}, "here")
    with pytest.raises(InputError, match="Measured: loss, perplexity"):
        parse_recipe({**text, "training": {"best": "bleu"}}, "here")


def test_a_training_without_validation_needs_no_best() -> None:
    training = {"training": {"best": "bleu"}, "task": {"metrics": ["chrf"]}}
    assert parse_recipe({"data": {"train": LEAST["data"]["train"]}, **training}, "here").training.best == "bleu"


@pytest.fixture
def chinese(tiny_corpus: Path, tmp_path: Path) -> Path:
    """The tiny corpus with its target written in Chinese, without spaces."""
    numerals = dict(zip("0123456789", "零一二三四五六七八九", strict=True))
    for name in ("train", "valid", "test"):
        digits = (tiny_corpus / f"{name}.digits").read_text()
        (tmp_path / f"{name}.digits").write_text(digits)
        (tmp_path / f"{name}.words").write_text(
            "".join(numerals.get(each, "\n" if each == "\n" else "") for each in digits), encoding="utf-8"
        )
    return tmp_path


@pytest.mark.parametrize(("target", "told"), [("zh-CN", 0), ("", 1)])
def test_chinese_is_validated_by_characters(tiny_recipe: Path, chinese: Path, target: str, told: int) -> None:
    where = (f"data.root={chinese}", "tokenizer.kind=bpe", "tokenizer.vocabulary=40", f"task.target={target}")
    report, shown = run(tiny_recipe, chinese / "run", *where, "training.best=bleu", "training.updates=6")
    signatures = [report["validation_signatures"]["bleu"], report["tests"]["held_out"]["scores"]["bleu"]["signature"]]
    assert all("|tok:zh|" in signature for signature in signatures)
    assert shown.count("the references are mostly Chinese characters") == told
    values = [event["bleu"] for event in validations(chinese / "run")]
    assert report["validation"]["bleu"] == max(values)
