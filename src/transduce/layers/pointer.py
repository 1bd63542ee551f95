"""The pointer-generator, which copies words from the source or generates words of the vocabulary (See et al. 2017).

    p(w) = g softmax(logits)_w + (1 - g) sum of alpha_s over the source positions s that hold w      (equation 9)
    g    = sigmoid(u . [h; c] + b),   c = sum_s alpha_s z_s                                           (equation 8)

The pointer has its own attention from the decoder's last hidden state h to the encoder's states z, so it works with any
decoder. A model creates a `Pointer`, calls `remember` for each source, and passes its logits through the pointer.

Shapes: B batch, T target positions, S source positions, D decoder width, M encoder width, V vocabulary.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.attention import masks
from transduce.attention.cache import KeyValue
from transduce.attention.cross_attention import CrossAttention
from transduce.core.errors import InputError
from transduce.data.columns.protocols import Specs
from transduce.kernels.matmul import Linear

LEAST_COPIED = 1e-30  # avoids log 0 where an attention weight underflows; its gradient is 0


class Copies(NamedTuple):
    """A source to copy from: memory for `Steps`, with the batch on axis 0 of every tensor.

    read: keys and values of the pointer's attention.
    allowed: mask of real positions.
    ids: (B, S), source ids.
    place: (B, S), the first position with the same word.
    first: (B, S) bool, True = a real position that is the first with its word.
    """

    read: KeyValue
    allowed: Tensor
    ids: Tensor
    place: Tensor
    first: Tensor


class Copying(NamedTuple):
    """A pointer with the sources that it may copy from."""

    pointer: "Pointer"
    copies: Copies


def with_copies(logits_BTV: Tensor, generate_BT1: Tensor, alpha_BTS: Tensor, copies: Copies) -> Tensor:
    """log p (B, T, V) of the mixture (equation 9), in fp32, or in fp64 for fp64 logits. It is finite if the logits are.

    Only words of the source differ from g softmax(logits). They are added with a softplus, so log 0 is never computed:

        log p(w) = a + softplus(log((1 - g) copied(w)) - a),   a = log(g softmax(logits)_w)

    Args:
        logits_BTV: logits over the vocabulary.
        generate_BT1: the logit of g.
        alpha_BTS: attention weights of the source positions, 0 for padding.
        copies: the source.
    """
    dtype = torch.promote_types(logits_BTV.dtype, torch.float32)
    log_g_BT1, log_rest_BT1 = F.logsigmoid(generate_BT1.to(dtype)), F.logsigmoid(-generate_BT1.to(dtype))
    words_BTV = logits_BTV.log_softmax(-1, dtype=dtype)
    ids_BTS, place_BTS = (each[:, None].expand_as(alpha_BTS) for each in (copies.ids, copies.place))
    copied_BTS = torch.zeros_like(alpha_BTS).scatter_add(-1, place_BTS, alpha_BTS).clamp(min=LEAST_COPIED)
    log_copied_BTS = copied_BTS.to(dtype).log() + log_rest_BT1
    gain_BTS = F.softplus(log_copied_BTS - words_BTV.gather(-1, ids_BTS) - log_g_BT1)
    return (words_BTV + log_g_BT1).scatter_add_(-1, ids_BTS, gain_BTS.masked_fill(~copies.first[:, None], 0.0))


class Pointer(nn.Module):
    """Turns a decoder's logits into log-probabilities of generating or copying, which can be used as logits.

    Args:
        hidden_width: D.
        states_width: M.
        specs: of source and target, which must have one vocabulary.

    Raises:
        InputError: each has its own.
    """

    def __init__(self, hidden_width: int, states_width: int, specs: Specs) -> None:
        super().__init__()
        if not specs.one_vocabulary:
            source_ids, target_ids = specs.sizes
            raise InputError(
                "model.pointer copies source words by their ids, so both sides need one vocabulary; this source has "
                f"one of {source_ids} ids and this target another of {target_ids}. Set tokenizer.joint = true, or "
                "model.pointer = false."
            )
        self.query = Linear(hidden_width, states_width)
        self.reader = CrossAttention("scaled_dot", "softmax", states_width, states_width)
        self.generate = nn.Linear(hidden_width + states_width, 1)
        for linear in (self.query, self.generate):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def remember(self, source_BS: Tensor, states_BSM: Tensor, real_BS: Tensor) -> Copies:
        """A source to copy from: its ids (B, S), the encoder's states (B, S, M), the mask of real positions (B, S)."""
        position_S = torch.arange(source_BS.shape[1], device=source_BS.device)
        # Real positions come before all padding, so a word's first position is real if any of them is.
        place_BS = (source_BS[:, :, None] == source_BS[:, None]).int().argmax(-1)
        first_BS = (place_BS == position_S) & real_BS
        return Copies(self.reader.remember(states_BSM), masks.padding(real_BS), source_BS, place_BS, first_BS)

    def forward(self, logits_BTV: Tensor, hidden_BTD: Tensor, copies: Copies) -> Tensor:
        """Log-probabilities (B, T, V) from the logits and the hidden states that they were computed from."""
        position_BT = torch.zeros_like(hidden_BTD[..., 0], dtype=torch.int64)  # a softmax does not look
        context_BTM, alpha_BHTS = self.reader(self.query(hidden_BTD), copies.read, copies.allowed, position_BT)
        generate_BT1 = self.generate(torch.cat((hidden_BTD, context_BTM.to(hidden_BTD.dtype)), -1))
        return with_copies(logits_BTV, generate_BT1, alpha_BHTS[:, 0], copies)
