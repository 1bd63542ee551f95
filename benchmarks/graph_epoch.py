"""An epoch of GAT on Cora, forward and backward, beside the same layers from all pairs of nodes under a mask.

    python benchmarks/graph_epoch.py [--recipe recipes/cora.toml] [--epochs 20]

Prints milliseconds an epoch of both, on one thread, and the greatest difference of their losses without dropout.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.core.graphs import Graphs
from transduce.data.columns import Specs
from transduce.models.graph_attention import GraphAttention, GraphAttentionLayer
from transduce.recipe.recipe import load_recipe
from transduce.tasks.node_classification import NodeClassification


def dense(layer: GraphAttentionLayer, x: Tensor, mask: Tensor) -> Tensor:
    """As one writes it from the paper: a loop over heads, scores of all pairs, a mask, a softmax."""
    heads = []
    for head, weight in enumerate(layer.weight_XX.chunk(layer.heads, 1)):
        h = F.dropout(x, layer.rate, layer.training) @ weight
        score = layer.attention.score
        e = F.leaky_relu((h @ score.query_HK[head])[:, None] + (h @ score.key_HK[head])[None], 0.2)
        alpha = e.masked_fill(~mask, -torch.inf).softmax(1)
        heads.append(F.dropout(alpha, layer.attention.dropout.rate, layer.training) @ h)
    return (torch.cat(heads, 1) if layer.joined else torch.stack(heads).mean(0)) + layer.bias_X


def main() -> None:
    """Both by turns, after one of each that is not counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", type=Path, default=Path("recipes/cora.toml"))
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    recipe = load_recipe(options.recipe)
    columns = NodeClassification.learn_columns(recipe.tokenizer, recipe.data)
    graph: Graphs = columns["source"].graph._replace(chosen=torch.arange(140))
    model = GraphAttention(recipe.model, Specs(columns["source"].spec, columns["target"].spec))
    mask = torch.zeros(graph.nodes, graph.nodes, dtype=torch.bool)
    mask[graph.target, graph.source] = True
    sparse = graph.features
    x = torch.zeros(graph.nodes, sparse.width)
    x[torch.repeat_interleave(torch.arange(graph.nodes), sparse.row_starts.diff()), sparse.columns] = sparse.values
    labels = torch.arange(140) % columns["target"].spec.size

    def ours() -> Tensor:
        return F.cross_entropy(model.classify(graph), labels)

    def plain() -> Tensor:
        hidden = F.elu(dense(model.layers[0], x, mask))
        return F.cross_entropy(dense(model.last, hidden, mask)[:140], labels)

    model.eval()
    difference = abs(float(ours()) - float(plain()))
    model.train()
    times: dict[str, list[float]] = {"edges": [], "dense mask": []}
    for epoch in range(options.epochs + 1):
        for name, loss in (("edges", ours), ("dense mask", plain)):
            seconds = timed(loss)
            if epoch:
                times[name].append(seconds)
        model.zero_grad()
    for name, each in times.items():
        print(f"{name}: {1000 * statistics.median(each):.1f} ms an epoch (median of {len(each)})")
    ratio = statistics.median(times["dense mask"]) / statistics.median(times["edges"])
    print(f"{ratio:.1f} times as fast; the losses differ by {difference:.1e}")


def timed(loss: Callable[[], Tensor]) -> float:
    """Seconds of one pass forward and backward."""
    begun = time.perf_counter()
    loss().backward()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
