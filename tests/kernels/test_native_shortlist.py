"""A search in one call among the words of shortlists, against the same step by step and against all their outputs."""

from typing import Any

import pytest
import torch
from test_native_beam import END, LENGTHS, SETTINGS, START, Steps, found, in_one_call, model_of, sources
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.kernels.matmul import Precision
from transduce.kernels.native.tensors import can_pack
from transduce.search.hypothesis import Hypothesis
from transduce.search.settings import Search

pytestmark = pytest.mark.usefixtures("kernels")
WORDS = 150  # several panels
PRECISIONS: list[Precision] = ["fp32", "int8"]


@pytest.fixture(params=PRECISIONS)
def precision(request: pytest.FixtureRequest) -> Precision:
    if request.param == "int8" and not can_pack(torch.zeros(1, 1), int8=True):
        pytest.skip("no 8-bit products on this processor")
    precision: Precision = request.param
    return precision


def lists(words: int = WORDS, rows: int = len(LENGTHS), share: float = 0.5) -> Tensor:
    """(rows, words) bool, of very different lengths."""
    torch.manual_seed(8)
    return torch.rand(rows, words) < torch.linspace(0.02, 2 * share, rows)[:, None]


def assert_same(some: list[list[Hypothesis]], others: list[list[Hypothesis]]) -> None:
    for one, other in zip(some, others, strict=True):
        assert [each.tokens for each in one] == [each.tokens for each in other]
        assert [each.ended for each in one] == [each.ended for each in other]
        assert [each.score for each in one] == pytest.approx([each.score for each in other], abs=1e-5)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_it_finds_what_steps_find(settings: dict[str, Any], precision: Precision) -> None:
    model, wanted = model_of(WORDS, precision), Search(**settings)
    one = in_one_call(model, sources(WORDS), wanted, shortlist=lists())
    assert_same(one, found(Steps(model), sources(WORDS), wanted, shortlist=lists()))
    for row, hypotheses in enumerate(one):
        said = {token for each in hypotheses for token in each.tokens} - {END}
        assert lists()[row, list(said)].all()
        assert not said & {0, START}


def test_a_list_of_all_words_is_none(precision: Precision) -> None:
    model, wanted = model_of(WORDS, precision), Search(beam=4, nbest=4)
    every = torch.ones(len(LENGTHS), WORDS, dtype=torch.bool)
    bare = {"forbidden": []}
    one = in_one_call(model, sources(WORDS), wanted, shortlist=every, **bare)
    assert one == in_one_call(model, sources(WORDS), wanted, **bare), "to the last bit"


def test_words_weigh_what_they_weigh_among_all(precision: Precision) -> None:
    """Where lists of two words are searched, the difference of their log-probabilities is that among all words."""
    model, wanted = model_of(WORDS, precision), Search(beam=2, nbest=2, max_length_factor=0, max_length_offset=1)
    for word in (5, 40, 77, 149):
        two = torch.zeros(len(LENGTHS), WORDS, dtype=torch.bool)
        two[:, word] = True
        among_two = in_one_call(model, sources(WORDS), wanted, shortlist=two)
        among_all = in_one_call(model, sources(WORDS), wanted.model_copy(update={"beam": WORDS, "nbest": WORDS}))
        for one, every in zip(among_two, among_all, strict=True):
            mine = {each.tokens: each.log_probability for each in one}
            other = {each.tokens: each.log_probability for each in every}
            difference = other[word,] - other[END,]
            assert mine[word,] - mine[END,] == pytest.approx(difference, abs=1e-5)


def test_a_sentence_gets_the_same_alone(precision: Precision) -> None:
    model, source, settings = model_of(WORDS, precision), sources(WORDS), Search(beam=4, nbest=4)
    together = in_one_call(model, source, settings, shortlist=lists())
    for row, length in enumerate(LENGTHS):
        alone = Padded(source.values[row : row + 1, :length], source.lengths[row : row + 1])
        assert in_one_call(model, alone, settings, shortlist=lists()[row : row + 1]) == together[row : row + 1]


def test_a_beam_as_wide_as_all_there_is_finds_the_best_of_all_outputs_of_listed_words() -> None:
    model, source = model_of(words=40), sources(words=40)
    few = torch.zeros(len(LENGTHS), 40, dtype=torch.bool)
    for row in range(len(LENGTHS)):
        few[row, [3 + row, 20, 33 + row]] = True
    short = {"max_length_factor": 0, "max_length_offset": 4, "nbest": 5}
    wide = in_one_call(model, source, Search(beam=4**4, **short), shortlist=few)
    assert_same(wide, found(Steps(model), source, Search(method="exhaustive", **short), shortlist=few))


def test_threads_change_nothing(precision: Precision) -> None:
    model, settings = model_of(WORDS, precision), Search(beam=4, nbest=4)
    before = torch.get_num_threads()
    one = in_one_call(model, sources(WORDS), settings, shortlist=lists())
    torch.set_num_threads(2)
    two = in_one_call(model, sources(WORDS), settings, shortlist=lists())
    torch.set_num_threads(before)
    assert one == two


def test_another_vocabulary_is_refused() -> None:
    for model in (model_of(), Steps(model_of())):
        with pytest.raises(InputError, match="a shortlist out of 30 tokens; the model has 31"):
            found(model, sources(), Search(), shortlist=lists(30))
