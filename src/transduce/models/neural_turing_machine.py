"""A Neural Turing Machine (Graves et al. 2014): a controller that reads from and writes to an external memory.

    h_t = controller(x_t, r_{t-1}, h_{t-1}),   r_t, M_t = heads(h_t, M_{t-1}),   logits_t = O [h_t, r_t] + o

The memory starts constant (Collier and Beel 2018, section 3.1). See `transduce.layers.external_memory` for addressing.

Shapes: B batch, T steps, F width of inputs, O width of outputs, D width of the controller, G = its gates times D, R
read heads, M width of a slot.
"""

from typing import Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from transduce.core.config import Config
from transduce.data.columns import Specs
from transduce.data.columns.vectors import check_vectors
from transduce.layers.external_memory import ExternalMemory, MemorySizes, MemoryState, MemoryTrace
from transduce.layers.memory_unroll import ControllerState, unroll


class NeuralTuringMachineConfig(Config):
    """Sizes and parts. The defaults are those of the paper's copy task."""

    kind: Literal["neural_turing_machine"] = "neural_turing_machine"
    controller: Literal["lstm", "feed_forward"] = "lstm"
    """What reads the inputs and moves the heads. feed_forward has no state but the memory."""
    hidden: int = Field(default=100, ge=1)
    """Width of the controller."""
    slots: int = Field(default=128, ge=2)
    """Number of slots of the memory."""
    width: int = Field(default=20, ge=1)
    """Width of a slot."""
    read_heads: int = Field(default=1, ge=1)
    """Number of heads that read."""
    write_heads: int = Field(default=1, ge=1)
    """Number of heads that write."""
    shift: int = Field(default=1, ge=0)
    """How many slots a head may move in one step, to either side."""
    constant: float = 1e-6
    """What every number of the memory is before the first step."""


class NtmState(NamedTuple):
    """State after a step; see `transduce.models.protocols.Processes`."""

    controller: ControllerState
    memory: MemoryState


class NeuralTuringMachine(nn.Module):
    """Implements `Processes` (see `transduce.models.protocols`).

    Raises:
        InputError: the columns are not vectors.
    """

    Config = NeuralTuringMachineConfig

    def __init__(self, config: NeuralTuringMachineConfig, specs: Specs) -> None:
        super().__init__()
        inputs, outputs = check_vectors(specs, "neural_turing_machine")
        self.config = config
        width, flat = config.hidden, config.read_heads * config.width
        gates, recurrent = (4, width) if config.controller == "lstm" else (1, 0)
        self.input = nn.Linear(inputs, gates * width)
        self.recurrent = nn.Parameter(torch.empty(gates * width, flat + recurrent))
        bound = (flat + width) ** -0.5
        nn.init.uniform_(self.recurrent, -bound, bound)
        sizes = MemorySizes(config.slots, config.width, config.read_heads, config.write_heads, config.shift)
        self.memory = ExternalMemory(width, sizes, config.constant)
        self.output = nn.Linear(width + flat, outputs)

    def initial(self, rows: int) -> NtmState:
        """A controller of zeros before a constant memory."""
        if self.config.controller == "feed_forward":
            return NtmState(ControllerState(None, None), self.memory.initial(rows))
        zeros_BD = self.recurrent.new_zeros(rows, self.config.hidden)
        return NtmState(ControllerState(zeros_BD, zeros_BD), self.memory.initial(rows))

    @property
    def memory_size(self) -> tuple[int, int]:
        """Slots, and the width of one."""
        return self.config.slots, self.config.width

    def trace(self, x_BTF: Tensor) -> MemoryTrace:
        """What heads and memory do with a sequence; see `transduce.models.protocols.HasMemory`."""
        before = self.initial(len(x_BTF))
        each_step = unroll(self.input(x_BTF), self.recurrent, self.memory, before.controller, before.memory)[:3]
        return self.memory.replay(*each_step, before.memory.memory)

    def process(self, x_BTF: Tensor, state: NtmState) -> tuple[Tensor, NtmState]:
        """Logits (B, T, O) of T steps after `state`, and the state after the last."""
        hidden_BTD, read_BTRM, weighting_BTHN, controller, memory = unroll(
            self.input(x_BTF), self.recurrent, self.memory, state.controller, state.memory
        )
        self.memory.record(weighting_BTHN)
        logits_BTO = self.output(torch.cat((hidden_BTD, read_BTRM.flatten(2)), -1))
        return logits_BTO, NtmState(controller, memory)
