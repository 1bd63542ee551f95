"""The loss over a sample of the vocabulary against the sums that it stands for, word by word."""

import math

import pytest
import torch
from torch import Tensor

from transduce.layers.cross_entropy import IGNORED, Sample, linear_cross_entropy, sample, sampled_cross_entropy

WORDS, WIDTH, ROWS = 60, 8, 40


def given() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(2)
    hidden_ND, weight_VD = torch.randn(ROWS, WIDTH), torch.randn(WORDS, WIDTH)
    target_N = torch.randint(20, (ROWS,))
    target_N[::7] = IGNORED
    return hidden_ND.requires_grad_(), weight_VD.requires_grad_(), target_N


def gradients(loss: Tensor, *wanted: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(0.37 * loss, wanted)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("count", [WORDS, 10_000])
def test_a_sample_of_all_words_is_the_loss_over_all(smoothing: float, count: int) -> None:
    hidden_ND, weight_VD, target_N = given()
    loss = sampled_cross_entropy(hidden_ND, weight_VD, target_N, sample(target_N, count), smoothing)
    whole = linear_cross_entropy(hidden_ND, weight_VD, target_N, smoothing)
    torch.testing.assert_close(loss, whole)
    wanted = hidden_ND, weight_VD
    for mine, right in zip(gradients(loss, *wanted), gradients(whole, *wanted), strict=True):
        torch.testing.assert_close(mine, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_where_every_word_is_predicted_there_is_nothing_to_draw(smoothing: float) -> None:
    hidden_ND, weight_VD, _ = given()
    target_N = torch.cat((torch.arange(5), torch.tensor([IGNORED, 2])))
    word_S, log_S = sample(target_N, 3).words(5)
    assert (word_S.tolist(), log_S.tolist()) == ([0, 1, 2, 3, 4], [0.0] * 5)
    hidden_ND, weight_VD = hidden_ND[:7], weight_VD[:5]
    loss = sampled_cross_entropy(hidden_ND, weight_VD, target_N, sample(target_N, 3), smoothing)
    torch.testing.assert_close(loss, linear_cross_entropy(hidden_ND, weight_VD, target_N, smoothing))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_it_is_the_sum_that_it_says(smoothing: float) -> None:
    hidden_ND, weight_VD, target_N = given()
    drawn = sample(target_N, 9)
    predicted = {int(word) for word in target_N if word != IGNORED}
    words = [int(word) for word in drawn.words(WORDS)[0]]
    others = [word for word in words if word not in predicted]
    assert len({*words}) == len(words)
    assert len(others) == 9
    each = (WORDS - len(predicted)) / 9
    expected = torch.zeros(())
    for hidden_D, target in zip(hidden_ND, target_N.tolist(), strict=True):
        if target == IGNORED:
            continue
        logit_V = weight_VD @ hidden_D
        mass = sum(logit_V[word].exp() * (1 if word in predicted else each) for word in words)
        log_V = logit_V - mass.log()  # type: ignore[union-attr]
        expected = expected - (1 - smoothing) * log_V[target] - smoothing * log_V.mean()
    loss = sampled_cross_entropy(hidden_ND, weight_VD, target_N, drawn, smoothing)
    torch.testing.assert_close(loss, expected)
    wanted = hidden_ND, weight_VD
    for mine, right in zip(gradients(loss, *wanted), gradients(expected, *wanted), strict=True):
        torch.testing.assert_close(mine, right, rtol=1e-4, atol=1e-5)


def test_on_average_its_partition_function_is_the_whole_one() -> None:
    hidden_ND, weight_VD, target_N = given()
    logit_V = (weight_VD @ hidden_ND[0]).detach()
    found = []
    for seed in range(4000):
        word_S, log_S = Sample(target_N[target_N != IGNORED].unique(), 5, seed).words(WORDS)
        found.append(float((logit_V[word_S] + log_S).exp().sum()))
    right = float(logit_V.exp().sum())
    spread = torch.tensor(found).std().item() / math.sqrt(len(found))
    assert abs(sum(found) / len(found) - right) < 4 * spread
    assert spread < 0.02 * right


def test_a_sample_follows_torchs_generator_and_each_is_another() -> None:
    *_, target_N = given()

    def three(seed: int) -> list[list[int]]:
        torch.manual_seed(seed)
        return [sample(target_N, 9).words(WORDS)[0].tolist() for _ in range(3)]

    assert three(1) == three(1)
    assert len({tuple(each) for each in three(1) + three(2)}) == 6


def test_under_autocast_it_is_as_near_as_bf16_allows() -> None:
    hidden_ND, weight_VD, target_N = given()
    drawn = sample(target_N, 9)
    exact = sampled_cross_entropy(hidden_ND, weight_VD, target_N, drawn, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        loss = sampled_cross_entropy(hidden_ND, weight_VD, target_N, drawn, 0.1)
    torch.testing.assert_close(loss, exact, rtol=2**-6, atol=0)
    wanted = hidden_ND, weight_VD
    for mine, right in zip(gradients(loss, *wanted), gradients(exact, *wanted), strict=True):
        assert float((mine - right).norm() / right.norm()) < 2**-6
