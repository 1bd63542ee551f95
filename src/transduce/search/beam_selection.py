"""The selection of the continuations that take the slots of a beam.

- Plain: the most likely continuations.
- Groups (diverse beam search): the most likely for each group in turn, with a penalty on tokens that earlier groups
  chose at this step.
- Banks (dynamic beam allocation): slots are shared out among banks of hypotheses that have made equal progress with
  their required phrases.

Shapes: B sentences, K slots of a beam, N live hypotheses of all sentences, C continuations considered for each, X = K
    C,
M selected continuations, V vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.kernels.native import choice as native
from transduce.search.constraint import Constraint, State
from transduce.search.rules import Rules

Taken = tuple[Tensor, Tensor, Tensor]  # parents, columns, new slots, (M,) each


@dataclass(frozen=True, slots=True)
class Live:
    """The live hypotheses, ordered by sentence, then by slot.

    sentence, slot: (N,) int64.
    total: (N,) float64, the log-probability so far.
    tokens, values: (N, 1 + T), the start token and 0, then the tokens and their log-probabilities.
    """

    sentence: Tensor
    slot: Tensor
    total: Tensor
    tokens: Tensor
    values: Tensor

    def chosen(self, row_M: Tensor) -> "Live":
        """The hypotheses `row_M`, in that order."""
        parts = (self.sentence, self.slot, self.total, self.tokens, self.values)
        return Live(*(part[row_M] for part in parts))

    def only(self, row_M: Tensor) -> "Live":
        """The hypotheses `row_M`, which are ascending and distinct."""
        return self if len(row_M) == len(self.sentence) else self.chosen(row_M)

    def extended(self, slot_N: Tensor, token_N: Tensor, value_N: Tensor) -> "Live":
        """Each with one more token, in a new slot."""
        tokens_NT = torch.cat([self.tokens, token_N[:, None]], dim=1)
        values_NT = torch.cat([self.values, value_N[:, None]], dim=1)
        return Live(self.sentence, slot_N, self.total + value_N, tokens_NT, values_NT)


@dataclass(frozen=True, slots=True)
class Offered:
    """The candidate continuations of each live hypothesis.

    value: (N, C) float64 log-probabilities, -inf for none.
    token: (N, C) tokens.
    bank: (N, C) int64, higher = more progress with the required phrases; None = there are no phrases.
    """

    value: Tensor
    token: Tensor
    bank: Tensor | None = None


def likeliest(live: Live, offered: Offered, slots_B: Tensor, beam: int, prune: float | None = None) -> Taken:
    """The continuations that take each sentence's free slots.

    They are ordered by sentence, then by descending probability; ties go to the lower slot, then to the lower token.

    Args:
        live: the live hypotheses.
        offered: their candidate continuations.
        slots_B: the number of free slots of each sentence.
        beam: K.
        prune: continuations take no slot if their log-probability is this much below the best of their sentence, or of
            their bank. The next step may fill the slot again (Freitag and Al-Onaizan 2017, section 3, absolute
            threshold).
    """
    if offered.bank is None and native.can_choose():
        return native.likeliest(live.sentence, live.total, offered.value, slots_B, prune)
    columns = offered.value.shape[1]
    total_BKC = torch.full((len(slots_B), beam, columns), -torch.inf, dtype=torch.float64)
    total_BKC[live.sentence, live.slot] = live.total[:, None] + offered.value
    total_BX, bank_BX = total_BKC.flatten(1), None
    if offered.bank is not None:
        bank_BKC = torch.zeros(total_BKC.shape, dtype=torch.int64)
        bank_BKC[live.sentence, live.slot] = offered.bank
        bank_BX = bank_BKC.flatten(1)
    if prune is not None:
        total_BX = total_BX.where(total_BX >= _likeliest_of_bank(total_BX, bank_BX) - prune, -torch.inf)
    sorted_BX, place_BX = total_BX.sort(dim=1, descending=True, stable=True)
    if bank_BX is not None:
        turn_BX = allocate_slots(bank_BX.gather(1, place_BX), sorted_BX > -torch.inf)
        sorted_BX, place_BX = sorted_BX.gather(1, turn_BX), place_BX.gather(1, turn_BX)
    taken_BX = (torch.arange(sorted_BX.shape[1]) < slots_B[:, None]) & (sorted_BX > -torch.inf)
    sentence_M, slot_M = taken_BX.nonzero(as_tuple=True)
    place_M = place_BX[sentence_M, slot_M]
    row_BK = torch.zeros(len(slots_B), beam, dtype=torch.int64)
    row_BK[live.sentence, live.slot] = torch.arange(len(live.sentence))
    return row_BK[sentence_M, place_M // columns], place_M % columns, slot_M


def _likeliest_of_bank(total_BX: Tensor, bank_BX: Tensor | None) -> Tensor:
    """The maximum of each continuation's bank (B, X), or without banks of each row (B, 1)."""
    if bank_BX is None:
        return total_BX.amax(1, keepdim=True)
    number_BX = bank_BX - bank_BX.min()
    best_BN = torch.full((len(bank_BX), int(number_BX.max()) + 1), -torch.inf, dtype=total_BX.dtype)
    return best_BN.scatter_reduce(1, number_BX, total_BX, "amax").gather(1, number_BX)


