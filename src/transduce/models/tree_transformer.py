"""A Transformer encoder whose attention follows a tree, and a flat one of the same size; a label for every node.

tree: every node is a position. A word begins as its embedding, a phrase as a vector that all phrases share. Each head
has one relation, and a node attends to itself and to the nodes that stand in that relation to it: its parts (children),
its phrase (parent), the other parts of its phrase (siblings), all nodes below it (descendants), or all above it
(ancestors). Without positions, the order of a phrase's parts is not seen.

flat: only the words are positions, each attends to all, and a node is a mean of the states of its words: of all alike,
or weighted by attention within the phrase (Lee et al. 2017, section 4.2).

    x_node = sum_w alpha_w h_w,   alpha = softmax over the words of the node of u . h_w

Shapes: B batch, N nodes, W words, D width, H heads, C labels.
"""

from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.data.columns.tree_nodes import Forest, check_trees
from transduce.layers.embedding import Embedding, hide_words
from transduce.layers.stack import NoncausalStackConfig, Stack

Relation = Literal["parent", "children", "siblings", "ancestors", "descendants"]


class TreeTransformerConfig(NoncausalStackConfig):
    """What attention follows, and the sizes and parts of `StackConfig`."""

    kind: Literal["tree_transformer"] = "tree_transformer"
    attention: Literal["tree", "flat"] = "tree"
    """What a position attends to: along the edges of the tree, or flat: each word to all words."""
    relations: tuple[Relation, ...] = ("parent", "children", "siblings")
    """What the heads follow in a tree, one after the other: parent, children, siblings, ancestors, descendants."""
    layers: int = Field(default=4, ge=1)
    """Of the encoder. Along edges of a tree, each layer reaches one edge further."""
    heads: int = Field(default=6, ge=1)
    """Number of attention heads; must divide d_model."""
    d_model: int = Field(default=192, ge=2)
    """Width of the model."""
    feed_forward: int = Field(default=384, ge=1)
    """Hidden width of the feed-forward layer."""
    positions: str = "none"
    """Positions of nodes, or in a flat model of words: the kinds are those of other Transformers."""
    pooling: Literal["mean", "attention"] = "mean"
    """How the words of a phrase become one vector in a flat model: their mean, or one weighted by attention."""
    word_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Whole words that training hides."""

    @model_validator(mode="after")
    def _heads_have_relations(self) -> Self:
        if not self.relations or (self.attention == "tree" and self.heads % len(self.relations)):
            raise ValueError(f"heads ({self.heads}) must be a multiple of the relations ({len(self.relations)})")
        if self.attention == "flat" and self.relations != type(self).model_fields["relations"].default:
            raise ValueError('relations: not read with attention = "flat". Leave it out')
        if self.attention == "tree" and self.pooling != "mean":
            raise ValueError('pooling: not read with attention = "tree". Leave it out')
        return self


class TreeTransformer(nn.Module):
    """Classifies every node (see `transduce.models.protocols`).

    Raises:
        InputError: the columns are not trees and labels of their nodes.
    """

    Config = TreeTransformerConfig

    def __init__(self, config: TreeTransformerConfig, specs: Specs) -> None:
        super().__init__()
        source = check_trees(specs, "tree_transformer")
        self.relations = config.relations if config.attention == "tree" else ()
        self.heads = config.heads
        self.source_embedding = Embedding(source.size, config.d_model)
        self.phrase = nn.Parameter(torch.zeros(config.d_model)) if self.relations else None
        self.word_dropout, self.dropout = config.word_dropout, Dropout(config.dropout)
        self.word_score = nn.Linear(config.d_model, 1, bias=False) if config.pooling == "attention" else None
        self.encoder = Stack(config, config.layers, side="encoder")
        if self.relations:
            for block in self.encoder.blocks:
                block.self_attention.role = "edge"
        self.output = nn.Linear(config.d_model, specs.target.size)

    def classify(self, inputs: Forest) -> Tensor:
        """Logits (B, N, C)."""
        states_BND = self._along_edges(inputs) if self.relations else self._flat(inputs)
        return self.output(self.dropout(states_BND))

    def _along_edges(self, inputs: Forest) -> Tensor:
        assert self.phrase is not None
        is_word_BN1 = (inputs.words.values >= 0)[..., None]
        embedded_BND = torch.where(is_word_BN1, self._embedded(inputs.words.values.clamp(min=0)), self.phrase)
        masks = related(inputs, self.relations)
        allowed_BHNN = torch.stack([masks[head % len(masks)] for head in range(self.heads)], 1)
        return self.encoder(embedded_BND, allowed_BHNN, inputs.words.mask())

    def _flat(self, inputs: Forest) -> Tensor:
        is_word_BN = (inputs.words.values >= 0) & inputs.words.mask()
        lengths_B = is_word_BN.sum(1)
        places_BW = (~is_word_BN).to(torch.int8).argsort(dim=1, stable=True)[:, : int(lengths_B.max())]
        words = Padded(inputs.words.values.gather(1, places_BW).clamp(min=0), lengths_B)
        states_BWD = self.encoder.encode(self._embedded(words.values), words.mask())
        below_BNW = (inputs.firsts.values[..., None] <= places_BW[:, None]) & (
            places_BW[:, None] <= torch.arange(is_word_BN.shape[1], device=places_BW.device)[:, None]
        )
        share_BNW = self._shares(states_BWD, below_BNW & words.mask()[:, None])
        return share_BNW.to(states_BWD.dtype) @ states_BWD

    def _shares(self, states_BWD: Tensor, below_BNW: Tensor) -> Tensor:
        """(B, N, W): how much of each of its words a node is; they add up to 1, or are all 0 where there are none."""
        if self.word_score is None:
            return below_BNW / below_BNW.sum(2, keepdim=True).clamp(min=1)
        score_B1W = self.word_score(states_BWD).float().mT
        score_BNW = score_B1W.masked_fill(~below_BNW, torch.finfo(torch.float32).min)
        return score_BNW.softmax(-1) * below_BNW

    def _embedded(self, ids_BS: Tensor) -> Tensor:
        return hide_words(self.source_embedding(ids_BS), self.word_dropout if self.training else 0.0)


def related(trees: Forest, relations: tuple[Relation, ...]) -> list[Tensor]:
    """(B, N, N) bool of each relation: whether a node (row) attends to another, or is that node itself."""
    parents_BN, firsts_BN, real_BN = trees.parents.values, trees.firsts.values, trees.parents.mask()
    place_N = torch.arange(parents_BN.shape[1], device=parents_BN.device)
    parent_BNN = parents_BN[..., None] == place_N
    below_BNN = (firsts_BN[..., None] <= place_N) & (place_N < place_N[:, None])
    has_parent_BN1 = (parents_BN >= 0)[..., None]
    found: dict[str, Tensor] = {
        "parent": parent_BNN,
        "children": parent_BNN.transpose(1, 2),
        "siblings": has_parent_BN1 & (parents_BN[..., None] == parents_BN[:, None]),
        "ancestors": below_BNN.transpose(1, 2),
        "descendants": below_BNN,
    }
    real_BNN = real_BN[:, None] & real_BN[..., None]
    return [(found[each] & real_BNN) | (place_N == place_N[:, None]) for each in relations]
