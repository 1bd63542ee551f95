"""Frequencies of rotary positions with another base and stretched, against slow loops and Hugging Face."""

import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from transduce.attention import MultiHeadAttention, masks
from transduce.attention.relative import Rotary
from transduce.attention.rotary_scaling import RotaryScaling, rotary_frequencies
from transduce.kernels.native import left_out
from transduce.models.transformer_decoder import TransformerDecoderConfig

LLAMA3 = {"kind": "llama3", "factor": 8.0, "original_length": 128}
CASES: list[tuple[float, dict[str, Any] | None]] = [
    (10_000.0, None),
    (500_000.0, None),
    (10_000.0, {"kind": "linear", "factor": 4.0}),
    (500_000.0, LLAMA3),
    (500_000.0, {**LLAMA3, "factor": 32.0, "low_frequency_factor": 2.0, "high_frequency_factor": 3.0}),
]
WIDTH, FARTHEST = 16, 4000


def scaling_of(table: dict[str, Any] | None) -> RotaryScaling | None:
    return None if table is None else RotaryScaling.model_validate(table)


def slow_frequency(pair: int, width: int, base: float, table: dict[str, Any] | None) -> float:
    """One frequency, as `apply_scaling` of Llama 3.1's own code has it."""
    frequency = 1.0 / base ** (2 * pair / width)
    if table is None:
        return frequency
    if table["kind"] == "linear":
        return float(frequency / table["factor"])
    low, high = table.get("low_frequency_factor", 1.0), table.get("high_frequency_factor", 4.0)
    wave, old = 2 * math.pi / frequency, table["original_length"]
    if wave < old / high:
        return frequency
    if wave > old / low:
        return float(frequency / table["factor"])
    smooth = (old / wave - low) / (high - low)
    return float((1 - smooth) * frequency / table["factor"] + smooth * frequency)


