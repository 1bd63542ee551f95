"""Which words of the target translate which of the source, learnt from sentence pairs by IBM model 1.

    t(f | e)  =  count(f, e) / sum_f count(f, e)
    count(f, e)  =  sum over pairs, their f and their e of  t(f | e) / (t(f | NULL) + sum_e' t(f | e'))

(Brown et al. 1993, "The mathematics of statistical machine translation", section 4.1.) Expectation and maximisation in
turn from a uniform t, which has one optimum; a NULL word stands in every source and takes what no word of it explains.

Shapes: S source ids, V target ids, C candidates of each source id, F frequent target ids, N pairs, L links, each of a
target token to a source word of its pair, U different links, B sentences.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from transduce.core.errors import InputError
from transduce.data.store import BLOCK, Store

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

ITERATIONS = 5
MOST_LINKS = 100_000_000  # in memory with 5 bytes each; 29,000 pairs of 14 tokens have 6 million
AT_ONCE = 2_000_000  # links that are made at once
NOTHING = -1  # in place of a candidate


@dataclass(frozen=True)
class Lexicon:
    """The likeliest translations of each source token, and the most frequent target tokens.

    candidates_SC: int32, likeliest first, -1 behind the last. frequent_F: int32, the most frequent first.
    """

    candidates_SC: NDArray[np.int32]
    frequent_F: NDArray[np.int32]

    def checked(self, source: int | None, target: int) -> Self:
        """Itself. Raises InputError if it is of other vocabularies than of these sizes."""
        greatest = max(int(self.candidates_SC.max()), int(self.frequent_F.max()))
        if len(self.candidates_SC) != source or greatest >= target:
            raise InputError(
                f"the model file's shortlist is of {len(self.candidates_SC)} source tokens and of target tokens up to "
                f"{greatest}; its tokenizers have {source} and {target}."
            )
        return self

    def allowed(self, sources: Sequence[Sequence[int]], candidates: int, frequent: int, size: int) -> NDArray[np.bool_]:
        """(B, `size`): True = among the `candidates` of a token of this source, or of the `frequent` most frequent."""
        allowed_BV = np.zeros((len(sources), size + 1), dtype=np.bool_)  # what is NOTHING goes to the last
        allowed_BV[:, self.frequent_F[:frequent]] = True
        row_N = np.repeat(np.arange(len(sources)), [len(source) for source in sources])
        token_N = np.concatenate([np.asarray(source, np.int64) for source in sources])
        allowed_BV[row_N[:, None], self.candidates_SC[token_N, :candidates]] = True
        return allowed_BV[:, :size]


def check_candidates(asked: int, lexicon: Lexicon | None) -> Lexicon:
    """The lexicon itself. Raises InputError where there is none, or it holds fewer candidates than are asked for."""
    if lexicon is None:
        raise InputError(
            "search.shortlist: this model has no table of which words translate which: `transduce shortlist MODEL` "
            "learns one from the training data and adds it to the model file."
        )
    held = lexicon.candidates_SC.shape[1]
    if asked > held:
        raise InputError(
            f"search.shortlist = {asked}: this model's table holds {held} candidates a token; ask for at most that, or "
            f"make another: transduce shortlist MODEL --candidates {asked}."
        )
    return lexicon


@dataclass(frozen=True)
class LinkedPairs:
    """Token ids of all pairs, one behind the other, and the lengths of each side.

    of: how many pairs there are, of which these may be a sample.
    """

    source: Ints
    target: Ints
    source_length_N: Ints
    target_length_N: Ints
    of: int

    def __len__(self) -> int:
        return len(self.source_length_N)


def read_links(stores: Sequence[Store], max_links: int = MOST_LINKS, seed: int = 0) -> LinkedPairs:
    """The pairs of all stores; where they have more links than `max_links`, some of them, drawn by `seed`."""
    lengths = [[store.all_lengths(field) for store in stores] for field in ("source", "target")]
    source_length_N, target_length_N = (np.concatenate(each) for each in lengths)
    links_N = (source_length_N + 1) * target_length_N
    if links_N.sum() > max_links:
        order_N = np.random.default_rng(seed).permutation(len(links_N))
        kept_N = np.sort(order_N[: np.searchsorted(links_N[order_N].cumsum(), max_links, side="right")])
    else:
        kept_N = np.arange(len(links_N))
    source, target = (_read(stores, field, kept_N) for field in ("source", "target"))
    return LinkedPairs(source, target, source_length_N[kept_N], target_length_N[kept_N], len(links_N))


def learn(
    pairs: LinkedPairs,
    sizes: tuple[int, int],
    candidates: int,
    frequent: int,
    advance: Callable[[int], None] = lambda pairs: None,
) -> Lexicon:
    """The lexicon of `pairs`, whose ids are below `sizes`, source and target.

    advance: told how many more pairs were looked at; (1 + ITERATIONS) times each.
    """
    code_U, t_U = translation_table(pairs, sizes, advance=advance)
    counts_V = np.bincount(pairs.target, minlength=sizes[1])
    order_V = np.argsort(-counts_V, kind="stable")[: np.count_nonzero(counts_V)]
    return Lexicon(_likeliest(code_U, t_U, sizes, candidates), order_V[:frequent].astype(np.int32))


def translation_table(
    pairs: LinkedPairs,
    sizes: tuple[int, int],
    iterations: int = ITERATIONS,
    advance: Callable[[int], None] = lambda pairs: None,
) -> tuple[Ints, Reals]:
    """IBM model 1: e V + f for each different link, in rising order, and its t(f | e). NULL is e = S."""
    sources, targets = sizes
    chunks, code_U = [], np.empty(0, np.int64)
    for chunk, own_U in _chunks(pairs, sizes, advance):
        chunks.append((chunk, own_U))
        code_U = np.union1d(code_U, own_U)
    linked = [chunk._replace(place=np.searchsorted(code_U, own_U)) for chunk, own_U in chunks]
    e_U, t_U = code_U // targets, np.full(len(code_U), 1 / targets)
    for _ in range(iterations):
        count_U = np.zeros(len(code_U))
        for each in linked:
            count_U[each.place] += each.expected(t_U[each.place])
            advance(each.pairs)
        t_U = count_U / np.bincount(e_U, count_U, minlength=sources + 1)[e_U]
    return code_U, t_U


class _Links(NamedTuple):
    """The links of some pairs: those of one target token side by side.

    place: of each of its different links in the table. of: (L,) which of these each link is.
    width: of each target token, how many links it has.
    """

    place: Ints
    of: NDArray[np.int32]
    width: Ints
    pairs: int

    def expected(self, t: Reals) -> Reals:
        """How often each of its different links is expected to be a translation, their probabilities being t."""
        share_L = t[self.of]
        share_L /= np.repeat(np.add.reduceat(share_L, _ends(self.width)[:-1]), self.width)
        return np.bincount(self.of, share_L, minlength=len(t)).astype(np.float64, copy=False)


def _chunks(
    pairs: LinkedPairs, sizes: tuple[int, int], advance: Callable[[int], None]
) -> Iterator[tuple[_Links, Ints]]:
    """Links of `AT_ONCE` at a time, without their places yet, and which different ones they are."""
    links_N = ((pairs.source_length_N + 1) * pairs.target_length_N).cumsum()
    source_N, target_N = (_ends(each) for each in (pairs.source_length_N, pairs.target_length_N))
    first = 0
    while first < len(pairs):
        done = links_N[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(links_N, done + AT_ONCE, side="right")))
        source = pairs.source[source_N[first] : source_N[last]]
        target = pairs.target[target_N[first] : target_N[last]]
        lengths = pairs.source_length_N[first:last], pairs.target_length_N[first:last]
        code_L, width = _links(source, target, *lengths, sizes)
        own_U, of_L = np.unique(code_L, return_inverse=True)
        yield _Links(own_U, of_L.astype(np.int32), width, last - first), own_U
        advance(last - first)
        first = last


def _links(
    source: Ints, target: Ints, source_length_N: Ints, target_length_N: Ints, sizes: tuple[int, int]
) -> tuple[Ints, Ints]:
    """e V + f of all links (L,), target token by target token, and how many each of these has."""
    with_null = np.insert(source, source_length_N.cumsum(), sizes[0])
    width = np.repeat(source_length_N + 1, target_length_N)
    begin = np.repeat(_ends(source_length_N + 1)[:-1], target_length_N) - _ends(width)[:-1]
    e_L = with_null[np.repeat(begin, width) + np.arange(width.sum())]
    return e_L * sizes[1] + np.repeat(target, width), width


def _ends(lengths: Ints) -> Ints:
    """0, and where each of these lengths ends, one behind the other."""
    return np.concatenate([np.zeros(1, np.int64), lengths.cumsum()])


def _likeliest(code_U: Ints, t_U: Reals, sizes: tuple[int, int], count: int) -> NDArray[np.int32]:
    """(S, C) the `count` likeliest of each source id, of equal ones the lower; NULL has no row."""
    e_U, f_U = np.divmod(code_U, sizes[1])
    order_U = np.lexsort((f_U, -t_U, e_U))
    e_U, f_U = e_U[order_U], f_U[order_U]
    rank_U = np.arange(len(e_U)) - np.searchsorted(e_U, e_U)
    kept_U = (rank_U < count) & (e_U < sizes[0])
    candidates_SC = np.full((sizes[0], count), NOTHING, np.int32)
    candidates_SC[e_U[kept_U], rank_U[kept_U]] = f_U[kept_U]
    return candidates_SC


def _read(stores: Sequence[Store], field: str, row_N: Ints) -> Ints:
    """The ids of these rows, counted through all stores, one behind the other."""
    found, first = [np.empty(0, np.int64)], 0
    for store in stores:
        own_N = row_N[(row_N >= first) & (row_N < first + len(store))] - first
        for some_N in np.split(own_N, range(BLOCK, len(own_N), BLOCK)):
            found += [ids.astype(np.int64) for ids in store.read(field, some_N)]
        store.release()
        first += len(store)
    return np.concatenate(found)
