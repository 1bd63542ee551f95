"""EncoderCache keys and values against a slow copy: every hypothesis with its own list of all that it may read."""

import random

import pytest
import torch
from torch import Tensor

from transduce.attention.cache import KeyValue
from transduce.attention.shared_kv_cache import BeamTree, DecoderCache, EncoderCache, Groups, KeyValueStore

HEADS, GROUPS, WIDTH = 4, 2, 3


def attended(query_HE: Tensor, keys: list[Tensor], values: list[Tensor]) -> tuple[Tensor, Tensor]:
    """softmax(q k / sqrt(E)) v for one query, head by head; each key and value is (G, E)."""
    read, weights = [], []
    for head, query_E in enumerate(query_HE):
        group = head * GROUPS // HEADS
        scores = torch.stack([query_E @ key_GE[group] / WIDTH**0.5 for key_GE in keys])
        alpha_S = scores.exp() / scores.exp().sum()
        weights.append(alpha_S)
        read.append(sum(alpha * value_GE[group] for alpha, value_GE in zip(alpha_S, values, strict=True)))
    return torch.stack(read), torch.stack(weights)


def check(attention: DecoderCache | EncoderCache, pasts: list[list[tuple[Tensor, Tensor]]]) -> None:
    """Every hypothesis reads its own past, with and without its weights being asked for."""
    query_NH1E = torch.randn(len(pasts), HEADS, 1, WIDTH)
    read_NH1E, alpha_NH1S = attention.read(query_NH1E, with_weights=True)
    quick_NH1E, nothing = attention.read(query_NH1E, with_weights=False)
    torch.testing.assert_close(quick_NH1E, read_NH1E)
    assert alpha_NH1S is not None and nothing is None
    for number, past in enumerate(pasts):
        keys, values = [key for key, _ in past], [value for _, value in past]
        read_HE, alpha_HS = attended(query_NH1E[number, :, 0], keys, values)
        torch.testing.assert_close(read_NH1E[number, :, 0], read_HE)
        torch.testing.assert_close(alpha_NH1S[number, :, 0, : len(past)], alpha_HS)
        assert not alpha_NH1S[number, :, 0, len(past) :].any()


def rows_of(draw: random.Random, count: int) -> list[int]:
    """What a search keeps: some twice or more, some not at all, in any order or in theirs."""
    rows = [draw.randrange(count) for _ in range(draw.randint(1, 2 * count))]
    return sorted(rows) if draw.random() < 0.5 else rows


@pytest.mark.parametrize("seed", range(12))
def test_each_branch_reads_its_own_past(seed: int) -> None:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    count = draw.randint(1, 5)
    nothing = KeyValue(*[torch.empty(count, GROUPS, 0, WIDTH)] * 2)
    branch = DecoderCache(KeyValueStore(nothing, 0), BeamTree.founded(count, torch.device("cpu")))
    pasts: list[list[tuple[Tensor, Tensor]]] = [[] for _ in range(count)]
    for _ in range(draw.choice([3, 8, 25])):
        new = KeyValue(torch.randn(len(pasts), GROUPS, 1, WIDTH), torch.randn(len(pasts), GROUPS, 1, WIDTH))
        branch = branch.append(new)
        pasts = [[*past, (new.key[row, :, 0], new.value[row, :, 0])] for row, past in enumerate(pasts)]
        check(branch, pasts)
        rows = rows_of(draw, len(pasts))[:12]
        branch, pasts = branch.reordered(torch.tensor(rows)), [pasts[row] for row in rows]
        assert branch.length == len(pasts[0])
        check(branch, pasts)


@pytest.mark.parametrize("seed", range(6))
def test_hypotheses_share_their_source(seed: int) -> None:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    sources, longest = 6, 5
    lengths = [draw.randint(1, longest) for _ in range(sources)]
    source = KeyValue(torch.randn(sources, GROUPS, longest, WIDTH), torch.randn(sources, GROUPS, longest, WIDTH))
    real_BS = torch.arange(longest) < torch.tensor(lengths)[:, None]
    shared = EncoderCache(source, real_BS[:, None, None], BeamTree.founded(sources, torch.device("cpu")))
    pasts = [
        [(source.key[row, :, place], source.value[row, :, place]) for place in range(length)]
        for row, length in enumerate(lengths)
    ]
    for _ in range(6):
        check(shared, pasts)
        rows = rows_of(draw, len(pasts))
        shared, pasts = shared.reordered(torch.tensor(rows)), [pasts[row] for row in rows]


def test_two_may_go_on_from_one_state() -> None:
    nothing = KeyValue(*[torch.empty(2, GROUPS, 0, WIDTH)] * 2)
    branch = DecoderCache(KeyValueStore(nothing, 0), BeamTree.founded(2, torch.device("cpu")))
    first, left, right = (KeyValue(*torch.randn(2, 2, GROUPS, 1, WIDTH)) for _ in range(3))
    before = branch.append(first)
    after_left, after_right = before.append(left), before.append(right)
    for after, new in ((after_left, left), (after_right, right), (after_left, left)):
        pasts = [[(each.key[row, :, 0], each.value[row, :, 0]) for each in (first, new)] for row in range(2)]
        check(after, pasts)


def test_what_nobody_reads_is_dropped() -> None:
    """Memory follows what is alive: sources whose hypotheses are gone, and words that are in no hypothesis."""
    nothing = KeyValue(*[torch.empty(8, GROUPS, 0, WIDTH)] * 2)
    branch = DecoderCache(KeyValueStore(nothing, 0), BeamTree.founded(8, torch.device("cpu"))).reordered(
        torch.arange(8).repeat_interleave(5)
    )
    for _ in range(100):
        branch = branch.append(KeyValue(*torch.randn(2, 40, GROUPS, 1, WIDTH)))
        branch = branch.reordered(torch.arange(8).repeat_interleave(5) * 5)  # the first of five wins every time
    assert branch.tree.columns <= 2 * branch.length + 5
    assert branch.reordered(torch.arange(10)).tree.groups.sources == 2


def test_groups_are_put_together_and_taken_apart() -> None:
    groups = Groups(torch.tensor([2, 0, 2, 2, 0]), 4)
    x_NX = torch.arange(10.0).view(5, 2)
    together_BKX = groups.group(x_NX)
    assert together_BKX.shape == (4, 3, 2)
    assert together_BKX[2].tolist() == [[0, 1], [4, 5], [6, 7]]
    assert together_BKX[0].tolist() == [[2, 3], [8, 9], [0, 0]]
    assert not together_BKX[[1, 3]].any()
    assert torch.equal(groups.split(together_BKX), x_NX)
