"""Key-value caches that are shared by the hypotheses of a beam, which makes beam search cheap.

The K hypotheses of a source are K queries of one attention. Reordering the beam changes only the bookkeeping. Keys and
values stay in place until most of them are no longer read.

    EncoderCache  the keys and values of the sources.
    DecoderCache  the keys and values of all generated tokens, one column per token, and which columns belong to
                  which hypothesis. The hypotheses of a beam are branches of a tree, and a shared prefix is stored once.

Both take the place of a `KeyValue` in the memory or state of `Steps`, and reorder themselves.

Shapes: B sources, N hypotheses, K maximum number of hypotheses of a source, H heads, G heads of keys and values, S
    source
positions, C columns (tokens generated in any branch), R allocated columns, T tokens of one branch, E width of a head.
"""

from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from transduce.attention.cache import KeyValue
from transduce.attention.scaled_dot_product import attend, attend_with_weights

CROWDED = 32  # number of columns from which unused ones are looked for


class Groups:
    """N hypotheses, grouped by source.

    source_N: the source of each hypothesis, in any order. sources: B.
    """

    def __init__(self, source_N: Tensor, sources: int) -> None:
        self.source_N, self.sources = source_N, sources
        sorted_N, order_N = source_N.sort(stable=True)
        number_N = torch.arange(len(source_N), device=source_N.device)
        rank_N = number_N - torch.searchsorted(sorted_N, sorted_N)
        self.rank_N = torch.empty_like(rank_N).index_copy_(0, order_N, rank_N)
        self.widest = int(rank_N.max()) + 1 if len(rank_N) else 1

    @cached_property
    def _places(self) -> Tensor:
        return self.source_N * self.widest + self.rank_N

    @cached_property
    def _full(self) -> bool:
        return len(self.source_N) == self.sources * self.widest and torch.equal(
            self._places, torch.arange(len(self.source_N), device=self.source_N.device)
        )

    def group(self, x_NX: Tensor) -> Tensor:
        """(N, X) -> (B, K, X), with zeros where a source has fewer hypotheses."""
        size = (self.sources, self.widest, x_NX.shape[1])
        if self._full:
            return x_NX.reshape(size)
        return x_NX.new_zeros(size).flatten(0, 1).index_copy_(0, self._places, x_NX).view(size)

    def split(self, x_BKX: Tensor) -> Tensor:
        """(B, K, X) -> (N, X)."""
        x_PX = x_BKX.flatten(0, 1)
        return x_PX if self._full else x_PX.index_select(0, self._places)

    def selected(self, row_M: Tensor) -> tuple["Groups", Tensor | None]:
        """The groups of the hypotheses `row_M`, and the sources to keep; None = keep all for now."""
        source_M = self.source_N[row_M]
        if self.sources == 1:
            return Groups(source_M, 1), None
        read_B = torch.bincount(source_M, minlength=self.sources) > 0
        left = int(read_B.sum())
        if 4 * left > 3 * self.sources:
            return Groups(source_M, self.sources), None
        return Groups((read_B.cumsum(0) - 1)[source_M], left), read_B.nonzero()[:, 0]


class Attended(Protocol):
    """Keys and values that hypotheses can attend to, with one query each."""

    def read(self, query_NH1E: Tensor, with_weights: bool) -> tuple[Tensor, Tensor | None]:
        """(N, H, 1, E) -> the output (N, H, 1, E), and if `with_weights` also the weights (N, H, 1, S)."""
        ...


class EncoderCache:
    """Keys and values (B, G, S, E) of sources, shared by the hypotheses of each source.

    allowed_B11S: bool, True = a real position.
    """

    def __init__(self, source: KeyValue, allowed_B11S: Tensor, tree: "BeamTree") -> None:
        self.source, self.allowed_B11S, self.tree = source, allowed_B11S, tree

    def reordered(self, row_M: Tensor) -> "EncoderCache":
        tree, left_B, _ = self.tree.selected(row_M)
        if left_B is None:
            return EncoderCache(self.source, self.allowed_B11S, tree)
        key, value, allowed = (each.index_select(0, left_B) for each in (*self.source, self.allowed_B11S))
        return EncoderCache(KeyValue(key, value), allowed, tree)

    def read(self, query_NH1E: Tensor, with_weights: bool) -> tuple[Tensor, Tensor | None]:
        return _read(query_NH1E, self.source, self.allowed_B11S, None, self.tree.groups, with_weights)


