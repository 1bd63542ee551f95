"""Mask-predict against the paper's algorithm written with lists, and what it promises of every output."""

import math
from collections.abc import Sequence
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_steps import RandomTree, padded
from torch import Tensor

from random_models import sentences, translator
from transduce.core.errors import InputError, TransduceError
from transduce.core.padded import Padded
from transduce.models.protocols import Fills, Tree
from transduce.search.dispatch import quickest, search
from transduce.search.hypothesis import Hypothesis
from transduce.search.request import Request
from transduce.search.settings import Search

START, END, FORBIDDEN, VOCABULARY = 0, 1, 2, 9
HIDDEN = None


class Table:
    """Random distributions for every source, length, place and visible words: a hash of all of them picks a row."""

    ROWS = 9973

    def __init__(self, seed: int, equal: bool = False) -> None:
        generator = torch.Generator().manual_seed(seed)
        words = torch.randn(self.ROWS, VOCABULARY, generator=generator, dtype=torch.float64)
        lengths = torch.randn(self.ROWS, 40, generator=generator, dtype=torch.float64)
        self.words, self.length = (2 * words, lengths) if not equal else (words * 0, lengths * 0)

    def remember(self, source: Padded) -> Tree:
        return (((source.values * source.mask()).sum(1) * 31 + source.lengths),)

    def lengths(self, memory: Tree, longest: int) -> Tensor:
        return self.length[memory[0] % self.ROWS].log_softmax(1)[:, : longest + 1]

    def fill(self, target: Padded, hidden: Tensor, memory: Tree) -> Tensor:
        found = []
        for row, length in enumerate(target.lengths.tolist()):
            hides = hidden[row, :length].tolist()
            shown = [HIDDEN if hides[place] else int(target.values[row, place]) for place in range(length)]
            found += [self.logits(int(memory[0][row]), shown, place) for place in range(length) if hides[place]]
        return torch.stack(found)

    def logits(self, source: int, words: Sequence[int | None], place: int) -> Tensor:
        known = sum((3 + word) * 7 ** (1 + index) for index, word in enumerate(words) if word is not HIDDEN)
        return self.words[(source * 1009 + len(words) * 101 + place * 17 + known) % self.ROWS]


def by_the_paper(
    model: Table, source: list[int], limit: int, asked: Search
) -> list[tuple[tuple[int, ...], list[float]]]:
    """One source, one length after the other, one word after the other."""
    memory = model.remember(padded([source]))
    of_length: list[float] = model.lengths(memory, 39)[0].tolist()
    tried = sorted(range(limit), key=lambda length: (-of_length[length], length))[: asked.lengths]
    found = []
    for length in tried:
        words: list[int | None] = [HIDDEN] * length
        values = [0.0] * length
        for iteration in range(asked.iterations):
            count = math.floor(length * (asked.iterations - iteration) / asked.iterations)
            hidden = (
                sorted(range(length), key=lambda place: (values[place], place))[:count] if iteration else range(length)
            )
            shown = [HIDDEN if place in hidden else word for place, word in enumerate(words)]
            for place in hidden:
                log_probabilities = model.logits(int(memory[0]), shown, place).log_softmax(0).tolist()
                allowed = [word for word in range(VOCABULARY) if word not in (START, END, FORBIDDEN)]
                words[place] = max(allowed, key=lambda word: log_probabilities[word])
                values[place] = log_probabilities[words[place]]
        found.append(((*words, END), [*values, of_length[length]]))
    found.sort(key=lambda pair: -sum(pair[1]) / len(pair[0]) ** asked.alpha)
    return found  # type: ignore[return-value]


def searched(model: Fills, sources: list[list[int]], limits: list[int], asked: Search) -> list[list[Hypothesis]]:
    options = {"start": START, "end": END, "forbidden": [START, FORBIDDEN]}
    return search(model, padded(sources), [Request(limit) for limit in limits], asked, **options)  # type: ignore[arg-type]


sources_and_limits = st.lists(
    st.tuples(st.lists(st.integers(3, 8), min_size=1, max_size=6), st.integers(1, 9)), min_size=1, max_size=5
)


@settings(max_examples=60)
@given(given_=sources_and_limits, seed=st.integers(0, 999), iterations=st.integers(1, 6), lengths=st.integers(1, 12))
def test_it_is_the_papers_algorithm(
    given_: list[tuple[list[int], int]], seed: int, iterations: int, lengths: int
) -> None:
    asked = Search(method="mask_predict", iterations=iterations, lengths=lengths, nbest=lengths)
    model = Table(seed)
    assert isinstance(model, Fills)
    found = searched(model, [source for source, _ in given_], [limit for _, limit in given_], asked)
    for (source, limit), hypotheses in zip(given_, found, strict=True):
        expected = by_the_paper(model, source, limit, asked)
        assert [each.tokens for each in hypotheses] == [tokens for tokens, _ in expected]
        for hypothesis, (tokens, values) in zip(hypotheses, expected, strict=True):
            assert hypothesis.token_log_probabilities == pytest.approx(values)
            assert hypothesis.log_probability == pytest.approx(sum(values))
            assert hypothesis.score == pytest.approx(sum(values) / len(tokens) ** asked.alpha)
            assert hypothesis.ended
            assert len(tokens) <= limit


