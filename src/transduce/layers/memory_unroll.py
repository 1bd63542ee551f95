"""A controller with an external memory over a whole sequence, as one node of autograd.

    u_t = [r_{t-1}, h_{t-1}]                       what was read, and the controller's own state (feed-forward: r alone)
    h_t = controller(x_t + U u_t)                  an LSTM cell with gates i, f, o and candidate g, or tanh
    r_t, M_t, w_t = step(V h_t + v, M_{t-1}, w_{t-1})         see `transduce.layers.external_memory`

Autograd would record some fifty operators a step, and add to the gradient of each weight in every step. Here the steps
are computed without it, the backward pass is written out, and the gradients of the weights are one product each, over
all steps.

Shapes: B batch, T steps, D width of the controller, G = its gates times D, U = width of u, P parameters of all heads, H
heads, R read heads, N slots, M width of a slot.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from transduce.kernels.native import memory as native
from transduce.layers.external_memory import (
    ExternalMemory,
    MemorySizes,
    MemoryState,
    MemoryStep,
    shift_indices,
    step,
    step_backward,
)


class ControllerState(NamedTuple):
    """hidden: (B, D). cell: (B, D). A feed-forward controller has neither, and both are None."""

    hidden: Tensor | None
    cell: Tensor | None


class _Cell(NamedTuple):
    """One step of a controller, with what its backward needs."""

    hidden: Tensor
    cell: Tensor | None
    kept: tuple[Tensor, ...]


def unroll(
    given_BTG: Tensor, recurrent_GU: Tensor, memory: ExternalMemory, controller: ControllerState, state: MemoryState
) -> tuple[Tensor, Tensor, Tensor, ControllerState, MemoryState]:
    """States (B, T, D), reads (B, T, R, M) and weightings (B, T, H, N) of all steps, and the states after the last."""
    wide = torch.float64 if given_BTG.dtype == torch.float64 else torch.float32
    tensors = (given_BTG, recurrent_GU, memory.heads.weight, memory.heads.bias, *state)
    with torch.autocast(given_BTG.device.type, enabled=False):
        widened = [each.to(wide) for each in tensors]
        left = [each.to(wide) for each in controller if each is not None]
        if native.can_unroll(*widened, *left):
            found = _by_kernel(memory.sizes, widened[:4], widened[4:], left)
        else:
            both: list[Any] = [*left] or [None, None]
            keep = torch.is_grad_enabled()
            found = _Unrolled.apply(memory.sizes, keep, *widened, *both)  # type: ignore[no-untyped-call]
    *all_steps, memory_BNM, cell_BD = found
    hidden_BTD, read_BTRM, weighting_BTHN = all_steps
    after = MemoryState(memory_BNM, weighting_BTHN[:, -1], read_BTRM[:, -1])
    ended = ControllerState(hidden_BTD[:, -1], cell_BD) if left else ControllerState(None, None)
    return hidden_BTD, read_BTRM, weighting_BTHN, ended, after


def _by_kernel(sizes: MemorySizes, weights: list[Tensor], state: list[Tensor], left: list[Tensor]) -> Any:
    """As `_Unrolled`, in C++. left: the controller's state, if it has any."""
    shape = native.MemoryShape(
        weights[2].shape[1], sizes.slots, sizes.width, sizes.read, sizes.write, sizes.reach, int(bool(left))
    )
    absent_BD = weights[0].new_zeros(len(weights[0]), shape.controller)
    return native.unroll(shape, *weights, *state, *(left or [absent_BD, absent_BD]))