class DecoderCache:
    """The keys and values of all tokens that the hypotheses of B sources have generated."""

    def __init__(self, store: "KeyValueStore", tree: "BeamTree") -> None:
        self.store, self.tree = store, tree

    @property
    def length(self) -> int:
        """T, the number of tokens of each hypothesis."""
        return self.tree.length

    def append(self, new: KeyValue) -> "DecoderCache":
        """The cache after one more token of each hypothesis, with keys and values (N, G, 1, E)."""
        before, after = self.tree, self.tree.grown
        added = [_by_head(before.groups.group(each.flatten(1)), each.shape[1]) for each in new]
        return DecoderCache(self.store.added(before.columns, KeyValue(*added)), after)

    def reordered(self, row_M: Tensor) -> "DecoderCache":
        tree, left_B, column_BC = self.tree.selected(row_M)
        store = self.store if left_B is None else self.store.of_sources(left_B)
        return DecoderCache(store if column_BC is None else store.of_columns(column_BC), tree)

    def read(self, query_NH1E: Tensor, with_weights: bool) -> tuple[Tensor, Tensor | None]:
        """See `Attended`; S = T."""
        tree = self.tree
        said = self.store.first(tree.columns)
        read_NH1E, alpha_NH1C = _read(query_NH1E, said, None, tree.bias, tree.groups, with_weights)
        if alpha_NH1C is None or tree.columns == tree.length:
            return read_NH1E, alpha_NH1C
        past_NT = tree.past_NC.nonzero()[:, 1].view(-1, tree.length)
        return read_NH1E, alpha_NH1C.gather(-1, past_NT[:, None, None].expand(-1, alpha_NH1C.shape[1], 1, -1))


class BeamTree:
    """Which columns belong to which hypothesis. All layers share one object, so each result is computed once.

    groups: the hypotheses by source. past_NC: bool, True if the column is a token of the hypothesis.
    length: T, the number of tokens of each hypothesis.
    """

    def __init__(self, groups: Groups, past_NC: Tensor, length: int) -> None:
        self.groups, self.past_NC, self.length = groups, past_NC, length
        self._last: tuple[Tensor, tuple[BeamTree, Tensor | None, Tensor | None]] | None = None

    @classmethod
    def founded(cls, sources: int, device: torch.device) -> "BeamTree":
        """One empty hypothesis for each source."""
        nothing_NC = torch.empty(sources, 0, dtype=torch.bool, device=device)
        return cls(Groups(torch.arange(sources, device=device), sources), nothing_NC, 0)

    @property
    def columns(self) -> int:
        """C."""
        return self.past_NC.shape[1]

    @cached_property
    def grown(self) -> "BeamTree":
        """The family after one more token of each hypothesis, with K more columns: one for each slot of a source."""
        rank_K = torch.arange(self.groups.widest, device=self.past_NC.device)
        own_NK = self.groups.rank_N[:, None] == rank_K
        return BeamTree(self.groups, torch.cat((self.past_NC, own_NK), 1), self.length + 1)

    @cached_property
    def bias(self) -> Tensor | None:
        """(B, 1, K, C): 0 for a hypothesis's own columns, in effect -inf for others; None if all columns are shared."""
        if self.columns == self.length:
            return None
        others_BKC = self.groups.group((~self.past_NC).float())
        return others_BKC[:, None] * torch.finfo(torch.float32).min

    def selected(self, row_M: Tensor) -> tuple["BeamTree", Tensor | None, Tensor | None]:
        """The family of the hypotheses `row_M`, and the sources and columns (B, C) to keep; None = keep all for now."""
        if self._last is None or self._last[0] is not row_M:
            self._last = row_M, self._selected(row_M)
        return self._last[1]

    def _selected(self, row_M: Tensor) -> tuple["BeamTree", Tensor | None, Tensor | None]:
        groups, left_B = self.groups.selected(row_M)
        past_MC = self.past_NC[row_M]
        column_BC = _columns_in_use(groups, past_MC) if self.columns >= max(CROWDED, 2 * self.length) else None
        if column_BC is not None:
            past_MC = past_MC.gather(1, column_BC[groups.source_N])
        return BeamTree(groups, past_MC, self.length), left_B, column_BC


