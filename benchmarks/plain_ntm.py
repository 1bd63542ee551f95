"""A Neural Turing Machine as one writes it from Graves et al. 2014, in plain torch: the reference of tests and speed.

One module a head, one step of the loop a step of the paper, autograd for everything. It takes the weights of
`transduce.models.neural_turing_machine` and must say the same.

    python benchmarks/plain_ntm.py            # sequences a second of both, on the copy task
"""

import argparse
import time
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.data.columns import ColumnSpec, Specs
from transduce.models.neural_turing_machine import NeuralTuringMachine, NeuralTuringMachineConfig


class PlainHead(nn.Module):
    """Equations 5 to 9."""

    def __init__(self, controller: int, width: int, reach: int, writes: bool) -> None:
        super().__init__()
        self.key = nn.Linear(controller, width)
        self.strength, self.gate, self.exponent = (nn.Linear(controller, 1) for _ in range(3))
        self.shift = nn.Linear(controller, 2 * reach + 1)
        self.erase, self.add = (nn.Linear(controller, width), nn.Linear(controller, width)) if writes else (None, None)
        self.reach = reach

    def address(self, hidden: Tensor, memory: Tensor, before: Tensor) -> Tensor:
        """(rows, slots): where the head looks."""
        key, strength = self.key(hidden), F.softplus(self.strength(hidden))
        gate, exponent = torch.sigmoid(self.gate(hidden)), 1 + F.softplus(self.exponent(hidden))
        shift = torch.softmax(self.shift(hidden), -1)
        lengths = torch.sqrt((memory**2).sum(-1) + 1e-8) * torch.sqrt((key**2).sum(-1, keepdim=True) + 1e-8)
        cosine = (memory * key[:, None]).sum(-1) / lengths
        content = torch.softmax(strength * cosine, -1)
        mixed = gate * content + (1 - gate) * before
        moved = torch.zeros_like(mixed)
        for place, distance in enumerate(range(-self.reach, self.reach + 1)):
            moved = moved + shift[:, place : place + 1] * torch.roll(mixed, distance, 1)
        power = (moved + 1e-12) ** exponent
        return power / power.sum(-1, keepdim=True)


class PlainNtm(nn.Module):
    """An LSTM, or tanh, controller; see `NeuralTuringMachineConfig` for the settings."""

    def __init__(self, config: NeuralTuringMachineConfig, inputs: int, outputs: int) -> None:
        super().__init__()
        self.config = config
        width, flat = config.hidden, config.read_heads * config.width
        kind = nn.LSTMCell if config.controller == "lstm" else nn.Linear
        self.cell = kind(inputs + flat, width)
        writes = [False] * config.read_heads + [True] * config.write_heads
        self.heads = nn.ModuleList(PlainHead(width, config.width, config.shift, each) for each in writes)
        self.output = nn.Linear(width + flat, outputs)
        self.weighting = nn.Parameter(torch.randn(len(writes), config.slots))
        self.read = nn.Parameter(torch.randn(config.read_heads, config.width))

    def forward(self, x: Tensor) -> Tensor:
        """(rows, steps, inputs) -> logits (rows, steps, outputs)."""
        config, rows = self.config, len(x)
        memory = torch.full((rows, config.slots, config.width), config.constant, dtype=x.dtype)
        weightings = [each.expand(rows, -1) for each in torch.softmax(self.weighting, -1)]
        reads = [each.expand(rows, -1) for each in self.read]
        hidden = cell = torch.zeros(rows, config.hidden, dtype=x.dtype)
        outputs = []
        for step in range(x.shape[1]):
            controlled = torch.cat([x[:, step], *reads], 1)
            if isinstance(self.cell, nn.LSTMCell):
                hidden, cell = self.cell(controlled, (hidden, cell))
            else:
                hidden = torch.tanh(self.cell(controlled))
            heads: Any = self.heads
            weightings = [head.address(hidden, memory, before) for head, before in zip(heads, weightings, strict=True)]
            reads = [(each[..., None] * memory).sum(1) for each in weightings[: config.read_heads]]
            writers = list(zip(heads, weightings, strict=True))[config.read_heads :]
            for head, weighting in writers:
                memory = memory * (1 - weighting[..., None] * torch.sigmoid(head.erase(hidden))[:, None])
            for head, weighting in writers:
                memory = memory + weighting[..., None] * torch.tanh(head.add(hidden))[:, None]
            outputs.append(self.output(torch.cat([hidden, *reads], 1)))
        return torch.stack(outputs, 1)


