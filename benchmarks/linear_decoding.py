"""Time a token against how much has been written: linear attention, and softmax attention with a key-value cache.

    python benchmarks/linear_decoding.py                        # about a minute
    python benchmarks/linear_decoding.py --length 10000 --threads 1

Two language models of equal size go on from a text of each length, one token at a time, batch 1, untrained: what is
timed does not depend on the weights. The text itself is read in one pass, causally, for the state is the same. The two
models take turns; a figure is the median over runs of `TOKENS` steps, in processor time, which other work on the
machine does not stretch. Writes results/linear_decoding.json and .svg.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transduce.data.columns import Specs
from transduce.models.linear_transformer_decoder import LinearTransformerDecoder, LinearTransformerDecoderConfig
from transduce.models.protocols import map_tree
from transduce.models.transformer_decoder import TransformerDecoder, TransformerDecoderConfig
from transduce.runtime.environment import library_versions, machine

RESULTS = Path(__file__).parent / "results"
LENGTHS = [100, 200, 500, 1000, 2000, 5000, 10_000]
SIZES = {"d_model": 256, "heads": 4, "feed_forward": 1024, "layers": 4}
VOCABULARY, TOKENS, RUNS, SEED = 1000, 20, 7, 1


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=LENGTHS[-1], help="the longest text")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(SEED)
    models = {
        "linear": LinearTransformerDecoder(
            LinearTransformerDecoderConfig(**SIZES), Specs.of_tokens(None, VOCABULARY)
        ).eval(),
        "softmax": TransformerDecoder(TransformerDecoderConfig(**SIZES), Specs.of_tokens(None, VOCABULARY)).eval(),
    }
    rows = []
    with torch.inference_mode():
        for length in [each for each in LENGTHS if each <= options.length]:
            row = measure(models, length)
            columns = [f"{name} {row[f'{name}_ms']:6.2f} ms, {row[f'{name}_bytes']:,} bytes" for name in models]
            print(f"after {length:6,} tokens   {'   '.join(columns)}", flush=True)
            rows.append(row)
    write(rows)


def measure(models: dict[str, Any], length: int) -> dict[str, float]:
    """Milliseconds a token after `length` tokens, and bytes of state, of each model."""
    text_1T = torch.randint(VOCABULARY, (1, length))
    states = {name: after(model, text_1T) for name, model in models.items()}
    times: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(RUNS + 1):
        for name, model in models.items():
            times[name].append(run(model, states[name]))
    row: dict[str, float] = {"length": length}
    for name in models:
        row[f"{name}_ms"] = round(statistics.median(times[name][1:]), 3)
        row[f"{name}_bytes"] = size(states[name])
    return row


def after(model: Any, text_1T: Tensor) -> Any:
    """The model's state after the text."""
    embedded_BTD = model.embedding(text_1T)
    if isinstance(model, LinearTransformerDecoder):
        return model.decoder.extend(embedded_BTD, model.decoder.empty(1))[1]
    state = None
    for piece_BTD in embedded_BTD.split(500, 1):  # or the causal mask alone would take T x T
        state = model.decoder.extend_causally(piece_BTD, state)[1]
    return state


def run(model: Any, state: Any) -> float:
    """Milliseconds of processor time a token over `TOKENS` steps from `state`, the model's own greedy choices."""
    token_B = torch.zeros(1, dtype=torch.int64)
    start = time.process_time()
    for _ in range(TOKENS):
        log_probability_BV, state = model.step(token_B, None, state)
        token_B = log_probability_BV.argmax(-1)
    return 1000 * (time.process_time() - start) / TOKENS


def size(state: Any) -> int:
    """Bytes of all tensors in a state."""
    sizes: list[int] = []
    map_tree(state, lambda tensor: sizes.append(tensor.numel() * tensor.element_size()))
    return sum(sizes)


def write(rows: list[dict[str, float]]) -> None:
    """The figures, with what they were measured on, and a drawing of them."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "transduce", "svg.fonttype": "none"}
    from matplotlib import pyplot

    about = {"sizes": SIZES, "vocabulary": VOCABULARY, "batch": 1, "seed": SEED, "runs": RUNS, "tokens_a_run": TOKENS}
    result = {"rows": rows, "settings": about, "machine": machine(), "versions": library_versions()}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "linear_decoding.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    figure, axis = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    lengths = [row["length"] for row in rows]
    for name, label in (("softmax", "softmax, keys and values cached"), ("linear", "linear")):
        axis.plot(lengths, [row[f"{name}_ms"] for row in rows], "o-", label=label)
    axis.set(xscale="log", ylim=(0, None), xlabel="tokens before", ylabel="milliseconds a token")
    axis.legend(frameon=False)
    figure.savefig(RESULTS / "linear_decoding.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
