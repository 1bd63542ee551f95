"""Does a converted model get better on text of one's own by five minutes of fine-tuning?

    python recipes/prepare.py low-resource
    python benchmarks/fine_tune_imported.py RUNS [--own prepared/low-resource] [--minutes 5] [--record]

No published model is here, so a stand-in is made: an English-French model in Marian's architecture, trained on
Multi30k's descriptions of pictures and written as a folder of Hugging Face. From there on it is somebody else's:
`transduce convert` reads the folder, and 5,000 pairs of everyday sentences (Tatoeba) fine-tune it. Both are scored on
1,000 held-out pairs of those. Prints the scores and their difference with its interval; what is in RUNS already is
taken as it is.
"""

import argparse
from pathlib import Path
from typing import Any

from records import save_measurement

import transduce
from transduce.core.model_file import save_model_file
from transduce.data.files import read_lines
from transduce.interop.exports import export_format
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.pipeline.pipeline import load

METRICS = ["bleu", "chrf"]
LANGUAGES = Languages("en", "fr")
TASK = {"kind": "translation", "source": "en", "target": "fr"}
MARIAN = {"norm": "post", "positions": "sinusoidal", "activation": "relu", "dropout": 0.1, "inner_dropout": 0.1}
SIZES = {"d_model": 128, "heads": 4, "feed_forward": 512, "encoder_layers": 2, "decoder_layers": 2}


def main() -> None:
    """The stand-in, the converted model, the fine-tuned one; their scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--multi30k", type=Path, default=Path("../shared/data/multi30k/raw"))
    parser.add_argument(
        "--own", type=Path, default=Path("prepared/low-resource"), help="as recipes/prepare.py writes it"
    )
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--minutes-of-stand-in", type=float, default=10)
    parser.add_argument("--record", action="store_true", help="write results/parity/fine_tune.json")
    asked = parser.parse_args()
    asked.runs.mkdir(parents=True, exist_ok=True)
    imported = converted(asked.runs, asked.multi30k, asked.minutes_of_stand_in)
    tuned = fine_tuned(asked.runs / "fine-tuned", imported, asked.own, asked.minutes)
    found = transduce.evaluate({"converted": imported, "fine-tuned": tuned}, asked.own / "test.tsv", metrics=METRICS)
    print(found)
    if asked.record:
        print(recorded(found, asked.own, asked.minutes))


def recorded(found: transduce.Evaluation, own: Path, minutes: float) -> Path:
    """Scores, and the differences between them with their intervals."""
    return save_measurement(
        "parity/fine_tune",
        60 * minutes,
        minutes=minutes,
        pairs=sum(1 for _ in read_lines(own / "train.tsv")),
        sentences=len(found),
        scores={
            name: {metric: system.scores[metric].to_dict() for metric in METRICS}
            for name, system in found.systems.items()
        },
        differences={each.metric: each.difference.to_dict() for each in found.comparisons if each.metric in METRICS},
    )


def converted(runs: Path, data: Path, minutes: float) -> Path:
    """The stand-in as a folder of Hugging Face, and that as a model file."""
    path = runs / "converted.safetensors"
    if path.is_file():
        return path
    sides = {
        part: {side: str((data / f"{part}.{code}.gz").resolve()) for side, code in (("source", "en"), ("target", "fr"))}
        for part in ("train", "val")
    }
    recipe: dict[str, Any] = {
        "task": TASK,
        "data": {"train": [sides["train"]], "validation": sides["val"]},
        "tokenizer": {"kind": "unigram", "vocabulary": 4000},
        "model": {**MARIAN, **SIZES},
        "training": {"updates": 2000, "minutes": minutes, "optimizer": "muon", "learning_rate": 3e-3, "threads": 1},
    }
    transduce.train(recipe, run=runs / "stand-in")
    folder = runs / "marian"
    folder.mkdir()
    export_format("huggingface").write(load(runs / "stand-in", device="cpu"), folder, LANGUAGES)
    save_model_file(path, read_foreign(folder, LANGUAGES, "converted").file)
    return path


def fine_tuned(run: Path, start: Path, own: Path, minutes: float) -> Path:
    """The run of a training that goes on from `start` with pairs of one's own."""
    recipe: dict[str, Any] = {
        "task": TASK,
        "data": {
            "train": [{"file": str((own / "train.tsv").resolve())}],
            "validation": {"file": str((own / "validation.tsv").resolve())},
        },
        "batch": {"tokens": 2048},
        "training": {"start": str(start.resolve()), "updates": 1000, "minutes": minutes, "threads": 1, "best": "bleu"},
    }
    recipe["training"] |= {"optimizer": "adamw", "learning_rate": 5e-4, "warmup": 30, "validate_every": 50}
    if not (run / "model.safetensors").is_file():
        transduce.train(recipe, run=run)
    return run


if __name__ == "__main__":
    main()
