"""Graph attention networks (Velickovic et al. 2018): nodes read their neighbors, weighted by additive attention.

    q = k = v = W h,   e_ts = LeakyReLU(a . [q_t ; k_s]),   alpha = softmax over the neighbors s of t
    h'_t = ELU(o_t^1 ; .. ; o_t^H),   o_t^h = sum_s alpha_ts^h v_s^h

Heads are joined in hidden layers. For labels of nodes the last layer's heads are averaged, and are the logits. For
labels of graphs all layers are hidden ones, and what a graph's nodes say together is pooled and classified.

With `jumping` the output reads the states of all hidden layers (jumping knowledge; Xu et al. 2018, section 4). With
`virtual_node` each graph has a node more, between every two layers (Gilmer et al. 2017, section 5.2):

    v <- ELU(U [v ; mean_t h_t] + c),   h_t <- h_t + v

Pooling: the nodes of each graph become one vector.

Shapes: N nodes, F features, B graphs or chosen nodes, H heads, D width of a head, X width of a layer's input or output,
C labels, E edges.
"""

from abc import ABC, abstractmethod
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from transduce.attention.capture import Role, Side, active_record
from transduce.attention.dropout import Dropout
from transduce.attention.edges import AdditiveEdgeScore, DotEdgeScore, EdgeAttention, Edges, edge_softmax, times_weight
from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.core.graphs import Graphs, SparseRows
from transduce.data.columns import Specs

GraphPoolingKind = Literal["mean", "sum", "max", "attention"]


class GraphPooling(nn.Module):
    """Mean, sum or maximum of a graph's nodes; or their mean by the weights softmax_n(q . tanh(W x_n)).

    A capture records the weights of attention pooling, (N, 1).
    """

    role: Role = "other"
    side: Side = "encoder"

    def __init__(self, width: int, kind: GraphPoolingKind) -> None:
        super().__init__()
        self.kind = kind
        self.key = nn.Linear(width, width) if kind == "attention" else None
        self.query = nn.Linear(width, 1, bias=False) if kind == "attention" else None

    def forward(self, x_NX: Tensor, graphs: Graphs) -> Tensor:
        """(B, X)."""
        starts = torch.cat([graphs.sizes.new_zeros(1), graphs.sizes.cumsum(0)])
        if self.kind == "max":
            return torch.segment_reduce(x_NX, "max", offsets=starts, axis=0)
        graph_N = graphs.graph_of_each()
        if self.key is not None and self.query is not None:
            edges = Edges(torch.arange(len(x_NX), device=x_NX.device), graph_N, starts)
            alpha_N1 = edge_softmax(self.query(self.key(x_NX).tanh()), edges)
            if (record := active_record()) is not None:
                record.take(self, alpha_N1)
            x_NX = x_NX * alpha_N1.to(x_NX.dtype)
        sum_BX = x_NX.new_zeros(len(graphs.sizes), x_NX.shape[1]).index_add(0, graph_N, x_NX)
        return sum_BX / graphs.sizes[:, None] if self.kind == "mean" else sum_BX


class GraphAttentionConfig(Config):
    """Sizes and parts; the defaults are the paper's for Cora."""

    kind: Literal["graph_attention"] = "graph_attention"
    layers: int = Field(default=2, ge=1)
    """Of attention; for labels of nodes, the last one gives the logits."""
    heads: int = Field(default=8, ge=1)
    """Of each hidden layer; they are joined."""
    d_head: int = Field(default=8, ge=1)
    """Width of a head of a hidden layer."""
    output_heads: int = Field(default=1, ge=1)
    """Of the layer that gives the logits of nodes; they are averaged."""
    score: Literal["additive", "dot"] = "additive"
    """How well an edge's nodes go together: additive = the paper's, with LeakyReLU; dot = their scaled dot product."""
    slope: float = Field(default=0.2, ge=0)
    """Of LeakyReLU below 0."""
    dropout: float = Field(default=0.6, ge=0, lt=1)
    """Of each layer's inputs."""
    attention_dropout: float = Field(default=0.6, ge=0, lt=1)
    """Of attention weights: so many neighbors are not read."""
    value_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Of what a node reads of its neighbors, after the projection, as in the authors' program."""
    residual: bool = False
    """Whether a layer's input, projected where widths differ, is added to its output."""
    jumping: Literal["last", "concat", "max"] = "last"
    """Jumping knowledge: whether the output reads the last hidden layer alone, or all of them, concatenated or by their
    maximum."""
    virtual_node: bool = False
    """Whether each graph has a virtual node between every two layers, which reads all its nodes and is read by them."""
    penalty: float = Field(default=5e-4, ge=0)
    """Weight in the training loss of half the sum of all squared weights (L2 regularization)."""
    pooling: GraphPoolingKind = "mean"
    """How the nodes of a graph become one vector, for labels of graphs."""


