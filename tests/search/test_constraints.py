"""Outputs with phrases that must or must not appear, against all outputs there are."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_steps import END, START, PrefixTable, RandomTree, TinyAttention, padded
from toy_words import Toy, best_outputs, ended

from transduce.core.errors import InputError
from transduce.search.constraint import Constraint
from transduce.search.dispatch import search
from transduce.search.hypothesis import Hypothesis
from transduce.search.phrases import Phrases, held, lacking
from transduce.search.request import Request
from transduce.search.settings import Search

WORDS = Toy(" a", " b", "a", "b", "ab")  # "ab" can be written in two ways, and is neither "a" nor "b"
SPLIT = Toy(" N", " New", "ew", " Y", "York", "er")
JAPANESE = Toy("か", "が", "\u3099", "く", " ")
HEADLESS = Toy(" a", " b", " ab")  # as words between spaces are: nothing goes on with a word
CASES: dict[str, tuple[Toy, list[Phrases]]] = {
    "words": (
        WORDS,
        [
            Phrases(must=(("a",),)),
            Phrases(must=(("ab",),), must_not=("b",)),
            Phrases(must=(("a",), ("a",))),
            Phrases(must=(("a b",), ("b a",))),  # "a b a" has both, "b a b" as well
            Phrases(must=(("a", "b"), ("a", "b"), ("ab",))),
            Phrases(must=(("a b", "ba"),)),
            Phrases(must_not=("a",)),
            Phrases(must_not=("a", "b", "ab a")),
        ],
    ),
    "split": (
        SPLIT,
        [
            Phrases(must=(("New",),)),
            Phrases(must=(("Newer",),), must_not=("New",)),
            Phrases(must=(("New New",),)),
            Phrases(must_not=("New", "N")),
            Phrases(must_not=("New Y", "NYork", "Newer")),
        ],
    ),
    "japanese": (JAPANESE, [Phrases(must=(("か",),)), Phrases(must_not=("か",)), Phrases(must=(("か\u3099く",),))]),
    "headless": (HEADLESS, [Phrases(must_not=("a",)), Phrases(must=(("ab",),), must_not=("a b",))]),
}
each_case = pytest.mark.parametrize(
    ("toy", "phrases"), [(toy, each) for toy, all_of_them in CASES.values() for each in all_of_them], ids=str
)
LIMIT = 4


def searched(toy: Toy, phrases: Phrases, seed: int, asked: Search, limit: int = LIMIT) -> list[Hypothesis]:
    model, constraint = RandomTree(toy.size, seed), Constraint(phrases, toy.spelling, toy.encode)
    (found,) = search(
        model,
        padded([[3, seed % 5]]),
        [Request(limit, constraint=constraint)],
        asked,
        start=START,
        end=END,
        forbidden=[START],
    )
    return found


def fits(toy: Toy, phrases: Phrases, tokens: tuple[int, ...]) -> bool:
    text = toy.decode(tokens)
    return not lacking(phrases, text) and not held(phrases, text)


@each_case
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 10**6), rule=st.sampled_from(["power", "gnmt", "none"]))
def test_a_beam_as_wide_as_the_tree_finds_the_best_of_all_that_fit(
    toy: Toy, phrases: Phrases, seed: int, rule: str
) -> None:
    asked = Search.model_validate({"length_rule": rule, "beam": 3000, "nbest": 3000})
    model = RandomTree(toy.size, seed)
    expected = best_outputs(
        model, padded([[3, seed % 5]]), toy.size, LIMIT, lambda tokens: fits(toy, phrases, tokens), asked.length
    )
    assert expected
    found = searched(toy, phrases, seed, asked)
    assert ended(found) == [tokens for _, tokens in expected]
    assert [h.score for h in found if h.ended] == pytest.approx([score for score, _ in expected])
    by_exhaustion = searched(toy, phrases, seed, asked.model_copy(update={"method": "exhaustive"}))
    assert ended(by_exhaustion) == ended(found)
    one = searched(toy, phrases, seed, Search.model_validate({"length_rule": rule, "beam": 3000}))
    assert one[0] == found[0]


@pytest.mark.parametrize(
    ("method", "toy", "phrases"),
    [
        (method, toy, each)
        for method in ("greedy", "beam", "sample", "exhaustive")
        for toy, all_of_them in CASES.values()
        for each in all_of_them
        if method in ("beam", "exhaustive") or not each.must
    ],
    ids=str,
)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6), beam=st.integers(1, 5), limit=st.integers(1, 5))
def test_no_output_breaks_its_word(toy: Toy, phrases: Phrases, method: str, seed: int, beam: int, limit: int) -> None:
    """Whatever the beam and the limit: what ended fits, and what did not end holds at least nothing forbidden."""
    nbest = 1 if method == "greedy" else beam
    for hypothesis in searched(toy, phrases, seed, Search(method=method, beam=beam, nbest=nbest), limit):  # type: ignore[arg-type]
        text = toy.decode(hypothesis.tokens)
        assert not held(phrases, text)
        assert not hypothesis.ended or not lacking(phrases, text)


@pytest.mark.parametrize(
    ("toy", "phrases"),
    [
        (WORDS, Phrases(must=(("a",),))),
        (WORDS, Phrases(must=(("ab",),), must_not=("b",))),
        (WORDS, Phrases(must=(("a a",), ("a a",)))),
        (WORDS, Phrases(must=(("a b",), ("b a",), ("ab", "ba")))),
        (SPLIT, Phrases(must=(("Newer New",), ("Yew",)), must_not=("er",))),
        (Toy("N", "e", "w", "Y", "o", " "), Phrases(must=(("New",), ("Yo",), ("Yo",)))),
        (JAPANESE, Phrases(must=(("か\u3099く",), ("か",)))),
        (HEADLESS, Phrases(must=(("ab",), ("a", "b")), must_not=("a b",))),
    ],
    ids=str,
)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), beam=st.integers(1, 6), prune=st.sampled_from([None, 0.5]))
def test_phrases_appear_however_small_the_beam(
    toy: Toy, phrases: Phrases, seed: int, beam: int, prune: float | None
) -> None:
    best = searched(toy, phrases, seed, Search(beam=beam, prune=prune), limit=18)[0]
    assert not lacking(phrases, toy.decode(best.tokens))


@pytest.mark.parametrize("prune", [None, 0.1])
def test_a_phrase_is_met_though_the_model_all_but_excludes_it(prune: float | None) -> None:
    model = PrefixTable({}, otherwise=(0, 0.5, 1e-9, 1e-9, 0.25, 0.25, 1e-9))
    (found,) = search(
        model,
        None,
        [Request(6, constraint=WORDS.constraint(must=["a b"]))],
        Search(beam=2, prune=prune),
        start=START,
        end=END,
    )
    assert WORDS.decode(found[0].tokens).strip() == "a b"


def test_a_limit_that_comes_first_leaves_an_output_unended() -> None:
    found = searched(WORDS, Phrases(must=(("a b a",),)), 3, Search(), limit=2)
    assert not any(hypothesis.ended for hypothesis in found)


def test_a_phrase_that_breaks_off_is_begun_anew_where_it_can_be() -> None:
    """a b a | b a c needs the automaton to fall back to "a b a" when "a b a b" breaks "a b a c" off."""
    toy = Toy("a", "b", "c", " ")
    phrase = "a b a c"
    constraint = toy.constraint(must=[phrase])
    state = constraint.behind(toy.encode("a b a b a "))
    assert constraint.distance(state) == 2 * 1  # "c"
    assert constraint.may_end(constraint.after(state, toy.encode("c")[0]))
    assert constraint.distance(constraint.after(state, toy.encode("a")[0])) == 2 * (len(toy.encode(phrase)) - 1)
    assert constraint.distance(constraint.behind(toy.encode("bb"))) == 2 * len(toy.encode(phrase)) + 1


def test_a_forbidden_phrase_may_go_on_as_another_word() -> None:
    """ "New" may not appear: " N", "ew" is a way to it, and must become "Newer" or stop before."""
    constraint = SPLIT.constraint(must_not=["New"])
    behind = constraint.behind(SPLIT.encode("N"))
    refused_V = constraint.refused(behind, last=False)
    assert refused_V is not None
    assert not refused_V.any()
    behind = constraint.after(behind, SPLIT.pieces.index(b"ew"))
    assert not constraint.may_end(behind)
    refused_V = constraint.refused(behind, last=False)
    assert refused_V is not None
    assert [SPLIT.pieces[token] for token in refused_V.nonzero()[0]] == [b" N", b" New", b" Y"]
    last_V = constraint.refused(constraint.behind(SPLIT.encode("N")), last=True)
    assert last_V is not None
    assert [SPLIT.pieces[token] for token in last_V.nonzero()[0]] == [b" New", b"ew"]


def test_where_no_token_goes_on_with_a_word_a_forbidden_one_is_refused_at_once() -> None:
    refused_V = HEADLESS.constraint(must_not=["a"]).refused((0, 0), last=False)
    assert refused_V is not None
    assert [HEADLESS.pieces[token] for token in refused_V.nonzero()[0]] == [b" a"]


LINES = st.tuples(
    st.lists(st.integers(2, 6), min_size=1, max_size=5),
    st.integers(4, 9),
    st.sampled_from([None, *CASES["words"][1]]),
)


@settings(max_examples=15, deadline=None)
@given(
    corpus=st.lists(LINES, min_size=1, max_size=6),
    seed=st.integers(0, 10**6),
    random=st.randoms(use_true_random=False),
    beam=st.integers(1, 5),
    ngram=st.none() | st.integers(2, 3),
    prune=st.none() | st.just(1.0),
)
def test_constraints_of_one_line_are_none_of_anothers(
    corpus: list[tuple[list[int], int, Phrases | None]],
    seed: int,
    random: Random,
    beam: int,
    ngram: int | None,
    prune: float | None,
) -> None:
    model = TinyAttention(WORDS.size, seed)
    asked = Search(beam=beam, nbest=beam, no_repeat_ngram=ngram, prune=prune)

    def of(order: list[int]) -> list[list[Hypothesis]]:
        requests = [
            Request(limit, line=line, constraint=phrases and Constraint(phrases, WORDS.spelling, WORDS.encode))
            for line, (_, limit, phrases) in zip(order, (corpus[line] for line in order), strict=True)
        ]
        return search(
            model, padded([corpus[line][0] for line in order]), requests, asked, start=START, end=END, forbidden=[START]
        )

    order = list(range(len(corpus)))
    shuffled = random.sample(order, len(order))
    again = dict(zip(shuffled, of(shuffled), strict=True))
    for line, together in zip(order, of(order), strict=True):
        for other in (again[line], of([line])[0]):
            assert [h.tokens for h in other] == [h.tokens for h in together]
            assert [h.score for h in other] == pytest.approx([h.score for h in together], abs=1e-6)


def test_what_does_not_go_together_is_refused() -> None:
    model, requests = RandomTree(WORDS.size, 1), [Request(5, constraint=WORDS.constraint(must=["a"]))]
    for asked, said in (
        (Search(method="greedy"), 'method "greedy" does not look for phrases'),
        (Search(method="sample"), 'method "sample" does not look for phrases'),
        (Search(beam=4, groups=2), "cannot have groups"),
    ):
        with pytest.raises(InputError, match=said):
            search(model, None, requests, asked, start=START, end=END)
    with pytest.raises(InputError, match="another vocabulary"):
        search(RandomTree(4, 1), None, requests, Search(), start=START, end=END)
    forbidding = WORDS.constraint(must_not=["b"])
    with pytest.raises(InputError, match="line 0 has a prefix that holds a phrase"):
        search(
            model, None, [Request(5, prefix=WORDS.encode("b a"), constraint=forbidding)], Search(), start=START, end=END
        )


def test_a_beam_keeps_slots_for_those_that_need_not_write_on() -> None:
    """After " New" only letters may follow, which make no sense here; " Y" is better, though behind at first."""
    _, end, n, new, _, y, _, _ = range(SPLIT.size)

    def row(likely: dict[int, float]) -> list[float]:
        rest = (1 - sum(likely.values())) / (SPLIT.size - 1 - len(likely))
        return [0.0, *(likely.get(token, rest) for token in range(1, SPLIT.size))]

    model = PrefixTable({(): row({new: 0.9, n: 0.06, y: 0.02}), (new,): row({end: 0.999})}, otherwise=row({end: 0.9}))
    requests = [Request(6, constraint=SPLIT.constraint(must_not=["New", "N"]))]
    for beam in (2, 4):
        (found,) = search(model, None, requests, Search(beam=beam), start=START, end=END)
        assert SPLIT.decode(found[0].tokens) == " Y"
