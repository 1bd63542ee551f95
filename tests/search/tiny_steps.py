"""Tiny models that step, and slow searches written from the definitions, for the tests of this room."""

import math
from collections.abc import Iterator, Sequence
from itertools import product

import torch
from torch import Tensor

from transduce.core.padded import Padded
from transduce.models.protocols import Steps, Tree

START, END = 0, 1


class PrefixTable:
    """Next-token probabilities looked up by the whole prefix; the state is the prefix. Reads no source."""

    def __init__(self, rows: dict[tuple[int, ...], Sequence[float]], otherwise: Sequence[float]) -> None:
        self.rows = rows
        self.otherwise = otherwise

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, Tree]:
        return None, torch.empty(rows, 0, dtype=torch.int64)

    def step(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        prefix_NT = torch.cat([state, token[:, None]], dim=1)
        probabilities = [self.rows.get(tuple(row[1:]), self.otherwise) for row in prefix_NT.tolist()]
        return torch.tensor(probabilities, dtype=torch.float64).log(), prefix_NT


class RandomTree:
    """A random distribution for every source and prefix: a rolling hash of both picks it from a table."""

    ROWS = 9973

    def __init__(self, vocabulary: int, seed: int, peaked: float = 2.0) -> None:
        generator = torch.Generator().manual_seed(seed)
        logits = peaked * torch.randn(self.ROWS, vocabulary, generator=generator, dtype=torch.float64)
        self.table = logits.log_softmax(dim=1)

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, Tree]:
        if source is None:
            return None, {"hash": torch.full((rows,), 7)}
        total_B = (source.values * source.mask()).sum(dim=1)
        return (total_B,), {"hash": total_B * 31 + source.lengths}

    def step(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        after_N = (state["hash"] * 1009 + token * 101 + 17) % 1_000_003
        if memory is not None:  # so that rows of memory and state that do not belong together show
            after_N = (after_N + memory[0]) % 1_000_003
        return self.table[after_N % self.ROWS], {"hash": after_N}


class TinyAttention:
    """A recurrent cell that attends to its embedded source: padded memory, state a tuple."""

    def __init__(self, vocabulary: int, seed: int, width: int = 8) -> None:
        generator = torch.Generator().manual_seed(seed)

        def random(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64) / math.sqrt(width)

        self.embed_VD, self.read_VD = 3 * random(vocabulary, width), 3 * random(vocabulary, width)
        self.inner_DD, self.context_DD, self.out_DV = (
            random(width, width),
            random(width, width),
            random(width, vocabulary),
        )

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, Tree]:
        assert source is not None
        memory_BSD = self.read_VD[source.values]
        return (memory_BSD, source.mask()), (self.inner_DD.new_zeros(rows, len(self.inner_DD)), None)

    def step(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        memory_NSD, mask_NS = memory
        hidden_ND, _ = state
        score_NS = torch.einsum("nd,nsd->ns", hidden_ND, memory_NSD).masked_fill(~mask_NS, -torch.inf)
        context_ND = torch.einsum("ns,nsd->nd", score_NS.softmax(dim=1), memory_NSD)
        hidden_ND = torch.tanh(self.embed_VD[token] + hidden_ND @ self.inner_DD + context_ND @ self.context_DD)
        return (4 * hidden_ND @ self.out_DV).log_softmax(dim=1), (hidden_ND, None)


class Counted:
    """A model with a record of how many rows each step had."""

    def __init__(self, model: Steps) -> None:
        self.model = model
        self.rows: list[int] = []

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, Tree]:
        return self.model.start(source, rows)

    def step(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        self.rows.append(len(token))
        return self.model.step(token, memory, state)


def padded(sources: Sequence[Sequence[int]]) -> Padded:
    """Sources as one batch; behind each stands a token that no model may read."""
    longest = max(len(source) for source in sources)
    values = [list(source) + [2] * (longest - len(source)) for source in sources]
    return Padded(torch.tensor(values), torch.tensor([len(source) for source in sources]))


def next_log_probabilities(model: Steps, source: Padded | None, prefix: Sequence[int]) -> list[float]:
    """Of one source, after `prefix`, stepping from the start each time."""
    memory, state = model.start(source, 1)
    for token in (START, *prefix):
        log_probabilities_1V, state = model.step(torch.tensor([token]), memory, state)
    values: list[float] = log_probabilities_1V[0].tolist()
    return values


def outputs(vocabulary: int, limit: int) -> Iterator[tuple[int, ...]]:
    """Every output of at most `limit` tokens: one END at the end, or `limit` others."""
    others = [token for token in range(vocabulary) if token != END]
    for length in range(limit):
        yield from ((*tokens, END) for tokens in product(others, repeat=length))
    yield from product(others, repeat=limit)


def slow_beam(
    model: Steps, source: Padded | None, beam: int, limit: int, alpha: float, prune: float = math.inf
) -> list[tuple[int, ...]]:
    """Beam search by its definition, with lists, without an early stop: all that was found, best first."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    done: list[tuple[float, tuple[int, ...]]] = []
    for _ in range(limit):
        grown = [
            (total + value, (*tokens, token))
            for total, tokens in live
            for token, value in enumerate(next_log_probabilities(model, source, tokens))
            if value > -math.inf
        ]
        taken = sorted(grown, key=lambda pair: -pair[0])[: beam - len(done)]
        taken = [pair for pair in taken if pair[0] >= taken[0][0] - prune]
        done += [pair for pair in taken if pair[1][-1] == END]
        live = [pair for pair in taken if pair[1][-1] != END]
    found = done + live
    found.sort(key=lambda pair: (pair[1][-1] != END, -pair[0] / len(pair[1]) ** alpha))
    return [tokens for _, tokens in found]
