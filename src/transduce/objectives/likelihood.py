"""The log-probabilities of a batch's targets, with the same factorization as in training.

Shapes: B batch, T target positions, V vocabulary, N hidden words, P places, U places of an output.
"""

import torch
from torch import Tensor, nn

from transduce.core.padded import Padded
from transduce.data.collate import Batch, words
from transduce.layers.ctc import blank_of, ids_of, least_places, token_log_probabilities, written
from transduce.models.protocols import Aligns, Fills


@torch.inference_mode()
def batch_log_probabilities(model: nn.Module, batch: Batch) -> Tensor:
    """(B, T - 1) log-probabilities in fp64 of each target token after the first, in nats; 0 after the end of a row.

    For a model that fills, they are those of each word with all words hidden, given the length; the end token has the
    log-probability of the length. For a model that aligns, they are those of each token given the tokens before it,
    summed over alignments.
    """
    model.eval()
    device = next(model.parameters()).device
    source = batch.source.to(device) if batch.source else None
    target = batch.target.to(device)
    if isinstance(model, Fills):
        assert source is not None
        return _with_all_words_hidden(model, source, words(target))
    if isinstance(model, Aligns):
        assert source is not None
        return _however_placed(model, source, target)
    logits_BTV = model(source, Padded(target.values[:, :-1], target.lengths - 1))
    normed_BTV = logits_BTV.log_softmax(-1, dtype=torch.float32)
    chosen_BT = normed_BTV.gather(-1, target.values[:, 1:, None])[..., 0].double()
    return chosen_BT.masked_fill(~target.mask()[:, 1:], 0.0)


def _with_all_words_hidden(model: Fills, source: Padded, target: Padded) -> Tensor:
    """(B, T + 1): of the words of each row, and of its length behind them."""
    memory, hidden_BT = model.remember(source), target.mask()
    rows, longest = hidden_BT.shape
    each_BT = torch.zeros(rows, longest + 1, dtype=torch.float64, device=hidden_BT.device)
    length_B1 = target.lengths[:, None]
    each_BT.scatter_(1, length_B1, model.lengths(memory, longest).gather(1, length_B1).double())
    if bool(hidden_BT.any()):
        seen = Padded(target.values, target.lengths.clamp(min=1))  # attention needs something to attend to
        normed_NV = model.fill(seen, hidden_BT, memory).log_softmax(-1, dtype=torch.float32)
        each_BT[:, :-1][hidden_BT] = normed_NV.gather(1, target.values[hidden_BT][:, None])[:, 0].double()
    return each_BT


def _however_placed(model: Aligns, source: Padded, target: Padded) -> Tensor:
    """(B, T - 1): of the words of each row, and of its end."""
    own = words(target)
    places = model.align(source, least_places(*own))
    normed_BPV = places.values.double().log_softmax(-1)
    ids_BPU = ids_of(own.values, normed_BPV.shape[1], blank_of(target.values))
    return token_log_probabilities(written(normed_BPV.gather(2, ids_BPU), places.lengths, *own))
