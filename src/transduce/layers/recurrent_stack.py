"""Recurrent cells on top of each other: for a decoder, which goes forward, and as an encoder, in either direction.

Shapes: B batch, T or S positions, D width of the input, I of a layer's input (D or H), H width of the states,
G = a cell's gates times H.
"""

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.core.registry import resolve
from transduce.layers.recurrent import Cell, CellParts, CellState, parts_after, reversed_within, unroll

Direction = Literal["forward", "backward", "both"]
StackParts = tuple[CellParts, ...]  # of every layer
StackState = tuple[CellState, ...]  # of every layer


class RecurrentStack(nn.Module):
    """`layers` cells, each reading the states of the one below: it knows the past alone, as a decoder must.

    Args:
        cell: the name of a cell of `transduce.layers.recurrent`, or a user's own.
        input_width: D.
        width: H.
        layers: number of cells.
        residual: a layer's input is added to its output, from the second layer on (Wu et al. 2016, section 3.1).
        dropout: rate on what goes from one layer to the next (Zaremba et al. 2014), never on the way through time.
    """

    def __init__(self, cell: str, input_width: int, width: int, layers: int, residual: bool, dropout: float) -> None:
        super().__init__()
        kind = resolve("layers.recurrent", cell)
        cells = [kind(width if layer else input_width, width) for layer in range(layers)]
        self.cells: Iterable[Cell] = nn.ModuleList(cells)  # type: ignore[assignment]
        self.gates_width: int = cells[0].gates * width
        self.parts: int = cells[0].parts
        self.residual = residual
        self.dropout = Dropout(dropout)

    def project(self, x: Tensor) -> Tensor:
        """What the first layer makes of its input alone: (.., D) -> (.., G)."""
        first: Cell = next(iter(self.cells))
        return first.project(x)

    def begin(self, parts: StackParts) -> StackState:
        """The state that these parts of each layer, (B, H), are the whole past of."""
        return tuple(cell.begin(each) for cell, each in zip(self.cells, parts, strict=True))

    def empty(self, rows: int) -> StackState:
        """The state before anything was read."""
        return tuple(cell.empty(rows) for cell in self.cells)

    def extend(self, projected_BTG: Tensor, state: StackState) -> tuple[Tensor, StackState]:
        """T more inputs after `state`: the top layer's outputs (B, T, H), and the state after the last.

        Args:
            projected_BTG: `project` of the inputs, and whatever else enters the first cell.
        """
        after = []
        below = projected_BTG
        for layer, (cell, before) in enumerate(zip(self.cells, state, strict=True)):
            given_BTG = cell.project(self.dropout(below)) if layer else below
            parts, last = unroll(cell, given_BTG, before)
            output_BTH = parts[0].to(projected_BTG.dtype)
            below = below + output_BTH if layer and self.residual else output_BTH
            after.append(last)
        return below, tuple(after)


class RecurrentEncoder(nn.Module):
    """Reads a sentence: one state a word, and the last states, which are what it has understood of the whole.

        h_s = cell(x_s, h_{s-1})

    x_s is the word *at* s: some lecture notes feed e_{x_{s-1}} at step s, which reads each word one step late and
    never the last one. Read backward (the order of words reversed, as Sutskever et al. 2014 do it) h_s follows
    h_{s+1}. In both directions each layer has two cells of half the width, and h_s is the two states at s side by side
    (Bahdanau et al. 2015, section 3.2), so that the next layer sees the whole sentence.

    Each sentence is reversed within its own length: padding is read after the last word, by nobody.

    Args:
        direction: "forward", "backward" or "both"; then H must be even.
    The others are those of `RecurrentStack`.
    """

    def __init__(
        self,
        cell: str,
        input_width: int,
        width: int,
        layers: int,
        residual: bool,
        dropout: float,
        direction: Direction,
    ) -> None:
        super().__init__()
        kind = resolve("layers.recurrent", cell)
        self.backward = {"forward": [False], "backward": [True], "both": [False, True]}[direction]
        widths = [width if layer else input_width for layer in range(layers)]
        directions = len(self.backward)
        self.layers: Iterable[Iterable[Cell]] = nn.ModuleList(  # type: ignore[assignment]
            nn.ModuleList(kind(below, width // directions) for _ in self.backward) for below in widths
        )
        self.residual = residual
        self.dropout = Dropout(dropout)

    def forward(self, embedded_BSD: Tensor, lengths_B: Tensor) -> tuple[Tensor, StackParts]:
        """The top layer's states (B, S, H), and the parts of every layer's state after each sentence's last word."""
        last = []
        x_BSI = embedded_BSD
        for layer, cells in enumerate(self.layers):
            output_BSH, after = self._read(cells, self.dropout(x_BSI) if layer else x_BSI, lengths_B)
            x_BSI = x_BSI + output_BSH if layer and self.residual else output_BSH
            last.append(after)
        return x_BSI, tuple(last)

    def _read(self, cells: Iterable[Cell], x_BSI: Tensor, lengths_B: Tensor) -> tuple[Tensor, CellParts]:
        outputs, lasts = [], []
        for cell, backward in zip(cells, self.backward, strict=True):
            given_BSI = reversed_within(x_BSI, lengths_B) if backward else x_BSI
            projected_BSG = cell.project(given_BSI)
            parts, _ = unroll(cell, projected_BSG, cell.empty(len(x_BSI)))
            output_BSH = parts[0].to(projected_BSG.dtype)
            outputs.append(reversed_within(output_BSH, lengths_B) if backward else output_BSH)
            lasts.append(parts_after(parts, lengths_B))
        return torch.cat(outputs, -1), tuple(torch.cat(part, -1) for part in zip(*lasts, strict=True))
