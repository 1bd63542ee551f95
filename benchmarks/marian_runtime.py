"""A model in Marian's shape without torch, beside CTranslate2 with the same `.npz`: first answer, memory, speed.

    python benchmarks/marian_runtime.py --lines lines.en                       # of random weights
    python benchmarks/marian_runtime.py --lines lines.en --model runs/marian   # a run directory, or a model file
    python benchmarks/marian_runtime.py --lines lines.en --model model.enpt.intgemm.alphas.bin

A run is exported to Marian's `.npz`, and both engines import that file. CTranslate2 has no SSRU; then ours is measured
alone. Engines take turns, each in a process of its own with one thread. The first answer is that of a new process, by
the clock and of the processor. Speed is by the processor's time, as other programs may run beside. Outputs are compared
line by line.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from markdown_table import markdown_table

MARIAN = {"norm": "post", "positions": "tensor2tensor", "zero_start": True, "tied": "all", "activation": "relu"}
LONGEST = 100  # tokens of an output, for both
SEARCHES: dict[str, dict[str, Any]] = {"greedy": {"beam": 1}, "beam 5": {"beam": 5, "alpha": 1.0}}
OURS = """
from transduce.without_torch.translator import load
model = load(path, precision=precision, threads=1)
settings = {"beam": search["beam"], "alpha": search.get("alpha", 0), "shortlist": search.get("shortlist")}
limits = {"max_length_factor": 0.0, "max_length_offset": longest}
def say(lines):
    return [each.text for each in model.predict(lines, split="none", length_rule="power", **settings, **limits)]
"""
THEIRS = """
import ctranslate2, sentencepiece
pieces = [sentencepiece.SentencePieceProcessor(model_file=f"{path}/{side}.spm") for side in ("source", "target")]
compute = {"fp32": "float32", "int8": "int8"}[precision]
model = ctranslate2.Translator(path, intra_threads=1, inter_threads=1, compute_type=compute)
settings = {"beam_size": search["beam"], "length_penalty": search.get("alpha", 0), "max_decoding_length": longest}
def say(lines):
    tokens = pieces[0].encode(lines, out_type=str)
    found = model.translate_batch(tokens, max_batch_size=64, batch_type="examples", **settings)
    return [pieces[1].decode(each.hypotheses[0]) for each in found]
"""
WORK = """
import json, sys, time
path, lines, search, precision, longest = json.loads(sys.stdin.read())
{engine}
say(lines[:1])
first = time.process_time()
print("first", flush=True)
cpu = time.process_time()
found = say(lines)
cpu = time.process_time() - cpu
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
mib = {{name: int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}}
print(json.dumps({{"cpu": cpu, "first_cpu": first, "found": found, **mib}}))
"""


def random_run(lines: list[str]) -> Any:
    """A pipeline of random weights, 6 and 6 layers of 256, 8,000 pieces."""
    import torch

    from transduce.core.model_file import ModelFile, lasting_tensors
    from transduce.data.columns.packed import pack
    from transduce.data.columns.tokens import Tokens
    from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
    from transduce.pipeline.outline import make_model, make_task
    from transduce.pipeline.pipeline import Pipeline
    from transduce.recipe.recipe import parse_recipe

    sizes = {"d_model": 256, "heads": 8, "feed_forward": 1536, "encoder_layers": 6, "decoder_layers": 6}
    table = {"name": "random", "data": {"train": [{"source": "a", "target": "b"}]}, "model": {**MARIAN, **sizes}}
    recipe = parse_recipe(table, "random")
    tokenizer = train_tokenizer(TokenizerConfig(kind="unigram", vocabulary=8000), lines)
    columns = {"source": Tokens(tokenizer, ends=True), "target": Tokens(tokenizer, starts=True, ends=True)}
    task = make_task(recipe, columns)
    torch.manual_seed(1)
    model = make_model(recipe, task)
    tokenizers, tables = pack(columns)
    return Pipeline(ModelFile(lasting_tensors(model), recipe.to_table(), tokenizers, {}, {}, columns=tables))


def prepared(model: str | None, lines: list[str], folder: Path) -> dict[str, Path]:
    """What each engine reads: the `.npz` of the model, as it imports that."""
    from transduce.core.model_file import save_model_file
    from transduce.interop.export_marian import export_marian
    from transduce.interop.imports import read_foreign
    from transduce.interop.model_card import Languages
    from transduce.pipeline.pipeline import load

    if model and model.endswith((".bin", ".npz")):
        theirs = Path(model)
    else:
        (marian := folder / "marian").mkdir()
        theirs = export_marian(load(model) if model else random_run(lines), marian, Languages()) / "model.npz"
    ours = folder / "ours.safetensors"
    save_model_file(ours, read_foreign(theirs, Languages(), "imported").file)
    return {"transduce without torch": ours} | ({} if theirs.suffix == ".bin" else converted(theirs, folder / "ct2"))


def converted(npz: Path, folder: Path) -> dict[str, Path]:
    """The same by CTranslate2's own converter; nothing where it refuses the model."""
    import sentencepiece
    from ctranslate2.converters.marian import MarianConverter

    vocabularies = []
    for side in ("source", "target"):
        spm = npz.with_name(f"{side}.spm")
        spm = spm if spm.is_file() else npz.with_name("source.spm")
        read = sentencepiece.SentencePieceProcessor(model_file=str(spm))
        vocabularies.append(npz.with_name(f"{side}.yml"))
        names = (json.dumps(read.id_to_piece(index), ensure_ascii=False) for index in range(read.get_piece_size()))
        vocabularies[-1].write_text("".join(f"{name}: {index}\n" for index, name in enumerate(names)), "utf-8")
    try:
        MarianConverter(str(npz), [str(path) for path in vocabularies]).convert(str(folder))
    except ValueError as error:
        print(f"CTranslate2: {error}", file=sys.stderr)
        return {}
    for side in ("source", "target"):
        spm = npz.with_name(f"{side}.spm")
        (folder / f"{side}.spm").write_bytes((spm if spm.is_file() else npz.with_name("source.spm")).read_bytes())
    return {"CTranslate2": folder}


