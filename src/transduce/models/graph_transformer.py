"""A Transformer encoder whose self-attention goes along the edges of a graph, and along no other pair.

    x <- x + W_o [o^1 ; .. ; o^H],   o_t^h = sum over the neighbors s of softmax(q_t . k_s / sqrt(K)) v_s
    x <- x + W_2 GELU(W_1 x)         each of LayerNorm(x)

Without positions: a node is told from others by its features and its edges alone.

Shapes: N nodes, F features, B graphs or chosen nodes, H heads, X width, C labels.
"""

from typing import Literal, Self

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.attention.edges import DotEdgeScore, EdgeAttention, Edges, times_weight
from transduce.core.config import Config
from transduce.core.graphs import Graphs
from transduce.data.columns import Specs
from transduce.layers.recomputation import Recomputable, recomputable
from transduce.models.graph_attention import GraphPooling, GraphPoolingKind, PenalizedClassifier, reads_whole_graphs


class GraphTransformerConfig(Config):
    """Sizes and regularization."""

    kind: Literal["graph_transformer"] = "graph_transformer"
    layers: int = Field(default=2, ge=1)
    """Blocks of attention and feed-forward layers."""
    heads: int = Field(default=4, ge=1)
    """Of each block."""
    d_model: int = Field(default=64, ge=1)
    """Width of the states; a multiple of heads."""
    feed_forward: int = Field(default=128, ge=1)
    """Width between the two products of a feed-forward layer."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Of features, and of what each layer adds."""
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Of attention weights: so many neighbors are not read."""
    penalty: float = Field(default=0.0, ge=0)
    """Weight in the training loss of half the sum of all squared weights (L2 regularization)."""
    pooling: GraphPoolingKind = "mean"
    """How the nodes of a graph become one vector, for labels of graphs."""

    @model_validator(mode="after")
    def _heads_fit(self) -> Self:
        if self.d_model % self.heads:
            raise ValueError(f"d_model = {self.d_model} must be a multiple of heads = {self.heads}")
        return self


class GraphTransformerBlock(Recomputable):
    """Pre-norm, as blocks elsewhere."""

    def __init__(self, config: GraphTransformerConfig) -> None:
        super().__init__()
        width = config.d_model
        self.heads = config.heads
        self.norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.attention = EdgeAttention(DotEdgeScore(), config.attention_dropout)
        self.widen, self.narrow = nn.Linear(width, config.feed_forward), nn.Linear(config.feed_forward, width)
        self.dropout = Dropout(config.dropout)

    @recomputable
    def forward(self, x_NX: Tensor, edges: Edges) -> Tensor:
        """(N, X)."""
        parts = self.project(self.norm(x_NX)).chunk(3, -1)
        query, key, value = (each.reshape(len(x_NX), self.heads, -1) for each in parts)
        x_NX = x_NX + self.dropout(self.join(self.attention(query, key, value, edges).flatten(1)))
        fed_NX: Tensor = self.narrow(F.gelu(self.widen(self.feed_norm(x_NX))))
        return x_NX + self.dropout(fed_NX)


class GraphTransformer(PenalizedClassifier):
    """Encodes, and classifies nodes or graphs (see `transduce.models.protocols`).

    Raises:
        InputError: the columns are not graphs, or nodes, and a label.
    """

    Config = GraphTransformerConfig

    def __init__(self, config: GraphTransformerConfig, specs: Specs) -> None:
        super().__init__()
        whole = reads_whole_graphs(specs, "graph_transformer")
        assert specs.source is not None
        width = config.d_model
        self.embedding_FX = nn.Parameter(nn.init.xavier_uniform_(torch.empty(specs.source.size, width)))
        self.blocks = nn.ModuleList(GraphTransformerBlock(config) for _ in range(config.layers))
        self.norm, self.dropout = nn.LayerNorm(width), Dropout(config.dropout)
        self.pool = GraphPooling(width, config.pooling) if whole else None
        self.output = nn.Linear(width, specs.target.size)
        self.rate, self.penalty = config.dropout, config.penalty

    def states(self, inputs: Graphs) -> Tensor:
        """(N, X): the last block's, normalized."""
        edges = Edges.of(inputs.source, inputs.target, inputs.nodes)
        x_NX = times_weight(inputs.features, self.embedding_FX, self.rate if self.training else 0.0)
        for block in self.blocks:
            x_NX = block(x_NX, edges)
        return self.norm(x_NX)

    def classify(self, inputs: Graphs) -> Tensor:
        """Logits (B, C)."""
        x_NX = self.states(inputs)
        if self.pool is not None:
            x_NX = self.pool(x_NX, inputs)
        elif inputs.chosen is not None:
            x_NX = x_NX.index_select(0, inputs.chosen)
        return self.output(self.dropout(x_NX))
