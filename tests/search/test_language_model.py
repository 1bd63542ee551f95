"""Search with n-grams beside the model, against the sum of both over all outputs."""

import itertools
from typing import Any

import pytest
import torch

from forced_decoding import forced
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.columns import ColumnSpec, Specs
from transduce.data.kneser_ney import KneserNey
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.search.dispatch import search
from transduce.search.request import Request
from transduce.search.settings import Search

PAD, START, END = 0, 1, 2
WORDS = [3, 4, 5]
TEXT = [3, 4, END, 3, 4, 5, END, 5, 5, END, 3, 4, END, 4, END, 5, 3, 4, END]
NGRAMS = KneserNey.of(TEXT, 6, END, 3)
GIVEN: dict[str, Any] = {"start": START, "end": END, "forbidden": [PAD, START]}
PLAIN: dict[str, Any] = {"length_rule": "none", "alpha": 0}


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(5)
    sizes = {"d_model": 8, "heads": 2, "feed_forward": 12, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    made = Transformer(TransformerConfig.model_validate(sizes), Specs(ColumnSpec("tokens", 7), ColumnSpec("tokens", 6)))
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.7)  # so that outputs differ
    return made.eval()


def sources() -> Padded:
    return Padded(torch.tensor([[4, 5, 6, 2], [6, 3, 0, 0]]), torch.tensor([4, 2]))


def outputs(longest: int) -> list[list[int]]:
    return [[*said, END] for length in range(longest + 1) for said in itertools.product(WORDS, repeat=length)]


@pytest.mark.parametrize("weight", [0.3, 2.0])
def test_a_wide_beam_finds_the_best_by_the_sum_of_both(model: Any, weight: float) -> None:
    found = search(
        model, sources(), [Request(4)] * 2, Search(beam=80, nbest=5, lm_weight=weight, **PLAIN), ngrams=NGRAMS, **GIVEN
    )
    sums: list[list[tuple[float, list[int]]]] = [[], []]
    for said in outputs(3):
        likely = float(NGRAMS.log_probabilities(said).sum())
        alone = forced(model, sources(), [said] * 2, start=START, end=END)
        for row in range(2):
            sums[row].append((alone[row].log_probability + weight * likely, said))
    for row in range(2):
        best = sorted(sums[row], reverse=True)[:5]
        assert [list(each.tokens) for each in found[row]] == [said for _, said in best]
        assert [each.log_probability for each in found[row]] == pytest.approx([value for value, _ in best], abs=1e-4)


@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_an_output_is_the_same_alone_and_in_a_batch(model: Any, method: str) -> None:
    settings = Search(method=method, beam=1 if method == "greedy" else 4, lm_weight=0.8)
    together = search(model, sources(), [Request(6)] * 2, settings, ngrams=NGRAMS, **GIVEN)
    one = Padded(sources().values[1:, :2], sources().lengths[1:])
    [alone] = search(model, one, [Request(6)], settings, ngrams=NGRAMS, **GIVEN)
    assert [each.tokens for each in alone] == [each.tokens for each in together[1]]
    without = search(model, sources(), [Request(6)] * 2, settings.model_copy(update={"lm_weight": 0.0}), **GIVEN)
    assert [each[0].log_probability for each in without] != [each[0].log_probability for each in together]


def test_what_cannot_be_is_told(model: Any) -> None:
    with pytest.raises(InputError, match="this model has no n-grams"):
        search(model, sources(), [Request(4)] * 2, Search(lm_weight=0.3), **GIVEN)
    impossible: list[dict[str, Any]] = [{"coverage": 0.2}, {"shortlist": 5}, {"method": "sample"}]
    for each in [*impossible, {"method": "ctc", "beam": 1}, {"method": "mask_predict"}]:
        with pytest.raises(ValueError, match="without coverage or a shortlist"):
            Search(lm_weight=0.3, **each)
