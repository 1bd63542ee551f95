"""Where the nodes of a graph stand in a picture: as far apart as there are edges between them, as well as that can be.

Stress majorization (Gansner, Koren, North 2004), from a tree drawn in rings; nothing in it is random.

Shapes: N nodes, E edges.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

STEPS = 200
Array = NDArray[Any]


def laid_out(nodes: int, source: Array, target: Array, centre: int | None = None) -> Array:
    """(N, 2) places, with edges about 1 long.

    Args:
        centre: the node in the middle; None = the one from which no other is far.
    """
    apart_NN = distances(nodes, source, target)
    known = np.where(np.isinf(apart_NN), -1, apart_NN)
    unreached = known.max() + 1.0
    apart_NN = np.where(np.isinf(apart_NN), unreached, apart_NN)
    middle = int(apart_NN.max(1).argmin()) if centre is None else centre
    places = _rings(apart_NN, middle)
    weight_NN = 1 / np.maximum(apart_NN, 1) ** 2
    np.fill_diagonal(weight_NN, 0)
    total_N1 = np.maximum(weight_NN.sum(1, keepdims=True), 1e-9)
    for _ in range(STEPS):
        toward = places[:, None] - places[None]
        length_NN = np.maximum(np.linalg.norm(toward, axis=-1), 1e-9)
        wanted = places[None] + toward * (apart_NN / length_NN)[..., None]
        moved = (weight_NN[..., None] * wanted).sum(1) / total_N1
        places = places + 0.7 * (moved - places) if nodes > 1 else places
    return places - places[middle]


def distances(nodes: int, source: Array, target: Array) -> Array:
    """(N, N) how many edges are between two nodes, in any direction; infinity where no path is."""
    linked = np.zeros((nodes, nodes), bool)
    linked[source, target] = linked[target, source] = True
    found = np.full((nodes, nodes), np.inf)
    np.fill_diagonal(found, 0)
    reached, steps = np.eye(nodes, dtype=bool), 0
    while True:
        steps += 1
        fresh = ((reached.astype(np.float32) @ linked.astype(np.float32)) > 0) & np.isinf(found)
        if not fresh.any():
            return found
        found[fresh], reached = steps, fresh


def _rings(apart_NN: Array, middle: int) -> Array:
    """(N, 2): a tree from the middle, each node in the ring of its distance, in the sector of the one before it."""
    away = apart_NN[middle]
    order = np.argsort(away, kind="stable")
    above = {int(n): int(np.argmax((apart_NN[n] == 1) & (away == away[n] - 1))) for n in order if away[n] > 0}
    below: dict[int, list[int]] = {int(n): [] for n in order}
    for node, parent in above.items():
        below[parent if apart_NN[node, parent] == 1 else middle].append(node)
    leaves = {int(n): 1.0 for n in order}
    for node in order[::-1].tolist():
        leaves[node] = max(1.0, sum(leaves[each] for each in below[node]))
    places, sector = np.zeros((len(away), 2)), {middle: (0.0, 2 * np.pi)}
    for node in order.tolist():
        begin, end = sector[node]
        angle = (begin + end) / 2
        places[node] = away[node] * np.array([np.cos(angle), np.sin(angle)])
        for each in below[node]:
            width = (end - sector[node][0]) * leaves[each] / leaves[node]
            sector[each] = (begin, begin + width)
            begin += width
    return places
