"""A decoder's step in one call, against the whole pass of teacher forcing, and its products against fp64."""

from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor, nn

from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.fused.pack import pack_all
from transduce.fused.stack import FusedBlocks, OnePass, OneToken
from transduce.kernels.matmul import Precision, quantised
from transduce.kernels.native import kernels as found
from transduce.kernels.native.linear import Packed
from transduce.kernels.native.tensors import can_pack
from transduce.kernels.native.top import log_softmax_, top
from transduce.models.protocols import select
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.models.transformer_decoder import TransformerDecoder, TransformerDecoderConfig

Model = TypeVar("Model", Transformer, TransformerDecoder)
pytestmark = pytest.mark.usefixtures("kernels")
SIZES = [(1, 1, 1), (1, 8, 3), (5, 33, 70), (4, 6, 64), (61, 256, 65), (130, 64, 33)]  # rows, inputs, outputs
STRETCHED = {"positions": "rotary", "rotary_base": 50.0, "rotary_scaling": {"kind": "linear", "factor": 2.0}}
PLAIN: dict[str, Any] = {"d_model": 24, "heads": 3, "feed_forward": 40, "encoder_layers": 2, "decoder_layers": 3}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("rows", "inputs", "outputs"), SIZES)
def test_a_packed_product_is_the_product(rows: int, inputs: int, outputs: int, bias: bool) -> None:
    torch.manual_seed(rows)
    x, weight, added = torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.randn(outputs)
    packed = Packed(weight, added if bias else None)
    expected = x.double() @ weight.double().T + (added if bias else 0)
    torch.testing.assert_close(packed(x).double(), expected, rtol=1e-5, atol=1e-4)
    assert torch.equal(packed(x[-1:]), packed(x)[-1:]), "a row does not know the others"


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SIZES)
def test_a_product_in_8_bits_is_exact_in_what_is_left(rows: int, inputs: int, outputs: int) -> None:
    torch.manual_seed(rows)
    x, weight, bias = torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.randn(outputs)
    if not can_pack(weight, int8=True):
        pytest.skip(f"no 8-bit products in {found().__name__}")
    x[0] = 0
    whole_OI, scale_O = quantised(weight)
    scale_N1 = torch.where(x.abs().amax(1, keepdim=True) > 0, x.abs().amax(1, keepdim=True) / 127, 1.0)
    whole_NI = (x * scale_N1.reciprocal() + 128.5).to(torch.uint8).long() - 128
    expected = (whole_NI @ whole_OI.long().T) * scale_N1.double() * scale_O + bias
    torch.testing.assert_close(Packed(weight, bias, int8=True)(x).double(), expected, rtol=1e-5, atol=1e-5)


def test_a_weight_is_quantised_as_torch_does_it() -> None:
    torch.manual_seed(0)
    weight = torch.randn(70, 13)
    weight[3], weight[4], weight[5] = 0.0, 1e-36, 1.1e-36  # what is no greater than 1e-36 counts as 0
    weight[6] = torch.arange(-6, 7) * 0.5 * 127 / 6  # ties, which go to the even number
    if not can_pack(weight, int8=True):
        pytest.skip(f"no 8-bit products in {found().__name__}")
    packed, (whole_OI, scale_O) = Packed(weight, int8=True), quantised(weight)
    assert packed.rows is not None
    assert (packed.rows[:, :13] == whole_OI.numpy()).all()
    assert not packed.rows[:, 13:].any()
    assert (packed._scale_O == scale_O.numpy()).all()
    assert (packed._above_O == 128 * whole_OI.sum(1, dtype=torch.int32).numpy()).all()


def model_of(**table: Any) -> Transformer:
    torch.manual_seed(1)
    return drawn_vectors(
        Transformer(TransformerConfig.model_validate({**PLAIN, **table}), Specs.of_tokens(31, 31)).eval()
    )


def drawn_vectors(model: Model) -> Model:
    """With gains and biases that are not 1 and 0."""
    for weight in model.parameters():
        if weight.ndim == 1:
            nn.init.normal_(weight, 0.5, 0.5)
    return model


def source_of() -> Padded:
    return Padded(torch.randint(31, (3, 7)), torch.tensor([7, 3, 5]))


