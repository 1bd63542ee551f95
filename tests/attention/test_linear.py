"""Linear attention: every form equals the paper's sums, number by number; and it is linear."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from transduce.attention import capture, masks
from transduce.attention.linear import (
    LinearAttention,
    Summary,
    attend_causally,
    attend_recurrently,
    feature_map,
    linear_weights,
    read,
    summarise,
)


def slow(query_BHTE: Tensor, key_BHSE: Tensor, value_BHSF: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Katharopoulos et al. 2020, equation 3 with similarity phi(q) . phi(k), in Python floats: output and weights."""

    def phi(x: float) -> float:
        return x + 1 if x > 0 else math.exp(x)

    batch, heads, queries, _ = query_BHTE.shape
    may = allowed.expand(batch, heads, queries, key_BHSE.shape[2])
    output_BHTF = torch.zeros(batch, heads, queries, value_BHSF.shape[-1], dtype=torch.float64)
    alpha_BHTS = torch.zeros(may.shape, dtype=torch.float64)
    for b in range(batch):
        for h in range(heads):
            for t, query in enumerate(query_BHTE[b, h].tolist()):
                similar = [
                    sum(phi(q) * phi(k) for q, k in zip(query, key, strict=True)) if may[b, h, t, s] else 0.0
                    for s, key in enumerate(key_BHSE[b, h].tolist())
                ]
                for s, value in enumerate(value_BHSF[b, h].tolist()):
                    alpha_BHTS[b, h, t, s] = similar[s] / sum(similar)
                    for f, number in enumerate(value):
                        output_BHTF[b, h, t, f] += similar[s] / sum(similar) * number
    return output_BHTF, alpha_BHTS


def drawn(*lengths: int, dtype: torch.dtype = torch.float32, gradient: bool = False) -> list[Tensor]:
    """Queries of width 4 for the first length, keys of width 4 and values of width 3 for the second."""
    torch.manual_seed(0)
    shapes = [(2, 3, lengths[0], 4), (2, 3, lengths[-1], 4), (2, 3, lengths[-1], 3)]
    return [torch.randn(shape, dtype=dtype).mul_(2).requires_grad_(gradient) for shape in shapes]


def nothing(key: Tensor, value: Tensor) -> Summary:
    values_BHEF = torch.zeros(*key.shape[:2], key.shape[-1], value.shape[-1], dtype=key.dtype)
    return Summary(values_BHEF, values_BHEF[..., 0])


def step_by_step(query: Tensor, key: Tensor, value: Tensor, past: Summary | None = None) -> tuple[Tensor, Summary]:
    summary = past or nothing(key, value)
    outputs = []
    for t in range(query.shape[2]):
        output_BHF, summary = attend_recurrently(query[:, :, t], key[:, :, t], value[:, :, t], summary)
        outputs.append(output_BHF)
    return torch.stack(outputs, 2), summary


def close(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found.double(), wanted.double(), rtol=1e-5, atol=1e-5)


REAL_BS = torch.tensor([[True] * 6, [True, True, False, True, False, False]])


def test_all_keys_at_once_equal_the_slow_loop() -> None:
    query, key, value = drawn(5, 6)
    expected, alpha = slow(query, key, value, masks.padding(REAL_BS))
    close(read(query, summarise(key, value, REAL_BS)), expected)
    close(linear_weights(query, feature_map(key), masks.padding(REAL_BS)), alpha)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_causal_chunks_equal_the_slow_loop(chunk: int) -> None:
    query, key, value = drawn(7)
    expected, _ = slow(query, key, value, masks.causal(7))
    output, summary = attend_causally(query, key, value, chunk=chunk)
    close(output, expected)
    for found, wanted in zip(summary[:2], summarise(key, value)[:2], strict=True):
        close(found, wanted)


def test_the_recurrent_form_equals_the_slow_loop() -> None:
    query, key, value = drawn(7)
    expected, _ = slow(query, key, value, masks.causal(7))
    output, summary = step_by_step(query, key, value)
    close(output, expected)
    for found, wanted in zip(summary[:2], summarise(key, value)[:2], strict=True):
        close(found, wanted)


@pytest.mark.parametrize("split", [1, 4, 64, 199])
def test_what_is_past_may_be_cut_anywhere(split: int) -> None:
    query, key, value = drawn(200)
    whole, _ = attend_causally(query, key, value)
    first, past = attend_causally(query[:, :, :split], key[:, :, :split], value[:, :, :split])
    rest = [each[:, :, split:] for each in (query, key, value)]
    close(torch.cat((first, attend_causally(*rest, past, chunk=16)[0]), 2), whole)
    close(torch.cat((first, step_by_step(*rest, past)[0]), 2), whole)


def test_two_thousand_positions_stay_exact_in_fp32() -> None:
    query, key, value = drawn(2000, dtype=torch.float64)
    alpha = linear_weights(query, feature_map(key), masks.causal(2000))
    singles = [each.float() for each in (query, key, value)]
    close(attend_causally(*singles)[0], alpha @ value)
    close(step_by_step(*singles)[0], alpha @ value)