def test_of_equal_ones_the_shorter_length_the_lower_token_and_the_earlier_place() -> None:
    asked = Search(method="mask_predict", iterations=3, lengths=2, nbest=2, alpha=0)
    [found] = searched(Table(0, equal=True), [[3, 4]], [6], asked)
    assert [each.tokens for each in found] == [(END,), (3, END)]


@settings(max_examples=20)
@given(given_=sources_and_limits, seed=st.integers(0, 999), random=st.randoms(use_true_random=False))
def test_alone_batched_and_shuffled(given_: list[tuple[list[int], int]], seed: int, random: Random) -> None:
    asked, model = Search(method="mask_predict", iterations=3, lengths=3, nbest=2), Table(seed)
    order = random.sample(range(len(given_)), len(given_))
    batched = searched(model, [source for source, _ in given_], [limit for _, limit in given_], asked)
    again = searched(model, [given_[line][0] for line in order], [given_[line][1] for line in order], asked)
    for place, line in enumerate(order):
        source, limit = given_[line]
        assert searched(model, [source], [limit], asked)[0] == batched[line] == again[place]


def fills() -> dict[str, object]:
    sizes = {"d_model": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 24}
    return {"kind": "non_autoregressive", "tied": "none", **sizes}


@pytest.mark.parametrize("iterations", [1, 4])
def test_a_model_translates_the_same_alone_and_in_any_batch(iterations: int) -> None:
    pipeline = translator(model=fills())
    texts = sentences(40)
    together = pipeline.predict(texts, batch_size=16, iterations=iterations)
    alone = pipeline.predict(texts, batch_size=1, iterations=iterations)
    for one, other in zip(together, alone, strict=True):
        assert (one.text, one.ended) == (other.text, True)
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)
    assert len({each.text for each in together}) > 12


def test_with_one_iteration_log_p_is_the_models_own_likelihood_of_the_output() -> None:
    pipeline = translator(model=fills())
    texts = [text for text in sentences(30) if text]
    found = pipeline.predict(texts, iterations=1)
    likelihoods = pipeline.score([(text, each.text) for text, each in zip(texts, found, strict=True)])
    for prediction, likelihood in zip(found, likelihoods, strict=True):
        assert prediction.log_probability == pytest.approx(likelihood.log_probability, abs=1e-4)
        assert likelihood.tokens == len(prediction.tokens) + 1


def test_one_iteration_takes_the_likeliest_word_everywhere_and_more_change_only_hidden_ones() -> None:
    pipeline = translator(model=fills())
    one, two = (pipeline.predict(["ba de fi go ba de"], iterations=count, lengths=1)[0] for count in (1, 2))
    kept = sum(a == b for a, b in zip(one.tokens, two.tokens, strict=True))
    assert kept >= len(one.tokens) - len(one.tokens) // 2
    sure = sorted(range(len(one.tokens)), key=lambda place: one.token_log_probabilities[place])[len(one.tokens) // 2 :]
    assert all(one.tokens[place] == two.tokens[place] for place in sure)


def test_the_method_follows_the_model() -> None:
    assert translator(model=fills()).recipe.search.method == "mask_predict"
    assert translator().recipe.search.method == "beam"
    assert quickest(translator(model=fills()).model).method == "mask_predict"
    assert quickest(translator().model).method == "greedy"


@pytest.mark.parametrize("method", ["greedy", "beam", "sample", "exhaustive"])
def test_a_search_from_token_to_token_is_refused(method: str) -> None:
    with pytest.raises(InputError, match=f'method "{method}" goes from one token to the next.*use "mask_predict"'):
        translator(model=fills()).predict(["ba"], method=method)


def test_mask_predict_is_refused_for_a_model_that_steps() -> None:
    with pytest.raises(InputError, match=r'models that write all words at once.*use "beam"'):
        search(RandomTree(4, 0), None, [Request(3)], Search(method="mask_predict"), start=0, end=1)


def test_a_prefix_is_refused() -> None:
    asked = Search(method="mask_predict")
    with pytest.raises(InputError, match="cannot begin with given tokens"):
        search(Table(0), padded([[3]]), [Request(4, prefix=[5])], asked, start=START, end=END)


def test_no_more_outputs_than_lengths_can_be_listed() -> None:
    with pytest.raises(ValueError, match="nbest = 4 is more than lengths = 3"):
        Search(method="mask_predict", nbest=4)


def test_what_is_not_a_number_is_no_logit() -> None:
    model = Table(0)
    model.words[:, 5] = math.nan
    with pytest.raises(TransduceError, match="not a number"):
        searched(model, [[3, 4]], [6], Search(method="mask_predict"))


def test_a_token_outside_the_vocabulary_is_named() -> None:
    with pytest.raises(InputError, match=r"tokens \[77\] are outside the model's vocabulary of 9"):
        search(Table(1), padded([[3]]), [Request(9)], Search(method="mask_predict"), start=0, end=1, forbidden=[77])
