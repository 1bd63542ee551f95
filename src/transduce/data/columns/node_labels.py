"""One of C labels for each node of a tree, or none."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from transduce.core.errors import InputError
from transduce.core.printable import PROBLEMS, first_of, quoted
from transduce.core.registry import suggest
from transduce.data.columns.label import NO_LABEL, AlignedLabels
from transduce.data.structures.labelled_trees import parse_labelled_tree


@dataclass(frozen=True)
class NodeLabels(AlignedLabels):
    """A tree a row, in brackets: the label of each node, every node behind its parts."""

    kind: ClassVar[str] = "node_labels"
    likelihood_unit: ClassVar[str] = "node"

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Raises InputError for what is no tree, and for unknown labels; all of them are named."""
        labels = (parse_labelled_tree(text).labels for text in texts)
        found = [[NO_LABEL if name is None else name for name in each] for each in labels]
        self._check(name for each in found for name in each)
        return [self._ids(each) for each in found]

    def ids(self, tokens: Sequence[str]) -> list[int]:
        self._check(tokens)
        return self._ids(tokens)

    def _ids(self, names: Sequence[str]) -> list[int]:
        return [len(self.labels) if name == NO_LABEL else self._places[name] for name in names]

    def _check(self, names: Iterable[str]) -> None:
        if wrong := [name for name in dict.fromkeys(names) if name not in self._places and name != NO_LABEL]:
            named = quoted(wrong, PROBLEMS)
            known = first_of(self.labels, PROBLEMS)
            raise InputError(f"expected labels among {known}; got {named}.{suggest(wrong[0], self.labels)}")
