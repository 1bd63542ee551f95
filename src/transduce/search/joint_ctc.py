"""Joint decoding: a decoder's next tokens, weighted with CTC's prefix probabilities (Watanabe et al. 2017, IV-C).

    score(h c)  =  (1 - w) log p_att(c | h)  +  w (log psi(h c) - log psi(h))           w = `search.ctc_weight`

psi(h) is the probability, by CTC on the encoder, that an output begins with h; for a finished output, that it is h. So
a finished output's scores sum to (1 - w) log p_att(y) + w log p_ctc(y). psi is a sum over the places at which the last
token of h is first emitted (Graves 2008, section 7.4):

    psi(h c) = sum_t phi_t(h, c) p_t(c),   phi_t = b_{t-1} + n_{t-1},  or b_{t-1} where c is the last token of h

with the probabilities that the places up to t read as h and end in its last token (n_t), or in a blank (b_t).

Shapes: N hypotheses, P places, Q = P + 1 numbers of places, V vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.layers.ctc import IMPOSSIBLE
from transduce.models.protocols import PredictsJointly, Tree


class JointMemory(NamedTuple):
    """A model's memory, and log-probabilities (N, P, V) of each place; behind a row's last, the blank is certain."""

    inner: Tree
    places: Tensor


class JointState(NamedTuple):
    """A model's state, and what CTC keeps of each hypothesis h.

    token: (N, Q) n after each number of places. blank: (N, Q) b. last: (N,) the last token of h; the blank at first.
    prefixes: (N, V) log psi(h c) of every next token c, with that of h as an output at the end token.
    """

    inner: Tree
    token: Tensor
    blank: Tensor
    last: Tensor
    prefixes: Tensor


class JointlyDecoded:
    """A wrapper that implements `Steps`; search uses it in place of the model, and reorders what CTC keeps.

    Args:
        weight: w, above 0 and below 1.
        blank, end: token ids.

    Raises:
        InputError: the model has no CTC output.
    """

    def __init__(self, model: Any, weight: float, blank: int, end: int) -> None:
        if not isinstance(model, PredictsJointly) or not model.ctc_weight:
            raise InputError(
                "search.ctc_weight: this model has no CTC on its encoder: leave it out, or train a model with "
                "model.ctc_weight above 0."
            )
        self.model: Any = model
        self.weight, self.blank, self.end = weight, blank, end

    def start(self, source: Padded | None, rows: int) -> tuple[JointMemory, JointState]:
        """The model's memory and state, with those of CTC."""
        assert source is not None
        memory, state = self.model.start(source, rows)
        logits_NPV, count_N = self.model.align_encoder(source)
        places_NPV = logits_NPV.log_softmax(-1, dtype=torch.float32)
        behind_NP = ~Padded(logits_NPV, count_N).mask()
        places_NPV = places_NPV.masked_fill(behind_NP[..., None], IMPOSSIBLE)
        places_NPV[..., self.blank].masked_fill_(behind_NP, 0.0)
        blank_NP = places_NPV[..., self.blank].double().cumsum(1)
        blank_NQ = torch.cat((torch.zeros_like(blank_NP[:, :1]), blank_NP), 1)
        last_N = torch.full((rows,), self.blank, device=count_N.device)
        begun_NV = torch.zeros_like(places_NPV[:, 0], dtype=torch.float64)  # every output begins with nothing
        return JointMemory(memory, places_NPV), JointState(
            state, torch.full_like(blank_NQ, IMPOSSIBLE), blank_NQ, last_N, begun_NV
        )

    def step(self, token: Tensor, memory: JointMemory, state: JointState) -> tuple[Tensor, JointState]:
        """The scores (N, V) above, each at most 0, and the state after `token`."""
        attention_NV, inner = self.model.step(token, memory.inner, state.inner)
        token_NQ, blank_NQ = self._read(token, memory.places, state)
        prefixes_NV = self._prefixes(token, memory.places, token_NQ, blank_NQ)
        own_N1 = state.prefixes.gather(1, token[:, None])
        more_NV = (prefixes_NV - own_N1).clamp(max=0.0)
        more_NV[:, self.blank] = -torch.inf
        scores_NV = (1 - self.weight) * attention_NV + self.weight * more_NV.to(attention_NV.dtype)
        return scores_NV, JointState(inner, token_NQ, blank_NQ, token, prefixes_NV)

    def _read(self, token_N: Tensor, places_NPV: Tensor, before: JointState) -> tuple[Tensor, Tensor]:
        """n and b (N, Q) of the hypotheses with one more token; of those without any yet, as they are."""
        count = places_NPV.shape[1]
        said_NP = places_NPV.gather(2, token_N[:, None, None].expand(-1, count, 1))[..., 0].double()
        silent_NP = places_NPV[..., self.blank].double()
        both_NQ = torch.logaddexp(before.token, before.blank)
        entered_NQ = torch.where((token_N == before.last)[:, None], before.blank, both_NQ)
        nothing_N = torch.full_like(said_NP[:, 0], IMPOSSIBLE)
        token_NQ, blank_NQ = [nothing_N], [nothing_N]
        for place in range(count):
            emitted_N = torch.logaddexp(token_NQ[-1], entered_NQ[:, place]) + said_NP[:, place]
            rested_N = torch.logaddexp(token_NQ[-1], blank_NQ[-1]) + silent_NP[:, place]
            token_NQ.append(emitted_N)
            blank_NQ.append(rested_N)
        begun_N1 = (token_N != self.blank)[:, None]
        return (
            torch.where(begun_N1, torch.stack(token_NQ, 1), before.token),
            torch.where(begun_N1, torch.stack(blank_NQ, 1), before.blank),
        )

    def _prefixes(self, token_N: Tensor, places_NPV: Tensor, token_NQ: Tensor, blank_NQ: Tensor) -> Tensor:
        """(N, V) fp64: log psi of each hypothesis with every next token."""
        both_NQ = torch.logaddexp(token_NQ, blank_NQ)
        prefixes_NV = (both_NQ[:, :-1, None].float() + places_NPV).logsumexp(1).double()
        again_NP1 = places_NPV.gather(2, token_N[:, None, None].expand(-1, places_NPV.shape[1], 1))
        again_N1 = (blank_NQ[:, :-1] + again_NP1[..., 0]).logsumexp(1, keepdim=True)
        prefixes_NV.scatter_(1, token_N[:, None], again_N1)
        prefixes_NV[:, self.end] = both_NQ[:, -1]
        return prefixes_NV
