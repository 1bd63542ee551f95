"""A memory that heads read from and write to (Graves et al. 2014, section 3), and the step that addresses it.

Every head says, of the controller's state: a key k, a strength b, a gate g, shifts s and an exponent y. Its weighting
over the slots n of the memory M goes on from that of the step before, w':

    c(n) = softmax_n(b cos(k, M(n)))                     by content                                  (equations 5, 6)
    i(n) = g c(n) + (1 - g) w'(n)                        or from where it was                        (7)
    z(n) = sum_j s(j) i(n - j)                           moved, around the end                       (8)
    w(n) = z(n)^y / sum_m z(m)^y                         sharpened                                   (9)

All heads then read sum_n w(n) M(n) (2), and after that the write heads erase e and add a (3, 4):

    M(n) <- M(n) prod_h (1 - w_h(n) e_h) + sum_h w_h(n) a_h

Nothing can become NaN: lengths are sqrt(|x|^2 + 1e-8), powers are softmax(y log(z + 1e-12)), strengths are softplus,
y = 1 + softplus, added vectors tanh. Numbers are fp32 or wider also where training is in bf16.

Steps depend on each other, so a step is as slow as its operators are many. `step` therefore computes all heads at once
and has its own backward, and `layers/memory_unroll.py` runs the whole sequence as one node of autograd.

Shapes: B batch, H heads (read heads first), R read heads, W write heads, N slots, M width of a slot, S shifts, P
parameters of all heads.
"""

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.attention.capture import active_record

TINY_LENGTH = 1e-8  # under the root of a squared length
TINY_WEIGHT = 1e-12
FOCUS = 3.0  # at first a head is on slot 0 about e^FOCUS times as much as on all others together


class MemorySizes(NamedTuple):
    """read, write: heads. reach: how far a head may shift at once, to either side."""

    slots: int
    width: int
    read: int
    write: int
    reach: int

    @property
    def heads(self) -> int:
        """H."""
        return self.read + self.write

    @property
    def shifts(self) -> int:
        """S."""
        return 2 * self.reach + 1

    @property
    def parts(self) -> list[int]:
        """Of P, in this order: keys, strengths and exponents, gates and erased, shifts, added."""
        heads, written = self.heads, self.write * self.width
        return [heads * self.width, 2 * heads, heads + written, heads * self.shifts, written]


class MemoryState(NamedTuple):
    """memory: (B, N, M). weighting: (B, H, N), of every head in the last step. read: (B, R, M)."""

    memory: Tensor
    weighting: Tensor
    read: Tensor


class MemoryTrace(NamedTuple):
    """What heads did at each step, and what the memory held after it.

    added: (B, T, W, M). read: (B, T, R, M). weighting: (B, T, H, N). memory: (B, T, N, M).
    """

    added: Tensor
    read: Tensor
    weighting: Tensor
    memory: Tensor


