"""A controller with an external memory over whole sequences, forwards and backwards (`memory.h`).

Shapes: B batch, T steps, D width of the controller, G = its gates times D, U = width of its recurrent input, P
parameters of all heads, H heads, R read heads, N slots, M width of a slot, K floats kept of a step.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from transduce.kernels.native import kernel
from transduce.kernels.native.tensors import serves


class MemoryShape(NamedTuple):
    """In the order of the kernel's arguments. reach: how far a head may shift at once; lstm: 1, or 0 for tanh."""

    controller: int
    slots: int
    width: int
    read: int
    write: int
    reach: int
    lstm: int

    @property
    def kept(self) -> int:
        """K: gates, cell, parameters, lengths of keys, four stages of the weightings, the memory."""
        heads, shifts = self.read + self.write, 2 * self.reach + 1
        said = heads * (self.width + 3 + shifts) + 2 * self.write * self.width
        gates = (4 if self.lstm else 1) * self.controller
        return gates + self.controller + said + heads + 4 * heads * self.slots + self.slots * self.width


def can_unroll(*tensors: Tensor) -> bool:
    """Whether `unroll` takes these: all in fp32, on the CPU."""
    return all(each.dtype is torch.float32 for each in tensors) and serves(*tensors)


def unroll(
    shape: MemoryShape,
    given_BTG: Tensor,
    recurrent_GU: Tensor,
    heads_PD: Tensor,
    bias_P: Tensor,
    memory_BNM: Tensor,
    weighting_BHN: Tensor,
    read_BRM: Tensor,
    hidden_BD: Tensor,
    cell_BD: Tensor,
) -> tuple[Tensor, ...]:
    """Of all steps the states (B, T, D), reads (B, T, R, M) and weightings (B, T, H, N); the last memory and cell.

    A controller of tanh reads neither hidden_BD nor cell_BD.
    """
    state = (memory_BNM, weighting_BHN, read_BRM, hidden_BD, cell_BD)
    keep = torch.is_grad_enabled()
    found: tuple[Tensor, ...] = _Unrolled.apply(  # type: ignore[no-untyped-call]
        shape, keep, given_BTG, recurrent_GU, heads_PD, bias_P, *state
    )
    return found


class _Unrolled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        shape: MemoryShape,
        keep: bool,
        given_BTG: Tensor,
        recurrent_GU: Tensor,
        heads_PD: Tensor,
        bias_P: Tensor,
        memory_BNM: Tensor,
        weighting_BHN: Tensor,
        read_BRM: Tensor,
        hidden_BD: Tensor,
        cell_BD: Tensor,
    ) -> tuple[Tensor, ...]:
        rows, steps, _ = given_BTG.shape
        new = given_BTG.new_empty
        weights = [each.contiguous() for each in (given_BTG, recurrent_GU, heads_PD, bias_P)]
        before = [each.contiguous() for each in (weighting_BHN, read_BRM, hidden_BD, cell_BD)]
        memory_BNM, after_BD = (each.clone(memory_format=torch.contiguous_format) for each in (memory_BNM, cell_BD))
        input_BTU, hidden_BTD = new(rows, steps, recurrent_GU.shape[1]), new(rows, steps, shape.controller)
        read_BTRM = new(rows, steps, *read_BRM.shape[1:])
        weighting_BTHN = new(rows, steps, *weighting_BHN.shape[1:])
        kept_BTK = new(rows, steps if keep else 1, shape.kept)
        made = (memory_BNM, after_BD, input_BTU, hidden_BTD, read_BTRM, weighting_BTHN, kept_BTK)
        kernel("memory_unroll")(*weights, *before[:3], *made, int(keep), rows, steps, *shape)
        ctx.shape = shape
        if keep:
            kept = (*weights[1:3], before[0], before[3], weighting_BTHN, kept_BTK, input_BTU, hidden_BTD)
            ctx.save_for_backward(*kept)
        return hidden_BTD, read_BTRM, weighting_BTHN, memory_BNM, after_BD

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,
        d_hidden_BTD: Tensor,
        d_read_BTRM: Tensor,
        d_weighting_BTHN: Tensor,
        d_memory_BNM: Tensor,
        d_cell_BD: Tensor,
    ) -> tuple[Any, ...]:
        *kept, input_BTU, hidden_BTD = ctx.saved_tensors
        recurrent_GU, heads_PD, weighting_BHN, cell_BD = kept[:4]
        rows, steps, _ = hidden_BTD.shape
        given = [each.contiguous() for each in (d_hidden_BTD, d_read_BTRM, d_weighting_BTHN)]
        last = [each.clone(memory_format=torch.contiguous_format) for each in (d_memory_BNM, d_cell_BD)]
        d_read_BRM = d_read_BTRM.new_empty(rows, *d_read_BTRM.shape[2:])
        first = [torch.empty_like(weighting_BHN), d_read_BRM, torch.empty_like(cell_BD)]
        d_gates_BTG = hidden_BTD.new_empty(rows, steps, len(recurrent_GU))
        d_said_BTP = hidden_BTD.new_empty(rows, steps, len(heads_PD))
        tensors = (*kept, *given, *last, *first, d_gates_BTG, d_said_BTP)
        kernel("memory_unroll_gradient")(*tensors, rows, steps, *ctx.shape)
        d_said_XP = d_said_BTP.flatten(0, 1)
        weights = d_gates_BTG.flatten(0, 1).t() @ input_BTU.flatten(0, 1), d_said_XP.t() @ hidden_BTD.flatten(0, 1)
        return None, None, d_gates_BTG, *weights, d_said_XP.sum(0), last[0], *first, last[1]
