"""Tree-LSTM (Tai et al. 2015): the state of a phrase from the states of its parts, and a label for every node.

child_sum, equations 2 to 8, for any number of parts in any order:

    h~_j = sum_k h_k,   i, o = sigma(W x_j + U h~_j + b),   u = tanh(W x_j + U h~_j + b),   f_jk = sigma(U h_k + b)
    c_j = i u + sum_k f_jk c_k,   h_j = o tanh(c_j)

binary, equations 9 to 14, for a first and a second part, each with matrices of its own:

    i, o, u as above of W x_j + U_1 h_1 + U_2 h_2 + b,   f_jk = sigma(U_k1 h_1 + U_k2 h_2 + b)

Words have an x and no parts, phrases have parts and no x: their W x_j is 0, so that no forget gate has a W.

In which order the nodes of a batch of trees are computed: level by level, each level of all trees at once.

Level 0 is the words; a phrase is one level above its highest part. Each level's states are cut into pieces by the level
of the phrase that they go to, so that every state is moved once.

Shapes: B batch, N nodes, D width of embeddings, H width of states, C labels, M nodes of a level, P parts of its nodes
that have most, K all nodes, L levels.
"""

from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.data.columns.tree_nodes import Forest, check_trees
from transduce.kernels.matmul import Linear
from transduce.layers.embedding import Embedding, hide_words

Numbers = NDArray[np.int64]


