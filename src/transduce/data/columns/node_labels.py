"""One of C labels for each node of a tree, or none."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from transduce.core.errors import InputError
from transduce.core.printable import PROBLEMS, first_of, quoted
from transduce.core.registry import suggest
from transduce.data.collate import NodeTargets, padded
from transduce.data.columns.label import Label
from transduce.data.columns.protocols import ColumnSpec
from transduce.data.store import Ids
from transduce.data.structures.labelled_trees import parse_labelled_tree

NO_LABEL = ""  # the token of a node that has none


@dataclass(frozen=True)
class NodeLabels(Label):
    """A tree a row, in brackets: the label of each node, every node behind its parts. The id C means none."""

    kind: ClassVar[str] = "node_labels"
    likelihood_unit: ClassVar[str] = "node"

    @property
    def spec(self) -> ColumnSpec:
        return ColumnSpec(self.kind, len(self.labels), ids=len(self.labels) + 1)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Raises InputError for what is no tree, and for unknown labels; all of them are named."""
        labels = (parse_labelled_tree(text).labels for text in texts)
        found = [[NO_LABEL if name is None else name for name in each] for each in labels]
        self._check(name for each in found for name in each)
        return [self._ids(each) for each in found]

    def decode(self, ids: Sequence[int]) -> str:
        """The labels between spaces; _ where there is none."""
        return " ".join(name or "_" for name in self.tokens(ids))

    def tokens(self, ids: Sequence[int]) -> list[str]:
        return [NO_LABEL if each == len(self.labels) else self.labels[each] for each in ids]

    def ids(self, tokens: Sequence[str]) -> list[int]:
        self._check(tokens)
        return self._ids(tokens)

    def collate(self, rows: Sequence[Ids]) -> Any:
        ids = padded(rows, len(self.labels))
        return NodeTargets(ids._replace(values=torch.where(ids.values < len(self.labels), ids.values, -1)))

    collate_texts = collate

    def closed(self, ids: Sequence[int]) -> list[int]:
        """Those of nodes that have a label."""
        return [each for each in ids if each < len(self.labels)]

    def _ids(self, names: Sequence[str]) -> list[int]:
        return [len(self.labels) if name == NO_LABEL else self._places[name] for name in names]

    def _check(self, names: Iterable[str]) -> None:
        if wrong := [name for name in dict.fromkeys(names) if name not in self._places and name != NO_LABEL]:
            named = quoted(wrong, PROBLEMS)
            known = first_of(self.labels, PROBLEMS)
            raise InputError(f"expected labels among {known}; got {named}.{suggest(wrong[0], self.labels)}")
