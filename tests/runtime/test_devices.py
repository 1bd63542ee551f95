"""A model and all that it reads are on the device that was asked for; one that is not there is refused in words."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

import transduce
from foreign_device import THERE, Foreign, foreign_device
from random_models import language_model, model_file, sentences, translator
from transduce.cli.app import app
from transduce.core.errors import InputError
from transduce.core.model_file import ModelFile, lasting_tensors, load_model_file
from transduce.explore.offline import offline
from transduce.kernels import native
from transduce.pipeline.pipeline import EnsemblePipeline, Pipeline
from transduce.recipe.recipe import load_recipe
from transduce.runtime.devices import VARIABLE, resolve_device, use_device
from transduce.training.display import Display
from transduce.training.run import run_training

NO_CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is here")
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
VERBS = ("train", "predict", "evaluate", "score", "compare", "explore", "serve", "distill")


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever "auto" means outside of a test or after another."""
    monkeypatch.setenv(VARIABLE, "")


# ---- which device ----------------------------------------------------------------------------------------


def test_auto_is_what_is_here() -> None:
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert resolve_device("cpu") == resolve_device(torch.device("cpu")) == torch.device("cpu")


@NO_CUDA
@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_a_device_that_is_not_here_is_refused(name: str, tiny_run: Path) -> None:
    with pytest.raises(InputError, match=rf"^{name}: (there is no CUDA device|this PyTorch .* without CUDA); use"):
        resolve_device(name)
    with pytest.raises(InputError, match=f"^{name}: "):
        transduce.load(tiny_run, device=name)


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="an Apple GPU is here")
def test_an_apple_gpu_that_is_not_here_is_refused() -> None:
    with pytest.raises(InputError, match="mps: there is no Apple GPU"):
        resolve_device("mps")


@pytest.mark.parametrize("name", ["gpu", "cdua", "cuda:x", "cpu:", "meta", ""])
def test_what_is_no_device_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="expected one of auto, cpu, cuda, mps"):
        resolve_device(name)


def test_8_bits_are_the_processors(tiny_run: Path) -> None:
    assert transduce.load(tiny_run, precision="int8").device == torch.device("cpu")
    with pytest.raises(InputError, match='run only on device = "cpu"; got "cuda"'):
        transduce.load(tiny_run, precision="int8", device="cuda")


def test_what_was_asked_for_is_what_auto_means_from_then_on() -> None:
    use_device("cpu")
    assert resolve_device() == torch.device("cpu")
    assert os.environ[VARIABLE] == "cpu"  # which processes that are started inherit


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_that_runs_a_model_takes_a_device(verb: str) -> None:
    assert "--device" in CliRunner().invoke(app, [verb, "--help"], env={"COLUMNS": "200"}).stdout


@pytest.mark.parametrize(
    "command",
    [
        ["predict", "RUN"],
        ["score", "RUN", "--source", "DATA/test.digits", "--target", "DATA/test.words"],
        ["evaluate", "RUN", "--source", "DATA/test.digits", "--reference", "DATA/test.words"],
        ["serve", "RUN"],
        ["explore", "RUN", "--file", "OUT/page.html", "--text", "1 2"],
        ["distill", "RUN", "--output", "OUT/taught", "--source", "DATA/test.digits"],
        ["train", "RECIPE", "--run", "OUT/run"],
        ["compare", "RECIPE", "--run", "OUT/run"],
    ],
    ids=lambda command: command[0],
)
def test_each_refuses_a_wrong_one_and_writes_nothing(
    command: list[str], tiny_run: Path, tiny_corpus: Path, tiny_recipe: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    places = {"RUN": tiny_run, "DATA": tiny_corpus, "RECIPE": tiny_recipe, "OUT": out}
    for name, place in places.items():
        command = [part.replace(name, str(place)) for part in command]
    done = CliRunner().invoke(app, [*command, "--device", "gpu"], input="1 2\n")
    assert isinstance(done.exception, InputError), done.output
    assert 'device = "gpu": expected one of auto, cpu, cuda, mps' in str(done.exception)
    assert not list(out.iterdir())


def test_the_processor_on_request(tiny_run: Path) -> None:
    done = CliRunner().invoke(app, ["predict", str(tiny_run), "--device", "cpu"], input="1 2\n")
    assert done.stdout == f"{transduce.load(tiny_run, device='cpu').predict('1 2')}\n"


# ---- all that a model reads is where it is ---------------------------------------------------------------

LAYERS = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "tied": "none"}
SMALL: dict[str, Any] = {**LAYERS, "heads": 2, "feed_forward": 24}
MODELS: dict[str, dict[str, Any]] = {
    "transformer": {},
    "positions": {"model": {**SMALL, "kind": "transformer", "positions": "rotary"}},
    "rnn": {"model": {"kind": "rnn", "tied": "none", "d_model": 16, "hidden": 16}},
    "convolution": {"model": {**LAYERS, "kind": "convolution"}},
    "ssru": {"model": {**SMALL, "kind": "ssru_transformer"}},
    "linear": {"model": {**SMALL, "kind": "linear_transformer"}},
    "ctc": {"model": {**SMALL, "kind": "ctc"}},
    "fills": {"model": {**SMALL, "kind": "non_autoregressive"}},
}
ANY: list[dict[str, Any]] = [
    {"method": "greedy"},
    {"beam": 3, "nbest": 2},
    {"method": "sample", "seed": 1},
    {"beam": 2, "must": ["fi"], "must_not": ["ba"], "prefix": "de"},
    {"beam": 4, "groups": 2, "no_repeat_ngram": 2, "min_length": 2},
    {"beam": 2, "lattice": True},
]
SEARCHES = {"ctc": [{}, {"beam": 3}], "fills": [{}, {"iterations": 3}]}
SEARCHES |= dict.fromkeys(
    ("positions", "rnn", "convolution", "ssru", "linear", "language model"), ANY[1:3]
)  # the others are of any model