class ExternalMemory(nn.Module):
    """What is learnt of a memory: where its heads begin, and how they read the controller's state.

    Args:
        controller: width of the controller's state.
        constant: what every number of the memory is at first; a small constant learns fastest (Collier and Beel 2018).

    Every head begins at the first slot. From a uniform weighting, moving means nothing and slots of a constant memory
    are alike, and half of all trainings on the copy task never leave that state.
    """

    def __init__(self, controller: int, sizes: MemorySizes, constant: float) -> None:
        super().__init__()
        self.sizes, self.constant = sizes, constant
        self.heads = nn.Linear(controller, sum(sizes.parts))
        nn.init.xavier_uniform_(self.heads.weight)
        nn.init.normal_(self.heads.bias, std=0.01)
        self.weighting = nn.Parameter(torch.empty(sizes.heads, sizes.slots))
        nn.init.normal_(self.weighting, std=0.1)
        with torch.no_grad():
            self.weighting[:, 0] += math.log(sizes.slots) + FOCUS
        self.read = nn.Parameter(torch.empty(sizes.read, sizes.width))
        nn.init.normal_(self.read, std=0.1)
        self.read_head = nn.ModuleList(_Head() for _ in range(sizes.read))
        self.write_head = nn.ModuleList(_Head() for _ in range(sizes.write))

    def initial(self, rows: int) -> MemoryState:
        """A constant memory; the weightings and what was read are learnt."""
        sizes = self.sizes
        memory_BNM = self.read.new_full((rows, sizes.slots, sizes.width), self.constant)
        weighting_BHN = self.weighting.softmax(-1).expand(rows, -1, -1)
        return MemoryState(memory_BNM, weighting_BHN, self.read.expand(rows, -1, -1))

    def forward(self, hidden_BD: Tensor, before: MemoryState) -> MemoryState:
        """One step, for a model whose steps autograd records; `layers/memory_unroll.py` is faster over whole sequences.

        Args:
            hidden_BD: the controller's state.
            before: the memory's.
        """
        wide = torch.float64 if hidden_BD.dtype == torch.float64 else torch.float32
        source_J, _ = shift_indices(self.sizes, hidden_BD.device)
        with torch.autocast(hidden_BD.device.type, enabled=False):
            said_BP = F.linear(hidden_BD.to(wide), self.heads.weight.to(wide), self.heads.bias.to(wide))
            after = step(said_BP, MemoryState(*(each.to(wide) for each in before)), self.sizes, source_J).after
        self.record(after.weighting[:, None])
        return after

    def replay(self, hidden_BTD: Tensor, read_BTRM: Tensor, weighting_BTHN: Tensor, memory_BNM: Tensor) -> MemoryTrace:
        """The trace of a sequence: of `unroll` with what it gave, from this memory on."""
        sizes = self.sizes
        shape = (*hidden_BTD.shape[:2], sizes.write, sizes.width)
        _, _, opened, _, added = torch.split(self.heads(hidden_BTD), sizes.parts, 2)
        erase_BTWM, add_BTWM = opened[..., sizes.heads :].sigmoid().view(shape), added.tanh().view(shape)
        held = []
        for place in range(hidden_BTD.shape[1]):
            for head in range(sizes.write):
                column_BN1 = weighting_BTHN[:, place, sizes.read + head, :, None]
                memory_BNM = memory_BNM * (1 - column_BN1 * erase_BTWM[:, place, head, None])
            written_BNW = weighting_BTHN[:, place, sizes.read :].transpose(1, 2)
            memory_BNM = torch.baddbmm(memory_BNM, written_BNW, add_BTWM[:, place])
            held.append(memory_BNM)
        return MemoryTrace(add_BTWM, read_BTRM, weighting_BTHN, torch.stack(held, 1))

    def record(self, weighting_BTHN: Tensor) -> None:
        """Into the active capture, if there is one: (B, 1, T, N) of each head."""
        if (record := active_record()) is not None:
            for number, head in enumerate([*self.read_head, *self.write_head]):
                record.take(head, weighting_BTHN[:, None, :, number])


class _Head(nn.Module):
    """A name for what one head attends to."""

    role, side = "memory", "decoder"


class MemoryStep(NamedTuple):
    """One step of all heads, with what its backward needs."""

    after: MemoryState
    kept: tuple[Any, ...]


def shift_indices(sizes: MemorySizes, device: torch.device) -> tuple[Tensor, Tensor]:
    """(N * S,) twice: the slot that slot n gets by each shift, and the slot that it is moved to."""
    slots_N1 = torch.arange(sizes.slots, device=device)[:, None]
    shift_S = torch.arange(-sizes.reach, sizes.reach + 1, device=device)
    return (slots_N1 - shift_S).remainder(sizes.slots).flatten(), (slots_N1 + shift_S).remainder(sizes.slots).flatten()


