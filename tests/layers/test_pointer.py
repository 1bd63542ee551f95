"""Generating or copying: against a loop from the paper, at the edges of the numbers, and on words never seen before."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.core.registry import resolve
from transduce.data.columns import Specs
from transduce.layers.cross_entropy import smoothed_cross_entropy
from transduce.layers.pointer import Copies, Pointer, with_copies

IDS = 9
# Words 4 and 2 stand twice; behind the ends of the second and third row stand words that are in it and not in it.
SOURCE_BS = torch.tensor([[4, 2, 4, 7, 2], [5, 5, 5, 1, 3], [6, 0, 8, 0, 6]])
LENGTHS = [5, 2, 3]
REAL_BS = torch.arange(5) < torch.tensor(LENGTHS)[:, None]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def pointer() -> Pointer:
    made = Pointer(4, 6, Specs.of_tokens(IDS, IDS))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def weights(dtype: torch.dtype = torch.float32) -> Tensor:
    scores_BTS = torch.randn(3, 2, 5, dtype=dtype).masked_fill(~REAL_BS[:, None], -torch.inf)
    return scores_BTS.softmax(-1)


def copies() -> Copies:
    return pointer().remember(SOURCE_BS, torch.randn(3, 5, 6), REAL_BS)


# ---- the mixture ----------------------------------------------------------------------------------------------


def test_the_mixture_equals_a_loop_from_the_paper() -> None:
    logits_BTV, generate_BT1, alpha_BTS = torch.randn(3, 2, IDS), torch.randn(3, 2, 1), weights()
    found_BTV = with_copies(logits_BTV, generate_BT1, alpha_BTS, copies())
    for b in range(3):
        for t in range(2):
            g = 1 / (1 + (-generate_BT1[b, t, 0]).exp())
            mass_V = logits_BTV[b, t].exp()
            for w in range(IDS):
                copied = sum(float(alpha_BTS[b, t, s]) for s in range(LENGTHS[b]) if SOURCE_BS[b, s] == w)
                expected = (g * mass_V[w] / mass_V.sum() + (1 - g) * copied).log()
                torch.testing.assert_close(found_BTV[b, t, w], expected, rtol=1e-5, atol=1e-5)


def test_log_probabilities_are_logits() -> None:
    found_BTV = with_copies(torch.randn(3, 2, IDS), torch.randn(3, 2, 1), weights(), copies())
    torch.testing.assert_close(found_BTV.exp().sum(-1), torch.ones(3, 2))
    torch.testing.assert_close(found_BTV.log_softmax(-1), found_BTV)


def test_gradients_of_the_mixture() -> None:
    logits_BTV = torch.randn(3, 2, IDS, dtype=torch.float64, requires_grad=True)
    generate_BT1 = torch.randn(3, 2, 1, dtype=torch.float64, requires_grad=True)
    alpha_BTS = weights(torch.float64).requires_grad_()

    def real_only(logits_BTV: Tensor, generate_BT1: Tensor, alpha_BTS: Tensor) -> Tensor:
        return with_copies(logits_BTV, generate_BT1, alpha_BTS * REAL_BS[:, None], copies())

    assert torch.autograd.gradcheck(real_only, (logits_BTV, generate_BT1, alpha_BTS))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("generate", [-1e4, -90.0, 0.0, 90.0, 1e4])
def test_nothing_is_infinite_at_the_edges(generate: float, dtype: torch.dtype) -> None:
    # Sure of one word out of reach of all others; weights that underflow to 0; g that rounds to 0 and to 1.
    logits_BTV = torch.full((3, 2, IDS), -1e3)
    logits_BTV[:, :, 4] = 1e3
    logits_BTV = logits_BTV.to(dtype).requires_grad_()
    generate_BT1 = torch.full((3, 2, 1), generate, dtype=dtype, requires_grad=True)
    scores_BTS = torch.zeros(3, 2, 5)
    scores_BTS[:, :, 1] = 500.0
    scores_BTS.requires_grad_()
    alpha_BTS = scores_BTS.masked_fill(~REAL_BS[:, None], -torch.inf).softmax(-1)
    assert (alpha_BTS[:, :, 0] == 0).all()
    found_BTV = with_copies(logits_BTV, generate_BT1, alpha_BTS, copies())
    assert found_BTV.dtype == torch.float32
    assert found_BTV.isfinite().all()
    torch.testing.assert_close(found_BTV.exp().sum(-1), torch.ones(3, 2), rtol=0, atol=1e-3)
    smoothed_cross_entropy(found_BTV.flatten(0, 1), torch.full((6,), 7), 0.1).backward()
    for leaf in (logits_BTV, generate_BT1, scores_BTS):
        assert leaf.grad is not None
        assert leaf.grad.isfinite().all()


def test_a_closed_gate_is_the_plain_softmax_and_an_open_one_the_attention() -> None:
    logits_BTV, alpha_BTS = torch.randn(3, 2, IDS), weights()
    plain_BTV = with_copies(logits_BTV, torch.full((3, 2, 1), 200.0), alpha_BTS, copies())
    torch.testing.assert_close(plain_BTV, logits_BTV.log_softmax(-1))
    copied_BTV = with_copies(logits_BTV, torch.full((3, 2, 1), -200.0), alpha_BTS, copies()).exp()
    expected_BTV = torch.zeros(3, 2, IDS).scatter_add(-1, SOURCE_BS[:, None].expand_as(alpha_BTS), alpha_BTS)
    torch.testing.assert_close(copied_BTV, expected_BTV)


# ---- the module -----------------------------------------------------------------------------------------------


def test_the_pointer_equals_a_loop_from_the_paper() -> None:
    made, logits_BTV = pointer(), torch.randn(3, 2, IDS)
    hidden_BTD, states_BSM = torch.randn(3, 2, 4), torch.randn(3, 5, 6)
    found_BTV = made(logits_BTV, hidden_BTD, made.remember(SOURCE_BS, states_BSM, REAL_BS))
    for b, length in enumerate(LENGTHS):
        for t in range(2):
            query_M = made.query(hidden_BTD[b, t])
            alpha_S = torch.stack([query_M @ states_BSM[b, s] / 6**0.5 for s in range(length)]).softmax(0)
            context_M = sum(alpha_S[s] * states_BSM[b, s] for s in range(length))
            g = made.generate(torch.cat((hidden_BTD[b, t], context_M)))[0].sigmoid()
            p_V = g * logits_BTV[b, t].softmax(0)
            for s in range(length):
                p_V[SOURCE_BS[b, s]] += (1 - g) * alpha_S[s]
            torch.testing.assert_close(found_BTV[b, t], p_V.log(), rtol=1e-5, atol=1e-5)


def test_gradients_of_the_pointer() -> None:
    made = pointer().double()
    logits_BTV, hidden_BTD, states_BSM = (
        torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in [(3, 2, IDS), (3, 2, 4), (3, 5, 6)]
    )

    def output(logits_BTV: Tensor, hidden_BTD: Tensor, states_BSM: Tensor) -> Tensor:
        return made(logits_BTV, hidden_BTD, made.remember(SOURCE_BS, states_BSM, REAL_BS))

    assert torch.autograd.gradcheck(output, (logits_BTV, hidden_BTD, states_BSM))


def test_bf16_rounds_products_but_not_probabilities() -> None:
    made, logits_BTV = pointer(), torch.randn(3, 2, IDS)
    hidden_BTD, states_BSM = torch.randn(3, 2, 4), torch.randn(3, 5, 6)
    exact_BTV = made(logits_BTV, hidden_BTD, made.remember(SOURCE_BS, states_BSM, REAL_BS))
    with torch.autocast("cpu", torch.bfloat16):
        rounded_BTV = made(logits_BTV, hidden_BTD, made.remember(SOURCE_BS, states_BSM, REAL_BS))
    assert rounded_BTV.dtype == torch.float32
    torch.testing.assert_close(rounded_BTV.exp().sum(-1), torch.ones(3, 2))
    assert 0 < (rounded_BTV - exact_BTV).abs().max() < 0.05


def test_two_vocabularies_are_refused() -> None:
    with pytest.raises(InputError, match=r"one of 11 ids and this target another of 13.*tokenizer\.joint = true"):
        Pointer(4, 6, Specs.of_tokens(11, 13))
    for kind in ("transformer", "convolution"):
        found = resolve("models", kind)
        with pytest.raises(InputError, match="one vocabulary"):
            found(found.Config(pointer=True), Specs.of_tokens(11, 13))


# ---- what it is for -------------------------------------------------------------------------------------------

START, KNOWN, NEW, ALL = 0, range(1, 81), range(81, 101), 101
COPY: dict[str, dict[str, Any]] = {
    "transformer": {"heads": 2, "feed_forward": 32, "positions": "learned"},
    "convolution": {"kernel": 5},
}


def learn_to_copy(model: nn.Module, updates: int) -> None:
    """Five known words a time, out as they came in."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    for _ in range(updates):
        words_BS, source, target = copying(KNOWN, 32)
        logits_BTV = model(source, target)
        loss = smoothed_cross_entropy(logits_BTV.flatten(0, 1), words_BS.flatten()) / words_BS.numel()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()


