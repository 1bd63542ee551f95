"""JoeyNMT trained by its own command until it is good; arguments in `quality`.

AdamW with a peak of 1e-3, inverse square root, label smoothing, dropout 0.25, and its own batches of 4,096 target
tokens, more than half of which are padding (of 8,192 they are slower: 476 tokens a second instead of 569). It has no
bf16 on a processor. Ids are written as words, as in `train_joeynmt`.
"""

import sys
from pathlib import Path
from typing import Any

import joeynmt.training
import torch
import yaml
from joeynmt.__main__ import main as joeynmt_command
from quality import LONGEST, Curve, Validation, arguments
from train_joeynmt import write
from work import Work

DROPOUT, LEARNING_RATE, WARM_UP, BATCH_TOKENS = 0.25, 1e-3, 400, 4096


class Measured(joeynmt.training.TrainManager):
    """Its training, which writes a point of the curve at each validation."""

    curve: Curve
    validation: Validation

    def _validate(self, valid_data: Any) -> None:
        self.curve.begin()
        super()._validate(valid_data)
        lines = (self.model_dir / f"{self.stats.steps}.hyps").read_text().splitlines()
        outputs = [[int(word[1:]) for word in line.split() if word.startswith("w")] for line in lines]
        self.curve.end(self.stats.steps, self.stats.total_tokens, self.validation.bleu(outputs))


def main() -> None:
    """Train to the end, from the last validation if there is one."""
    asked = arguments()
    torch.set_num_threads(asked.threads)
    saved = {int(path.stem): path for path in asked.folder.glob("from-*/*.ckpt") if path.stem.isdecimal()}
    start = max((update for update in saved if update % asked.every == 0), default=0)
    work, validation = Work(asked.work), Validation(asked.work)
    write(work, asked.folder, "fp32")
    write_validation(validation, asked.folder)
    configure(asked.folder, start, saved.get(start), asked.updates, asked.every)
    Measured.curve, Measured.validation = Curve(asked.folder / "curve.jsonl", start), validation
    joeynmt.training.TrainManager = Measured
    sys.argv = ["joeynmt", "train", str(asked.folder / "config.yaml"), "--skip-test"]
    joeynmt_command()


def write_validation(validation: Validation, folder: Path) -> None:
    """Its dev set, in place of the few lines that a measurement of speed needs."""
    for side, rows in (("en", validation.sources), ("de", validation.targets)):
        text = "".join(" ".join(f"w{token}" for token in row) + "\n" for row in rows)
        (folder / f"dev.{side}").write_text(text)


def configure(folder: Path, start: int, checkpoint: Path | None, updates: int, every: int) -> None:
    """The recipe, in place of what a measurement of speed trains with.

    Every process has a model directory of its own, because JoeyNMT takes only an empty one.
    """
    path = folder / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["model_dir"] = str(folder / f"from-{start}")
    config["testing"] |= {"eval_metrics": [], "max_output_length": LONGEST}
    config["training"] |= {
        "learning_rate": LEARNING_RATE,
        "learning_rate_warmup": WARM_UP,
        "batch_size": BATCH_TOKENS,
        "updates": updates,
        "validation_freq": every,
        "logging_freq": max(1, every // 4),
        "keep_best_ckpts": -1,
    }
    if checkpoint:
        config["training"]["load_model"] = str(checkpoint)
    config["model"]["encoder"]["dropout"] = config["model"]["decoder"]["dropout"] = DROPOUT
    path.write_text(yaml.safe_dump(config))


if __name__ == "__main__":
    main()
