"""A phrase-structure tree as a picture: SVG for notebooks and files, lines in the terminal."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.tree import Tree

from transduce.core.templates import render
from transduce.data.structures.trees import WORD, ParseTree, parse_tree
from transduce.inference.prediction import Prediction

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