@torch.no_grad()
def plain_copy(model: NeuralTuringMachine) -> PlainNtm:
    """With the weights of `model`."""
    config, memory = model.config, model.memory
    plain = PlainNtm(config, model.input.in_features, model.output.out_features).to(model.output.weight.dtype)
    flat, heads = config.read_heads * config.width, config.read_heads + config.write_heads
    recurrent = model.recurrent
    inputs = torch.cat((model.input.weight, recurrent[:, :flat]), 1)
    if isinstance(plain.cell, nn.LSTMCell):
        order = [0, 1, 3, 2]  # ours: in, forget, out, candidate

        def turned(weight: Tensor) -> Tensor:
            return torch.cat([weight.chunk(4)[place] for place in order])

        plain.cell.weight_ih.copy_(turned(inputs))
        plain.cell.weight_hh.copy_(turned(recurrent[:, flat:]))
        plain.cell.bias_ih.copy_(turned(model.input.bias))
        plain.cell.bias_hh.zero_()
    else:
        plain.cell.weight.copy_(inputs)
        plain.cell.bias.copy_(model.input.bias)
    for name in ("weight", "bias"):
        keys, positive, opened, shifts, added = getattr(memory.heads, name).split(memory.sizes.parts)
        for number, head in enumerate(plain.heads):
            written = number - config.read_heads
            parts = {
                "key": keys.chunk(heads)[number],
                "strength": positive[number : number + 1],
                "exponent": positive[heads + number : heads + number + 1],
                "gate": opened[number : number + 1],
                "shift": shifts.chunk(heads)[number],
            }
            if written >= 0:
                parts["erase"] = opened[heads:].chunk(config.write_heads)[written]
                parts["add"] = added.chunk(config.write_heads)[written]
            for part, value in parts.items():
                getattr(getattr(head, part), name).copy_(value)
    plain.output.load_state_dict(model.output.state_dict())
    plain.weighting.copy_(memory.weighting)
    plain.read.copy_(memory.read)
    return plain


def sequences_per_second(model: nn.Module, rows: int, length: int, seconds: float) -> float:
    """Forward and backward on sequences of the copy task."""
    generator = torch.Generator().manual_seed(0)
    x = torch.zeros(rows, 2 * length + 1, 9)
    x[:, :length, :8] = torch.randint(2, (rows, length, 8), generator=generator).float()
    x[:, length, 8] = 1
    done, start = 0, time.perf_counter()
    while done == 0 or time.perf_counter() - start < seconds:
        logits = model.process(x, model.initial(rows))[0] if isinstance(model, NeuralTuringMachine) else model(x)
        loss = F.binary_cross_entropy_with_logits(logits[:, -length:], x[:, :length, :8])
        model.zero_grad()
        loss.backward()
        done += rows
    return done / (time.perf_counter() - start)


def main() -> None:
    """Print one line a batch size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--length", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    specs = Specs(ColumnSpec("vectors", 9), ColumnSpec("vectors", 8))
    model = NeuralTuringMachine(NeuralTuringMachineConfig(), specs)
    plain = plain_copy(model)
    for rows in (1, 4, 16, 32):
        turns = [
            [sequences_per_second(each, rows, options.length, options.seconds) for each in (plain, model)]
            for _ in range(2)
        ]
        slow, fast = (max(each) for each in zip(*turns, strict=True))
        print(f"batch {rows:3}: plain {slow:8.1f}, Transduce {fast:8.1f} sequences/s: {fast / slow:.2f} times")


if __name__ == "__main__":
    main()
