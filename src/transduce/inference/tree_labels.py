"""From trees to the likeliest label of each of their nodes, by a model that classifies nodes.

Shapes: B trees of a batch, N nodes, C labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.core.errors import InputError, every
from transduce.data.columns import Columns
from transduce.data.structures.labelled_trees import LabelledTree, parse_labelled_tree
from transduce.inference.batch_predictor import counting, predict_in_batches
from transduce.inference.likelihood import Likelihood
from transduce.inference.prediction import Prediction
from transduce.inference.protocols import Advance
from transduce.models.protocols import LimitsParts
from transduce.search.settings import Search


@dataclass(frozen=True, repr=False)
class TreePrediction(Prediction):
    """The likeliest label of each node of a tree; `text` is the tree with these labels, in brackets.

    tokens: the labels, each node behind its parts. log_probability: of the root's label.
    probabilities: of every label at the root, the likeliest first. node_probabilities: of every node, likewise.
    """

    node_probabilities: tuple[dict[str, float], ...] = ()

    @property
    def label(self) -> str:
        """The root's likeliest."""
        return self.tokens[-1] if self.tokens else ""

    @property
    def probabilities(self) -> dict[str, float]:
        """Of each label at the root."""
        return self.node_probabilities[-1] if self.node_probabilities else {}

    @property
    def tree(self) -> LabelledTree:
        """The tree with its labels. Raises InputError for that of an empty text."""
        return parse_labelled_tree(self.text)

    def __repr__(self) -> str:
        return f"TreePrediction({self.label!r}, {self.text!r})"

    def details(self) -> dict[str, Any]:
        """The label of the root with its probabilities, and those of each node, every node behind its parts."""
        texts = self.tree.texts() if self.text else []
        each = zip(texts, self.tokens, self.node_probabilities, strict=True)
        nodes = [{"text": text, "label": label, "probability": known[label]} for text, label, known in each]
        return {"label": self.label, "probabilities": self.probabilities, "nodes": nodes}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"source": self.source, "text": self.text, **self.details(), "log_probability": self.log_probability}


@dataclass(frozen=True)
class TreeLabelPredictor:
    """Each node its likeliest label; see `transduce.inference.protocols.Predictor`."""

    columns: Columns

    def predict(
        self,
        model: Any,
        texts: Sequence[str],
        settings: Search | None = None,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> list[TreePrediction]:
        """One a tree, in their order; labels in the input are not read, and there is nothing to search.

        An empty text is answered by an empty one.

        Raises:
            InputError: what is no tree in brackets, or has phrases of more parts than the model reads.
        """
        trees = _readable(model, _parsed(texts))
        labels = self.columns["target"]
        names = labels.tokens(range(labels.spec.size))
        found = dict.fromkeys(range(len(texts)), TreePrediction("", "", 0.0, 0.0, (), ()))
        places = [place for place, tree in enumerate(trees) if tree]
        looked = self._looked(model, [texts[place] for place in places], batch_size, advance)
        for place, normed_NC in zip(places, looked, strict=True):
            tree = trees[place]
            assert tree is not None
            found[place] = _prediction(texts[place], tree, names, normed_NC)
        return [replace(found[place], source=text) for place, text in enumerate(texts)]

    def score(
        self, model: Any, pairs: Sequence[tuple[str, str]], batch_size: int = 64, advance: Advance | None = None
    ) -> list[Likelihood]:
        """The probability of the labels of each (tree, the same tree with labels), node by node.

        Raises:
            InputError: what is no tree, or none that the model reads; an unknown label; a tree with other words or
                phrases.
        """
        texts = [text for text, _ in pairs]
        columns, trees = self.columns["target"], _readable(model, _parsed(texts))
        problems = []
        for number, (tree, (_, labelled)) in enumerate(zip(trees, pairs, strict=True), 1):
            if tree is None or not tree.has_shape_of(parse_labelled_tree(labelled)):
                problems.append(f"pair {number}: expected the same tree on both sides, with labels on the second.")
        if problems:
            raise InputError(problems)
        targets = columns.encode([labelled for _, labelled in pairs])
        found = []
        for target, normed_NC in zip(targets, self._looked(model, texts, batch_size, advance), strict=True):
            known = [(node, each) for node, each in enumerate(target) if each < columns.spec.size]
            each = tuple(float(normed_NC[node, label]) for node, label in known)
            names = tuple(columns.tokens([label for _, label in known]))
            found.append(Likelihood(sum(each), len(each), names, each, "node"))
        return found

    def _looked(
        self, model: Any, texts: Sequence[str], batch_size: int, advance: Advance | None
    ) -> list[NDArray[np.float64]]:
        """The log-probabilities (N, C) of each tree."""
        reads = self.columns["source"]
        encoded = [np.asarray(ids, np.int32) for ids in reads.encode(texts)]

        def run(trees: Any) -> NDArray[np.float64]:
            normed_BNC: NDArray[np.float64] = model.classify(trees).double().log_softmax(-1).cpu().numpy()
            return normed_BNC

        lengths = [len(ids) for ids in encoded]
        found = predict_in_batches(model, encoded, reads.collate_texts, run, lengths, batch_size, counting(advance))
        return [normed_NC[:length] for normed_NC, length in zip(found, lengths, strict=True)]


def too_wide(max_parts: int, parts: int) -> str:
    """The message for a phrase of so many parts."""
    return (
        f"expected at most {max_parts} parts of a phrase, as this model reads; got {parts}. "
        'Models of any number: [model] kind = "tree_lstm" with cell = "child_sum", or "tree_transformer".'
    )


def _readable(model: Any, trees: list[LabelledTree | None]) -> list[LabelledTree | None]:
    """The same trees. Raises InputError where the model does not read so many parts of a phrase; all are named."""
    most = model.max_parts if isinstance(model, LimitsParts) else None
    widest = [max(tree.parts) if tree else 0 for tree in trees]
    problems = [
        (f"text {number}: " if len(trees) > 1 else "") + too_wide(most, parts)
        for number, parts in enumerate(widest, 1)
        if most is not None and parts > most
    ]
    if problems:
        raise InputError(problems)
    return trees


def _parsed(texts: Sequence[str]) -> list[LabelledTree | None]:
    """None for an empty text. Raises InputError for what is no tree; all are named."""
    return every(lambda text: parse_labelled_tree(text) if text.strip() else None, texts, "text")


def _prediction(text: str, tree: LabelledTree, names: Sequence[str], normed_NC: NDArray[np.float64]) -> TreePrediction:
    best_N = normed_NC.argmax(1)
    labels = tuple(names[each] for each in best_N.tolist())
    order_NC = np.argsort(-normed_NC, axis=1, kind="stable").tolist()
    each = tuple(
        {names[label]: value for label, value in zip(order, row[order].tolist(), strict=True)}
        for order, row in zip(order_NC, np.exp(normed_NC), strict=True)
    )
    values = tuple(normed_NC.max(1).tolist())
    labelled = str(replace(tree, labels=labels))
    return TreePrediction(text, labelled, values[-1], values[-1], labels, values, node_probabilities=each)