class GraphAttentionLayer(nn.Module):
    """One layer: project, attend, join or average the heads."""

    def __init__(self, config: GraphAttentionConfig, width: int, heads: int, d_head: int, joined: bool) -> None:
        super().__init__()
        self.heads, self.joined, self.rate = heads, joined, config.dropout
        self.weight_XX = nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, heads * d_head)))
        out = heads * d_head if joined else d_head
        self.bias_X = nn.Parameter(torch.zeros(out))
        score: nn.Module = DotEdgeScore()
        if config.score == "additive":
            score = AdditiveEdgeScore(heads, d_head, config.slope)
        self.attention = EdgeAttention(score, config.attention_dropout)
        self.value_dropout = Dropout(config.value_dropout)
        self.skip_XX = None
        if config.residual:
            self.skip_XX = nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, out)))

    def forward(self, x: Tensor | SparseRows, edges: Edges) -> Tensor:
        """(N, H D), or (N, D) where heads are averaged; before the nonlinearity."""
        rate = self.rate if self.training else 0.0
        projected_NHD = times_weight(x, self.weight_XX, rate).view(len(x), self.heads, -1)
        read_NHD = self.attention(projected_NHD, projected_NHD, self.value_dropout(projected_NHD), edges)
        out_NX = (read_NHD.flatten(1) if self.joined else read_NHD.mean(1)) + self.bias_X
        return out_NX if self.skip_XX is None else out_NX + times_weight(x, self.skip_XX, rate)


class VirtualNode(nn.Module):
    """A node of each graph that reads all of its nodes, and that they read."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mean = GraphPooling(width, "mean")
        self.update = nn.Linear(2 * width, width)

    def forward(self, x_NX: Tensor, state_BX: Tensor | None, graphs: Graphs) -> tuple[Tensor, Tensor]:
        """The states of the nodes, and of these nodes; state_BX: before, None = zeros."""
        mean_BX = self.mean(x_NX, graphs)
        before_BX = torch.zeros_like(mean_BX) if state_BX is None else state_BX
        state_BX = F.elu(self.update(torch.cat((before_BX, mean_BX), 1)))
        return x_NX + state_BX[graphs.graph_of_each()], state_BX


class PenalizedClassifier(nn.Module, ABC):
    """One whose penalty is `penalty` times half the sum of all squared weights."""

    penalty: float

    @abstractmethod
    def classify(self, inputs: Graphs) -> Tensor:
        """Logits (B, C)."""

    def classify_with_penalty(self, inputs: Graphs) -> tuple[Tensor, Tensor | None]:
        """Logits (B, C), and the same penalty for each example, (B,); None where it is 0."""
        logits_BC = self.classify(inputs)
        if not self.penalty:
            return logits_BC, None
        total = torch.stack([weight.square().sum() for weight in self.parameters()]).sum()
        return logits_BC, (self.penalty / 2 * total).expand(len(logits_BC))


class GraphAttention(PenalizedClassifier):
    """Encodes, and classifies nodes or graphs (see `transduce.models.protocols`).

    Raises:
        InputError: the columns are not graphs, or nodes, and a label.
    """

    Config = GraphAttentionConfig

    def __init__(self, config: GraphAttentionConfig, specs: Specs) -> None:
        super().__init__()
        whole = reads_whole_graphs(specs, "graph_attention")
        assert specs.source is not None
        width, hidden, labels = specs.source.size, config.heads * config.d_head, specs.target.size
        count = config.layers if whole else config.layers - 1
        self.layers = nn.ModuleList(
            GraphAttentionLayer(config, hidden if place else width, config.heads, config.d_head, joined=True)
            for place in range(count)
        )
        self.virtual = nn.ModuleList(VirtualNode(hidden) for _ in range(count - whole if config.virtual_node else 0))
        self.jumping = config.jumping
        read = hidden * count if config.jumping == "concat" else hidden
        self.last = None
        if not whole:
            self.last = GraphAttentionLayer(config, read if count else width, config.output_heads, labels, joined=False)
        self.pool = GraphPooling(read, config.pooling) if whole else None
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(read, labels) if whole else None
        self.penalty = config.penalty

    def states(self, inputs: Graphs) -> Tensor:
        """(N, X): of each node its logits, or where graphs are classified the states that `jumping` says."""
        edges = Edges.of(inputs.source, inputs.target, inputs.nodes)
        x: Tensor | SparseRows = inputs.features
        hidden, state_BX = list[Tensor](), None
        for place, layer in enumerate(self.layers):
            hidden.append(F.elu(layer(x, edges)))
            x = hidden[-1]
            if place < len(self.virtual):
                x, state_BX = self.virtual[place](x, state_BX, inputs)
        if self.jumping == "concat" and hidden:
            x = torch.cat(hidden, 1)
        elif self.jumping == "max" and hidden:
            x = torch.stack(hidden).amax(0)
        if self.last is not None:
            x = self.last(x, edges)
        assert isinstance(x, Tensor)
        return x

    def classify(self, inputs: Graphs) -> Tensor:
        """Logits (B, C)."""
        x_NX = self.states(inputs)
        if self.pool is None or self.output is None:
            assert inputs.chosen is not None
            return x_NX.index_select(0, inputs.chosen)
        return self.output(self.dropout(self.pool(x_NX, inputs)))


def reads_whole_graphs(specs: Specs, kind: str) -> bool:
    """Whether graphs are classified, and not single nodes.

    Raises:
        InputError: the columns are neither graphs nor nodes, or the output is no label.
    """
    if specs.source is None or specs.source.kind not in ("graph", "node") or specs.target.kind != "label":
        raise InputError(
            f'[model] kind = "{kind}": expected a task with graphs and labels, such as "node_classification"; got '
            "another one."
        )
    return specs.source.kind == "graph"
