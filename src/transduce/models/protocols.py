"""The contracts between models and everything else. Search, training, serving and exploring use only these.

A model encodes if it reads a source. Then it predicts and steps, one token after the other, or it fills or aligns, all
at once.

Shapes: B batch, S source positions, T target positions, V vocabulary, D width, F features a frame, N hidden words,
P places.

`memory` belongs to a source sentence, `state` to a hypothesis. Both are trees (tuples, lists, dicts, named tuples)
of tensors whose axis 0 is the batch, so that reordering a beam is one `select` over the tree, whatever the
architecture. State is returned, never kept on the module. A branch of a tree may
also be an object that reorders itself (`Reorders`): what many hypotheses share then need not be copied for each.
"""

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from torch import Tensor

from transduce.core.padded import Padded
from transduce.layers.fused_search import FusedSearch

# Tensor | Reorders | None | tuple[Tree, ...] | list[Tree] | dict[str, Tree]: said in words, as a recursive alias
# would confuse more.
Tree = Any
AnyTree = TypeVar("AnyTree")


@runtime_checkable
class Encodes(Protocol):
    """Reads a source."""

    def encode(self, source: Padded) -> Padded:
        """Source (B, S) or (B, S, F) -> states (B, S', D) with their lengths."""
        ...


@runtime_checkable
class Predicts(Protocol):
    """Scores a whole target at once, as training needs it. The loss is outside."""

    def __call__(self, source: Padded | None, target: Padded) -> Tensor:
        """Logits (B, T, V): `logits[:, t]` is for the token after `target[:, t]`, seeing target[:, :t + 1] only.

        source is None for a task that has none (language modelling).
        """
        ...


@runtime_checkable
class PredictsByProduct(Protocol):
    """Predicts, and its last step is a product with a matrix: the loss need not hold all logits then."""

    def before_logits(self, source: Padded | None, target: Padded) -> tuple[Tensor, Tensor] | None:
        """Hidden states (B, T, D) and a matrix (V, D): `hidden @ matrix.T` is what calling it gives. None: it is not.

        None depends on how the model is made alone.
        """
        ...


@runtime_checkable
class Steps(Protocol):
    """Predicts one token at a time, as search needs it."""

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, Tree]:
        """The memory of the source and the state before the first token, both for `rows` hypotheses (rows == B)."""
        ...

    def step(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        """token (B,) int64 -> log-probabilities (B, V) of the next token, and the state after it."""
        ...


@runtime_checkable
class HasFusedSearch(Protocol):
    """Steps, and may have a whole beam search in one call."""

    def fused_search(self, memory: Tree, longest: int) -> FusedSearch | None:
        """What writes and what it reads, `memory` being what `start` gave; None where it must be stepped.

        longest: the most tokens of an output.
        """
        ...


@runtime_checkable
class Fills(Protocol):
    """Writes a whole output at once, and again what of it is hidden. Training, likelihood and search ask it the same.

    An output is its words, without start and end: the length, which is told first, says where it ends.
    """

    def remember(self, source: Padded) -> Tree:
        """The memory of the source."""
        ...

    def lengths(self, memory: Tree, longest: int) -> Tensor:
        """(B, 1 + longest): the log-probability, above -inf, of outputs of 0 .. longest words."""
        ...

    def fill(self, target: Padded, hidden: Tensor, memory: Tree) -> Tensor:
        """Logits (N, V) of the N hidden words, row by row, each given all words (B, T) that are not hidden.

        hidden: (B, T) bool, True = hidden; none behind a row's end. What stands in a hidden place is not looked at.
        """
        ...


@runtime_checkable
class Aligns(Protocol):
    """Writes a whole output at once, into more places than it has tokens; see `transduce.layers.ctc`.

    The blank is the start token, which no output holds; the end token stands in no place.
    """

    def align(self, source: Padded, least: Tensor | None = None) -> Padded:
        """Logits (B, P, V) of what each place holds, and (B,) how many places each row has.

        least: (B,) each row has at least so many, as an output that is given may need; None = as many as its own.
        """
        ...


def stands_in(model: object, shortcut: str, method: str) -> bool:
    """Whether `shortcut` still does what `method` does: nobody has changed the latter alone, here or in a subclass."""
    places = (getattr(model, "__dict__", {}), *map(vars, type(model).__mro__))
    return shortcut in next((place for place in places if shortcut in place or method in place), {})


def writes_at_once(model: object) -> bool:
    """Whether a model fills or aligns, and so has no next token."""
    return isinstance(model, Fills | Aligns)


@runtime_checkable
class Reorders(Protocol):
    """A branch of a memory or state that reorders itself."""

    def reordered(self, rows: Tensor) -> Self:
        """What it is to the hypotheses `rows` (N,), in that order, repeats allowed; itself it stays as it was."""
        ...


def select(tree: AnyTree, rows: Tensor) -> AnyTree:
    """The rows `rows` (N,) of axis 0 of every tensor in `tree`, in that order, repeats allowed."""
    selected: AnyTree = map_tree(
        tree, lambda leaf: leaf.index_select(0, rows) if isinstance(leaf, Tensor) else leaf.reordered(rows)
    )
    return selected


def map_tree(tree: Any, change: Callable[[Any], Any]) -> Any:
    """`change` applied to every leaf of `tree`, a tensor or an object that reorders itself; None stays None."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {name: map_tree(branch, change) for name, branch in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(map_tree(branch, change) for branch in tree))
    if isinstance(tree, tuple | list):
        return type(tree)(map_tree(branch, change) for branch in tree)
    if isinstance(tree, Tensor) or hasattr(tree, "reordered"):  # a protocol takes 20 times as long to recognise
        return change(tree)
    raise TypeError(f"a state is a tree of tensors; this holds a {type(tree).__name__}")


@runtime_checkable
class Classifies(Protocol):
    """Gives each of C classes a score."""

    def classify(self, inputs: Tree) -> Tensor:
        """Logits (B, C), or of N things of each example (B, N, C)."""
        ...
