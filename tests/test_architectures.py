"""Every architecture that reads a source goes the whole way through the command line: recipe, training, search."""

import json
import sys
from pathlib import Path

import pytest

import forked
import transduce
from transduce.models.protocols import Encodes
from transduce.names import known, resolve

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")

STACK = "d_model = 16\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\nfeed_forward = 32\n"
RNN = "d_model = 16\nhidden = 16\n"
MODELS = {
    "transformer": STACK,
    "linear_transformer": STACK,
    "non_autoregressive": STACK,
    "convolution": "d_model = 16\nencoder_layers = 1\ndecoder_layers = 2\n",
    **{f"rnn {cell}": f'{RNN}cell = "{cell}"\n' for cell in known("layers.recurrent")},
    "rnn monotonic": f'{RNN}weighing = "monotonic"\n',
    "rnn hard": f'{RNN}weighing = "hard"\n',
}


@pytest.mark.parametrize("name", MODELS)
def test_it_trains_and_predicts(name: str, tiny_recipe: Path, tmp_path: Path) -> None:
    table = f'[model]\nkind = "{name.split(maxsplit=1)[0]}"\n{MODELS[name]}'
    text = tiny_recipe.read_text(encoding="utf-8")
    before, after = text[: text.index("[model]")], text[text.index("[training]") :]
    after = after.replace("updates = 24", "updates = 48").replace("validate_every = 6", "validate_every = 24")
    tiny_recipe.write_text(before + table + after, encoding="utf-8")
    if name == "non_autoregressive":  # which is searched by filling
        tiny_recipe.write_text(
            tiny_recipe.read_text(encoding="utf-8").replace("[search]\nbeam = 3", ""), encoding="utf-8"
        )
    done = forked.transduce(tmp_path, "train", tiny_recipe, "--run", tmp_path / "run")
    assert done.code == 0, done.err
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    losses = [event["loss"] for event in log if "loss" in event]
    assert losses[-1] < 0.9 * losses[0]
    pipeline = transduce.load(tmp_path / "run")
    together = pipeline.predict(["1 2 3", "4", "5 6"])
    assert [pipeline.predict([each.source])[0].text for each in together] == [each.text for each in together]


def test_every_model_that_reads_a_source_is_here() -> None:
    readers = {name for name in known("models") if issubclass(resolve("models", name), Encodes)}
    assert {name.split()[0] for name in MODELS} == readers
