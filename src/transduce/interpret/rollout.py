"""Attention rollout: how much each token contributes to each position after all blocks (Abnar & Zuidema 2020).

    A = 0.5 W + 0.5 I,   rolled = A_L .. A_2 A_1                        (equation 1, W the mean of the heads)

Half of a block's output comes from its residual connection, half from attention. The paper does not cover
cross-attention. Here it gets the same weight of one half: with C the mean weights of a block's cross-attention,

    own <- 0.5 A own,   from_source <- 0.5 A from_source + 0.5 C

`cross` is from_source times the encoder's rollout: the contribution of each source token to each position. If a row
sums to less than 1, the rest came from the output's own tokens.

Shapes: T target positions, S source positions.
"""

from typing import Any

import torch
from torch import Tensor

from transduce.interpret.attention import Attention, Layer
from transduce.interpret.numbers import packed


def rollout(attention: Attention) -> dict[str, Tensor]:
    """The rollout of "encoder" (S, S) and "decoder" (T, T) by equation 1, and "cross" (T, S), as far as they exist."""
    found = {
        kind: rolled([layer.weights.mean(0) for layer in layers])
        for kind in ("encoder", "decoder")
        if (layers := attention.of(kind))
    }
    blocks = _blocks(attention)
    if blocks:
        from_source_TS = torch.zeros_like(blocks[0][1].weights[0])
        for own, cross in blocks:
            from_source_TS = 0.5 * halved(own.weights.mean(0)) @ from_source_TS + 0.5 * cross.weights.mean(0)
        found["cross"] = from_source_TS @ found["encoder"] if "encoder" in found else from_source_TS
    return found


def rollout_dict(attention: Attention) -> dict[str, Any]:
    return {kind: packed(weights) for kind, weights in rollout(attention).items()}


def rolled(weights: list[Tensor]) -> Tensor:
    """(T, T) from the first block's weights (T, T) to the last one's."""
    found_TT = torch.eye(len(weights[0]))
    for each in weights:
        found_TT = halved(each) @ found_TT
    return found_TT


def halved(weights_TT: Tensor) -> Tensor:
    """0.5 W + 0.5 I."""
    return 0.5 * weights_TT + 0.5 * torch.eye(len(weights_TT))


def _blocks(attention: Attention) -> list[tuple[Layer, Layer]]:
    """Self-attention and cross-attention of each block that has both, that is, under the same parent module."""
    cross = {_parent(layer): layer for layer in attention.of("cross")}
    return [(own, cross[_parent(own)]) for own in attention.of("decoder") if _parent(own) in cross]


def _parent(layer: Layer) -> str:
    return layer.name.rpartition(".")[0]
