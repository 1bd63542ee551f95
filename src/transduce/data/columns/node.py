"""A node of one graph, which the column holds: its features and edges go into the model file.

Shapes: N nodes, E edges, F features, B chosen nodes.
"""

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.graphs import Graphs, SparseRows
from transduce.data.columns.graph import NO_TOKENS, NO_WORDS, ring
from transduce.data.columns.protocols import Column, ColumnSpec
from transduce.data.store import Ids
from transduce.data.structures.numbered_names import NumberedNames

LIMIT = 900_000  # characters of a graph in a model file, whose table of columns holds a million
SPARSE = 0.25  # of the features are not 0, at most, where zeros are left out
ARRAYS = {"source": np.int32, "target": np.int32, "columns": np.int32, "values": np.float32, "row_starts": np.int32}


@dataclass(frozen=True, eq=False)
class Node(Column):
    """A node a row, by its name or its number from 0.

    width: F. source, target: (E,) as `transduce.core.graphs.Graphs` has them. columns, values, row_starts: of the
    features that are not 0, row by row. names: see `NumberedNames`.
    """

    kind: ClassVar[str] = "node"
    length_unit: ClassVar[str] = "node"
    without_tokens: ClassVar[str] = NO_TOKENS
    without_words: ClassVar[str] = NO_WORDS
    width: int
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    row_starts: NDArray[np.int32]
    names: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], tokenizer: object = None) -> Self:
        """What `to_dict` gave. Raises InputError for anything else."""
        width = table.get("width")
        try:
            arrays = {name: _unpacked(str(table[name]), ARRAYS[name]) for name in ARRAYS}
            names = _unpacked_names(str(table["names"])) if "names" in table else ()
        except (KeyError, ValueError, binascii.Error, zlib.error):
            raise InputError("the model file's graph: expected its edges and features; they are damaged.") from None
        if type(width) is not int or not _fits(width, arrays):
            raise InputError("the model file's graph: expected edges between its nodes, and features that it has.")
        if names and (
            len(names) != len(arrays["row_starts"]) - 1 or len({*filter(None, names)}) < sum(map(bool, names))
        ):
            raise InputError("the model file's graph: expected a name for each node, all different.")
        return cls(width, **arrays, names=names)

    @property
    def nodes(self) -> int:
        """N."""
        return len(self.row_starts) - 1

    @property
    def spec(self) -> ColumnSpec:
        """How many features a node has."""
        return ColumnSpec(self.kind, self.width)

    @property
    def stored(self) -> int:
        """Its number."""
        return 1 << 31

    @classmethod
    def drawn(cls, length: int, size: int, generator: torch.Generator) -> Graphs:
        """A ring of nodes, all of which are asked for."""
        return ring(length, size, generator)._replace(chosen=torch.arange(length))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The number of each node. Raises InputError for what is none; the first of them are named."""
        return [[node] for node in self.node_names.encode(texts)]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.tokens(ids))

    def tokens(self, ids: Sequence[int]) -> list[str]:
        return [self.node_names.text(int(each)) for each in ids]

    def ids(self, tokens: Sequence[str]) -> list[int]:
        return [each for [each] in self.encode(tokens)]

    def collate(self, rows: Sequence[Ids]) -> Graphs:
        """The graph, of which these nodes are chosen."""
        return self.graph._replace(chosen=torch.from_numpy(np.concatenate(rows).astype(np.int64)))

    collate_texts = collate

    def to_dict(self) -> dict[str, Any]:
        """The whole graph, as packed arrays.

        Raises:
            InputError: a model file does not hold that much.
        """
        packed = {name: _packed(getattr(self, name), dtype) for name, dtype in ARRAYS.items()}
        packed |= {"names": _text("\n".join(self.names).encode())} if self.names else {}
        if (size := sum(map(len, packed.values()))) > LIMIT:
            raise InputError(
                f"the graph takes {size:,} characters in a model file; expected at most {LIMIT:,}. Give it fewer "
                "edges, features or names."
            )
        return {"width": self.width, **packed}

    @cached_property
    def node_names(self) -> NumberedNames:
        """What the nodes are called."""
        return NumberedNames(self.nodes, self.names)

    def names_in(self, text: str) -> tuple[str, ...]:
        """(N,) what each node is called, in pictures of the node that `text` names."""
        return tuple(self.tokens(range(self.nodes)))

    @cached_property
    def graph(self) -> Graphs:
        """As a model reads it, without chosen nodes."""
        source, target = (torch.from_numpy(each.astype(np.int64)) for each in (self.source, self.target))
        return Graphs(self._features(), source, target, torch.tensor([self.nodes]))

    def _features(self) -> Tensor | SparseRows:
        columns, starts = (torch.from_numpy(each.astype(np.int64)) for each in (self.columns, self.row_starts))
        values = torch.from_numpy(self.values.copy())
        if len(self.values) <= SPARSE * self.nodes * self.width:
            return SparseRows.of(columns, values, starts, self.width)
        dense_NF = torch.zeros(self.nodes, self.width)
        dense_NF[torch.repeat_interleave(torch.arange(self.nodes), starts.diff()), columns] = values
        return dense_NF


def _fits(width: int, arrays: Mapping[str, Any]) -> bool:
    """Whether no number points to what there is not."""
    starts, columns, ends = arrays["row_starts"], arrays["columns"], (arrays["source"], arrays["target"])
    if len(starts) < 2 or starts[0] != 0 or starts[-1] != len(columns) or (np.diff(starts) < 0).any():
        return False
    known = all(((each >= 0) & (each < len(starts) - 1)).all() for each in ends)
    inside = ((columns >= 0) & (columns < width)).all() and len(columns) == len(arrays["values"])
    return bool(width >= 1 and known and inside and len(ends[0]) == len(ends[1]) and (np.diff(ends[1]) >= 0).all())


def _packed(array: NDArray[Any], dtype: Any) -> str:
    return _text(array.astype(np.dtype(dtype).newbyteorder("<")).tobytes())


def _unpacked(text: str, dtype: Any) -> Any:
    """Raises ValueError for more than a model file's graph can be."""
    return np.frombuffer(_raw(text), np.dtype(dtype).newbyteorder("<")).astype(dtype)


def _unpacked_names(text: str) -> tuple[str, ...]:
    """Raises ValueError likewise, and where they are no text."""
    return tuple(_raw(text).decode().split("\n"))


def _text(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw, 9)).decode()


def _raw(text: str) -> bytes:
    stream = zlib.decompressobj()
    raw = stream.decompress(base64.b64decode(text, validate=True), 1 << 28)
    if not stream.eof:
        raise ValueError
    return raw