def stepped(model: Any, source: Padded | None, rows_TN: list[Tensor], token_TN: list[Tensor]) -> list[Tensor]:
    """The log-probabilities of each step of hypotheses that are reordered before it."""
    memory, state = model.start(source, len(source.lengths) if source else 3)
    said = []
    for row_N, token_N in zip(rows_TN, token_TN, strict=True):
        memory, state = select(memory, row_N), select(state, row_N)
        log_probability_NV, state = model.step(token_N, memory, state)
        said.append(log_probability_NV)
    return said


GROUPED = {"key_value_heads": 1, "head_width": 10}
LLAMA = {**GROUPED, "norm_kind": "rms", "positions": "rotary", "activation": "swiglu"}
TABLES = [{"norm": "pre"}, {"norm": "post"}, {"positions": "rotary"}, STRETCHED, {"activation": "gelu"}, GROUPED, LLAMA]


@pytest.mark.parametrize(
    "table", [*TABLES, {"shared_layers": True}, {"activation": "swiglu"}, {"norm": "post", "norm_kind": "rms"}], ids=str
)
@torch.inference_mode()
def test_steps_of_a_beam_equal_the_pass_over_each_hypothesis(table: dict[str, Any]) -> None:
    model, source = model_of(**table), source_of()
    # one hypothesis a source, then 3, 1 and 2 of them, crossed, the second source dropped, and the room outgrown
    orders = [[0, 1, 2], [0, 0, 0, 1, 2, 2], [2, 0, 0, 3, 5, 4], [1, 0, 4, 4], *[[0, 1, 3, 2]] * 6]
    rows_TN = [torch.tensor(each) for each in orders]
    token_TN = [torch.randint(31, (len(each),)) for each in orders]
    whole, sentences, tokens = [], torch.arange(3), torch.empty(3, 0, dtype=torch.int64)
    for row_N, token_N in zip(rows_TN, token_TN, strict=True):
        sentences, tokens = sentences[row_N], torch.cat((tokens[row_N], token_N[:, None]), 1)
        read = Padded(source.values[sentences], source.lengths[sentences])
        logits_NTV = model(read, Padded(tokens, torch.full((len(tokens),), tokens.shape[1])))
        whole.append(logits_NTV[:, -1].log_softmax(-1))
    pack_all(model)
    for found_NV, expected_NV in zip(stepped(model, source, rows_TN, token_TN), whole, strict=True):
        torch.testing.assert_close(found_NV, expected_NV, rtol=1e-4, atol=1e-4)
    assert used(model)


QWEN = {**LLAMA, "query_key_norm": True, "heads": 6, "key_value_heads": 2, "rotary_base": 1e6}


@pytest.mark.parametrize("table", [{}, {"norm": "post"}, {"positions": "learned"}, LLAMA, QWEN], ids=str)
@torch.inference_mode()
def test_steps_of_a_language_model_equal_the_pass_over_each_text(table: dict[str, Any]) -> None:
    sizes = {"d_model": 24, "heads": 3, "feed_forward": 40, "layers": 3}
    torch.manual_seed(1)
    config = TransformerDecoderConfig.model_validate({**sizes, **table})
    model = drawn_vectors(TransformerDecoder(config, Specs.of_tokens(None, 31)).eval())
    orders = [[0, 1, 2], [0, 0, 0, 1, 2, 2], [2, 0, 0, 3, 5, 4], *[[0, 1, 3, 2]] * 6]
    rows_TN = [torch.tensor(each) for each in orders]
    token_TN = [torch.randint(31, (len(each),)) for each in orders]
    whole, tokens = [], torch.empty(3, 0, dtype=torch.int64)
    for row_N, token_N in zip(rows_TN, token_TN, strict=True):
        tokens = torch.cat((tokens[row_N], token_N[:, None]), 1)
        logits_NTV = model(None, Padded(tokens, torch.full((len(tokens),), tokens.shape[1])))
        whole.append(logits_NTV[:, -1].log_softmax(-1))
    pack_all(model)
    for found_NV, expected_NV in zip(stepped(model, None, rows_TN, token_TN), whole, strict=True):
        torch.testing.assert_close(found_NV, expected_NV, rtol=1e-4, atol=1e-4)
    assert used(model)


