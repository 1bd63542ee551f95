"""Speech recognition: tables and archives are read; trained, resumed, evaluated, explored and asked like other tasks."""

import json
import math
import random
import tarfile
from pathlib import Path

import numpy as np
import pytest
import soundfile

import transduce
from forked import transduce as command
from transduce.core.errors import InputError
from transduce.data.recordings import RecordingFile, Strings, read_recordings
from transduce.interpret.attention import attention_of

RATE, TONES = 8000, {"a": 300, "b": 700, "c": 1300, "d": 2200}
SIZES = {
    "transformer": "heads = 2\nencoder_layers = 1\ndecoder_layers = 1\nfeed_forward = 32",
    "rnn": "hidden = 24",
    "ctc": "heads = 2\nencoder_layers = 1\ndecoder_layers = 1\nfeed_forward = 32\nplaces = 1",
}


def spoken(text: str, seed: int) -> np.ndarray:
    """A tone for each letter, with a little noise."""
    random_ = np.random.default_rng(seed)
    time = np.arange(RATE // 10) / RATE
    parts = [np.sin(2 * math.pi * TONES[letter] * time) * np.hanning(len(time)) for letter in text]
    return (0.3 * np.concatenate(parts) + 0.002 * random_.normal(size=len(parts) * len(time))).astype(np.float32)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spoken")
    random_ = random.Random(1)
    for name, count in (("train", 150), ("valid", 20), ("test", 25)):
        lines = []
        for number in range(count):
            text = "".join(random_.choices(list(TONES), k=random_.randrange(2, 5)))
            soundfile.write(folder / f"{name}{number}.wav", spoken(text, number), RATE, subtype="PCM_16")
            lines.append(f"{name}{number}.wav\t{text}\n")
        (folder / f"{name}.tsv").write_text("".join(lines))
    return folder


def recipe_at(corpus: Path, path: Path, model: str, updates: int = 300, more: str = "") -> Path:
    path.write_text(f"""
[task]
kind = "speech_recognition"
metrics = ["cer", "wer", "exact_match"]
[data]
root = "{corpus}"
rate = 8000
mels = 20
train = [{{ file = "train.tsv" }}]
validation = {{ file = "valid.tsv" }}
test = {{ held_out = {{ file = "test.tsv" }} }}
spec_augment = {{ time_width = 3, feature_width = 2 }}
speeds = [0.9, 1.1]
[tokenizer]
kind = "character"
[batch]
tokens = 600
[model]
kind = "{model}"
d_model = 24
{SIZES[model]}
dropout = 0.0
[training]
threads = 1
updates = {updates}
learning_rate = 1e-2
warmup = 20
precision = "fp32"
best = "cer"
validate_every = 100
decode_sentences = 20
checkpoint_every = 50
label_smoothing = 0.0
{more}
""")
    return path


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSDUCE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield


@pytest.fixture(scope="module", params=["transformer", "rnn", "ctc"])
def trained(request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    done = command(folder, "train", recipe_at(corpus, folder / "recipe.toml", request.param), "--run", folder / "run")
    assert done.code == 0, done.shown
    assert "cer" in done.shown and "At speeds 1.0, 0.9, 1.1." in done.shown
    return folder / "run"


def test_it_learns_what_is_said(trained: Path, corpus: Path) -> None:
    report = json.loads((trained / "report.json").read_text())
    scores = report["tests"]["held_out"]["scores"]
    assert scores["cer"]["value"] < 25, scores
    assert scores["cer"]["interval"][0] <= scores["cer"]["value"] <= scores["cer"]["interval"][1]
    model = transduce.load(trained)
    rows = [line.split("\t") for line in (corpus / "test.tsv").read_text().splitlines()]
    found = model.predict([str(corpus / name) for name, _ in rows])
    exact = 100 * sum(each.text == text for each, (_, text) in zip(found, rows, strict=True)) / len(rows)
    assert scores["exact_match"]["value"] == pytest.approx(exact)