Form = Callable[[Tensor, Tensor, Tensor], Tensor]
FORMS: dict[str, Form] = {
    "all": lambda query, key, value: read(query, summarise(key, value, REAL_BS[:, :5])),
    "causal": lambda query, key, value: attend_causally(query, key, value, chunk=2)[0],
    "recurrent": lambda query, key, value: step_by_step(query, key, value)[0],
    "weights": lambda query, key, value: linear_weights(query, feature_map(key), masks.causal(5)) @ value,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_gradients(form: Form) -> None:
    inputs = [each.detach()[:, :1].requires_grad_() for each in drawn(5, dtype=torch.float64)]
    assert torch.autograd.gradcheck(form, inputs)


def test_the_future_has_no_gradient_at_all_whatever_the_chunks() -> None:
    query, key, value = drawn(9, gradient=True)
    output = attend_causally(query, key, value, chunk=4)[0]
    for t in range(9):
        of_keys, of_values = torch.autograd.grad(output[:, :, t].square().sum(), (key, value), retain_graph=True)
        assert (of_keys[:, :, t + 1 :] == 0).all()
        assert (of_values[:, :, t + 1 :] == 0).all()
        assert (of_values[:, :, : t + 1].abs().sum(-1) > 0).all()


def test_padding_adds_exactly_nothing() -> None:
    query, key, value = drawn(5, 6, gradient=True)
    output = read(query, summarise(key, value, REAL_BS))
    padding = ~REAL_BS[:, None, :, None]
    assert torch.equal(output, read(query, summarise(key + 3 * padding, value - 7 * padding, REAL_BS)))
    for gradient in torch.autograd.grad(output.square().sum(), (key, value)):
        assert (gradient.transpose(1, 2)[~REAL_BS] == 0).all()


def test_the_feature_map_is_elu_plus_one_and_stays_above_zero() -> None:
    x = torch.linspace(-60, 60, 1001)
    torch.testing.assert_close(feature_map(x), torch.nn.functional.elu(x) + 1, rtol=1e-5, atol=1e-7)
    assert (feature_map(x) > 0).all()
    assert (torch.nn.functional.elu(x) + 1 == 0).any()  # so that the division by the mass would be 0 / 0


def test_where_every_feature_is_zero_the_output_is_zero_not_nan() -> None:
    query, key, value = drawn(3)
    for output in (attend_causally(query - 200, key, value)[0], read(query - 200, summarise(key, value))):
        assert (output == 0).all()


# ---- the module --------------------------------------------------------------------------------------------


def test_the_modules_three_ways_agree_and_its_weights_explain_its_output() -> None:
    torch.manual_seed(0)
    attention = LinearAttention(8, 2)
    x_BTD = torch.randn(2, 70, 8)
    whole_BTD, _ = attention.extend(x_BTD, None)
    summary, steps = attention.empty(2), []
    for x_BD in x_BTD.unbind(1):
        step_B1D, summary = attention.extend(x_BD[:, None], summary)
        steps.append(step_B1D)
    close(torch.cat(steps, 1), whole_BTD)
    last_BTD = attention(x_BTD[:, -1:], attention.summarise(x_BTD))  # of the last position all is past
    close(last_BTD, whole_BTD[:, -1:])


@pytest.mark.parametrize("pieces", [[70], [3, 60, 7], [1] * 70], ids=["whole", "pieces", "steps"])
def test_a_capture_gets_the_weights_that_the_output_was_read_with(pieces: list[int]) -> None:
    torch.manual_seed(0)
    attention = LinearAttention(8, 2)
    x_BTD = torch.randn(2, 70, 8)
    found, outputs = [], []
    with capture(attention) as record:
        summary = None
        for x in x_BTD.split(pieces, 1):
            output_BTD, summary = attention.extend(x, summary)
            outputs.append(output_BTD)
        found = [torch.nn.functional.pad(alpha, (0, 70 - alpha.shape[-1])) for alpha in record[""]]
    alpha_BHTS = torch.cat(found, 2)
    torch.testing.assert_close(alpha_BHTS.sum(-1), torch.ones(2, 2, 70))
    assert (alpha_BHTS.triu(1) == 0).all()
    value_BHSE = attention.key_value(x_BTD)[..., 8:].unflatten(-1, (2, -1)).transpose(1, 2)
    close(attention.output((alpha_BHTS @ value_BHSE).transpose(1, 2).flatten(2)), torch.cat(outputs, 1))


def test_captured_padding_has_no_weight() -> None:
    torch.manual_seed(0)
    attention = LinearAttention(8, 2)
    y_BSD = torch.randn(2, 6, 8)
    with capture(attention) as record:
        attention(torch.randn(2, 3, 8), attention.summarise(y_BSD, REAL_BS))
    (alpha_BHTS,) = record[""]
    torch.testing.assert_close(alpha_BHTS.sum(-1), torch.ones(2, 2, 3))
    assert (alpha_BHTS.permute(0, 3, 1, 2)[~REAL_BS] == 0).all()


def test_outside_a_capture_the_state_does_not_grow() -> None:
    attention = LinearAttention(8, 2)
    x_BTD = torch.randn(2, 9, 8)
    for summary in (attention.summarise(x_BTD), attention.extend(x_BTD, None)[1]):
        assert [None if each is None else each.shape for each in summary] == [(2, 2, 4, 4), (2, 2, 4), None]


def test_sums_stay_in_fp32_under_autocast() -> None:
    # 4,000 equal keys: in bf16, which has 8 bits, a sum of ones would stop at 256.
    torch.manual_seed(0)
    attention = LinearAttention(8, 2)
    x_BTD = torch.randn(1, 1, 8).expand(1, 4000, 8)
    with torch.autocast("cpu", torch.bfloat16):
        many = attention.summarise(x_BTD)
        one = attention.summarise(x_BTD[:, :1])
        causal = attention.extend(x_BTD, None)[1]
    for summary in (many, causal):
        assert summary.mass.dtype == summary.values.dtype == torch.float32
        torch.testing.assert_close(summary.mass, 4000 * one.mass, rtol=1e-4, atol=0)
        torch.testing.assert_close(summary.values, 4000 * one.values, rtol=1e-4, atol=1e-4)
