"""JoeyNMT's own trainer: python train_joeynmt.py WORK PRECISION SECONDS.

It runs `python -m joeynmt train` on the work's token ids written as words, with its own batching, and reads the speed
from its log. Its log counts target tokens without padding, as here.
"""

import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from work import DROPOUT, HEADS, HIDDEN, LAYERS, SMOOTHING, WIDTH, Work, arguments, report

CONFIG = """
name: "small"
joeynmt_version: "2.3.0"
model_dir: "{folder}/model"
use_cuda: False
fp16: {fp16}
random_seed: 1
data:
    train: "{folder}/train"
    dev: "{folder}/dev"
    test: "{folder}/dev"
    dataset_type: "plain"
    src: {{lang: "en", level: "word", voc_file: "{folder}/vocabulary", lowercase: False, max_length: 200}}
    trg: {{lang: "de", level: "word", voc_file: "{folder}/vocabulary", lowercase: False, max_length: 200}}
    special_symbols: {{unk_token: "<unk>", unk_id: 0, pad_token: "<pad>", pad_id: 1, bos_token: "<s>", bos_id: 2,
        eos_token: "</s>", eos_id: 3}}
testing: {{beam_size: 1, batch_size: 64, batch_type: "sentence", eval_metrics: ["bleu"]}}
training:
    optimizer: "adamw"
    adam_betas: [0.9, 0.98]
    learning_rate: 0.0003
    scheduling: "warmupinversesquareroot"
    learning_rate_warmup: 400
    clip_grad_norm: 1.0
    normalization: "tokens"
    loss: "crossentropy"
    label_smoothing: {smoothing}
    batch_size: 4096
    batch_type: "token"
    epochs: 1000
    updates: 100000
    validation_freq: 1000000
    logging_freq: 2
    overwrite: True
    shuffle: True
    print_valid_sents: []
    early_stopping_metric: "loss"
model:
    initializer: "xavier_uniform"
    tied_embeddings: True
    tied_softmax: True
    encoder: &side
        type: "transformer"
        num_layers: {layers}
        num_heads: {heads}
        embeddings: {{embedding_dim: {width}, scale: True, dropout: 0.0}}
        hidden_size: {width}
        ff_size: {hidden}
        dropout: {dropout}
        layer_norm: "post"
        activation: "relu"
    decoder: *side
"""


def main() -> None:
    """Train until `seconds` after the first report of speed have gone by; the median of what it reports."""
    work, precision, seconds = arguments()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(work, folder, precision)
        speeds = speeds_of(folder, seconds)
    report(tokens_per_second=statistics.median(speeds[1:] or speeds))


def write(work: Work, folder: Path, precision: str) -> None:
    """Its data, vocabulary and configuration."""
    for side, rows in (("en", work.source), ("de", work.target)):
        for part, some in (("train", rows), ("dev", rows[:8])):
            lines = (" ".join(f"w{token}" for token in row) for row in some)
            (folder / f"{part}.{side}").write_text("".join(f"{line}\n" for line in lines))
    words = ["<unk>", "<pad>", "<s>", "</s>", *(f"w{token}" for token in range(4, work.vocabulary))]
    (folder / "vocabulary").write_text("".join(f"{word}\n" for word in words))
    settings = {
        "folder": folder,
        "fp16": precision == "bf16",
        "smoothing": SMOOTHING,
        "layers": LAYERS,
        "heads": HEADS,
        "width": WIDTH,
        "hidden": HIDDEN,
        "dropout": DROPOUT,
    }
    (folder / "config.yaml").write_text(CONFIG.format(**settings))


def speeds_of(folder: Path, seconds: float) -> list[float]:
    """Every "Tokens per Sec" of its log until there are enough seconds of them."""
    command = [sys.executable, "-m", "joeynmt", "train", str(folder / "config.yaml"), "--skip-test"]
    speeds, said = [], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        first = None
        for line in process.stdout:
            said.append(line)
            found = re.search(r"Tokens per Sec:\s*([\d.]+)", line)
            if found:
                speeds.append(float(found.group(1)))
                moment = _clock(line)
                first = first or moment
                if moment - first >= seconds:
                    process.terminate()
                    break
    if not speeds:
        raise SystemExit("".join(said[-30:]))
    return speeds


def _clock(line: str) -> float:
    """The seconds of the day that a log line begins with."""
    found = re.search(r"(\d\d):(\d\d):(\d\d),(\d+)", line)
    assert found, line
    hours, minutes, whole, thousandths = map(int, found.groups())
    return 3600 * hours + 60 * minutes + whole + thousandths / 1000


if __name__ == "__main__":
    main()