def worked(engine: str, given: list[Any]) -> dict[str, Any]:
    """The first answer, memory, speed and outputs of one process."""
    code = WORK.format(engine=THEIRS if engine == "CTranslate2" else OURS)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    source = {"PYTHONPATH": str(Path(__file__).resolve().parents[1] / "src"), "OMP_NUM_THREADS": "1"}
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**kept, **source}
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(given))
        process.stdin.close()
        process.stdout.readline()
        first = time.perf_counter() - start
        return {**json.loads(process.stdout.read()), "first": first}


def rows(engines: dict[str, Path], lines: list[str], rounds: int, precisions: list[str]) -> list[list[str]]:
    """One for each engine, precision and search."""
    table = []
    for name, search in SEARCHES.items():
        for precision in precisions:
            each: dict[str, list[Any]] = {engine: [] for engine in engines}
            for _ in range(rounds):
                for engine, path in engines.items():
                    each[engine].append(worked(engine, [str(path), lines, search, precision, LONGEST]))
            middle = {
                engine: {key: statistics.median(one[key] for one in found) for key in found[0] if key != "found"}
                for engine, found in each.items()
            }
            [ours, *others] = engines
            for engine, found in middle.items():
                told = [one[0]["found"] for one in (each[ours], each[engine])]
                equal = sum(one == other for one, other in zip(*told, strict=True))
                ratio = f"{found['cpu'] / middle[ours]['cpu']:.2f}" if others else ""
                table.append(
                    [name, precision, engine, f"{found['first']:.2f}", f"{found['first_cpu']:.2f}"]
                    + [f"{found['VmHWM']:.0f}", f"{len(lines) / found['cpu']:.1f}", ratio, f"{equal} of {len(lines)}"]
                )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=Path, required=True, help="sources, one a line")
    parser.add_argument("--model", help="a run directory, a model file, an .npz or a .bin; by default random weights")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=200, help="how many lines")
    parser.add_argument("--precision", nargs="+", default=["fp32"], choices=["fp32", "int8"])
    given = parser.parse_args()
    lines = [line for line in given.lines.read_text("utf-8").split("\n") if line.strip()][: given.count]
    with tempfile.TemporaryDirectory() as folder:
        engines = prepared(given.model, lines, Path(folder))
        header = "search | precision | engine | first answer, s | of these processor | peak MiB | sentences/s"
        header += " | our speed by theirs | outputs equal to ours"
        print(markdown_table(header.split(" | "), rows(engines, lines, given.rounds, given.precision)))


if __name__ == "__main__":
    main()
