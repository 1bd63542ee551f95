"""Every architecture that reads a source goes the whole way through the command line: recipe, training, search."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import forked
import transduce
from forked import Fate
from transduce.core.registry import known, resolve
from transduce.models.protocols import Classifies, Embeds, Encodes, Points, PredictsMasked, ScoresSpans

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")

STACK = "d_model = 16\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\nfeed_forward = 32\n"
RNN = "d_model = 16\nhidden = 16\n"
MODELS = {
    "transformer": STACK,
    "transformer of shared layers": f"{STACK}shared_layers = true\n".replace("layers = 1", "layers = 2"),
    "linear_transformer": STACK,
    "ssru_transformer": STACK,
    "non_autoregressive": STACK,
    "ctc": STACK,
    "convolution": "d_model = 16\nencoder_layers = 1\ndecoder_layers = 2\n",
    **{f"rnn {cell}": f'{RNN}cell = "{cell}"\n' for cell in known("layers.recurrent")},
    "rnn monotonic": f'{RNN}normalizer = "monotonic"\n',
    "rnn hard": f'{RNN}normalizer = "hard"\n',
}


def marked(name: str) -> Any:
    """Of recurrent models one is quick: the contracts of tests/models hold for every cell."""
    slow = name.startswith("rnn ") and name != "rnn gru"
    return pytest.param(name, marks=pytest.mark.slow) if slow else name


def with_model(name: str, tiny_recipe: Path) -> Path:
    """The tiny recipe with another model, and fewer validations."""
    table = f'[model]\nkind = "{name.split(maxsplit=1)[0]}"\n{MODELS[name]}'
    text = tiny_recipe.read_text(encoding="utf-8")
    before, after = text[: text.index("[model]")], text[text.index("[training]") :]
    after = after.replace("validate_every = 6", "validate_every = 24")
    tiny_recipe.write_text(before + table + after, encoding="utf-8")
    if name in ("non_autoregressive", "ctc"):  # which write all words at once
        tiny_recipe.write_text(
            tiny_recipe.read_text(encoding="utf-8").replace("[search]\nbeam = 3", ""), encoding="utf-8"
        )
    return tiny_recipe


@pytest.mark.parametrize("name", [marked(name) for name in MODELS])
def test_it_trains_and_predicts(name: str, tiny_recipe: Path, tmp_path: Path) -> None:
    recipe = with_model(name, tiny_recipe)
    done = forked.transduce(tmp_path, "train", recipe, "training.updates=48", "--run", tmp_path / "run")
    assert done.code == 0, done.err
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    losses = [event["loss"] for event in log if "loss" in event]
    assert losses[-1] < 0.9 * losses[0]
    pipeline = transduce.load(tmp_path / "run")
    together = pipeline.predict(["1 2 3", "4", "5 6"])
    assert [pipeline.predict([each.source])[0].text for each in together] == [each.text for each in together]


@pytest.mark.parametrize(
    "name",
    ["rnn lstmn", *(pytest.param(name, marks=pytest.mark.slow) for name in ("convolution", "linear_transformer"))],
)
def test_a_stopped_training_ends_in_the_same_bytes(name: str, tiny_recipe: Path, tmp_path: Path) -> None:
    recipe, whole, run = with_model(name, tiny_recipe), tmp_path / "whole", tmp_path / "run"
    assert forked.transduce(tmp_path, "train", recipe, "--run", whole).code == 0
    stopped = forked.transduce(tmp_path, "train", recipe, "--run", run, fate=Fate(signal=signal.SIGTERM, at=10))
    assert stopped.code == 130
    assert forked.transduce(tmp_path, "train", recipe, "--run", run).code == 0
    first, second = ((each / "model.safetensors").read_bytes() for each in (whole, run))
    assert first == second


def test_every_model_that_reads_a_source_is_here() -> None:
    kinds = {name: resolve("models", name) for name in known("models")}
    others = Classifies | Embeds | Points | PredictsMasked | ScoresSpans
    readers = {name for name, kind in kinds.items() if issubclass(kind, Encodes) and not issubclass(kind, others)}
    assert {name.split()[0] for name in MODELS} == readers
