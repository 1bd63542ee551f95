"""A whole search in one call, against the same search step by step and against all outputs there are."""

from typing import Any

import pytest
import torch
from torch import Tensor

from transduce.attention import capture
from transduce.core.errors import InputError, TransduceError
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.fused.pack import pack_all
from transduce.kernels.matmul import Precision
from transduce.kernels.native.tensors import can_pack
from transduce.models.protocols import Tree
from transduce.models.ssru_transformer import SsruTransformer, SsruTransformerConfig
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.search.dispatch import search
from transduce.search.hypothesis import Hypothesis
from transduce.search.request import Request
from transduce.search.settings import Search

pytestmark = pytest.mark.usefixtures("kernels")
START, END = 1, 2
LENGTHS = [7, 3, 1, 9, 5]


def model_of(words: int = 31, precision: Precision = "fp32", **table: Any) -> Transformer:
    """With weights so large that outputs are of different lengths."""
    torch.manual_seed(3)
    plain = {"d_model": 24, "heads": 3, "feed_forward": 40, "encoder_layers": 1, "decoder_layers": 2}
    model = Transformer(TransformerConfig.model_validate({**plain, **table}), Specs.of_tokens(words, words)).eval()
    for weight in model.parameters():
        weight.data.mul_(2.0)
    pack_all(model, precision)
    return model


def sources(words: int = 31, lengths: list[int] = LENGTHS) -> Padded:
    torch.manual_seed(4)
    return Padded(torch.randint(words, (len(lengths), max(lengths))), torch.tensor(lengths))


class Steps:
    """The model, asked step by step alone."""

    def __init__(self, model: Transformer) -> None:
        self.start, self.step = model.start, model.step


def found(
    model: Any,
    source: Padded,
    settings: Search,
    rules: dict[str, Any] | None = None,
    prefixes: list[list[int]] | None = None,
    **more: Any,
) -> list[list[Hypothesis]]:
    """rules: of each request. prefixes: of the requests, one each."""
    each_own = [{"prefix": prefix} for prefix in prefixes] if prefixes else [{}] * len(source.lengths)
    requests = [
        Request(**{"limit": settings.limit(int(length)), **(rules or {}), **own})
        for length, own in zip(source.lengths, each_own, strict=True)
    ]
    given: dict[str, Any] = {"start": START, "end": END, "forbidden": [0, START]}
    return search(model, source, requests, settings, **{**given, **more})


def in_one_call(model: Any, source: Padded, settings: Search, **more: Any) -> list[list[Hypothesis]]:
    """As `found`; not a single step is asked for."""
    asked: list[Tensor] = []
    original = type(model).step

    def counted(self: Any, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        asked.append(token)
        return original(self, token, memory, state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model), "step", counted)
        hypotheses = found(model, source, settings, **more)
    assert not asked
    return hypotheses


SETTINGS = [
    {},
    {"method": "greedy"},
    {"beam": 1},
    {"beam": 4, "nbest": 4},
    {"beam": 6, "nbest": 2, "prune": 1.0},
    {"beam": 3, "length_rule": "gnmt", "alpha": 1.2},
    {"beam": 3, "length_rule": "none"},
    {"beam": 5, "max_length_factor": 0, "max_length_offset": 4},
    {"beam": 40, "max_length_factor": 0, "max_length_offset": 3},
]


OF_OTHERS: list[dict[str, Any]] = [  # as Marian, BART, M2M-100 have them
    {"norm": "post", "norm_epsilon": 1e-6, "positions": "tensor2tensor", "zero_start": True, "output_bias": True},
    {"norm": "post", "positions": "learned", "embedding_norm": True, "scale_embeddings": False, "activation": "gelu"},
    {"positions": "tensor2tensor", "first_position": 2, "tied": "input", "activation": "swish"},
]