class KeyValueStore:
    """Keys and values (B, G, C, E), with allocated space after them.

    A column is written once. New columns are written after the last one. Continuing from an earlier state, after which
    columns were already written, makes a copy.
    """

    def __init__(self, room: KeyValue, used: int) -> None:
        self.room, self._used = room, used

    def first(self, columns: int) -> KeyValue:
        key_BGCE, value_BGCE = self.room
        return KeyValue(key_BGCE[:, :, :columns], value_BGCE[:, :, :columns])

    def added(self, columns: int, new: KeyValue) -> "KeyValueStore":
        """A store with the columns `new` after the first `columns`."""
        store = self.grown(columns, new.length)
        for room_BGRE, new_BGKE in zip(store.room, new, strict=True):
            room_BGRE[:, :, columns : columns + new.length] = new_BGKE
        return store

    def grown(self, columns: int, more: int) -> "KeyValueStore":
        """A store with `more` columns after the first `columns`, for the caller to fill."""
        wanted = columns + more
        fits = self._used == columns and wanted <= self.room.length
        store = self if fits else self._copied(columns, 2 * wanted)
        store._used = wanted
        return store

    def of_sources(self, left_B: Tensor) -> "KeyValueStore":
        """The store of the sources `left_B`."""
        key, value = (each.index_select(0, left_B) for each in self.room)
        return KeyValueStore(KeyValue(key, value), self._used)

    def of_columns(self, column_BC: Tensor) -> "KeyValueStore":
        """The store with only the columns (B, C) given for each source."""
        index_B1C1 = column_BC[:, None, :, None]
        key, value = (each.take_along_dim(index_B1C1, 2) for each in self.room)
        return KeyValueStore(KeyValue(key, value), column_BC.shape[1])

    def _copied(self, columns: int, capacity: int) -> "KeyValueStore":
        rooms = []
        for old_BGCE in self.room:
            sources, heads, _, width = old_BGCE.shape
            room_BGRE = old_BGCE.new_zeros(sources, heads, capacity, width)
            if columns:
                room_BGRE[:, :, :columns] = old_BGCE[:, :, :columns]
            rooms.append(room_BGRE)
        return KeyValueStore(KeyValue(*rooms), columns)


def _columns_in_use(groups: Groups, past_NC: Tensor) -> Tensor | None:
    """(B, C') the columns of each source that some hypothesis uses, in order; None if they are more than half of C."""
    used_BC = groups.group(past_NC.byte()).amax(1)
    most = int(used_BC.sum(1).max()) if len(past_NC) else 0
    if 2 * most > past_NC.shape[1]:
        return None
    return used_BC.sort(dim=1, descending=True, stable=True).indices[:, :most]


def _read(
    query_NH1E: Tensor,
    seen: KeyValue,
    allowed: Tensor | None,
    bias: Tensor | None,
    groups: Groups,
    with_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    heads = query_NH1E.shape[1]
    query_BHKE = _by_head(groups.group(query_NH1E.flatten(1)), heads)
    kernel = attend_with_weights if with_weights else attend
    found = kernel(query_BHKE, seen.key, seen.value, allowed, 0.0, bias)
    read_BHKE, alpha_BHKS = found if isinstance(found, tuple) else (found, None)
    return _by_hypothesis(groups, read_BHKE), None if alpha_BHKS is None else _by_hypothesis(groups, alpha_BHKS)


def _by_head(x_BKX: Tensor, heads: int) -> Tensor:
    """(B, K, H E) -> (B, H, K, E)."""
    return torch.unflatten(x_BKX, -1, (heads, -1)).transpose(1, 2)


def _by_hypothesis(groups: Groups, x_BHKX: Tensor) -> Tensor:
    """(B, H, K, X) -> (N, H, 1, X)."""
    heads = x_BHKX.shape[1]
    return torch.unflatten(groups.split(x_BHKX.transpose(1, 2).flatten(2)), -1, (heads, 1, -1))