@pytest.mark.parametrize("table", [LLAMA, {"norm": "post", **GROUPED}], ids=str)
@torch.inference_mode()
def test_an_encoder_of_grouped_heads_says_what_its_parts_say(table: dict[str, Any]) -> None:
    model, source = model_of(**table), source_of()
    expected = model.encode(source)
    pack_all(model)
    found = model.encode(source)
    made = [each for _, each in model.encoder.fused._kernels.values()]  # type: ignore[union-attr]
    assert [type(each) for each in made] == [OnePass]
    real_BS = source.mask()
    torch.testing.assert_close(found.values[real_BS], expected.values[real_BS], rtol=1e-4, atol=1e-4)


def used(model: Transformer | TransformerDecoder) -> bool:
    """Whether the last step was one call."""
    return any(isinstance(made, OneToken) for _, made in model.decoder.fused._kernels.values())


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@torch.inference_mode()
def test_one_call_says_what_many_say(precision: Precision, monkeypatch: pytest.MonkeyPatch) -> None:
    if precision == "int8" and not can_pack(torch.zeros(1, 1), int8=True):
        pytest.skip(f"no 8-bit products in {found().__name__}")
    model, source = model_of(), source_of()
    pack_all(model, precision)
    rows_TN = [torch.tensor(each) for each in ([0, 1, 2], [0, 0, 1, 1, 2], [1, 0, 2, 3, 4])]
    token_TN = [torch.randint(31, (len(each),)) for each in rows_TN]
    in_one = stepped(model, source, rows_TN, token_TN)
    assert used(model)
    monkeypatch.setattr(FusedBlocks, "step", lambda *given: None)
    for one_NV, many_NV in zip(in_one, stepped(model, source, rows_TN, token_TN), strict=True):
        torch.testing.assert_close(one_NV, many_NV, rtol=0, atol=1e-4 if precision == "fp32" else 0.05)


@pytest.mark.parametrize(
    "table",
    [
        {"positions": "alibi"},
        {"score": "additive"},
        {"normalizer": "sparsemax"},
        {"norm_kind": "batch"},
        {"query_key_norm": True},
    ],
)
@torch.inference_mode()
def test_other_parts_go_their_own_way(table: dict[str, Any]) -> None:
    model, source = model_of(**table), source_of()
    pack_all(model)
    stepped(model, source, [torch.arange(3)], [torch.arange(3)])
    assert not used(model)


@torch.inference_mode()
def test_who_looks_on_sees_every_part() -> None:
    model, source, seen = model_of(), source_of(), []
    pack_all(model)
    hook = model.decoder.blocks[1].feed_forward.register_forward_hook(lambda *given: seen.append(given[0]))  # type: ignore[index]
    watched = stepped(model, source, [torch.arange(3)], [torch.arange(3)])
    assert len(seen) == 1
    hook.remove()
    alone = stepped(model, source, [torch.arange(3)], [torch.arange(3)])
    assert len(seen) == 1
    torch.testing.assert_close(watched, alone)


@pytest.mark.parametrize("count", [1, 3, 70, 200])
@pytest.mark.parametrize("without", [(), (0,), (5, 3)])
def test_the_greatest_in_order_and_of_equals_the_lower_column(count: int, without: tuple[int, ...]) -> None:
    torch.manual_seed(count)
    x_NV = torch.randint(40, (9, 150)).float()
    x_NV[1] = 7.0
    x_NV[2, 10:] = -torch.inf
    value_NC, column_NC = top(x_NV, count, without)
    barred_NV = x_NV.double()
    barred_NV[:, list(without)] = -torch.inf
    expected_NC, place_NC = barred_NV.sort(dim=1, descending=True, stable=True)
    wanted = min(count, 150)
    assert torch.equal(value_NC, expected_NC[:, :wanted])
    real_NC = value_NC > -torch.inf  # which columns stand for -inf is left open
    assert torch.equal(column_NC[real_NC], place_NC[:, :wanted][real_NC])


def test_log_softmax_is_torchs() -> None:
    x_NV = 10 * torch.randn(7, 1001)
    expected_NV = x_NV.double().log_softmax(-1)
    assert log_softmax_(x_NV) is x_NV
    torch.testing.assert_close(x_NV.double(), expected_NV, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 70])
def test_rows_of_a_packed_weight_are_those_that_were_packed(rows: int) -> None:
    weight_OI = torch.randn(rows, 13)
    row_N = torch.randint(rows, (40,))
    assert (Packed(weight_OI).vectors(row_N) == weight_OI[row_N].numpy()).all()
