"""A tree with the label that a model gives to each node: coloured, in notebooks, on the page and in the terminal.

Colours go from orange over grey to blue in the order of the labels' names, so that degrees such as 0 to 4 are a scale.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.tree import Tree

from transduce.core.templates import render
from transduce.data.structures.labelled_trees import LabelledTree
from transduce.data.structures.trees import WORD, Bracket, ParseTree, parse_tree
from transduce.inference.prediction import Prediction
from transduce.inference.tree_labels import TreePrediction

if TYPE_CHECKING:
    from transduce.interpret.attention import Attention


LETTER = 7.2  # pixels that a letter takes
GAP, LINE, EDGE = 14, 40, 16  # pixels between words, from phrase to phrase, and around the tree
TEMPLATE = Path(__file__).with_name("tree_drawing.html.jinja")


@dataclass
class TreeNode:
    """A phrase or a word of a drawing. above: the index of its phrase, -1 for none. x, y: of its middle, in pixels.

    colour: what it stands on, as #rrggbb; "" = nothing.
    """

    text: str
    tag: str
    depth: int
    above: int
    is_word: bool
    x: float = 0.0
    y: float = 0.0
    colour: str = ""


@dataclass(frozen=True)
class TreeDrawing:
    """A tree with its root at the top and its words in one line at the bottom."""

    tree: ParseTree

    @classmethod
    def of(cls, prediction: Prediction, attention: "Attention | None" = None) -> Self:
        """The picture of a prediction whose text is a tree in brackets."""
        return cls(parse_tree(prediction.text))

    def nodes(self) -> list[TreeNode]:
        """With their places, each phrase before what is in it."""
        return placed(self.tree)

    def to_dict(self) -> dict[str, Any]:
        """For the page: phrases and words with their places in pixels, each phrase before what is in it."""
        nodes = self.nodes()
        known = ("text", "tag", "above", "is_word", "x", "y", "colour")
        return {"text": str(self.tree), "nodes": [{name: getattr(node, name) for name in known} for node in nodes]}

    def svg(self) -> str:
        """The picture; self-contained, without scripts. A word tells its tag on hovering, if it has one."""
        nodes = self.nodes()
        width = round(max(node.x + LETTER * cell_len(node.text) / 2 for node in nodes) + EDGE)
        height = round(max(node.y for node in nodes) + EDGE)
        edges = [(nodes[node.above], node) for node in nodes if node.above >= 0]
        return render(
            TEMPLATE, tree=str(self.tree), nodes=nodes, edges=edges, width=width, height=height, line=LINE, wide=wide
        )

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg()}</div>'

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Tree]:
        branches: list[Tree] = []
        for node in self.nodes():
            text = (
                f"{node.tag} {node.text}" if node.tag and (node.is_word or not node.colour) else node.tag or node.text
            )
            style = f"#1d2433 on {node.colour}" if node.colour else "" if node.is_word else "bold"
            label = console.render_str(text, markup=False, emoji=False, highlight=False, style=style)
            branches.append(Tree(label) if node.above < 0 else branches[node.above].add(label))
            if node.above < 0 and len(branches) > 1:
                yield branches[-1]
        yield branches[0]


def wide(node: TreeNode) -> float:
    """What its colour takes, in pixels."""
    return LETTER * cell_len(node.text) + GAP / 2


def nodes_of(tree: ParseTree) -> list[TreeNode]:
    """Phrases and words, each phrase before what is in it."""
    found: list[TreeNode] = []
    opened = [-1]
    for label, place in tree.events():
        if label is None and place is None:
            opened.pop()
            continue
        depth, above = len(opened) - 1, opened[-1]
        if place is not None:
            tag = tree.tags[place]
            found.append(TreeNode(tree.words[place], "" if tag == WORD else tag, depth, above, True))
        else:
            opened.append(len(found))
            found.append(TreeNode(str(label), "", depth, above, False))
    return found


def placed(tree: ParseTree) -> list[TreeNode]:
    """`nodes_of` with their places: words side by side, a phrase over the middle of what is in it."""
    found = nodes_of(tree)
    bottom = max(node.depth for node in found)
    right = float(EDGE)
    for node in (node for node in found if node.is_word):
        widest, above = cell_len(node.text), node.above
        while above >= 0 and sum(each.above == above for each in found) == 1:  # phrases of this word alone
            widest, above = max(widest, cell_len(found[above].text)), found[above].above
        node.x = right + LETTER * widest / 2
        right += LETTER * widest + GAP
    below: list[list[float]] = [[] for _ in found]
    for number in range(len(found) - 1, -1, -1):
        node = found[number]
        node.x = node.x if node.is_word else (min(below[number]) + max(below[number])) / 2
        node.y = EDGE + LINE * (bottom if node.is_word else node.depth)
        if node.above >= 0:
            below[node.above].append(node.x)
    return found


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
