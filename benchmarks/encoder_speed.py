"""Texts a second through a pretrained encoder, by one thread: Transduce, transformers, CTranslate2 and ONNX Runtime.

    python benchmarks/encoder_speed.py minilm/ --texts ../shared/data/sst2/test.tsv.gz

FOLDER is an encoder of Hugging Face with tokenizer.json, whose weights all of them have. Each engine cuts, reads and
pools all texts, in batches of texts of like length, in a process of its own; they take turns. Told is the median of the
rounds, and of their ratios.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from transduce.data.files import text_lines

BATCH = 64
ENGINES = ("transduce", "transformers", "ctranslate2", "onnxruntime")
Run = Callable[[list[str]], Any]
Rows = list[list[int]]


def main() -> None:
    """Runs the engines in turns, or one of them once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--texts", type=Path, required=True, help="a text a line, in the first of its columns")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    texts = [line.split("\t")[0] for line in text_lines(asked.texts) if line.strip()]
    if asked.engine:
        print(json.dumps(timed(asked.engine, asked.folder, texts)))
        return
    found: dict[str, list[dict[str, float]]] = {engine: [] for engine in ENGINES}
    for _ in range(asked.rounds):
        for engine in ENGINES:
            found[engine].append(json.loads(_ended([*sys.argv, "--engine", engine]).splitlines()[-1]))
    for engine, rounds in found.items():
        rates = [len(texts) / each["processor"] for each in rounds]
        print(f"{engine}: {median(rates):.0f} texts a second of processor, {min(rates):.0f} to {max(rates):.0f}")
    for other in ENGINES[1:]:
        pairs = zip(found["transduce"], found[other], strict=True)
        ratios = [theirs["processor"] / ours["processor"] for ours, theirs in pairs]
        print(f"transduce / {other}: {median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}")


def _ended(command: list[str]) -> str:
    one = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    environment = {**os.environ, **one, "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command], env=environment, check=True, capture_output=True, text=True
    ).stdout


def timed(engine: str, folder: Path, texts: list[str]) -> dict[str, float]:
    """Seconds of processor and of the clock, without loading and a first batch."""
    run = {"transduce": ours, "transformers": theirs, "ctranslate2": ctranslate2s, "onnxruntime": onnxs}[engine](folder)
    run(texts[:BATCH])
    processor, clock = time.process_time(), time.perf_counter()
    run(texts)
    return {"processor": time.process_time() - processor, "clock": time.perf_counter() - clock}


def ours(folder: Path) -> Run:
    """Transduce's predictions."""
    import transduce

    pipeline = transduce.load(folder)
    return lambda texts: pipeline.predict(texts, batch_size=BATCH)


def theirs(folder: Path) -> Run:
    """transformers' states, pooled."""
    import torch
    from transformers import AutoModel

    torch.set_num_threads(1)
    model = AutoModel.from_pretrained(folder).eval()

    @torch.inference_mode()
    def states(rows: Rows) -> Any:
        id_BS, real_BS = map(torch.tensor, padded(rows))
        return model(input_ids=id_BS, attention_mask=real_BS).last_hidden_state.numpy()

    return pooling(folder, states)


def ctranslate2s(folder: Path) -> Run:
    """CTranslate2's, in fp32."""
    import ctranslate2
    import numpy as np

    with tempfile.TemporaryDirectory() as made:
        path = ctranslate2.converters.TransformersConverter(str(folder)).convert(str(Path(made) / "model"))
        encoder = ctranslate2.Encoder(path, compute_type="float32", intra_threads=1, inter_threads=1)
    return pooling(folder, lambda rows: np.array(encoder.forward_batch(rows).last_hidden_state))


def onnxs(folder: Path) -> Run:
    """ONNX Runtime's, of the model that torch exports."""
    import onnxruntime
    import torch
    from transformers import AutoModel

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, id_BS: Any, real_BS: Any) -> Any:
            return self.model(input_ids=id_BS, attention_mask=real_BS).last_hidden_state

    names, free = ["input_ids", "attention_mask"], {0: "batch", 1: "places"}
    with tempfile.TemporaryDirectory() as made:
        path, example = Path(made) / "model.onnx", tuple(map(torch.tensor, padded([[1, 2, 3], [1]])))
        axes = dict.fromkeys(names, free)
        torch.onnx.export(States(), example, path, input_names=names, dynamic_axes=axes, dynamo=False)
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def states(rows: Rows) -> Any:
        id_BS, real_BS = padded(rows)
        return session.run(None, {"input_ids": id_BS, "attention_mask": real_BS})[0]

    return pooling(folder, states)


def padded(rows: Rows) -> tuple[Any, Any]:
    """Ids and mask of a batch, (B, S) int64."""
    import numpy as np

    longest = max(map(len, rows))
    fill = [(row, longest - len(row)) for row in rows]
    ids = np.array([[*row, *[0] * missing] for row, missing in fill], np.int64)
    return ids, np.array([[1] * len(row) + [0] * missing for row, missing in fill], np.int64)


def pooling(folder: Path, states: Callable[[Rows], Any]) -> Run:
    """The vectors of texts by an engine that gives states (B, S, H) of ids; texts of like length are read together."""
    import numpy as np
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)

    def run(texts: list[str]) -> list[Any]:
        rows, found = tokenizer(texts, truncation=True)["input_ids"], []
        order = sorted(range(len(rows)), key=lambda each: len(rows[each]))
        for start in range(0, len(order), BATCH):
            batch = [rows[each] for each in order[start : start + BATCH]]
            real_BS1 = padded(batch)[1][..., None]
            sum_BH = (states(batch) * real_BS1).sum(1) / real_BS1.sum(1)
            found += (sum_BH / np.linalg.norm(sum_BH, axis=1, keepdims=True)).tolist()
        return found

    return run


if __name__ == "__main__":
    main()
