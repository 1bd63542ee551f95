"""A tree with the label that a model gives to each node: coloured, in notebooks, on the page and in the terminal.

Colours go from orange over grey to blue in the order of the labels' names, so that degrees such as 0 to 4 are a scale.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from transduce.data.structures.labelled_trees import LabelledTree
from transduce.data.structures.trees import Bracket, ParseTree
from transduce.inference.prediction import Prediction
from transduce.inference.tree_labels import TreePrediction
from transduce.interpret.tree_drawing import TreeDrawing, TreeNode

if TYPE_CHECKING:
    from transduce.interpret.attention import Attention

SCALE = ((0xEE, 0x8A, 0x5C), (0xE8, 0xE8, 0xE8), (0x6F, 0xB1, 0xE0))  # dark letters can be read on all of it


@dataclass(frozen=True)
class LabelledTreeDrawing(TreeDrawing):
    """A phrase stands as its label, a word as itself.

    labels: all that the model knows. likely: how likely each node's label is, every node behind its parts.
    """

    labelled: LabelledTree
    labels: tuple[str, ...]
    likely: tuple[float, ...]

    @classmethod
    def of(cls, prediction: Prediction, attention: "Attention | None" = None) -> Self:
        """The picture of a prediction of labels."""
        assert isinstance(prediction, TreePrediction)
        tree, known = prediction.tree, prediction.node_probabilities
        likely = tuple(each[label] for each, label in zip(known, prediction.tokens, strict=True))
        return cls(as_phrases(tree), tree, tuple(sorted(prediction.probabilities)), likely)

    def nodes(self) -> list[TreeNode]:
        """With their colours, and with the label of a word and all probabilities as tags."""
        found = super().nodes()
        for node, place in zip(found, phrases_first(self.labelled), strict=True):
            label = self.labelled.labels[place] or ""
            node.colour = colour_of(label, self.labels)
            node.tag = f"{label} ({self.likely[place]:.0%})"
        return found


def phrases_first(tree: LabelledTree) -> list[int]:
    """The places of the nodes with each phrase before what is in it."""
    below: list[list[int]] = []
    waiting: list[int] = []
    for place, count in enumerate(tree.parts):
        below.append(waiting[len(waiting) - count :])
        del waiting[len(waiting) - count :]
        waiting.append(place)
    found, left = [], [len(tree) - 1]
    while left:
        found.append(left.pop())
        left += below[found[-1]][::-1]
    return found


def as_phrases(tree: LabelledTree) -> ParseTree:
    """The same tree; the label of a word is its tag."""
    before = [0]  # how many words come before a node
    for word in tree.words:
        before.append(before[-1] + (word is not None))
    firsts, named = tree.first_nodes(), [label or "" for label in tree.labels]
    words = [place for place, word in enumerate(tree.words) if word is not None]
    phrases = (place for place in phrases_first(tree) if tree.words[place] is None)
    return ParseTree(
        tuple(str(tree.words[place]) for place in words),
        tuple(named[place] for place in words),
        tuple(Bracket(named[place], before[firsts[place]], before[place]) for place in phrases),
    )


def colour_of(label: str, labels: Sequence[str]) -> str:
    """As #rrggbb; "" for none of the labels."""
    if label not in labels:
        return ""
    part = 2 * labels.index(label) / max(1, len(labels) - 1)
    one, other = SCALE[min(int(part), 1)], SCALE[min(int(part), 1) + 1]
    mixed = (round(a + (b - a) * (part - min(int(part), 1))) for a, b in zip(one, other, strict=True))
    return "#" + "".join(f"{each:02x}" for each in mixed)
