"""Does an exported model say what ours says? Every architecture that can go, in every format, on Multi30k.

    python benchmarks/export_parity.py RUNS [--data ../shared/data/multi30k/raw] [--updates 400] [--lines 1000]
        [--only NAME] [--formats onnx,ctranslate2] [--record]

Trains a small German-English model of each architecture into RUNS/NAME (one that is there already is taken as it is),
exports it, and translates the same lines with both, in fp32: greedily, and with a beam of 5 under the length rule that
both have (log p / L^0.75, where L counts the end token). Prints a row for each, and writes RUNS/parity.json; with
--record also results/parity/export.json, of everything that is there.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from records import save_measurement

import transduce
from transduce.core.errors import InputError
from transduce.data.files import read_lines
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.inference.decode import decode
from transduce.interop.ctranslate2_pipeline import CTranslate2Pipeline
from transduce.interop.export_huggingface import HuggingFaceEngine
from transduce.interop.export_onnx import OnnxSteps
from transduce.interop.exports import export_format, export_names
from transduce.interop.model_card import Languages
from transduce.interop.parity import BATCH, Text, compare
from transduce.pipeline.pipeline import Pipeline
from transduce.search.settings import search_settings

MARIAN = {"norm": "post", "positions": "tensor2tensor", "zero_start": True, "norm_epsilon": 1e-6}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "post-norm, sinusoidal": {"norm": "post", "positions": "sinusoidal"},
    "pre-norm, sinusoidal": {"norm": "pre", "positions": "sinusoidal"},
    "pre-norm, learned": {"norm": "pre", "positions": "learned", "max_length": 300},
    "rotary": {"positions": "rotary"},
    "Shaw": {"positions": "shaw"},
    "T5": {"positions": "t5", "score": "dot"},
    "ALiBi": {"positions": "alibi"},
    "rotary, RMS, SwiGLU, grouped": {
        "positions": "rotary",
        "norm_kind": "rms",
        "activation": "swiglu",
        "key_value_heads": 2,
    },
    "entmax, squared ReLU": {"normalizer": "entmax", "activation": "squared_relu"},
    "pointer": {"pointer": True},
    "SSRU decoder": {"kind": "ssru_transformer", "norm": "post"},
    "Marian's, self-attention": MARIAN,
    "Marian's, SSRU": {**MARIAN, "kind": "ssru_transformer", "decoder_positions": True},
    "Marian's, SSRU, pre-norm": {**MARIAN, "kind": "ssru_transformer", "decoder_positions": True, "norm": "pre"},
}
SIZES = {"d_model": 64, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 128}
BEAM: dict[str, Any] = {"method": "beam", "beam": 5, "length_rule": "power", "alpha": 0.75}
LIBRARIES = ("torch", "ctranslate2", "onnx", "onnxscript", "onnxruntime", "transformers", "sentencepiece", "pymarian")


def main() -> None:
    """A row for each architecture and format."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/multi30k/raw"))
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--only", choices=list(ARCHITECTURES), action="append")
    parser.add_argument("--formats", default=",".join(export_names()))
    parser.add_argument("--record", action="store_true", help="write results/parity/export.json, of all rows")
    asked = parser.parse_args()
    began = time.monotonic()
    asked.runs.mkdir(parents=True, exist_ok=True)
    sides = [list(read_lines(asked.data / f"test_2016_flickr.{code}.gz"))[: asked.lines] for code in ("de", "en")]
    text = Text("test_2016_flickr", *sides)
    record = asked.runs / "parity.json"
    rows = json.loads(record.read_text(encoding="utf-8"))["rows"] if record.is_file() else []
    print("| architecture | format | greedy equal | log p apart | beam 5 equal | why not |\n|---|---|---|---|---|---|")
    for name in asked.only or ARCHITECTURES:
        pipeline = trained(name, asked.runs, asked.data, asked.updates)
        own_beam = [each.tokens for each in pipeline.predict(text.lines, split="none", batch_size=BATCH, **BEAM)]
        for kind in asked.formats.split(","):
            row = {"architecture": name, "format": kind, **measured(pipeline, kind, text, own_beam)}
            rows = [each for each in rows if (each["architecture"], each["format"]) != (name, kind)] + [row]
            print(shown(row), flush=True)
            record.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")
    if asked.record:
        settings = {"updates": asked.updates, "sizes": SIZES, "text": text.name}
        installed = [name for name in LIBRARIES if find_spec(name)]
        print(save_measurement("parity/export", time.monotonic() - began, installed, **settings, rows=rows))