def file_of(pipeline: Pipeline) -> ModelFile:
    """The same model, to be loaded there."""
    return replace(model_file(pipeline), weights=dict(lasting_tensors(pipeline.model)))


@pytest.mark.parametrize("name", [*MODELS, "language model"])
def test_predictions_are_computed_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = language_model() if name == "language model" else translator(**MODELS[name])
    texts = [text for text in sentences(3, seed=4, longest=5) if text]
    searches = [
        {key: each[key] for key in each if key != "prefix" or name in MODELS} for each in SEARCHES.get(name, ANY)
    ]
    with native.left_out():
        expected = [[each.text for each in here.predict(texts, **search)] for search in searches]
        scored = [each.log_probability for each in here.score([(text, text) for text in texts])]
    with foreign_device(monkeypatch.setattr):
        there = Pipeline(file_of(here))
        assert there.device == THERE
        assert all(isinstance(each, Foreign) for each in there.model.parameters())
        assert [[each.text for each in there.predict(texts, **search)] for search in searches] == expected
        found = [each.log_probability for each in there.score([(text, text) for text in texts])]
        assert found == pytest.approx(scored, rel=1e-3)
        looked = there.predict(texts[0])
        if looked.tokens and looked.attention().layers:
            looked.attention().to_dict()
            looked.attention()._repr_html_()


def test_an_ensemble_is_computed_there(monkeypatch: pytest.MonkeyPatch) -> None:
    members = [translator(seed=1), translator(seed=2)]
    expected = EnsemblePipeline(members).predict("ba de fi", beam=3)
    with foreign_device(monkeypatch.setattr):
        there = EnsemblePipeline([Pipeline(file_of(each)) for each in members])
        assert there.device == THERE
        assert there.predict("ba de fi", beam=3).text == expected.text


def test_the_explorer_is_computed_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with foreign_device(monkeypatch.setattr):
        assert offline({"one": translator()}, ["ba de"])["explorations"]


def test_training_is_computed_there(tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = [f"training.{key}=3" for key in ("updates", "validate_every", "checkpoint_every")]
    recipe = load_recipe(tiny_recipe, ["model.dropout=0.0", *short])
    display = Display(Console(quiet=True))
    expected = run_training(recipe, tmp_path / "here", display)
    with foreign_device(monkeypatch.setattr):
        found = run_training(recipe, tmp_path / "there", display)
    assert found["validation"]["loss"] == pytest.approx(expected["validation"]["loss"], rel=1e-2)
    here, there = (load_model_file(tmp_path / name).weights for name in ("here", "there"))
    assert here.keys() == there.keys()
    assert all(weight.device.type == "cpu" and bool(weight.isfinite().all()) for weight in there.values())


@CUDA
def test_a_gpu_says_what_the_processor_says(tiny_run: Path) -> None:
    texts = ["1 2", "4 4 3 5", "9 8 7 6 5"]
    here, there = transduce.load(tiny_run, device="cpu"), transduce.load(tiny_run, device="cuda")
    assert next(there.model.parameters()).device.type == "cuda"
    assert [each.text for each in there.predict(texts)] == [each.text for each in here.predict(texts)]
    pairs = [(each.source, each.text) for each in here.predict(texts)]
    expected = [each.log_probability for each in here.score(pairs)]
    assert [each.log_probability for each in there.score(pairs)] == pytest.approx(expected, abs=1e-3)
    assert there.predict(texts[0]).attention().to_dict()["attention"]