class TreeLstmConfig(Config):
    """The sizes."""

    kind: Literal["tree_lstm"] = "tree_lstm"
    cell: Literal["child_sum", "binary"] = "binary"
    """How parts become a phrase: by the sum of their states, or each by matrices of its own, at most two of them."""
    d_model: int = Field(default=300, ge=1)
    """Width of a word's embedding."""
    hidden: int = Field(default=150, ge=1)
    """Width of the states."""
    dropout: float = Field(default=0.5, ge=0, lt=1)
    """Of embeddings, and of states in front of the labels."""
    word_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Whole words that training hides."""


class TreeLstm(nn.Module):
    """Classifies every node (see `transduce.models.protocols`).

    Raises:
        InputError: the columns are not trees and labels of their nodes.
    """

    Config = TreeLstmConfig

    def __init__(self, config: TreeLstmConfig, specs: Specs) -> None:
        super().__init__()
        source = check_trees(specs, "tree_lstm")
        self.cell = config.cell
        self.max_parts = 2 if config.cell == "binary" else None
        self.source_embedding = Embedding(source.size, config.d_model)
        self.word_dropout, self.dropout = config.word_dropout, Dropout(config.dropout)
        width = config.hidden
        self.word = Linear(config.d_model, 3 * width)  # W of i, o, u, and their b
        slots = 1 if config.cell == "child_sum" else 2
        self.phrase = Linear(slots * width, 3 * width, bias=False)  # U of i, o, u
        self.forget = Linear(slots * width, slots * width)
        for projection in (self.word, self.phrase, self.forget):
            nn.init.xavier_uniform_(projection.weight)
        nn.init.zeros_(self.word.bias)
        nn.init.ones_(self.forget.bias)
        self.output = nn.Linear(width, specs.target.size)

    def classify(self, inputs: Forest) -> Tensor:
        """Logits (B, N, C)."""
        return self.output(self.dropout(self.states(inputs)))

    def states(self, inputs: Forest) -> Tensor:
        """(B, N, H): h of each node.

        Raises:
            InputError: the cell is binary, and a node has three parts or more.
        """
        order = plan(inputs.parents, inputs.numbers, inputs.heights)
        made: list[Tensor] = []
        waiting: list[list[Tensor]] = [[] for _ in range(len(order.levels) + 1)]  # states by the level they go to
        for number, level in enumerate(order.levels):
            if level.parts is None:
                both_M2H = self._words(inputs, order.places, sum(level.pieces))
            else:
                both_M2H = self._phrases(torch.cat(waiting[number]), level.parts)
            made.append(both_M2H[:, 0])
            pieces = both_M2H.split(level.pieces)  # type: ignore[no-untyped-call]
            for goes, piece in enumerate(pieces):
                if len(piece):
                    waiting[goes].append(piece)
        return torch.cat(made)[order.places]

    def _words(self, inputs: Forest, places_BN: Tensor, count: int) -> Tensor:
        """(M, 2, H): h and c of all words, in the order of their places."""
        word_BN = (inputs.heights.values == 0) & inputs.heights.mask()
        ids_M = torch.empty(count, dtype=torch.int64, device=places_BN.device)
        ids_M[places_BN[word_BN]] = inputs.words.values[word_BN].clamp(min=0)
        embedded_MD = self.dropout(self.source_embedding(ids_M))
        return _states(self.word(hide_words(embedded_MD, self.word_dropout if self.training else 0.0)), None)

    def _phrases(self, arrived_K2H: Tensor, parts_MP: Tensor) -> Tensor:
        """(M, 2, H): h and c of the phrases of a level, from those of all its parts."""
        has_MP1 = (parts_MP >= 0)[..., None]
        both_MP2H = arrived_K2H[parts_MP.clamp(min=0)] * has_MP1[..., None]
        h_MPH, c_MPH = both_MP2H.unbind(2)
        if self.cell == "child_sum":
            gates_MG = self.phrase(h_MPH.sum(1))
            forget_MPH = self.forget(h_MPH)
        else:
            if parts_MP.shape[1] > 2:
                raise InputError(
                    f'[model] cell = "binary": expected at most 2 parts of a phrase; got {parts_MP.shape[1]}. '
                    'Use cell = "child_sum".'
                )
            if parts_MP.shape[1] == 1:  # no phrase of this level has a second part
                h_MPH, c_MPH = (torch.cat((each, torch.zeros_like(each)), 1) for each in (h_MPH, c_MPH))
            sides_MG = h_MPH.flatten(1)
            gates_MG = self.phrase(sides_MG)
            forget_MPH = self.forget(sides_MG).unflatten(1, (2, -1))
        return _states(gates_MG + self.word.bias, (forget_MPH.sigmoid() * c_MPH).sum(1))


def _states(gates_MG: Tensor, kept_MH: Tensor | None) -> Tensor:
    """(M, 2, H): h and c, from the sums in front of i, o and u, and what is kept of the parts."""
    input_MH, output_MH, update_MH = gates_MG.chunk(3, -1)
    c_MH = input_MH.sigmoid() * update_MH.tanh()
    c_MH = c_MH if kept_MH is None else c_MH + kept_MH
    return torch.stack((output_MH.sigmoid() * c_MH.tanh(), c_MH), 1)


class Level(NamedTuple):
    """A level, the words' included.

    parts: (M, P) the places of each node's parts among all states that arrive here; -1 = it has fewer. None for words.
    pieces: how many of its states go to each level; the last number is those of roots, which go nowhere.
    """

    parts: Tensor | None
    pieces: list[int]


class TreePlan(NamedTuple):
    """levels: from the words upwards. places: (B, N) of each node among the states of all levels; 0 for padding."""

    levels: list[Level]
    places: Tensor


def plan(parents: Padded, numbers: Padded, heights: Padded) -> TreePlan:
    device, real_BN = parents.values.device, parents.mask().cpu().numpy()
    parent_K, number_K, height_K = (each.values.cpu().numpy()[real_BN] for each in (parents, numbers, heights))
    starts_B = np.cumsum(real_BN.sum(1)) - real_BN.sum(1)
    above_K = np.where(parent_K >= 0, parent_K + np.repeat(starts_B, real_BN.sum(1)), -1)
    last = int(height_K.max()) + 1
    goes_K = np.where(above_K >= 0, height_K[above_K], last)  # the level of the phrase
    made, arrives = np.lexsort((goes_K, height_K)), np.lexsort((height_K, goes_K))
    made_K, arrival_K = np.empty_like(made), np.empty_like(arrives)
    made_K[made], arrival_K[arrives] = np.arange(len(made)), np.arange(len(made))
    firsts_L = np.searchsorted(height_K[made], np.arange(last + 1))
    arrived_L = np.searchsorted(goes_K[arrives], np.arange(last + 1))
    below_K = np.flatnonzero(above_K >= 0)
    levels = []
    for level in range(last):
        nodes = made[firsts_L[level] : firsts_L[level + 1]]
        pieces = np.bincount(goes_K[nodes], minlength=last + 1).tolist()
        parts = None
        if level:
            here = below_K[goes_K[below_K] == level]
            parts_MP: Numbers = np.full((len(nodes), int(number_K[here].max()) + 1), -1, np.int64)
            parts_MP[made_K[above_K[here]] - firsts_L[level], number_K[here]] = arrival_K[here] - arrived_L[level]
            parts = torch.from_numpy(parts_MP).to(device)
        levels.append(Level(parts, pieces))
    places_BN: Numbers = np.zeros(real_BN.shape, np.int64)
    places_BN[real_BN] = made_K
    return TreePlan(levels, torch.from_numpy(places_BN).to(device))