def copying(words: range, rows: int) -> tuple[Tensor, Padded, Padded]:
    words_BS = torch.randint(words.start, words.stop, (rows, 5))
    lengths_B = torch.full((rows,), 5)
    before_BT = torch.cat((torch.full((rows, 1), START), words_BS[:, :-1]), 1)
    return words_BS, Padded(words_BS, lengths_B), Padded(before_BT, lengths_B)


def share_copied(model: nn.Module, words: range) -> float:
    words_BS, source, target = copying(words, 100)
    return float((model(source, target).argmax(-1) == words_BS).float().mean())


@pytest.mark.parametrize("kind", ["convolution", pytest.param("transformer", marks=pytest.mark.slow)])
def test_words_never_seen_are_copied_by_a_pointer_and_by_nothing_else(kind: str) -> None:
    found, share = resolve("models", kind), {}
    for with_pointer in (True, False):
        torch.manual_seed(0)
        table = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0, "tied": "none", **COPY[kind]}
        config = found.Config.model_validate({**table, "pointer": with_pointer})
        model = found(config, Specs.of_tokens(ALL, ALL))
        learn_to_copy(model, 300)
        share[with_pointer] = (share_copied(model, KNOWN), share_copied(model, NEW))
    assert share[True] == pytest.approx((1.0, 1.0), abs=0.1)
    assert share[False] == pytest.approx((1.0, 0.0), abs=0.1)
