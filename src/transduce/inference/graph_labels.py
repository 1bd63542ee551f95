"""From nodes or graphs to their likeliest labels.

Shapes: N nodes, E edges, H heads, C labels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import log
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from transduce.attention.capture import capture
from transduce.core.graphs import Graphs
from transduce.data.structures.numbered_names import NumberedNames
from transduce.inference.labels import LabelPrediction, LabelPredictor
from transduce.inference.likelihood import Likelihood
from transduce.inference.protocols import Advance

TINIEST = 5e-324  # the least probability that a number holds


class EdgeTrace(NamedTuple):
    """What a model did with a graph.

    source, target: (E,) the node target[e] reads source[e]. layers: of each layer of attention the weights (E, H).
    chosen: the node that was asked for; None = the graph was. labels: (N, C) log-probabilities of each node's labels;
    None = the graph has the label. shares: (N,) how much each node counts for the graph, by attention pooling; None =
    it is pooled otherwise. names: (N,) what each node is called.
    """

    nodes: int
    source: Tensor
    target: Tensor
    layers: tuple[Tensor, ...]
    chosen: int | None = None
    labels: Tensor | None = None
    shares: Tensor | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class GraphLabelPrediction(LabelPrediction):
    """The likeliest label of a node or of a graph.

    trace: what attention did along the edges, computed when asked.
    label_names: in the order of their ids.
    """

    trace: Callable[[], EdgeTrace] | None = field(default=None, repr=False, compare=False)
    label_names: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """What is copied to other processes: no model."""
        return {**super().__getstate__(), "trace": None}


@dataclass(frozen=True)
class GraphLabelPredictor(LabelPredictor):
    """Each graph its likeliest label, or each node; also says how probable given labels are."""

    def completed(self, made: LabelPrediction, model: Any, names: Sequence[str]) -> GraphLabelPrediction:
        """With its trace."""
        trace = partial(traced, model, self.columns["source"], made.source)
        return GraphLabelPrediction(**vars(made), trace=trace, label_names=tuple(names))

    def score(
        self, model: Any, pairs: Sequence[tuple[str, str]], batch_size: int = 64, advance: Advance | None = None
    ) -> list[Likelihood]:
        """The likelihood of each label; see `transduce.inference.likelihood.Scores`."""
        labels = self.columns["target"]
        wanted = [labels.decode(np.asarray(ids).tolist()) for ids in labels.encode([label for _, label in pairs])]
        predictions = self.predict(model, [text for text, _ in pairs], None, batch_size, advance)
        found = []
        for label, prediction in zip(wanted, predictions, strict=True):
            value = log(max(prediction.probabilities[label], TINIEST))
            found.append(Likelihood(value, 1, (label,), (value,), "label"))
        return found


@dataclass(frozen=True)
class NodeLabelPredictor(GraphLabelPredictor):
    """Of nodes, all at once: each pass reads the whole graph anyway, and a node gets the same in any company."""

    def shown(self, text: str) -> str:
        """The name of the node, where it was asked for by its number."""
        names: NumberedNames = self.columns["source"].node_names  # type: ignore[attr-defined]
        node = names.find(text)
        return text if node is None else names.text(node)

    def together(self, batch_size: int, texts: int) -> int:
        """All of them."""
        return max(batch_size, texts)


@torch.inference_mode()
def traced(model: Any, column: Any, text: str) -> EdgeTrace:
    """What the attention of `model` does with one node, or one graph, of a column of these; on the processor."""
    [row] = column.encode([text])
    graphs: Graphs = column.collate_texts([np.asarray(row)]).to(next(model.parameters()).device)
    chosen, labels, shares = None, None, None
    if graphs.chosen is not None:
        chosen = int(graphs.chosen[0])
        graphs = graphs._replace(chosen=torch.arange(graphs.nodes, device=graphs.source.device))
    with capture(model) as record:
        logits_NC = model.eval().classify(graphs)
    if chosen is not None:
        labels = logits_NC.double().log_softmax(-1).cpu()
    elif pooled := [record[name][0] for name in record.of("other") if len(record[name][0]) == graphs.nodes]:
        shares = pooled[0].float().flatten().cpu()
    layers = tuple(record[name][0].float().cpu() for name in record.of("edge"))
    names = column.names_in(text)
    return EdgeTrace(graphs.nodes, graphs.source.cpu(), graphs.target.cpu(), layers, chosen, labels, shares, names)