class _Unrolled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        sizes: MemorySizes,
        keep: bool,
        given_BTG: Tensor,
        recurrent_GU: Tensor,
        heads_PD: Tensor,
        bias_P: Tensor,
        memory_BNM: Tensor,
        weighting_BHN: Tensor,
        read_BRM: Tensor,
        hidden_BD: Tensor | None,
        cell_BD: Tensor | None,
    ) -> tuple[Tensor, ...]:
        source_J, _ = shift_indices(sizes, given_BTG.device)
        state = MemoryState(memory_BNM, weighting_BHN, read_BRM)
        turned_UG, turned_DP = recurrent_GU.t(), heads_PD.t()
        cells: list[_Cell] = []
        steps: list[MemoryStep] = []
        inputs: list[Tensor] = []
        hiddens, reads, weightings = [], [], []
        for given_BG in given_BTG.unbind(1):
            flat = state.read.flatten(1)
            input_BU = flat if hidden_BD is None else torch.cat((flat, hidden_BD), 1)
            cell = _cell(torch.addmm(given_BG, input_BU, turned_UG), cell_BD)
            taken = step(torch.addmm(bias_P, cell.hidden, turned_DP), state, sizes, source_J)
            state, cell_BD = taken.after, cell.cell
            hidden_BD = None if hidden_BD is None else cell.hidden
            hiddens.append(cell.hidden)
            reads.append(state.read)
            weightings.append(state.weighting)
            if keep:
                cells.append(cell)
                steps.append(taken)
                inputs.append(input_BU)
        ctx.sizes, ctx.cells, ctx.steps, ctx.inputs = sizes, cells, steps, inputs
        ctx.save_for_backward(recurrent_GU, heads_PD)
        ctx.recurrent = hidden_BD is not None
        last = given_BTG.new_empty(0) if cell_BD is None else cell_BD.clone()
        each_step = torch.stack(hiddens, 1), torch.stack(reads, 1), torch.stack(weightings, 1)
        return *each_step, state.memory.clone(), last  # copies: an output that ctx holds as well would never be freed

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any,
        d_hidden_BTD: Tensor,
        d_read_BTRM: Tensor,
        d_weighting_BTHN: Tensor,
        d_memory_BNM: Tensor,
        d_last: Tensor,
    ) -> tuple[Any, ...]:
        recurrent_GU, heads_PD = ctx.saved_tensors
        sizes: MemorySizes = ctx.sizes
        _, target_J = shift_indices(sizes, d_memory_BNM.device)
        flat = sizes.read * sizes.width
        d_cell_BD = d_last if ctx.recurrent else None
        d_hidden_BD: Tensor | None = None
        d_weighting_BHN: Tensor | None = None
        d_carried_BRM: Tensor | None = None
        d_gates: list[Tensor] = []
        d_saids: list[Tensor] = []
        outer = zip(d_hidden_BTD.unbind(1), d_read_BTRM.unbind(1), d_weighting_BTHN.unbind(1), strict=True)
        for place, (from_hidden, from_read, from_weighting) in reversed(list(enumerate(outer))):
            cell, taken = ctx.cells[place], ctx.steps[place]
            gradient = MemoryState(d_memory_BNM, _sum(from_weighting, d_weighting_BHN), _sum(from_read, d_carried_BRM))
            d_said_BP, d_memory_BNM, d_weighting_BHN = step_backward(taken, gradient, sizes, target_J)
            d_state_BD = torch.addmm(_sum(from_hidden, d_hidden_BD), d_said_BP, heads_PD)
            d_gates_BG, d_cell_BD = _cell_backward(cell, d_state_BD, d_cell_BD)
            d_input_BU = torch.mm(d_gates_BG, recurrent_GU)
            d_carried_BRM = d_input_BU[:, :flat].view(-1, sizes.read, sizes.width)
            d_hidden_BD = d_input_BU[:, flat:] if ctx.recurrent else None
            d_gates.append(d_gates_BG)
            d_saids.append(d_said_BP)
        d_given_BTG = torch.stack(d_gates[::-1], 1)
        d_said_XP = torch.cat(d_saids)
        hidden_XD = torch.cat([cell.hidden for cell in reversed(ctx.cells)])
        d_recurrent_GU = torch.cat(d_gates).t() @ torch.cat(ctx.inputs[::-1])
        weights = (d_given_BTG, d_recurrent_GU, d_said_XP.t() @ hidden_XD, d_said_XP.sum(0))
        return None, None, *weights, d_memory_BNM, d_weighting_BHN, d_carried_BRM, d_hidden_BD, d_cell_BD


def _sum(first: Tensor, second: Tensor | None) -> Tensor:
    return first if second is None else first + second


def _cell(gates_BG: Tensor, cell_BD: Tensor | None) -> _Cell:
    if cell_BD is None:
        hidden_BD = gates_BG.tanh()
        return _Cell(hidden_BD, None, ())
    width = cell_BD.shape[1]
    opened_BX = gates_BG[:, : 3 * width].sigmoid()
    in_BD, forget_BD, out_BD = opened_BX.chunk(3, 1)
    candidate_BD = gates_BG[:, 3 * width :].tanh()
    after_BD = torch.addcmul(forget_BD * cell_BD, in_BD, candidate_BD)
    shown_BD = after_BD.tanh()
    return _Cell(out_BD * shown_BD, after_BD, (opened_BX, candidate_BD, shown_BD, cell_BD))


def _cell_backward(cell: _Cell, d_hidden_BD: Tensor, d_cell_BD: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Of the gates before their nonlinearities, and of the cell before."""
    if d_cell_BD is None:
        return d_hidden_BD * (1 - cell.hidden.square()), None
    opened_BX, candidate_BD, shown_BD, before_BD = cell.kept
    in_BD, forget_BD, out_BD = opened_BX.chunk(3, 1)
    d_cell_BD = torch.addcmul(d_cell_BD, d_hidden_BD * out_BD, 1 - shown_BD.square())
    d_opened_BX = torch.cat((d_cell_BD * candidate_BD, d_cell_BD * before_BD, d_hidden_BD * shown_BD), 1)
    d_opened_BX = d_opened_BX * (opened_BX * (1 - opened_BX))
    d_candidate_BD = d_cell_BD * in_BD * (1 - candidate_BD.square())
    return torch.cat((d_opened_BX, d_candidate_BD), 1), d_cell_BD * forget_BD
