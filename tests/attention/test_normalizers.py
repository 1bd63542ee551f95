"""Every normalizer against its paper in a slow loop, and what must hold of all of them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from slow_normalizers import (
    at,
    slow_best,
    slow_entmax15,
    slow_expected_alignment,
    slow_local_monotonic,
    slow_local_predictive,
    slow_softmax,
    slow_sparsemax,
    spread,
)
from torch import Tensor, nn

from transduce.attention import masks
from transduce.attention.normalizers import LocalMonotonic, LocalPredictive, Monotonic, Normalizer, expected_alignment
from transduce.core.registry import known, resolve

NAMES = known("attention.normalizers")
SLOW = {
    "softmax": slow_softmax,
    "sparsemax": slow_sparsemax,
    "entmax": slow_entmax15,
    "hard": slow_best,
    "gumbel": slow_best,
}
RANDOM = {"hard", "gumbel", "monotonic"}  # in training
B, H, T, S, E = 2, 2, 3, 6, 4


def normalizer(name: str, training: bool = False, dtype: torch.dtype = torch.float32) -> Normalizer:
    torch.manual_seed(1)
    made: Normalizer = resolve("attention.normalizers", name)(E).to(dtype)
    return made.train(training)


def inputs(name: str, seed: int = 0, dtype: torch.dtype = torch.float32, keys: int = S) -> tuple[Tensor, Tensor]:
    """Scores and queries; one query of each sentence for a sequential normalizer."""
    generator = torch.Generator().manual_seed(seed)
    queries = 1 if resolve("attention.normalizers", name).sequential else T
    scores = 2 * torch.randn(B, H, queries, keys, dtype=dtype, generator=generator)
    return scores, torch.randn(B, H, queries, E, dtype=dtype, generator=generator)


def weigh(
    made: Normalizer, scores: Tensor, query: Tensor, allowed: Tensor | None, previous: Tensor | None = None
) -> Tensor:
    position = torch.arange(scores.shape[2])[None]
    alpha: Tensor = made(scores, allowed, query, position, previous)
    return alpha


def previous_for(name: str, scores: Tensor, allowed: Tensor) -> Tensor | None:
    if name != "monotonic":
        return None
    generator = torch.Generator().manual_seed(2)
    noise = torch.randn(scores.shape, generator=generator, dtype=scores.dtype)
    return noise.masked_fill(~allowed, -torch.inf).softmax(-1)


PADDING = masks.padding(torch.tensor([[True] * 4 + [False] * 2, [True] * 6]))
MASKS = {
    "all": torch.ones(1, 1, 1, S, dtype=torch.bool),
    "padding": PADDING,
    "holes": torch.tensor([True, False, True, True, False, True])[None, None, None],
    "one key": torch.tensor([False, False, True, False, False, False])[None, None, None],
    "each its own": (torch.arange(B * H * T * S) % 7 % 3 != 1).view(B, H, T, S),
}


def mask(which: str, queries: int) -> Tensor:
    allowed = MASKS[which]
    return allowed[:, :, :queries] if allowed.shape[2] > 1 else allowed


def test_the_names_a_recipe_may_give() -> None:
    assert list(NAMES) == [
        "entmax", "gumbel", "hard", "local_monotonic", "local_predictive", "monotonic", "softmax", "sparsemax",
    ]  # fmt: skip


@pytest.mark.parametrize("which", MASKS)
@pytest.mark.parametrize("name", SLOW)
def test_a_weighing_equals_its_slow_loop(name: str, which: str) -> None:
    scores, query = inputs(name)
    allowed = mask(which, T)
    slow = spread([(row, keys, SLOW[name](e)) for row, keys, e in at(scores, allowed)], scores.shape)
    alpha = weigh(normalizer(name), scores, query, allowed)
    torch.testing.assert_close(alpha.double(), slow, rtol=0, atol=1e-6)
    assert ((alpha == 0) == (slow == 0)).all()  # sparse where it is sparse, exactly


@pytest.mark.parametrize("which", MASKS)
@pytest.mark.parametrize("half", [1, 2, 10])
def test_local_windows_equal_their_slow_loops(which: str, half: int) -> None:
    scores, query = inputs("local_predictive")
    allowed = mask(which, T)
    predictive, monotonic = LocalPredictive(E, half), LocalMonotonic(E, half)
    rows = at(scores, allowed)
    slow = [(r, keys, slow_local_predictive(e, query[r].tolist(), predictive, half)) for r, keys, e in rows]
    alpha = weigh(predictive, scores, query, allowed)
    torch.testing.assert_close(alpha.double(), spread(slow, scores.shape), rtol=0, atol=1e-6)
    slow = [(r, keys, slow_local_monotonic(e, min(r[2], len(e) - 1), half)) for r, keys, e in rows]
    alpha = weigh(monotonic, scores, query, allowed)
    torch.testing.assert_close(alpha.double(), spread(slow, scores.shape), rtol=0, atol=1e-6)


def test_no_allowed_key_is_the_same_as_all_of_them() -> None:
    for name in NAMES:
        scores, query = inputs(name)
        everything = weigh(normalizer(name), scores, query, MASKS["all"])
        assert torch.equal(weigh(normalizer(name), scores, query, None), everything), name


def test_beyond_the_last_key_the_window_stays_around_it() -> None:
    scores = torch.randn(1, 1, 1, S)
    allowed = masks.padding(torch.tensor([[True] * 4 + [False] * 2]))
    normalizers = LocalMonotonic(E, 1), torch.zeros(1, 1, 1, E)
    alphas = [normalizers[0](scores, allowed, normalizers[1], torch.tensor([[t]])) for t in (3, 4, 5, 100)]
    for alpha in alphas:
        assert torch.equal(alpha, alphas[0])
        assert alpha.flatten().nonzero().flatten().tolist() == [2, 3]


@pytest.mark.parametrize("towards", [-1e4, 1e4])
def test_a_centre_predicted_at_either_end_has_keys_around_it(towards: float) -> None:
    made = LocalPredictive(E, 1)
    torch.nn.init.eye_(made.query.weight)
    torch.nn.init.constant_(made.reader_E, towards)
    scores = torch.randn(1, 1, 1, S)
    alpha = made(scores, masks.padding(torch.tensor([[True] * 4 + [False] * 2])), torch.ones(1, 1, 1, E), None)
    at_the_end = [3] if towards > 0 else [0, 1]  # centres 4 and 0
    assert alpha.flatten().nonzero().flatten().tolist() == at_the_end


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("which", MASKS)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_allowed_gets_nothing_whatever_its_score(name: str, which: str, training: bool) -> None:
    made = normalizer(name, training)
    scores, query = inputs(name)
    allowed = mask(which, scores.shape[2]).expand(scores.shape)
    previous = previous_for(name, scores, allowed)
    alphas = []
    for poison in (0.0, 1e30, -torch.inf, torch.nan):
        scores_in = scores.masked_fill(~allowed, poison).requires_grad_()
        torch.manual_seed(3)
        alpha = weigh(made, scores_in, query, allowed, previous)
        assert (alpha >= 0).all()
        assert (alpha[~allowed] == 0).all()
        assert (alpha.sum(-1) <= 1 + 1e-6).all()
        if name not in {"local_predictive", "monotonic"}:
            torch.testing.assert_close(alpha.sum(-1), torch.ones(alpha.shape[:3]))
        if alpha.requires_grad:
            (alpha * torch.randn(alpha.shape)).sum().backward()
            assert scores_in.grad is not None
            assert scores_in.grad.isfinite().all()
            assert (scores_in.grad[~allowed] == 0).all()
        alphas.append(alpha.detach())
    for alpha in alphas:
        assert torch.equal(alpha, alphas[0])


@pytest.mark.parametrize("name", NAMES)
def test_padding_and_company_change_nothing(name: str) -> None:
    scores, query = inputs(name)
    alpha = weigh(normalizer(name), scores, query, PADDING)
    alone = weigh(normalizer(name), scores[:1, :, :, :4], query[:1], None)
    torch.testing.assert_close(alpha[:1, :, :, :4], alone, rtol=0, atol=4e-7)
    wide = torch.cat((scores, torch.full_like(scores, 9.0)), -1)
    wider = weigh(normalizer(name), wide, query, torch.cat((PADDING, torch.zeros_like(PADDING)), -1))
    torch.testing.assert_close(wider[..., :S], alpha, rtol=0, atol=4e-7)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [0.0, 1e4, 1e30])
def test_equal_and_huge_scores_stay_finite(name: str, scale: float) -> None:
    scores, query = inputs(name)
    scores = (scores * scale).requires_grad_()
    alpha = weigh(normalizer(name, training=True), scores, query, PADDING)
    assert alpha.isfinite().all()
    if alpha.requires_grad:
        alpha.square().sum().backward()
        assert scores.grad is not None
        assert scores.grad.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_fp32_at_least(name: str) -> None:
    for dtype, wanted in ((torch.bfloat16, torch.float32), (torch.float64, torch.float64)):
        scores, query = inputs(name, dtype=dtype)
        assert weigh(normalizer(name, dtype=dtype), scores, query, PADDING).dtype == wanted


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"hard", "gumbel"}))
def test_gradients_are_right(name: str) -> None:
    made = normalizer(name, training=True, dtype=torch.float64)
    scores, query = (each.requires_grad_() for each in inputs(name, dtype=torch.float64))
    previous = previous_for(name, scores.detach(), PADDING)
    changed = [scores, query, *made.parameters()]
    if previous is not None:
        changed.append(previous.requires_grad_())

    def function(*_: Tensor) -> Tensor:
        torch.manual_seed(4)  # the noise of `monotonic`
        return weigh(made, scores, query, PADDING, previous)

    assert torch.autograd.gradcheck(function, changed)


# Monotonic alignments


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_the_expected_alignment_equals_its_double_sum(keys: int, seed: int) -> None:
    torch.manual_seed(seed)
    stop, previous = torch.rand(1, 2, 1, keys), torch.randn(1, 2, 1, keys).softmax(-1)
    alpha = expected_alignment(stop, previous)
    for h in range(2):
        slow = slow_expected_alignment(stop[0, h, 0].tolist(), previous[0, h, 0].tolist())
        torch.testing.assert_close(alpha[0, h, 0], torch.tensor(slow), rtol=0, atol=1e-6)


def test_it_is_the_expectation_of_readers_who_decide() -> None:
    # All 2^(T S) ways to decide, each with its probability; a reader of 0 and 1 only is a decision.
    stop_TS = torch.tensor([[0.3, 0.6, 0.2], [0.1, 0.5, 0.9]], dtype=torch.float64)
    start = torch.tensor([1.0, 0, 0], dtype=torch.float64)[None, None, None]
    first = expected_alignment(stop_TS[0][None, None, None], start)
    soft = torch.cat((first, expected_alignment(stop_TS[1][None, None, None], first)), 2)[0, 0]
    mean = torch.zeros_like(soft)
    for bits in range(2**6):
        decided = torch.tensor([bits >> i & 1 for i in range(6)], dtype=torch.float64).view(2, 3)
        probability = torch.where(decided == 1, stop_TS, 1 - stop_TS).prod()
        here = 0
        for t in range(2):
            here = next((s for s in range(here, 3) if decided[t, s]), 3)
            if here < 3:
                mean[t, here] += probability
    torch.testing.assert_close(soft, mean)


def test_long_inputs_neither_overflow_nor_lose_mass() -> None:
    # 2,000 keys passed by with probability 1/2 each: prod (1 - p) is 1e-602, by which the paper's form divides.
    stop = torch.full((1, 1, 1, 2000), 0.5)
    previous = torch.zeros_like(stop)
    previous[..., [0, 1990]] = 0.5
    alpha = expected_alignment(stop, previous)
    assert alpha[..., 0].item() == 0.25
    assert alpha[..., 1990].item() == 0.25
    torch.testing.assert_close(alpha.sum().item(), 1 - 0.5 * 0.5**10)
    stop = torch.ones_like(stop)
    assert torch.equal(expected_alignment(stop, previous), previous)


def test_prediction_goes_forward_from_where_it_stopped() -> None:
    made = Monotonic(E).eval()
    scores_TS = torch.tensor([[-1.0, 1, -1, 1], [3, -1, -1, 1], [2, 2, 2, -1], [1, 1, 1, 1]])
    previous, stops = None, []
    for row in scores_TS:
        previous = made(row[None, None, None], None, None, None, previous)
        stops.append(previous.flatten().tolist())
    nothing = [0.0] * 4
    # Stops at 1; from there on the next is 3; from 3 on there is none, and whoever fell off reads nothing any more.
    assert stops == [[0, 1, 0, 0], [0, 0, 0, 1], nothing, nothing]


def test_a_reader_passes_by_what_is_not_allowed() -> None:
    made = Monotonic(E).eval()
    allowed = torch.tensor([False, False, True, True])[None, None, None]
    assert made(torch.ones(1, 1, 1, 4), allowed, None, None).flatten().tolist() == [0, 0, 1, 0]


def test_training_decides_under_noise_of_variance_1_and_prediction_under_none() -> None:
    torch.manual_seed(0)
    made, count = Monotonic(E), 40_000
    nn.init.constant_(made.offset, 0.4)
    alpha = made.train()(torch.full((count, 1, 1, 1), 0.3), None, None, None)  # of one key: sigmoid(e + r + noise)
    noisy = alpha.flatten().logit()
    assert noisy.mean().item() == pytest.approx(0.7, abs=5 / count**0.5)
    assert noisy.std().item() == pytest.approx(1.0, abs=5 / count**0.5)
    before = torch.get_rng_state()
    assert made.eval()(torch.tensor([[[[-0.3]]], [[[-0.5]]]]), None, None, None).flatten().tolist() == [1, 0]
    assert torch.equal(torch.get_rng_state(), before)


def test_a_predicted_centre_begins_anywhere_in_the_sentence_and_not_at_its_ends() -> None:
    torch.manual_seed(0)
    made = LocalPredictive(1024)  # v of length 1: v . tanh(..) of numbers below 1 is a number of that size
    assert made.reader_E.norm().item() == pytest.approx(1, rel=0.1)


def test_decided_readers_train_to_what_prediction_does() -> None:
    # The noise is small against such scores: the expectation is the decision.
    made = Monotonic(E)
    scores = 40 * torch.tensor([-1.0, 1, -1, 1])[None, None, None]
    torch.testing.assert_close(made.train()(scores, None, None, None), made.eval()(scores, None, None, None))
