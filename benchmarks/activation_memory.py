"""What does training.activation_checkpointing save in memory, and what does it cost in time?

    python benchmarks/activation_memory.py

Updates of the base model of Vaswani et al. 2017 and of one with 24 + 24 blocks of width 256, 2,048 target tokens, one
thread, with and without in turn. Memory is what the backward pass holds: what is kept, and one block computed again.
Prints a table, writes results/distributed/activations.json.
"""

import statistics
import time
from typing import Any

import torch
from trainers import record

from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.data.columns import Specs
from transduce.kernels.cpu import bf16_is_faster, capabilities
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.objectives.text import text_objective
from transduce.recipe.training import TrainingConfig
from transduce.training.initialization import recompute_blocks
from transduce.training.memory import activation_bytes
from transduce.training.microbatches import add_gradients, uncut

MODELS = {
    "base, 6 + 6 blocks": {"d_model": 512, "heads": 8, "feed_forward": 2048, "encoder_layers": 6, "decoder_layers": 6},
    "24 + 24 blocks": {"d_model": 256, "heads": 4, "feed_forward": 1024, "encoder_layers": 24, "decoder_layers": 24},
}
ROWS, LENGTH, VOCABULARY, ROUNDS = 64, 32, 8000, 3


def main() -> None:
    """Measure, print, write."""
    torch.set_num_threads(1)
    began = time.monotonic()
    precision = "bf16" if bf16_is_faster(capabilities()) else "fp32"
    print("model                 memory without    with  share  processor time, with over without")
    rows = [one_model(name, shape, precision) for name, shape in MODELS.items()]
    record("activations", time.monotonic() - began, rows=rows, precision=precision)


def one_model(name: str, shape: dict[str, Any], precision: str) -> dict[str, Any]:
    """One row of the table, printed."""
    torch.manual_seed(1)
    ids = torch.randint(4, VOCABULARY, (ROWS, LENGTH + 1))
    padded = Padded(ids, torch.full((ROWS,), LENGTH + 1))
    batch = Batch(padded, padded, ROWS * LENGTH)
    ways = []
    for recomputes in (False, True):
        model = Transformer(TransformerConfig(**shape), Specs.of_tokens(VOCABULARY, VOCABULARY)).train()
        if recomputes:
            recompute_blocks(model)
        ways.append((model, text_objective(model, TrainingConfig())))
    kept, again = (activation_bytes(*way, batch, precision) for way in ways)
    times = [[seconds(*way, batch, precision) for way in ways] for _ in range(ROUNDS)]
    ratio = statistics.median(b / a for a, b in times)
    print(f"{name:20}  {kept / 2**20:11,.0f} MiB {again / 2**20:7,.0f}  {again / kept:5.2f}  {ratio:5.2f}", flush=True)
    return {"model": name, "bytes": kept, "bytes_recomputed": again, "time_ratio": ratio}


def seconds(model: torch.nn.Module, objective: Any, batch: Batch, precision: str) -> float:
    """Of processor time, for the gradients of one batch."""
    model.zero_grad(set_to_none=True)
    before = time.process_time()
    add_gradients(model, objective, [batch], uncut([batch]), precision)
    return time.process_time() - before


if __name__ == "__main__":
    main()
