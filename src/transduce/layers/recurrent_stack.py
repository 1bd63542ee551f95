"""Stacks of recurrent cells: a forward stack for decoders, and encoders in either or both directions.

Shapes: B batch, T or S positions, D width of the input, I of a layer's input (D or H), H width of the states,
G = a cell's gates times H.
"""

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.core.registry import resolve
from transduce.layers.recurrent import Cell, CellParts, CellState, advance, parts_after, reversed_within, unroll

Direction = Literal["forward", "backward", "both"]
StackParts = tuple[CellParts, ...]  # one for every layer
StackState = tuple[CellState, ...]  # one for every layer


class RecurrentStack(nn.Module):
    """A forward stack of cells, each of which reads the outputs of the one below.

    Args:
        cell: name of a cell in `transduce.layers.recurrent`, or your own class as `my_file:MyCell`.
        input_width: D.
        width: H.
        layers: number of cells.
        residual: add each layer's input to its output, from the second layer on (Wu et al. 2016, section 3.1).
        dropout: dropout rate between layers, but not between time steps (Zaremba et al. 2014).

    Raises:
        InputError: there is no cell with this name.
    """

    def __init__(self, cell: str, input_width: int, width: int, layers: int, residual: bool, dropout: float) -> None:
        super().__init__()
        kind = resolve("layers.recurrent", cell)
        cells = [kind(width if layer else input_width, width) for layer in range(layers)]
        for each in cells:
            each.side = "decoder"
        self.cells: Iterable[Cell] = nn.ModuleList(cells)  # type: ignore[assignment]
        self.gates_width: int = cells[0].gates * width
        self.parts: int = cells[0].parts
        self.residual = residual
        self.dropout = Dropout(dropout)

    def project(self, x: Tensor) -> Tensor:
        """The input's contribution to the first layer's gates: (.., D) -> (.., G)."""
        first: Cell = next(iter(self.cells))
        return first.project(x)

    def begin(self, parts: StackParts) -> StackState:
        """The initial state with these parts (B, H) of each layer."""
        return tuple(cell.begin(each) for cell, each in zip(self.cells, parts, strict=True))

    def empty(self, rows: int) -> StackState:
        """The initial state of zeros, for `rows` sequences."""
        return tuple(cell.empty(rows) for cell in self.cells)

    def shortened(self, state: StackState, length: int) -> StackState:
        """The state with the last `length` entries of whatever grows with the positions."""
        return tuple(cell.shortened(each, length) for cell, each in zip(self.cells, state, strict=True))

    def read(self, x_BTD: Tensor, state: StackState) -> tuple[Tensor, StackState]:
        """The top layer's outputs (B, T, H) for T inputs after `state`, and the state after the last.

        Equals `extend` of `project` of the inputs but for rounding, and training gets it several times as fast.
        """
        first: Cell = next(iter(self.cells))
        output_BTH, after = advance(first, x_BTD, state[0])
        return self._above(output_BTH, after, state)

    def extend(self, projected_BTG: Tensor, state: StackState) -> tuple[Tensor, StackState]:
        """The same from the first cell's gates.

        Args:
            projected_BTG: `project` of the inputs, plus any other contribution to the first cell's gates.
            state: the state before these inputs.
        """
        first: Cell = next(iter(self.cells))
        parts, after = unroll(first, projected_BTG, state[0])
        return self._above(parts[0].to(projected_BTG.dtype), after, state)

    def _above(self, below_BTH: Tensor, first: CellState, state: StackState) -> tuple[Tensor, StackState]:
        """What the second and further cells make of the first one's outputs."""
        after = [first]
        _, *above = self.cells
        for cell, before in zip(above, state[1:], strict=True):
            output_BTH, last = advance(cell, self.dropout(below_BTH), before)
            output_BTH = output_BTH.to(below_BTH.dtype)
            below_BTH = below_BTH + output_BTH if self.residual else output_BTH
            after.append(last)
        return below_BTH, tuple(after)


class RecurrentEncoder(nn.Module):
    """An encoder with one state per word, and the last states, which represent the whole sentence.

        h_s = cell(x_s, h_{s-1})

    x_s is the word *at* s. (Some lecture notes feed e_{x_{s-1}} at step s, which would never read the last word.)

    - "backward" reads the words in reverse order (Sutskever et al. 2014), so that h_s follows h_{s+1}.
    - "both" gives each layer two cells of half the width, and h_s is the concatenation of their states (Bahdanau et al.
      2015, section 3.2). The next layer thus sees the whole sentence.

    Each sentence is reversed within its own length, so padding has no effect.

    Args:
        direction: "forward", "backward" or "both". For "both", H must be even.
        cell, input_width, width, layers, residual, dropout: see `RecurrentStack`.
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
        """The top layer's states (B, S, H), and the parts of each layer's state after each sentence's last word."""
        last = []
        x_BSI = embedded_BSD
        for layer, cells in enumerate(self.layers):
            output_BSH, after = self._read(cells, self.dropout(x_BSI) if layer else x_BSI, lengths_B)
            x_BSI = x_BSI + output_BSH if layer and self.residual else output_BSH
            last.append(after)
        return x_BSI, tuple(last)

    def states(self, embedded_BSD: Tensor, lengths_B: Tensor) -> Tensor:
        """The top layer's states (B, S, H) alone, which training gets several times as fast as with the last parts.

        They equal those of `forward` but for rounding.
        """
        x_BSI = embedded_BSD
        for layer, cells in enumerate(self.layers):
            below_BSI = self.dropout(x_BSI) if layer else x_BSI
            sides = [
                reversed_within(_from_zeros(cell, reversed_within(below_BSI, lengths_B)), lengths_B)
                if backward
                else _from_zeros(cell, below_BSI)
                for cell, backward in zip(cells, self.backward, strict=True)
            ]
            output_BSH = torch.cat(sides, -1).to(below_BSI.dtype)
            x_BSI = x_BSI + output_BSH if layer and self.residual else output_BSH
        return x_BSI

    def _read(self, cells: Iterable[Cell], x_BSI: Tensor, lengths_B: Tensor) -> tuple[Tensor, CellParts]:
        read, lasts = [], []
        for cell, backward in zip(cells, self.backward, strict=True):
            given_BSI = reversed_within(x_BSI, lengths_B) if backward else x_BSI
            projected_BSG = cell.project(given_BSI)
            parts, _ = unroll(cell, projected_BSG, cell.empty(len(x_BSI)))
            output_BSH = parts[0].to(projected_BSG.dtype)
            read.append(reversed_within(output_BSH, lengths_B) if backward else output_BSH)
            lasts.append(parts_after(parts, lengths_B))
        return torch.cat(read, -1), tuple(torch.cat(part, -1) for part in zip(*lasts, strict=True))


def _from_zeros(cell: Cell, x_BSI: Tensor) -> Tensor:
    """The outputs (B, S, H) after the state of zeros."""
    return advance(cell, x_BSI, cell.empty(len(x_BSI)))[0]
