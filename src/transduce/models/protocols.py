"""The protocols that models implement. Search, training, serving and interpretation use only these.

A model with a source implements `Encodes`. A model that writes one token after the other implements `Predicts` and
`Steps`; a model that writes all tokens at once implements `Fills` or `Aligns`.

Shapes: B batch, S source positions, T target positions, V vocabulary, D width, F features per frame, N hidden words,
P places.

`memory` belongs to a source sentence, `state` to a hypothesis. Both are trees (tuples, lists, dicts, named tuples) of
tensors whose axis 0 is the batch, so search can reorder a beam of any architecture with one `select` over the tree.
State is returned, never stored on the module. A leaf may also be an object that reorders itself (`Reorders`), so that
hypotheses can share tensors instead of copying them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from torch import Tensor

from transduce.core.padded import Padded
from transduce.layers.crf import LinearChain
from transduce.layers.external_memory import MemoryTrace
from transduce.layers.fused_search import FusedSearch

# Tensor | Reorders | None | tuple[Tree, ...] | list[Tree] | dict[str, Tree]. A recursive alias would be harder to read.
Tree = Any
AnyTree = TypeVar("AnyTree")


@runtime_checkable
class Encodes(Protocol):
    """Encodes a source."""

    def encode(self, source: Padded) -> Padded:
        """Source (B, S) or (B, S, F) -> states (B, S', D) with their lengths."""
        ...


@runtime_checkable
class Predicts(Protocol):
    """Scores a whole target at once, for training. The loss is computed elsewhere."""

    def __call__(self, source: Padded | None, target: Padded) -> Tensor:
        """Logits (B, T, V), where `logits[:, t]` predicts the token after `target[:, t]` from `target[:, :t + 1]`.

        source is None for tasks without a source (language modelling).
        """
        ...


@runtime_checkable
class PredictsByProduct(Protocol):
    """Predicts, with a matrix product as its last step, so the loss can be computed without holding all logits."""

    def before_logits(self, source: Padded | None, target: Padded) -> tuple[Tensor, Tensor] | None:
        """Hidden states (B, T, D) and a matrix (V, D) such that `hidden @ matrix.T` are the logits of a call.

        None if the logits are not such a product. This depends only on the model's settings, not on the input.
        """
        ...


@runtime_checkable
class PredictsJointly(Protocol):
    """Predicts, and with a `ctc_weight` above 0 also aligns by its encoder alone; see `transduce.layers.ctc`.

    The blank is the start token, as of `Aligns`. With a weight of 0, only `Predicts` is promised.
    """

    ctc_weight: float

    def joint_logits(self, source: Padded, target: Padded) -> tuple[Tensor, Padded]:
        """The logits (B, T, V) of a call, and those of `align_encoder`, from one pass of the encoder."""
        ...

    def align_encoder(self, source: Padded) -> Padded:
        """Logits (B, P, V) of each position of the encoder, and the number of positions (B,) of each row."""
        ...


@runtime_checkable
class Stateful(Protocol):
    """Predicts a running text window by window, and carries its state from one window to the next."""

    def initial_state(self, rows: int) -> Tree:
        """The state before the first window.

        Raises:
            InputError: with these settings of the model, no state can be carried over; which, and what to do.
        """
        ...

    def extend(self, target: Padded, state: Tree, memory: int) -> tuple[Tensor, Tensor, Tree]:
        """`before_logits` of the next window: hidden states and matrix; and the state after the window.

        Args:
            target: the tokens of the window.
            state: what `initial_state` or the window before gave.
            memory: how many positions a state that grows with them keeps, the last ones.
        """
        ...


@runtime_checkable
class Steps(Protocol):
    """Predicts one token at a time, for search."""

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, Tree]:
        """The memory of the source, and the state before the first token, both for `rows` hypotheses (rows == B)."""
        ...

    def step(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        """token (B,) int64 -> log-probabilities (B, V) of the next token, and the state after it."""
        ...


class Prefix(NamedTuple):
    """What a model says of tokens that its outputs begin with.

    following_BT: the log-probability of the token that follows each, fp32. words: the size of the vocabulary.
    state: the state after the last one.
    """

    following_BT: Tensor
    words: int
    state: Tree


@runtime_checkable
class Prefills(Protocol):
    """Steps, and may be able to read all tokens that outputs begin with in one pass."""

    def prefill(self, token: Tensor, following: Tensor) -> Prefix | None:
        """What as many steps say, bit for bit; None if the tokens must be read step by step.

        Args:
            token: (B, T) int64, from the start token on.
            following: (B, T) int64, the token after each.
        """
        ...


@runtime_checkable
class StepsWithHidden(Protocol):
    """Steps, and also gives the vector from which it predicts a token, before the output layer."""

    def step_hidden(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tensor, Tree]:
        """Hidden states (B, D), and what `step` returns: log-probabilities (B, V), and the state after `token`."""
        ...


@runtime_checkable
class HasFusedSearch(Protocol):
    """Steps, and may be able to run a whole beam search in one call."""

    def fused_search(self, memory: Tree, longest: int) -> FusedSearch | None:
        """A fused search for this memory; None if search must go step by step.

        Args:
            memory: the result of `start`.
            longest: maximum number of tokens of an output.
        """
        ...


@runtime_checkable
class Fills(Protocol):
    """Predicts the hidden words of an output, all at once. Training, likelihood and search use the same methods.

    The output consists of words without start and end tokens. Its length is predicted first.
    """

    def remember(self, source: Padded) -> Tree:
        """The memory of the source."""
        ...

    def lengths(self, memory: Tree, longest: int) -> Tensor:
        """(B, 1 + longest): the log-probabilities, all finite, of outputs of 0 .. longest words."""
        ...

    def fill(self, target: Padded, hidden: Tensor, memory: Tree) -> Tensor:
        """Logits (N, V) of the N hidden words, row by row, given all words that are not hidden.

        Args:
            target: words (B, T). The ids of hidden words are ignored.
            hidden: (B, T) bool, True = hidden; False after the end of a row.
            memory: the result of `remember`.
        """
        ...


@runtime_checkable
class Aligns(Protocol):
    """Writes a whole output at once, into more places than it has tokens; see `transduce.layers.ctc`.

    The blank is the start token, which occurs in no output. The end token is never in a place.
    """

    def align(self, source: Padded, min_places: Tensor | None = None) -> Padded:
        """Logits (B, P, V) of each place, and the number of places (B,) of each row.

        Args:
            source: the source.
            min_places: (B,), how many places each row has at least, for a given output; None = the model's own number.
        """
        ...


def stands_in(model: object, shortcut: str, method: str) -> bool:
    """Whether `shortcut` still matches `method`: False if a subclass or instance overrides `method` only."""
    places = (getattr(model, "__dict__", {}), *map(vars, type(model).__mro__))
    return shortcut in next((place for place in places if shortcut in place or method in place), {})


def writes_at_once(model: object) -> bool:
    """Whether a model implements `Fills` or `Aligns`, and so predicts no next token."""
    return isinstance(model, Fills | Aligns)


@runtime_checkable
class Reorders(Protocol):
    """A leaf of a memory or state that reorders itself."""

    def reordered(self, rows: Tensor) -> Self:
        """A new object for the hypotheses `rows` (N,), in that order, repeats allowed; `self` is not changed."""
        ...


def select(tree: AnyTree, rows: Tensor) -> AnyTree:
    """The rows `rows` (N,) of axis 0 of every tensor in `tree`, in that order, repeats allowed."""
    return map_tree(tree, lambda leaf: leaf.index_select(0, rows) if isinstance(leaf, Tensor) else leaf.reordered(rows))


def map_tree(tree: Any, change: Callable[[Any], Any]) -> Any:
    """`change` applied to every leaf of `tree`: a tensor or an object that reorders itself. None stays None.

    Raises:
        TypeError: a leaf is something else.
    """
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
class LimitsPositions(Protocol):
    """The settings of a model that has vectors for so many positions of its source; None = for any number."""

    @property
    def most_positions(self) -> int | None: ...


@runtime_checkable
class LimitsParts(Protocol):
    """Reads trees, in which a phrase has so many parts at most; None = any number."""

    max_parts: int | None


@runtime_checkable
class Classifies(Protocol):
    """Gives each of C classes a score."""

    def classify(self, inputs: Tree) -> Tensor:
        """Logits (B, C), or of N things of each example (B, N, C)."""
        ...


@runtime_checkable
class LabelsWords(Protocol):
    """Classifies each word of a text, and knows which labels follow each other.

    crf: whether the scores of `chain` are learnt, and `classify` gives log p(y_n | x) of the whole row of labels.
    """

    crf: bool
    chain: LinearChain

    def emissions(self, inputs: Tree) -> Tensor:
        """(B, N, C) scores of the labels of each word by itself."""
        ...


@runtime_checkable
class ScoresSpans(Protocol):
    """Scores each span of a sentence as each of C phrases, of which the first is none, and each word's tags.

    See `transduce.layers.tree_crf` for the trees that these scores make probable.
    """

    def word_states(self, inputs: Tree) -> Tensor:
        """(B, N, H): what is known of each word."""
        ...

    def span_scores(self, states_BNH: Tensor, length_B: Tensor) -> Tensor:
        """(B, N, N, C), by the first and the last word of a span, of sentences with so many words (B,)."""
        ...

    def tag_scores(self, states_BNH: Tensor) -> Tensor:
        """(B, N, G): logits of each word's tags."""
        ...


@runtime_checkable
class Penalizes(Protocol):
    """Classifies, and wants something besides of its parameters in training."""

    def classify_with_penalty(self, inputs: Tree) -> tuple[Tensor, Tensor | None]:
        """What `classify` gives, and (B,) what training adds to the loss of each example; None = nothing."""
        ...


@runtime_checkable
class FollowsUpdates(Protocol):
    """Trains otherwise in some updates than in others, as their numbers say; so a resumed training does the same."""

    def begin_update(self, update: int) -> None:
        """Told the number of an update, from 1, before its batches are read."""
        ...


@runtime_checkable
class Processes(Protocol):
    """Reads a sequence of vectors, and says something after each of them."""

    def initial(self, rows: int) -> Tree:
        """The state before the first vector of `rows` sequences."""
        ...

    def process(self, x_BTF: Tensor, state: Tree) -> tuple[Tensor, Tree]:
        """Logits (B, T, O) after each of T vectors (B, T, F) that follow `state`, and the state after the last.

        What follows a vector changes nothing of its logits, so sequences may be padded at their ends.
        """
        ...


@runtime_checkable
class HasMemory(Protocol):
    """Processes vectors with an external memory, and can show what it did."""

    @property
    def memory_size(self) -> tuple[int, int]:
        """Slots, and the width of one."""
        ...

    def trace(self, x_BTF: Tensor) -> MemoryTrace:
        """What its heads wrote and read at each step of sequences (B, T, F), where, and what the memory held then."""
        ...


@runtime_checkable
class HoldsParts(Protocol):
    """The settings of a model whose memory holds so many parts of an input, and no more."""

    def holding(self, parts: int) -> Self:
        """With room for `parts`."""
        ...


@runtime_checkable
class Points(Protocol):
    """Says where in a text a span begins and ends."""

    def point(self, inputs: Tree) -> tuple[Tensor, Tensor]:
        """Logits (B, S) of the first and of the last token; -inf behind the end of a text."""
        ...


@runtime_checkable
class PredictsMasked(Protocol):
    """Predicts hidden tokens of a text from all others."""

    def predict_masked(self, inputs: Padded, hidden_BS: Tensor) -> Tensor:
        """Ids (B, S), and which of them are hidden -> logits (N, V) of those, row by row."""
        ...


@runtime_checkable
class Embeds(Protocol):
    """Gives a whole text one vector."""

    def embed_text(self, inputs: Tree) -> Tensor:
        """(B, H)."""
        ...