@pytest.mark.parametrize(
    "table", [{}, {"norm": "post"}, *({"positions": kind} for kind in ("learned", "none", "rotary")), *OF_OTHERS]
)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_it_finds_what_steps_find(settings: dict[str, Any], table: dict[str, Any]) -> None:
    model, wanted = model_of(**table), Search(**settings)
    one, many = in_one_call(model, sources(), wanted), found(Steps(model), sources(), wanted)
    assert one == many, "to the last bit"
    assert len({len(each.tokens) for sentence in one for each in sentence}) > 1 or wanted.max_length_factor == 0


RECURRENT: list[dict[str, Any]] = [
    {},
    {"norm": "post", "norm_epsilon": 1e-6, "positions": "tensor2tensor", "decoder_positions": True, "zero_start": True},
    {"scale_embeddings": False, "output_bias": True, "activation": "swiglu", "tied": "none"},
]


def recurrent(table: dict[str, Any], packed: bool = True, words: int = 31) -> SsruTransformer:
    """With large weights; packed, or made of torch's modules alone."""
    torch.manual_seed(3)
    plain = {"d_model": 24, "heads": 3, "feed_forward": 40, "encoder_layers": 1, "decoder_layers": 2}
    config = SsruTransformerConfig.model_validate({**plain, **table})
    model = SsruTransformer(config, Specs.of_tokens(words, words)).eval()
    for name, weight in model.named_parameters():
        weight.data.mul_(2.0)
        if "bias" in name:
            weight.data.add_(torch.randn_like(weight))
    if packed:
        pack_all(model)
    return model


def assert_same(ours: list[list[Hypothesis]], theirs: list[list[Hypothesis]]) -> None:
    """The same tokens, and scores but for rounding."""
    for one, other in zip(ours, theirs, strict=True):
        assert [each.tokens for each in one] == [each.tokens for each in other]
        assert [each.score for each in one] == pytest.approx([each.score for each in other], abs=1e-4)


@pytest.mark.parametrize("table", RECURRENT, ids=str)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_recurrent_decoder_finds_what_torchs_modules_find(settings: dict[str, Any], table: dict[str, Any]) -> None:
    wanted = Search(**settings)
    one = in_one_call(recurrent(table), sources(), wanted)
    assert_same(one, found(recurrent(table, packed=False), sources(), wanted))
    for row, length in enumerate(LENGTHS):
        alone = Padded(sources().values[row : row + 1, :length], sources().lengths[row : row + 1])
        assert in_one_call(recurrent(table), alone, wanted) == one[row : row + 1], "to the last bit"


@pytest.mark.parametrize("make", [model_of, lambda: recurrent(RECURRENT[1])], ids=["attention", "recurrent"])
@pytest.mark.parametrize("settings", [{"method": "greedy"}, {"beam": 4, "nbest": 3}], ids=str)
@pytest.mark.parametrize("listed", [False, True])
def test_outputs_begin_with_their_prefixes(make: Any, settings: dict[str, Any], listed: bool) -> None:
    model, wanted, prefixes = make(), Search(**settings), [[5], [], [0, 7, 9], [3, 3], [START]]
    lists = torch.rand(len(LENGTHS), 31, generator=torch.Generator().manual_seed(1)) < 0.4 if listed else None
    one = in_one_call(model, sources(), wanted, prefixes=prefixes, shortlist=lists)
    assert_same(one, found(Steps(model), sources(), wanted, prefixes=prefixes, shortlist=lists))
    for row, prefix in zip(one, prefixes, strict=True):
        assert all([*each.tokens][: len(prefix)] == prefix for each in row)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_sentence_gets_the_same_alone(precision: Precision) -> None:
    if precision == "int8" and not can_pack(torch.zeros(1, 1), int8=True):
        pytest.skip("no 8-bit products on this processor")
    model, source, settings = model_of(precision=precision), sources(), Search(beam=4, nbest=4)
    together = in_one_call(model, source, settings)
    for row, length in enumerate(LENGTHS):
        alone = Padded(source.values[row : row + 1, :length], source.lengths[row : row + 1])
        assert in_one_call(model, alone, settings) == together[row : row + 1]


