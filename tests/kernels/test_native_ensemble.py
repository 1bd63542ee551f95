"""An ensemble searched in one call, against the same search step by step and against all outputs there are."""

from typing import Any

import pytest
import torch
from torch import Tensor

from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.fused.pack import pack_all
from transduce.kernels.matmul import Precision
from transduce.kernels.native.tensors import can_pack
from transduce.layers.fused_search import Mean
from transduce.models.protocols import Tree
from transduce.models.rnn import Rnn, RnnConfig
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.search.dispatch import search
from transduce.search.ensemble import Ensemble
from transduce.search.hypothesis import Hypothesis
from transduce.search.request import Request
from transduce.search.settings import Search

pytestmark = pytest.mark.usefixtures("kernels")
START, END = 1, 2
LENGTHS = [7, 3, 1, 9, 5]
MEANS: list[Mean] = ["probability", "log_probability"]


def member(seed: int, words: int = 31, precision: Precision = "fp32", **table: Any) -> Transformer:
    """With weights so large that members disagree and outputs are of different lengths."""
    torch.manual_seed(seed)
    plain = {"d_model": 24, "heads": 3, "feed_forward": 40, "encoder_layers": 1, "decoder_layers": 2}
    model = Transformer(TransformerConfig.model_validate({**plain, **table}), Specs.of_tokens(words, words)).eval()
    for weight in model.parameters():
        weight.data.mul_(2.0)
    pack_all(model, precision)
    return model


def ensemble(mean: Mean, words: int = 31, precision: Precision = "fp32") -> Ensemble:
    """Of three widths and depths."""
    tables = ({}, {"d_model": 16, "heads": 2, "decoder_layers": 1, "norm": "post"}, {"positions": "learned"})
    members = [member(seed, words, precision, **table) for seed, table in enumerate(tables)]  # type: ignore[arg-type]
    return Ensemble(members, mean).eval()


def sources(words: int = 31) -> Padded:
    torch.manual_seed(4)
    return Padded(torch.randint(words, (len(LENGTHS), max(LENGTHS))), torch.tensor(LENGTHS))


class Steps:
    """The ensemble, asked step by step alone."""

    def __init__(self, model: Ensemble) -> None:
        self.start, self.step = model.start, model.step


def found(model: Any, source: Padded, settings: Search) -> list[list[Hypothesis]]:
    requests = [Request(settings.limit(int(length))) for length in source.lengths]
    given: dict[str, Any] = {"start": START, "end": END, "forbidden": [0, START]}
    return search(model, source, requests, settings, **given)


def in_one_call(model: Ensemble, source: Padded, settings: Search) -> list[list[Hypothesis]]:
    """As `found`; not a single step is asked for."""

    def refused(self: Ensemble, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        raise AssertionError("a step was asked for")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ensemble, "step", refused)
        return found(model, source, settings)


def assert_same(one: list[list[Hypothesis]], other: list[list[Hypothesis]]) -> None:
    assert [[each.tokens for each in row] for row in one] == [[each.tokens for each in row] for row in other]
    for mine, theirs in zip(one, other, strict=True):
        for each, its in zip(mine, theirs, strict=True):
            assert each.ended == its.ended
            assert each.score == pytest.approx(its.score, abs=1e-5)
            assert each.token_log_probabilities == pytest.approx(its.token_log_probabilities, abs=1e-5)


SETTINGS = [
    {"method": "greedy"},
    {},
    {"beam": 4, "nbest": 4},
    {"beam": 6, "nbest": 2, "prune": 1.0},
    {"beam": 40, "max_length_factor": 0, "max_length_offset": 3},
]


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_it_finds_what_steps_find(settings: dict[str, Any], mean: Mean) -> None:
    model, wanted = ensemble(mean), Search(**settings)
    one = in_one_call(model, sources(), wanted)
    assert_same(one, found(Steps(model), sources(), wanted))
    alone = [found(each, sources(), wanted) for each in model.members]
    assert all([row[0].tokens for row in one] != [row[0].tokens for row in every] for every in alone)


@pytest.mark.parametrize("mean", MEANS)
def test_members_that_read_other_tokens_read_them(mean: Mean) -> None:
    model, source = ensemble(mean), sources()
    other = torch.roll(source.values, 1, 1)
    behind = torch.arange(max(LENGTHS)) >= torch.tensor([2, 3, 4, 1, 6])[:, None]
    columns = torch.stack([source.values, other.masked_fill(behind, -1), source.values], -1)
    columns[torch.arange(max(LENGTHS)) >= source.lengths[:, None]] = torch.tensor([-1, 0, -1])
    columns[..., 1] = other.masked_fill(behind, -1)
    each_its_own = Padded(columns, source.lengths)
    assert_same(in_one_call(model, each_its_own, Search()), found(Steps(model), each_its_own, Search()))


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("mean", MEANS)
def test_a_sentence_gets_the_same_alone(mean: Mean, precision: Precision) -> None:
    if precision == "int8" and not can_pack(torch.zeros(1, 1), int8=True):
        pytest.skip("no 8-bit products on this processor")
    model, source, settings = ensemble(mean, precision=precision), sources(), Search(beam=4, nbest=4)
    together = in_one_call(model, source, settings)
    for row, length in enumerate(LENGTHS):
        alone = Padded(source.values[row : row + 1, :length], source.lengths[row : row + 1])
        assert in_one_call(model, alone, settings) == together[row : row + 1]


@pytest.mark.parametrize("mean", MEANS)
def test_a_beam_as_wide_as_all_there_is_finds_the_best_of_all_outputs(mean: Mean) -> None:
    model, source = ensemble(mean, words=6), sources(words=6)
    short = {"max_length_factor": 0, "max_length_offset": 4, "nbest": 5}
    wide = in_one_call(model, source, Search(beam=4**4, **short))  # type: ignore[arg-type]
    assert_same(wide, found(Steps(model), source, Search(method="exhaustive", **short)))  # type: ignore[arg-type]


def test_a_member_that_must_be_stepped_has_all_of_them_stepped() -> None:
    torch.manual_seed(7)
    config = RnnConfig.model_validate({"d_model": 16, "encoder_layers": 1, "decoder_layers": 1})
    recurrent = Rnn(config, Specs.of_tokens(31, 31)).eval()
    model = Ensemble([member(1), recurrent]).eval()
    assert found(model, sources(), Search()) == found(Steps(model), sources(), Search())