def step(said_BP: Tensor, before: MemoryState, sizes: MemorySizes, source_J: Tensor) -> MemoryStep:
    """The equations above. `source_J` is the first of `shift_indices`; J = N * S."""
    rows, heads, written = len(said_BP), sizes.heads, sizes.write
    memory_BNM, before_BHN, _ = before
    keys, positive, opened, shifts, added = torch.split(said_BP, sizes.parts, 1)
    positive = F.softplus(positive)
    opened = opened.sigmoid()
    strength_BH1, exponent_BH1 = positive.view(rows, 2, heads, 1).unbind(1)
    exponent_BH1 = exponent_BH1 + 1
    gate_BH1 = opened[:, :heads, None]
    erase_BWM = opened[:, heads:].view(rows, written, sizes.width)
    shift_BHS = shifts.view(rows, heads, sizes.shifts).softmax(-1)
    add_BWM = added.tanh().view(rows, written, sizes.width)

    key_BHM, key_length_BH1 = _unit(keys.view(rows, heads, sizes.width))
    unit_BNM, length_BN1 = _unit(memory_BNM)
    cosine_BHN = torch.bmm(key_BHM, unit_BNM.transpose(1, 2))
    content_BHN = (cosine_BHN * strength_BH1).softmax(-1)
    mixed_BHN = torch.lerp(before_BHN, content_BHN, gate_BH1)
    shifted_BHNS = mixed_BHN.index_select(2, source_J).view(rows, heads, sizes.slots, sizes.shifts)
    moved_BHN = torch.matmul(shifted_BHNS, shift_BHS[..., None])[..., 0] + TINY_WEIGHT
    log_BHN = moved_BHN.log()
    weighting_BHN = (log_BHN * exponent_BH1).softmax(-1)

    read_BRM = torch.bmm(weighting_BHN[:, : sizes.read], memory_BNM)
    write_BWN = weighting_BHN[:, sizes.read :]
    stages, kept_BNM = [memory_BNM], memory_BNM
    for head in range(written):
        kept_BNM = torch.addcmul(kept_BNM, kept_BNM, write_BWN[:, head, :, None] * erase_BWM[:, head, None], value=-1)
        stages.append(kept_BNM)
    memory_BNM = torch.baddbmm(kept_BNM, write_BWN.transpose(1, 2), add_BWM)
    after = MemoryState(memory_BNM, weighting_BHN, read_BRM)
    said = (strength_BH1, exponent_BH1, gate_BH1, opened, shift_BHS, erase_BWM, add_BWM, positive)
    lengths = (key_BHM, key_length_BH1, unit_BNM, length_BN1)
    return MemoryStep(
        after, (said, lengths, before_BHN, cosine_BHN, content_BHN, shifted_BHNS, moved_BHN, log_BHN, stages)
    )