@pytest.mark.parametrize(("base", "table"), CASES)
def test_each_frequency_equals_a_loop(base: float, table: dict[str, Any] | None) -> None:
    expected = [slow_frequency(pair, WIDTH, base, table) for pair in range(WIDTH // 2)]
    found_J = rotary_frequencies(WIDTH, base, scaling_of(table))
    torch.testing.assert_close(found_J, torch.tensor(expected, dtype=torch.float64), rtol=1e-13, atol=0)


@pytest.mark.parametrize(("base", "table"), CASES)
def test_cosines_and_sines_equal_transformers(base: float, table: dict[str, Any] | None) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    config = transformers.LlamaConfig(hidden_size=4 * WIDTH, num_attention_heads=4, **theirs(base, table))
    position_1T = torch.arange(FARTHEST + 1)[None]
    cos_1TE, sin_1TE = LlamaRotaryEmbedding(config)(torch.zeros(1), position_1T)
    turn_TE = Rotary(4, WIDTH, True, base, scaling_of(table)).turns(FARTHEST + 1)[: FARTHEST + 1]
    # Theirs multiply positions by frequencies in fp32, which is off by 4000 * 2^-24 at the end.
    torch.testing.assert_close(turn_TE[:, 0::2], cos_1TE[0, :, : WIDTH // 2], rtol=0, atol=4e-4)
    torch.testing.assert_close(turn_TE[:, 1::2], sin_1TE[0, :, : WIDTH // 2], rtol=0, atol=4e-4)


def theirs(base: float, table: dict[str, Any] | None) -> dict[str, Any]:
    """The settings of Hugging Face."""
    names = {
        "kind": "rope_type",
        "factor": "factor",
        "low_frequency_factor": "low_freq_factor",
        "high_frequency_factor": "high_freq_factor",
        "original_length": "original_max_position_embeddings",
    }
    full = {"low_frequency_factor": 1.0, "high_frequency_factor": 4.0} if table and table["kind"] == "llama3" else {}
    given = {names[key]: value for key, value in {**full, **(table or {"kind": "default"})}.items()}
    return {"rope_parameters": {"rope_theta": base, **given}, "max_position_embeddings": 8192}


@torch.no_grad()
@pytest.mark.parametrize(("base", "table"), CASES)
def test_each_pair_is_turned_by_its_angle(base: float, table: dict[str, Any] | None) -> None:
    positions, x_BHTE = Rotary(2, 4, True, base, scaling_of(table)), torch.randn(1, 2, 3, 4)
    expected_BHTE = torch.empty_like(x_BHTE)
    for t in range(3):
        for pair in range(2):
            angle = (3000 + t) * slow_frequency(pair, 4, base, table)
            a, b = x_BHTE[..., t, 2 * pair], x_BHTE[..., t, 2 * pair + 1]
            expected_BHTE[..., t, 2 * pair] = a * math.cos(angle) - b * math.sin(angle)
            expected_BHTE[..., t, 2 * pair + 1] = a * math.sin(angle) + b * math.cos(angle)
    turned_BHTE = positions.turn(x_BHTE, 3000)
    torch.testing.assert_close(turned_BHTE, expected_BHTE)
    with left_out():
        torch.testing.assert_close(positions.turn(x_BHTE, 3000), expected_BHTE)
    torch.testing.assert_close(positions.turn_back(turned_BHTE, 2900), positions.turn(x_BHTE, 100))


@torch.no_grad()
def test_queries_and_keys_are_normed_head_by_head() -> None:
    attention = MultiHeadAttention(
        12, 3, positions=Rotary(3, 4, True), key_value_heads=1, norm_epsilon=1e-3, role="self", side="decoder"
    )
    assert attention.query_norm is not None
    assert attention.key_norm is not None
    attention.query_norm.weight.normal_()
    attention.key_norm.weight.normal_()
    x_TD = torch.randn(5, 12)
    found_TD = attention(x_TD[None], attention.keys_values(x_TD[None]), masks.causal(5))[0]
    key_TE, value_TE = attention.key_value(x_TD).chunk(2, -1)
    read = torch.zeros(5, 12)
    for head in range(3):
        for t in range(5):
            query_E = by_hand(attention.query(x_TD)[t, 4 * head : 4 * head + 4], attention.query_norm.weight, t)
            keys_SE = torch.stack([by_hand(key_TE[s], attention.key_norm.weight, s) for s in range(t + 1)])
            read[t, 4 * head : 4 * head + 4] = (keys_SE @ query_E / 2).softmax(-1) @ value_TE[: t + 1]
    torch.testing.assert_close(found_TD, attention.output(read), rtol=1e-5, atol=1e-5)


def by_hand(x_E: torch.Tensor, gain_E: torch.Tensor, position: int) -> torch.Tensor:
    """Divided by its root mean square, times the gain, and turned as a complex number."""
    normed_E = x_E / (x_E.square().mean() + 1e-3).sqrt() * gain_E
    angle_J = position * torch.tensor([1.0, 0.01])
    turned_J = torch.view_as_complex(normed_E.view(2, 2)) * torch.polar(torch.ones(2), angle_J)
    return torch.view_as_real(turned_J).flatten()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"positions": "alibi", "rotary_base": 5e5}, 'rotary_base: for positions = "rotary", not "alibi"'),
        ({"rotary_scaling": {"kind": "linear", "factor": 2}}, 'rotary_scaling: for positions = "rotary"'),
        ({"positions": "rotary", "rotary_base": 1.0}, "rotary_base"),
        ({"positions": "rotary", "rotary_scaling": {"kind": "yarn", "factor": 2}}, "'linear' or 'llama3'"),
        ({"positions": "rotary", "rotary_scaling": {"kind": "linear", "factor": 0.5}}, "greater than or equal to 1"),
        ({"positions": "rotary", "rotary_scaling": {"kind": "linear"}}, "factor"),
        (
            {"positions": "rotary", "rotary_scaling": {"kind": "linear", "factor": 2, "original_length": 7}},
            "original_length: not read",
        ),
        (
            {"positions": "rotary", "rotary_scaling": {**LLAMA3, "low_frequency_factor": 4.0}},
            "must be less than high_frequency_factor",
        ),
    ],
)
def test_settings_that_say_nothing_are_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        TransformerDecoderConfig.model_validate(table)
