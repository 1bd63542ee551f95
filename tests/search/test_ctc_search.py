"""The search of CTC models against all outputs, with their probabilities from all rows of places."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_steps import RandomTree, padded
from torch import Tensor

from random_models import sentences, translator
from transduce.core.errors import InputError, TransduceError
from transduce.core.padded import Padded
from transduce.data.kneser_ney import KneserNey
from transduce.kernels.native import prefixes as native
from transduce.models.protocols import Aligns
from transduce.search import ctc
from transduce.search.dispatch import quickest, search
from transduce.search.hypothesis import Hypothesis
from transduce.search.request import Request
from transduce.search.settings import Search

BLANK, END, FORBIDDEN, VOCABULARY = 0, 1, 2, 5
NONE = {"lm_weight": 0.0}
PLAIN = {"kind": "ctc", "tied": "none", "d_model": 16, "heads": 2, "feed_forward": 24}


class Table:
    """Random distributions for every place of every source: a hash of both picks a row."""

    ROWS = 9973

    def __init__(self, seed: int, scale: float = 2.0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.logits = scale * torch.randn(self.ROWS, VOCABULARY, generator=generator, dtype=torch.float64)

    def align(self, source: Padded, min_length: Tensor | None = None) -> Padded:
        lengths_B = source.lengths if min_length is None else torch.maximum(source.lengths, min_length)
        key_B = (source.values * source.mask()).sum(1) * 31 + source.lengths
        place_BP = key_B[:, None] * 17 + torch.arange(int(lengths_B.max()))
        return Padded(self.logits[place_BP % self.ROWS], lengths_B)


def by_all_rows(model: Table, source: list[int]) -> dict[tuple[int, ...], float]:
    """log p of every output that holds nothing forbidden."""
    probability_PV = model.align(padded([source])).values[0].softmax(-1).tolist()
    found: dict[tuple[int, ...], list[float]] = {}
    for row in itertools.product((BLANK, 3, 4), repeat=len(source)):
        output = tuple(token for token, _ in itertools.groupby(row) if token != BLANK)
        found.setdefault(output, []).append(math.prod(probability_PV[p][token] for p, token in enumerate(row)))
    return {output: math.log(math.fsum(values)) for output, values in found.items()}


def searched(
    model: Aligns, sources: list[list[int]], asked: Search, limit: int = 9, **more: Any
) -> list[list[Hypothesis]]:
    options = {"start": BLANK, "end": END, "forbidden": [BLANK, FORBIDDEN], **more}
    return search(model, padded(sources), [Request(limit)] * len(sources), asked, **options)  # type: ignore[arg-type]


some_sources = st.lists(st.lists(st.integers(3, 8), min_size=1, max_size=5), min_size=1, max_size=4)


@settings(max_examples=60)
@given(sources=some_sources, seed=st.integers(0, 999))
def test_a_beam_as_wide_as_there_are_outputs_finds_the_best(sources: list[list[int]], seed: int) -> None:
    model, asked = Table(seed), Search(method="ctc", beam=200, nbest=3, length_rule="none")
    assert isinstance(model, Aligns)
    for source, found in zip(sources, searched(model, sources, asked), strict=True):
        everything = by_all_rows(model, source)
        best = sorted(everything, key=lambda output: -everything[output])[:3]
        assert [each.tokens for each in found] == [(*output, END) for output in best]
        assert [each.log_probability for each in found] == pytest.approx(
            [everything[output] for output in best], abs=1e-5
        )


@settings(max_examples=60)
@given(sources=some_sources, seed=st.integers(0, 999))
def test_a_beam_of_one_is_the_best_row_with_the_probability_of_all_that_say_it(
    sources: list[list[int]], seed: int
) -> None:
    model = Table(seed)
    for source, [found] in zip(sources, searched(model, sources, Search(method="ctc", beam=1)), strict=True):
        logits_PV = model.align(padded([source])).values[0]
        row = [max((BLANK, 3, 4), key=lambda token: float(each[token])) for each in logits_PV]
        output = tuple(token for token, _ in itertools.groupby(row) if token != BLANK)
        assert found.tokens == (*output, END)
        assert found.log_probability == pytest.approx(by_all_rows(model, source)[output], abs=1e-5)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize(("order", "weight"), [(1, 0.5), (2, 1.0), (4, 0.3)])
def test_with_n_grams_it_finds_the_best_by_the_sum_of_both(order: int, weight: float) -> None:
    text = [3, 4, END, 3, 4, 3, END, 4, 4, END, 3, END, 3, 4, 4, 3, END, 4, END]
    model, ngrams = Table(7), KneserNey.of(text, VOCABULARY, END, order)
    asked = Search(method="ctc", beam=200, nbest=4, length_rule="none", lm_weight=weight)
    sources = [[5, 3, 4, 8, 3], [3, 3], [7, 4, 6]]
    for source, found in zip(sources, searched(model, sources, asked, ngrams=ngrams), strict=True):
        everything = {
            output: value + weight * float(ngrams.log_probabilities([*output, END]).sum())
            for output, value in by_all_rows(model, source).items()
        }
        best = sorted(everything, key=lambda output: -everything[output])[:4]
        assert [each.tokens for each in found] == [(*output, END) for output in best]
        assert [each.log_probability for each in found] == pytest.approx([everything[each] for each in best], abs=1e-5)


@pytest.mark.usefixtures("kernels")
def test_with_n_grams_the_kernel_keeps_what_python_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Table(11, 1.0)
    drawn = torch.randint(3, 5, (400,), generator=torch.Generator().manual_seed(2)).tolist()
    text = [token for place, token in enumerate(drawn) for token in ((token, END) if place % 5 == 4 else (token,))]
    sources = [[3 + (row * place) % 6 for place in range(9)] for row in range(6)]
    for order, beam in itertools.product((2, 5), (2, 3)):
        asked = Search(method="ctc", beam=beam, nbest=beam, length_rule="none", lm_weight=1.5)
        ngrams, found = KneserNey.of(text, VOCABULARY, END, order), []
        for fast in (True, False):
            monkeypatch.setattr(native, "can_find", lambda value_BPK, fast=fast: fast)
            found.append([[each.tokens for each in row] for row in searched(model, sources, asked, ngrams=ngrams)])
        plain = [[each.tokens for each in row] for row in searched(model, sources, asked.model_copy(update=NONE))]
        assert found[0] == found[1] != plain


def slow_beam(probability_PV: list[list[float]], beam: int) -> set[tuple[int, ...]]:
    """Graves and Jaitly 2014, algorithm 1, with plain probabilities, kept by output and whether it ends in a blank."""
    kept = {((), True): 1.0}
    for place in probability_PV:
        likely = sorted((BLANK, 3, 4), key=lambda token: -place[token])[:beam]
        after: dict[tuple[tuple[int, ...], bool], float] = {}
        for (output, paused), so_far in kept.items():
            for token in {BLANK, *likely}:
                repeats = token != BLANK and not paused and output[-1:] == (token,)
                longer = output if repeats or token == BLANK else (*output, token)
                key = longer, token == BLANK
                after[key] = after.get(key, 0.0) + so_far * place[token]
        whole: dict[tuple[int, ...], float] = {}
        for (output, _), value in after.items():
            whole[output] = whole.get(output, 0.0) + value
        best = set(sorted(whole, key=lambda output: -whole[output])[:beam])
        kept = {key: value for key, value in after.items() if key[0] in best}
    return {output for output, _ in kept}


@settings(max_examples=60)
@given(sources=some_sources, seed=st.integers(0, 999), beam=st.integers(2, 4))
def test_a_narrow_beam_keeps_what_its_definition_keeps(sources: list[list[int]], seed: int, beam: int) -> None:
    model = Table(seed, 1.0)
    asked = Search(method="ctc", beam=beam, nbest=beam, length_rule="none")
    for source, found in zip(sources, searched(model, sources, asked), strict=True):
        probability_PV = model.align(padded([source])).values[0].softmax(-1).tolist()
        assert {each.tokens[:-1] for each in found} == slow_beam(probability_PV, beam)


def test_a_wider_beam_finds_what_the_best_row_does_not() -> None:
    # Two places, each of blank 0.6 and "3" 0.4: the best row, 0.36, is blanks alone; "3" has 0.64 in three rows.
    model = Table(0)
    model.logits[:] = torch.tensor([0.6, 0.0, 0.0, 0.4, 0.0], dtype=torch.float64).log()
    rule = {"method": "ctc", "length_rule": "none"}
    [[narrow]] = searched(model, [[3, 4]], Search.model_validate({**rule, "beam": 1}))
    [[wide]] = searched(model, [[3, 4]], Search.model_validate({**rule, "beam": 2}))
    assert (narrow.tokens, math.exp(narrow.log_probability)) == ((END,), pytest.approx(0.36))
    assert (wide.tokens, math.exp(wide.log_probability)) == ((3, END), pytest.approx(0.64))


def test_an_output_over_its_limit_is_cut_there_and_told_so() -> None:
    model, asked = Table(3), Search(method="ctc", beam=200, nbest=200, length_rule="none")
    everything = by_all_rows(model, [5, 3, 4, 8])
    begins = sum(math.exp(value) for output, value in everything.items() if output[:2] == (3, 4))
    [found] = searched(model, [[5, 3, 4, 8]], asked, limit=2)
    assert max(len(each.tokens) for each in found) == 2
    assert all(each.ended == (each.tokens[-1] == END) for each in found)
    assert len({each.tokens for each in found}) == len(found)
    [cut] = [each for each in found if each.tokens == (3, 4)]
    assert math.exp(cut.log_probability) >= begins * (1 - 1e-5)  # and outputs with what is forbidden begin so, too


@pytest.mark.parametrize("beam", [1, 4])
def test_a_sentence_is_the_same_alone_and_in_any_batch_and_score_agrees(beam: int) -> None:
    pipeline = translator(model=PLAIN)
    texts = [text for text in sentences(24, seed=4) if text]
    together = pipeline.predict(texts, beam=beam, batch_size=24, max_length_factor=3)
    for text, found in zip(texts, together, strict=True):
        [alone] = pipeline.predict([text], beam=beam, max_length_factor=3)
        assert alone.text == found.text
        assert alone.log_probability == pytest.approx(found.log_probability, abs=1e-4)
    pairs = [(each.source, each.text) for each in together]
    scored = pipeline.score(pairs)
    again = [each for each, found in zip(scored, together, strict=True) if found.text]
    told = [found for found in together if found.text]
    assert told
    for likelihood, found in zip(again, told, strict=True):
        assert likelihood.log_probability == pytest.approx(found.log_probability, abs=1e-4)
        assert list(likelihood.token_log_probabilities) == pytest.approx(list(found.token_log_probabilities), abs=1e-4)


def test_the_method_follows_the_model_and_keeps_to_it() -> None:
    pipeline = translator(model=PLAIN)
    assert pipeline.recipe.search.method == "ctc"
    assert quickest(pipeline.model) == Search(method="ctc", beam=1)
    [found] = pipeline.predict(["ba de"], beam=3, nbest=3)
    assert 1 < len(found.alternatives or ()) <= 3


@pytest.mark.parametrize("method", ["greedy", "beam", "sample", "exhaustive"])
def test_a_search_from_token_to_token_is_refused(method: str) -> None:
    with pytest.raises(InputError, match=f'method "{method}" goes from one token to the next.*use "ctc"'):
        translator(model=PLAIN).predict(["ba"], method=method)


def test_methods_are_refused_for_models_of_other_kinds() -> None:
    with pytest.raises(InputError, match=r'models that write all words at once, such as ctc: use "beam"'):
        search(RandomTree(4, 0), None, [Request(3)], Search(method="ctc"), start=0, end=1)
    with pytest.raises(InputError, match=r'"mask_predict" is for models that are non_autoregressive.* use "ctc"'):
        translator(model=PLAIN).predict(["ba"], method="mask_predict")


def test_a_prefix_is_refused() -> None:
    with pytest.raises(InputError, match="cannot begin with given tokens"):
        search(Table(0), padded([[3]]), [Request(4, prefix=[4])], Search(method="ctc"), start=0, end=1)


def test_no_more_outputs_than_the_beam_holds_can_be_listed() -> None:
    with pytest.raises(ValueError, match="nbest = 4 is more than beam = 3"):
        Search(method="ctc", beam=3, nbest=4)


def test_what_is_not_a_number_is_no_logit() -> None:
    model = Table(0)
    model.logits[:, 4] = math.nan
    with pytest.raises(TransduceError, match="not a number"):
        searched(model, [[3, 4]], Search(method="ctc"))


def test_a_token_outside_the_vocabulary_is_named() -> None:
    with pytest.raises(InputError, match=r"tokens \[77\] are outside the model's vocabulary of 5"):
        search(Table(1), padded([[3]]), [Request(9)], Search(method="ctc"), start=0, end=1, forbidden=[77])


@pytest.mark.usefixtures("kernels")
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 9), st.booleans(), st.integers(1, 5))
def test_the_kernel_finds_what_the_loops_do(seed: int, beam: int, ties: bool, count: int) -> None:
    """Also among equally likely outputs, and where tokens are impossible."""
    generator = torch.Generator().manual_seed(seed)
    lengths_B = torch.randint(1, 9, (4,), generator=generator)
    logits_BPV = torch.randn(4, 8, 6, generator=generator)
    logits_BPV = logits_BPV.round() if ties else logits_BPV
    logits_BPV[torch.rand(4, 8, 6, generator=generator) < 0.1] = -math.inf
    logits_BPV[..., BLANK] = logits_BPV[..., BLANK].clamp(min=-9)
    normed_BPV = logits_BPV.double().log_softmax(-1)
    value_BPK, token_BPK = normed_BPV.topk(count)
    blank_BP = normed_BPV[..., BLANK]
    found = native.ctc_prefixes(value_BPK, token_BPK, blank_BP, lengths_B, 6, BLANK, beam)
    rows = zip(value_BPK.tolist(), token_BPK.tolist(), blank_BP.tolist(), lengths_B.tolist(), strict=True)
    for outputs, (values, tokens, blanks, length) in zip(found, rows, strict=True):
        assert outputs == ctc._beam(
            values[:length], tokens[:length], blanks[:length], BLANK, beam, ctc._Likely(None, 0.0)
        )
