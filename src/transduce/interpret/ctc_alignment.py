"""Combining the places of a CTC model into tokens.

The most likely alignment of the output is used (Viterbi: max instead of sum). In it, a token owns the places that
contain it and the blanks after them; the first token also owns the blanks before it. A token receives the sum of the
weights of its places, and attends with their mean, just as words do with sub-words.

Shapes: P places, T tokens, U = T + 1 numbers of emitted tokens, V vocabulary, B = 1, H heads, Q queries, K keys.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from transduce.interpret.layers import Attends
from transduce.layers.ctc import again

Calls = Mapping[str, list[Tensor]]  # each module's name and the weights (B, H, Q, K) of its calls


def by_token(
    next_PV: Tensor, record: Calls, parts: Sequence[Attends], tokens: Sequence[int], blank: int
) -> tuple[Tensor, Calls]:
    """The predictions (T, V) of the most certain place of each token, and the record with tokens instead of places."""
    held_P = held(next_PV, tokens, blank)
    owner_P = held_P.cummax(0).values.clamp(min=0)
    share_TP = (owner_P == torch.arange(len(tokens), device=owner_P.device)[:, None]).to(next_PV.dtype)
    own_PT = next_PV[:, list(tokens)].masked_fill(
        held_P[:, None] != torch.arange(len(tokens), device=held_P.device), -torch.inf
    )
    places = {part.name: part for part in parts}
    merged = {name: [_merged(call, share_TP, places.get(name)) for call in calls] for name, calls in record.items()}
    return next_PV[own_PT.argmax(0)], merged


def _merged(weights_BHQK: Tensor, share_TP: Tensor, part: Attends | None) -> Tensor:
    """Rows averaged, columns summed, where they are places."""
    if part and part.rows == "target":
        weights_BHQK = (share_TP / share_TP.sum(1, keepdim=True)) @ weights_BHQK
    if part and part.columns == "target":
        weights_BHQK = weights_BHQK @ share_TP.mT
    return weights_BHQK


def held(next_PV: Tensor, tokens: Sequence[int], blank: int) -> Tensor:
    """(P,) the token of each place in the most likely alignment of the tokens; -1 = the blank."""
    state_S = torch.full((2 * len(tokens) + 1,), blank)  # blank, token, blank, token, .., blank
    state_S[1::2] = torch.tensor(tokens)
    skips_S = torch.zeros(len(state_S), dtype=torch.bool)  # whether the blank before may be left out
    skips_S[3::2] = ~again(state_S[None, 1::2])[0, 1:]
    emitted_PS = next_PV.double().cpu()[:, state_S]
    best_S = emitted_PS[0].masked_fill(torch.arange(len(state_S)) > 1, -torch.inf)
    came: list[Tensor] = []
    for emitted_S in emitted_PS[1:]:
        before_3S = torch.stack([best_S, _shifted(best_S, 1), _shifted(best_S, 2).masked_fill(~skips_S, -torch.inf)])
        best_S, step_S = before_3S.max(0)
        best_S = best_S + emitted_S
        came.append(step_S)
    state = len(state_S) - 1 - int(best_S[-2] > best_S[-1])
    row = [state]
    for step_S in reversed(came):
        state -= int(step_S[state])
        row.append(state)
    return torch.tensor([each // 2 if each % 2 else -1 for each in reversed(row)], device=next_PV.device)


def _shifted(values_S: Tensor, by: int) -> Tensor:
    return torch.cat([values_S.new_full((by,), -torch.inf), values_S[:-by]])
