"""What does it cost a training that attention can be captured, while nobody captures?

    python benchmarks/capture_cost.py [--rounds 20] [--updates 8]

Two processes train the same Transformer on the same batches: one as it is, the other with an attention in which nobody
asks for a record. They take turns, a few updates at a time, in the order A B B A, so that other work on the machine
hits both alike. Target tokens a second of processor time, one thread; of each pair the ratio, of these the median.
"""

import argparse
import statistics
import subprocess
import sys
import time

import torch
from torch import Tensor

from transduce.attention.cache import KeyValue
from transduce.attention.heads import MultiHeadAttention
from transduce.attention.scaled_dot_product import attend
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.cross_entropy import smoothed_cross_entropy
from transduce.models.transformer import Transformer, TransformerConfig

VOCABULARY, ROWS, LENGTH = 8000, 64, 24
SIZES = {"d_model": 128, "heads": 4, "feed_forward": 256, "encoder_layers": 4, "decoder_layers": 4}


def main() -> None:
    """One line for each way, and how much slower the feature is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--updates", type=int, default=8, help="in a turn")
    parser.add_argument("--work", choices=["with", "without"], help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(asked.work == "with", asked.updates)
    else:
        compare(asked.rounds, asked.updates)


def compare(rounds: int, updates: int) -> None:
    """Both ways in turn."""
    ways = {way: _worker(way, updates) for way in ("with", "without")}
    speeds: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds):
        order = list(ways) if number % 2 == 0 else list(ways)[::-1]
        for way in order:
            speeds[way].append(_turn(ways[way]))
    for process in ways.values():
        process.communicate()
    for way, values in speeds.items():
        told = f"{statistics.median(values):8,.0f} target tokens a second, {max(values):,.0f} in the fastest turn"
        print(f"{way + ' the feature':<20} {told}")
    ratios = [without / own for own, without in zip(speeds["with"], speeds["without"], strict=True)]
    cuts = statistics.quantiles(ratios, n=4)
    print(f"without / with       {cuts[1]:.4f} (quartiles {cuts[0]:.4f} to {cuts[2]:.4f}, {rounds} rounds)")


def work(captures: bool, updates: int) -> None:
    """Train for a turn whenever a line comes in; the speed goes out."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if not captures:
        MultiHeadAttention.forward = forward_without  # type: ignore[method-assign]
    model = Transformer(TransformerConfig.model_validate(SIZES), Specs.of_tokens(VOCABULARY, VOCABULARY))
    optimizer = torch.optim.AdamW(model.parameters())
    ids = Padded(torch.randint(VOCABULARY, (ROWS, LENGTH)), torch.full((ROWS,), LENGTH))
    _updates(model, optimizer, ids, 2)
    for _ in sys.stdin:
        begun = time.process_time()
        _updates(model, optimizer, ids, updates)
        print(updates * ROWS * LENGTH / (time.process_time() - begun), flush=True)


def forward_without(
    self: MultiHeadAttention, x_BTD: Tensor, memory: KeyValue, allowed: Tensor | None = None, offset: int = 0
) -> Tensor:
    """`MultiHeadAttention.forward` where nothing can be captured."""
    query_BHTE, bias = self._split(self.query(x_BTD)), None
    if self.positions is not None:
        query_BHTE = self.positions.turn(query_BHTE, offset)
        bias = self.positions.bias(query_BHTE, memory.length, offset)
    rate = self.dropout if self.training else 0.0
    read_BHTE = attend(query_BHTE, memory.key, memory.value, allowed, rate, bias)
    joined_BTD: Tensor = self.output(read_BHTE.transpose(1, 2).flatten(2))
    return joined_BTD


def _updates(model: Transformer, optimizer: torch.optim.Optimizer, ids: Padded, count: int) -> None:
    for _ in range(count):
        optimizer.zero_grad()
        logits_BTV = model(ids, ids)
        smoothed_cross_entropy(logits_BTV.flatten(0, 1), ids.values.flatten(), 0.1).backward()
        optimizer.step()


def _worker(way: str, updates: int) -> "subprocess.Popen[str]":
    command = [sys.executable, __file__, "--work", way, "--updates", str(updates)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _turn(process: "subprocess.Popen[str]") -> float:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return float(process.stdout.readline())


if __name__ == "__main__":
    main()