def allocate_slots(bank_BX: Tensor, possible_BX: Tensor) -> Tensor:
    """(B, X) the order in which continuations get slots (Post and Vilar 2018, section 3).

    First comes the most likely continuation of each bank, starting with the highest bank; then the second of each bank,
    and so on. Banks thus get equal shares. The remainder goes to the highest banks, and slots that a bank cannot fill
    go to the others.

    bank_BX: the bank of each continuation, sorted by descending probability.
    possible_BX: False for continuations that come last.
    """
    bank_BX = bank_BX.where(possible_BX, torch.iinfo(torch.int64).min)
    sorted_BX, by_bank_BX = bank_BX.sort(dim=1, descending=True, stable=True)
    place_X = torch.arange(bank_BX.shape[1])
    first_BX = torch.ones_like(sorted_BX, dtype=torch.bool)
    first_BX[:, 1:] = sorted_BX[:, 1:] != sorted_BX[:, :-1]
    start_BX = torch.where(first_BX, place_X, 0).cummax(dim=1).values
    turn_BX = (place_X - start_BX).where(possible_BX.gather(1, by_bank_BX), len(place_X))
    by_turn_BX = turn_BX.sort(dim=1, stable=True).indices
    return by_bank_BX.gather(1, by_turn_BX)


def in_groups(
    live: Live, offered: Offered, slots_BG: Tensor, beam: int, diversity: float, prune: float | None = None
) -> Taken:
    """Diverse beam search (Vijayakumar et al. 2018, section 4) with Hamming diversity at the current step.

    Groups choose in turn. A continuation's score is reduced by `diversity` for each hypothesis of an earlier group with
    the same new token. The penalty affects only the choice at this step; log-probabilities remain those of the model.
    Group g has the slots [g K / G, (g + 1) K / G).
    """
    groups = slots_BG.shape[1]
    width = beam // groups
    said_BK = torch.full((len(slots_BG), beam), -1)
    parts: list[Taken] = []
    for group in range(groups):
        row_N = (live.slot // width == group).nonzero()[:, 0]
        mine = live.chosen(row_N)
        mine = Live(mine.sentence, mine.slot - group * width, mine.total, mine.tokens, mine.values)
        token_NC = offered.token[row_N]
        count_NC = (token_NC[:, :, None] == said_BK[mine.sentence][:, None]).sum(2)
        bank_NC = None if offered.bank is None else offered.bank[row_N]
        costly = Offered(offered.value[row_N] - diversity * count_NC, token_NC, bank_NC)
        parent_M, column_M, slot_M = likeliest(mine, costly, slots_BG[:, group], width, prune)
        slot_M = slot_M + group * width
        said_BK[mine.sentence[parent_M], slot_M] = token_NC[parent_M, column_M]
        parts.append((row_N[parent_M], column_M, slot_M))
    parent_M, column_M, slot_M = (torch.cat(part) for part in zip(*parts, strict=True))
    order_M = (live.sentence[parent_M] * beam + slot_M).argsort()
    return parent_M[order_M], column_M[order_M], slot_M[order_M]


def add_banks(rules: Rules, live: Live, permitted_NV: Tensor, offered: Offered) -> Offered:
    """`offered` with banks, and with all tokens that advance a hypothesis's required phrases, however unlikely.

    The most likely token that does not set a hypothesis back is included, so the highest bank is never lost. Hypotheses
    without phrases share one bank.
    """
    more: list[list[int]] = []
    banks: list[list[int]] = []
    histories = zip(live.sentence.tolist(), live.tokens[:, 1:].tolist(), offered.token.tolist(), strict=True)
    for place, (sentence, tokens, offers) in enumerate(histories):
        constraint = rules.requests[sentence].constraint
        if constraint is None:
            more.append([])
            banks.append([0] * len(offers))
            continue
        state = rules.state(sentence, tuple(tokens))
        more.append(sorted(_advancing(constraint, state, permitted_NV[place]).difference(offers)))
        banks.append(constraint.bank_after(state)[[*offers, *more[-1]]].tolist())
    widest = max(map(len, more))
    more_NA = torch.tensor([each + [0] * (widest - len(each)) for each in more], dtype=torch.int64)
    value_NA = permitted_NV.gather(1, more_NA.to(permitted_NV.device)).cpu().double()
    real_NA = torch.arange(widest) < torch.tensor([len(each) for each in more])[:, None]
    value_NC = torch.cat([offered.value, value_NA.masked_fill(~real_NA, -torch.inf)], dim=1)
    token_NC = torch.cat([offered.token, more_NA], dim=1)
    bank_NC = torch.tensor([each + [0] * (value_NC.shape[1] - len(each)) for each in banks])
    return Offered(value_NC, token_NC, bank_NC)


def _advancing(constraint: Constraint, state: State, permitted_V: Tensor) -> set[int]:
    """The tokens that advance a hypothesis's phrases, and the most likely token that does not set it back."""
    far, far_V = constraint.distance(state), constraint.distance_after(state)
    steady_V = torch.from_numpy((far_V <= far) & ~constraint.ends_forbidden(state))
    likeliest = int(permitted_V.cpu().where(steady_V, -torch.inf).argmax())
    return {likeliest, *(far_V < far).nonzero()[0].tolist()}
