"""What 40 updates of a small fixed recipe teach each architecture: the loss on held-out sentences of the demo corpus.

`python tests/training/canary.py` trains each of them from three seeds and writes what came out to canaries.json, where
`test_canaries.py` reads what to expect; it prints both. Run it when training has become better, or draws its random
numbers otherwise and the three seeds are no worse together.
"""

import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from transduce.demo.corpus import write_corpus
from transduce.recipe.recipe import Recipe, parse_recipe
from transduce.runtime.environment import library_versions, machine
from transduce.training.display import Display
from transduce.training.run import run_training

EXPECTED = Path(__file__).with_name("canaries.json")
SEEDS = (1, 2, 3)
PAIRS = 3000
UPDATES = 40

STACK = {"d_model": 64, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 128, "dropout": 0.1}
DECODER = {"d_model": 64, "heads": 4, "layers": 2, "feed_forward": 128, "dropout": 0.1}
RNN = {"kind": "rnn", "d_model": 64, "hidden": 96, "dropout": 0.1}
MUON, ADAMW = {"optimizer": "muon"}, {"optimizer": "adamw"}
CANARIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # name -> [model], and what [training] says besides
    "transformer": ({"kind": "transformer", **STACK}, MUON),
    "transformer, AdamW": ({"kind": "transformer", **STACK}, ADAMW),
    "transformer, AdamW, inverse_sqrt, bf16": (
        {"kind": "transformer", **STACK},
        {**ADAMW, "schedule": "inverse_sqrt", "precision": "bf16"},
    ),
    "transformer, rotary positions, zero_init, sampled words, counted embeddings, linear schedule": (
        {"kind": "transformer", **STACK, "positions": "rotary", "zero_init": True},
        {**MUON, "sampled_words": 200, "embeddings": "cooccurrence", "schedule": "linear"},
    ),
    "ssru_transformer": ({"kind": "ssru_transformer", **STACK}, MUON),
    "linear_transformer": ({"kind": "linear_transformer", **STACK}, MUON),
    "convolution, AdamW": (
        {"kind": "convolution", "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.1},
        ADAMW,
    ),
    "rnn, GRU": (RNN, MUON),
    "rnn, LSTM, no attention": ({**RNN, "cell": "lstm", "attention": "none", "feeding": False}, MUON),
    "ctc": ({"kind": "ctc", **STACK}, MUON),
    "non_autoregressive": ({"kind": "non_autoregressive", **STACK}, MUON),
    "transformer_decoder": ({"kind": "transformer_decoder", **DECODER}, MUON),
    "linear_transformer_decoder": ({"kind": "linear_transformer_decoder", **DECODER}, MUON),
    "rnn_decoder": ({"kind": "rnn_decoder", "d_model": 64, "layers": 1, "dropout": 0.1}, MUON),
}
TRAINING = {
    "updates": UPDATES,
    "threads": 1,
    "precision": "fp32",
    "learning_rate": 6e-3,
    "warmup": 8,
    "average": 0.9,
    "label_smoothing": 0.0,
    "validate_every": UPDATES,
    "decode_sentences": 0,
    "samples": 0,
}


def write_data(folder: Path) -> None:
    """The beginning of the demo's training text, and its validation text."""
    for source, _ in write_corpus(folder).values():
        for path in (source, source.with_suffix(".fr")):
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            path.write_text("".join(lines[:PAIRS]), encoding="utf-8")


def recipe(name: str, seed: int, data: Path, **training: Any) -> Recipe:
    """Canary `name` on the demo's text, which `write_data` wrote into `data`; `training` overrides its [training]."""
    model, own = CANARIES[name]
    alone = str(model["kind"]).endswith("decoder")
    train, validation = (
        {"text": f"{split}.fr"} if alone else {"source": f"{split}.en", "target": f"{split}.fr"}
        for split in ("train", "validation")
    )
    table = {
        "task": {"kind": "language_modelling", "context": 64} if alone else {"kind": "translation"},
        "data": {"root": str(data), "train": [train], "validation": validation},
        "tokenizer": {"kind": "bpe", "vocabulary": 800},
        "batch": {"tokens": 512},
        "model": model,
        "training": {**TRAINING, **own, "seed": seed, **training},
    }
    return parse_recipe(table, f"canary {name}")


def loss(name: str, seed: int, data: Path, run: Path) -> float:
    """The validation loss, in nats a token, of canary `name` after its updates."""
    report = run_training(recipe(name, seed, data), run, Display(Console(file=io.StringIO())))
    measured: float = report["validation"]["loss"]
    return measured


def measure() -> dict[str, Any]:
    """All of them from all seeds."""
    losses: dict[str, list[float]] = {}
    before = json.loads(EXPECTED.read_text(encoding="utf-8"))["losses"] if EXPECTED.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        write_data(data)
        for name in CANARIES:
            runs = [Path(folder) / f"{name} {seed}" for seed in SEEDS]
            losses[name] = [round(loss(name, seed, data, run), 4) for seed, run in zip(SEEDS, runs, strict=True)]
            print(f"{name}: {losses[name]}, before {before.get(name)}", file=sys.stderr)
    return {"seeds": SEEDS, "machine": machine(), "versions": library_versions(), "losses": losses}


if __name__ == "__main__":
    EXPECTED.write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