def test_a_beam_as_wide_as_all_there_is_finds_the_best_of_all_outputs() -> None:
    model, source = model_of(words=6), sources(words=6)
    short = {"max_length_factor": 0, "max_length_offset": 4, "nbest": 5}
    wide = in_one_call(model, source, Search(beam=4**4, **short))
    every = found(Steps(model), source, Search(method="exhaustive", **short))
    for mine, best in zip(wide, every, strict=True):
        assert [each.tokens for each in mine] == [each.tokens for each in best]
        assert [each.score for each in mine] == pytest.approx([each.score for each in best], abs=1e-5)


def test_long_outputs_outgrow_the_room_and_use_columns_again() -> None:
    model, settings = model_of(), Search(beam=4, nbest=4, max_length_offset=90)
    never_ending = {"forbidden": [0, START], "end": 30, "rules": {"limit": 90}}
    model.output.weight.data[30] = -model.output.weight.data.mean(0) * 50
    pack_all(model)
    one = in_one_call(model, sources(), settings, **never_ending)
    assert max(len(each.tokens) for sentence in one for each in sentence) > 80
    assert one == found(Steps(model), sources(), settings, **never_ending)


@pytest.mark.parametrize(
    "more",
    [{"rules": {"min_length": 2}}, {"rules": {"never_first": [5]}}, {"lattices": []}],
    ids=str,
)
def test_what_needs_a_look_at_each_step_goes_step_by_step(more: dict[str, Any]) -> None:
    model = model_of()
    assert found(model, sources(), Search(), **more) == found(Steps(model), sources(), Search(), **more)
    with pytest.raises(AssertionError):
        in_one_call(model, sources(), Search(), **more)


def test_whoever_looks_on_sees_each_step() -> None:
    model, source = model_of(), sources()
    with capture(model) as record:
        watched = found(model, source, Search())
    assert len(record["decoder.blocks.0.cross_attention"]) >= max(len(each[0].tokens) for each in watched)
    seen: list[Any] = []
    for place in (model.decoder.blocks[0].feed_forward, model.decoder.norm, model.target_embedding):  # type: ignore[index]
        hook = place.register_forward_hook(lambda *given: seen.append(given[0]))
        found(model, source, Search())
        hook.remove()
        assert place in seen


def test_a_step_of_ones_own_is_asked() -> None:
    model = model_of()
    favourite = found(model, sources(), Search())[0][0].tokens[0]

    class Mine(Transformer):
        def step(self, token_B: Tensor, memory: Any, state: Any) -> tuple[Tensor, Any]:
            log_probabilities_NV, state = super().step(token_B, memory, state)
            return log_probabilities_NV.index_fill(1, torch.tensor([favourite]), -torch.inf), state

    model.__class__ = Mine
    assert not any(favourite in each[0].tokens for each in found(model, sources(), Search()))


def test_learned_positions_that_do_not_reach_are_told_of_when_they_are_met() -> None:
    model = model_of(positions="learned", max_length=12)
    one = found(model, sources(), Search(max_length_factor=0, max_length_offset=12))
    assert one == found(Steps(model), sources(), Search(max_length_factor=0, max_length_offset=12))
    with pytest.raises(InputError, match="learned positions for 12 tokens"):
        found(model, sources(), Search(max_length_factor=0, max_length_offset=30), forbidden=[0, START], end=30)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_log_probability_is_refused(value: float) -> None:
    model = model_of()
    model.output.weight.data[9, 0] = value
    pack_all(model)
    with pytest.raises(TransduceError, match=r"log-probability of (nan|inf)"):
        found(model, sources(), Search())


def test_tokens_outside_the_vocabulary_are_refused() -> None:
    with pytest.raises(InputError, match="forbidden token 31 is outside"):
        found(model_of(), sources(), Search(), forbidden=[0, 31])