def trained(name: str, runs: Path, data: Path, updates: int) -> Pipeline:
    """The model of an architecture, trained briefly if it is not there yet."""
    tokenizer = runs / "tokenizer.json"
    if not tokenizer.is_file():
        lines = [line for code in ("de", "en") for line in read_lines(data / f"train.{code}.gz")]
        config = TokenizerConfig(kind="unigram", vocabulary=4000)
        tokenizer.write_text(train_tokenizer(config, lines).to_json(), encoding="utf-8")
    pairs = {
        part: {side: str((data / f"{part}.{code}.gz").resolve()) for side, code in (("source", "de"), ("target", "en"))}
        for part in ("train", "val")
    }
    recipe = {
        "name": "parity",
        "task": {"kind": "translation", "source": "de", "target": "en"},
        "data": {"train": [pairs["train"]], "validation": pairs["val"]},
        "tokenizer": {"file": str(tokenizer.resolve())},
        "model": {**SIZES, **ARCHITECTURES[name]},
        "batch": {"tokens": 2000},
        "training": {"updates": updates, "warmup": 100, "learning_rate": 3e-3, "decode_sentences": 8, "threads": 1},
        "search": {"method": "greedy"},
    }
    folder = runs / name.lower().replace(",", "").replace(" ", "-")
    if not (folder / "model.safetensors").is_file():
        transduce.train(recipe, run=folder, quiet=True)
    return transduce.load(folder, device="cpu")


def measured(pipeline: Pipeline, kind: str, text: Text, own_beam: list[tuple[str, ...]]) -> dict[str, Any]:
    """Shares of equal outputs, or why the model does not go."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            written = export_format(kind).write(pipeline, Path(folder), Languages.of(pipeline))
        except InputError as error:
            return {"refused": error.problems[0].partition(": ")[2]}
        found = compare(pipeline, export_format(kind).engine(pipeline, written), text, "en")
        beam = BEAMS[kind](pipeline, written, text.lines) if kind in BEAMS else None
        equal = None if beam is None else sum(map(lambda one, other: one == other, own_beam, beam))
        return {
            "lines": found.lines,
            "greedy": found.equal,
            "apart": found.apart[0] if found.apart else None,
            "beam": equal,
            "speed": found.speed,
            "margin": found.margin,
            "first": None if found.first is None else vars(found.first),
        }


def shown(row: dict[str, Any]) -> str:
    """As a row of the table."""
    if "refused" in row:
        return f"| {row['architecture']} | {row['format']} | - | - | - | {row['refused']} |"
    apart = "-" if row["apart"] is None else f"{row['apart']:.1g}"
    beam = "-" if row["beam"] is None else f"{row['beam']:,}"
    return f"| {row['architecture']} | {row['format']} | {row['greedy']:,} of {row['lines']:,} | {apart} | {beam} | |"


def ctranslate2_beam(pipeline: Pipeline, written: Path, lines: Sequence[str]) -> list[tuple[str, ...]]:
    """By our own face of CTranslate2."""
    engine = CTranslate2Pipeline(written)
    found = engine.predict(lines, split="none", **BEAM)
    assert isinstance(found, list)
    return [each.tokens for each in found]


def onnx_beam(pipeline: Pipeline, written: Path, lines: Sequence[str]) -> list[tuple[str, ...]]:
    """Our beam over onnxruntime's steps."""

    class Steps(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.steps = OnnxSteps(written)
            self.place = torch.nn.Parameter(torch.zeros(1))  # search asks where a model is

        def start(self, source: Any, rows: int) -> Any:
            return self.steps.start(source, rows)

        def step(self, token_B: Any, memory: Any, state: Any) -> Any:
            return self.steps.step(token_B, memory, state)

    settings = search_settings(pipeline.recipe.search, BEAM)
    return [each.tokens for each in decode(Steps().eval(), pipeline.task, lines, settings, BATCH)]


def huggingface_beam(pipeline: Pipeline, written: Path, lines: Sequence[str]) -> list[tuple[str, ...]]:
    """`generate` of transformers, with the same exponent; each text's limit is ours."""
    engine = HuggingFaceEngine(pipeline, written)
    target, generate = pipeline.task.tokenizers["target"], engine.model.generate
    found: dict[int, tuple[str, ...]] = {}
    ids = pipeline.task.tokenizers["source"].encode(lines)
    order = sorted(range(len(lines)), key=lambda place: len(ids[place]))
    for first in range(0, len(order), BATCH):
        places = order[first : first + BATCH]
        read = engine.tokenizer([lines[place] for place in places], return_tensors="pt", padding=True)
        limit = max(pipeline.recipe.search.limit(len(ids[place])) for place in places)
        with torch.inference_mode():
            written_BT = generate(  # type: ignore[operator]
                **read,
                num_beams=5,
                length_penalty=0.75,
                early_stopping="never",
                do_sample=False,
                max_length=None,
                max_new_tokens=limit,
            )
        for place, row in zip(places, written_BT[:, 1:].tolist(), strict=True):
            kept = row[: row.index(target.end)] if target.end in row else row
            found[place] = tuple(target.tokens(kept))
    return [found[place] for place in range(len(lines))]


BEAMS: dict[str, Callable[[Pipeline, Path, Sequence[str]], list[tuple[str, ...]]]] = {
    "ctranslate2": ctranslate2_beam,
    "huggingface": huggingface_beam,
    "onnx": onnx_beam,
}

if __name__ == "__main__":
    main()
