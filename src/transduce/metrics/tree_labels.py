"""Accuracy over the nodes of trees, and the labels at their roots."""

from collections.abc import Sequence
from contextlib import suppress

from transduce.core.errors import InputError
from transduce.data.structures.labelled_trees import LabelledTree, parse_labelled_tree
from transduce.metrics.score import References, checked_references
from transduce.metrics.tally import Tally


def node_accuracy_tally(hypotheses: Sequence[str], references: References) -> Tally:
    """The share, in per cent, of nodes with the label that they have in the reference. Those without one do not count.

    An output that is no tree over the reference's words and phrases has no node right.

    Raises:
        InputError: a reference that is no tree, or several for one output; no sentences, not equally many.
    """
    import numpy as np

    listed = checked_references(hypotheses, references)
    if any(len(several) > 1 for several in listed):
        raise InputError("node_accuracy: expected one tree as the reference of each output; got several.")
    counts = [_right(said, parse_labelled_tree(true)) for said, [true] in zip(hypotheses, listed, strict=True)]
    return Tally(
        "node accuracy",
        "nrefs:1|unit:node|case:mixed",
        np.array(counts, np.float64),
        lambda sums_2: 100 * float(sums_2[0]) / float(sums_2[1]) if sums_2[1] else 0.0,
    )


def root_label(text: str) -> str:
    """Of a tree in brackets, "" if it has none; of anything else the text itself, which may be a label."""
    if not text.lstrip().startswith("("):
        return text.strip()
    tree = _tree(text)
    return (tree and tree.label) or ""


def _right(output: str, true: LabelledTree) -> tuple[int, int]:
    """How many nodes have the right label, and how many have one."""
    known = sum(label is not None for label in true.labels)
    tree = _tree(output)
    if tree is None or not tree.has_shape_of(true):
        return 0, known
    pairs = zip(tree.labels, true.labels, strict=True)
    return sum(label is not None and one == label for one, label in pairs), known


def _tree(text: str) -> LabelledTree | None:
    with suppress(InputError):
        return parse_labelled_tree(text)
    return None