def step_backward(
    memory_step: MemoryStep, gradient: MemoryState, sizes: MemorySizes, target_J: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Of `said_BP`, and of the memory and the weightings before, given those of what `step` returned.

    `target_J` is the second of `shift_indices`.
    """
    said, lengths, before_BHN, cosine_BHN, content_BHN, shifted_BHNS, moved_BHN, log_BHN, _ = memory_step.kept
    strength_BH1, exponent_BH1, gate_BH1, opened, shift_BHS, _, add_BWM, positive = said
    rows = len(before_BHN)
    d_memory_BNM, d_weighting_BHN, d_erase, d_add = _transfer_backward(memory_step, gradient, sizes)

    d_power_BHN = torch._softmax_backward_data(d_weighting_BHN, memory_step.after.weighting, 2, d_weighting_BHN.dtype)
    d_exponent_BH = (d_power_BHN * log_BHN).sum(-1)
    d_moved_BHN = d_power_BHN * exponent_BH1 / moved_BHN
    d_shift_BHS = torch.matmul(d_moved_BHN[:, :, None], shifted_BHNS)[:, :, 0]
    spread_BHNS = d_moved_BHN.index_select(2, target_J).view(shifted_BHNS.shape)
    d_mixed_BHN = torch.matmul(spread_BHNS, shift_BHS[..., None])[..., 0]
    d_gate_BH = (d_mixed_BHN * (content_BHN - before_BHN)).sum(-1)
    d_content_BHN = d_mixed_BHN * gate_BH1
    d_before_BHN = d_mixed_BHN - d_content_BHN
    d_scaled_BHN = torch._softmax_backward_data(d_content_BHN, content_BHN, 2, d_content_BHN.dtype)
    d_strength_BH = (d_scaled_BHN * cosine_BHN).sum(-1)
    d_cosine_BHN = d_scaled_BHN * strength_BH1

    key_BHM, key_length_BH1, unit_BNM, length_BN1 = lengths
    d_key_BHM = _unit_backward(torch.bmm(d_cosine_BHN, unit_BNM), key_BHM, key_length_BH1)
    d_unit_BNM = torch.bmm(d_cosine_BHN.transpose(1, 2), key_BHM)
    d_memory_BNM += _unit_backward(d_unit_BNM, unit_BNM, length_BN1)

    d_positive = torch.cat((d_strength_BH, d_exponent_BH), 1) * -torch.expm1(-positive)  # softplus' of softplus
    d_opened = torch.cat((d_gate_BH, d_erase.flatten(1)), 1) * (opened * (1 - opened))
    d_shifts = torch._softmax_backward_data(d_shift_BHS, shift_BHS, 2, d_shift_BHS.dtype)
    d_added = d_add * (1 - add_BWM.square())
    parts = (d_key_BHM, d_positive, d_opened, d_shifts, d_added)
    d_said_BP = torch.cat([part.reshape(rows, -1) for part in parts], 1)
    return d_said_BP, d_memory_BNM, d_before_BHN


def _transfer_backward(
    memory_step: MemoryStep, gradient: MemoryState, sizes: MemorySizes
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of reading and writing: of the memory before, of the weightings, of what is erased and added."""
    erase_BWM, add_BWM, stages = memory_step.kept[0][5], memory_step.kept[0][6], memory_step.kept[-1]
    weighting_BHN = memory_step.after.weighting
    write_BWN = weighting_BHN[:, sizes.read :]
    d_memory_BNM = gradient.memory
    d_write_BWN = torch.bmm(add_BWM, d_memory_BNM.transpose(1, 2))
    d_add_BWM = torch.bmm(write_BWN, d_memory_BNM)
    erased: list[Tensor] = []
    for head in reversed(range(sizes.write)):
        column_BN1, row_B1M = write_BWN[:, head, :, None], erase_BWM[:, head, None]
        lost_BNM = d_memory_BNM * stages[head]
        erased.append(torch.bmm(column_BN1.transpose(1, 2), lost_BNM))
        d_write_BWN[:, head] -= torch.bmm(lost_BNM, row_B1M.transpose(1, 2))[..., 0]
        d_memory_BNM = torch.addcmul(d_memory_BNM, d_memory_BNM, column_BN1 * row_B1M, value=-1)
    d_erase_BWM = -torch.cat(erased[::-1], 1) if erased else torch.zeros_like(erase_BWM)
    d_read_BRN = torch.bmm(gradient.read, stages[0].transpose(1, 2))
    d_weighting_BHN = gradient.weighting + torch.cat((d_read_BRN, d_write_BWN), 1)
    d_memory_BNM = torch.baddbmm(d_memory_BNM, weighting_BHN[:, : sizes.read].transpose(1, 2), gradient.read)
    return d_memory_BNM, d_weighting_BHN, d_erase_BWM, d_add_BWM


def _unit(x: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors over the last axis with length 1, and the length that they had."""
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    length = torch.hypot(length, length.new_full((), math.sqrt(TINY_LENGTH)))
    return x / length, length


def _unit_backward(gradient: Tensor, unit: Tensor, length: Tensor) -> Tensor:
    return torch.addcmul(gradient, unit, (unit * gradient).sum(-1, keepdim=True), value=-1) / length
