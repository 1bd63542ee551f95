"""CTC against all rows of places written out, and against torch's."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.core.padded import Padded
from transduce.layers.ctc import (
    IMPOSSIBLE,
    Written,
    best_alignment,
    ids_of,
    least_places,
    log_likelihood,
    log_probabilities_of,
    token_log_probabilities,
    written,
)

BLANK, VOCABULARY = 2, 4
OUTPUTS = [(), (0,), (0, 1), (1, 1), (3, 3, 1), (0, 1, 0), (3, 0, 0, 3)]


def places(lengths: list[int], seed: int = 0) -> Padded:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(len(lengths), max(lengths), VOCABULARY, generator=generator, dtype=torch.float64)
    return Padded(2 * logits, torch.tensor(lengths))


def targets(outputs: list[tuple[int, ...]]) -> Padded:
    values_BT = torch.full((len(outputs), max(map(len, outputs))), 3)
    for row, output in enumerate(outputs):
        values_BT[row, : len(output)] = torch.tensor(output, dtype=torch.int64)
    return Padded(values_BT, torch.tensor([len(output) for output in outputs]))


def of(logits: Padded, target: Padded, blank: int = BLANK) -> Written:
    normed_BPV = logits.values.log_softmax(-1)
    return written(normed_BPV.gather(2, ids_of(target.values, normed_BPV.shape[1], blank)), logits.lengths, *target)


def said(row: tuple[int, ...]) -> tuple[int, ...]:
    """What a row of places says."""
    return tuple(token for token, _ in itertools.groupby(row) if token != BLANK)


def by_all_rows(logits_PV: Tensor) -> dict[tuple[int, ...], float]:
    """The probability of every output."""
    probability_PV = logits_PV.softmax(-1).tolist()
    found: dict[tuple[int, ...], float] = {}
    for row in itertools.product(range(VOCABULARY), repeat=len(probability_PV)):
        probability = math.prod(probability_PV[place][token] for place, token in enumerate(row))
        found[said(row)] = found.get(said(row), 0.0) + probability
    return found


def test_an_outputs_probability_is_the_sum_over_all_rows_of_places_that_say_it() -> None:
    lengths = [6, 3, 4, 5, 6, 5, 6]
    logits, target = places(lengths), targets(OUTPUTS)
    found = log_likelihood(of(logits, target)).tolist()
    for row, output in enumerate(OUTPUTS):
        everything = by_all_rows(logits.values[row, : lengths[row]])
        assert math.fsum(everything.values()) == pytest.approx(1)
        assert found[row] == pytest.approx(math.log(everything[output]), abs=1e-9), output


def test_each_token_by_the_chain_rule() -> None:
    lengths = [6, 3, 4, 5, 6, 5, 6]
    logits, target = places(lengths, seed=1), targets(OUTPUTS)
    found = token_log_probabilities(of(logits, target))
    for row, output in enumerate(OUTPUTS):
        everything = by_all_rows(logits.values[row, : lengths[row]])
        begins = [
            math.fsum(value for each, value in everything.items() if each[:count] == output[:count])
            for count in range(len(output) + 1)
        ]
        expected = [math.log(after / before) for before, after in itertools.pairwise([*begins, everything[output]])]
        assert found[row, : len(output) + 1].tolist() == pytest.approx(expected, abs=1e-9)
        assert not found[row, len(output) + 1 :].any()
    torch.testing.assert_close(found.sum(1), log_likelihood(of(logits, target)))


def test_it_is_torchs() -> None:
    torch.manual_seed(0)
    logits = Padded(torch.randn(5, 30, 50, requires_grad=True), torch.tensor([30, 12, 25, 30, 8]))
    target = Padded(torch.randint(1, 50, (5, 11)), torch.tensor([11, 3, 9, 1, 4]))
    target.values[0, 3:6] = 7  # again and again
    ours_B = log_likelihood(of(logits, target, 0))
    normed_PBV = logits.values.log_softmax(-1).transpose(0, 1)
    theirs_B = -F.ctc_loss(normed_PBV, target.values, logits.lengths, target.lengths, blank=0, reduction="none")
    torch.testing.assert_close(ours_B, theirs_B, rtol=1e-5, atol=1e-4)
    weight_B = torch.randn(5)
    (our,) = torch.autograd.grad((ours_B * weight_B).sum(), logits.values)
    (their,) = torch.autograd.grad((theirs_B * weight_B).sum(), logits.values)
    torch.testing.assert_close(our, their, rtol=1e-4, atol=1e-5)


def test_gradients() -> None:
    lengths, target = torch.tensor([4, 3, 5]), targets([(0, 0), (), (3, 1, 1)])

    def both(logits_BPV: Tensor) -> tuple[Tensor, Tensor]:
        ids_BPU = ids_of(target.values, logits_BPV.shape[1], BLANK)
        of_BPU, mean_BP = log_probabilities_of(logits_BPV, ids_BPU)
        return log_likelihood(written(of_BPU, lengths, *target)), mean_BP.sum(1)

    assert torch.autograd.gradcheck(both, places([4, 3, 5]).values.requires_grad_())


def test_log_probabilities_of_some_ids_and_of_all_on_average() -> None:
    torch.manual_seed(0)
    logits_NV = torch.randn(150, 9, dtype=torch.float64, requires_grad=True)  # more rows than a chunk has
    ids_NC = torch.randint(0, 9, (150, 4))
    of_NC, mean_N = log_probabilities_of(logits_NV, ids_NC)
    normed_NV = logits_NV.log_softmax(1)
    torch.testing.assert_close(of_NC, normed_NV.gather(1, ids_NC))
    torch.testing.assert_close(mean_N, normed_NV.mean(1))
    weight_NC, weight_N = torch.randn_like(of_NC), torch.randn_like(mean_N)
    ours = torch.autograd.grad((of_NC * weight_NC).sum() + (mean_N * weight_N).sum(), logits_NV)
    theirs = torch.autograd.grad(
        (normed_NV.gather(1, ids_NC) * weight_NC).sum() + (normed_NV.mean(1) * weight_N).sum(), logits_NV
    )
    torch.testing.assert_close(ours, theirs)


def test_an_output_with_more_tokens_than_places_is_as_good_as_impossible() -> None:
    outputs = [(0, 1, 3), (1, 1), (0, 1)]
    found = log_likelihood(of(places([2, 2, 2]), targets(outputs)))
    assert (found[:2] < IMPOSSIBLE / 2).all()
    assert found[2] > -20
    assert least_places(*targets(outputs)).tolist() == [3, 3, 2]


def test_rows_of_a_batch_do_not_know_of_each_other() -> None:
    lengths = [6, 3, 4, 5, 6, 5, 6]
    logits, target = places(lengths, seed=2), targets(OUTPUTS)
    together = token_log_probabilities(of(logits, target))
    for row, output in enumerate(OUTPUTS):
        alone = Padded(logits.values[row : row + 1, : lengths[row]], logits.lengths[row : row + 1])
        [found] = token_log_probabilities(of(alone, targets([output])))
        torch.testing.assert_close(together[row, : len(output) + 1], found)


def likeliest_rows(logits_PV: Tensor, output: tuple[int, ...]) -> tuple[float, list[tuple[int, ...]]]:
    """The probability of the likeliest row of places that says `output`, and all rows that have it."""
    probability_PV = logits_PV.softmax(-1).tolist()
    every = itertools.product(range(VOCABULARY), repeat=len(probability_PV))
    found = {row: math.prod(probability_PV[p][t] for p, t in enumerate(row)) for row in every if said(row) == output}
    best = max(found.values())
    return best, [row for row, each in found.items() if each >= best * (1 - 1e-12)]


def held_by(row: tuple[int, ...]) -> list[tuple[int, int]]:
    """The first and the last place of each token that a row of places says."""
    runs, at = [], 0
    for token, group in itertools.groupby(row):
        size = len(list(group))
        runs += [] if token == BLANK else [(at, at + size - 1)]
        at += size
    return runs


@pytest.mark.parametrize("seed", range(6))
def test_the_best_alignment_is_the_likeliest_of_all_rows_of_places(seed: int) -> None:
    lengths = [6, 3, 4, 5, 6, 5, 6]
    logits, target = places(lengths, seed), targets(OUTPUTS)
    found = best_alignment(of(logits, target))
    for row, output in enumerate(OUTPUTS):
        best, rows = likeliest_rows(logits.values[row, : lengths[row]], output)
        assert found.log_probability[row].item() == pytest.approx(math.log(best), abs=1e-9), output
        size = len(output)
        spans = [*zip(found.first[row, :size].tolist(), found.last[row, :size].tolist(), strict=True)]
        assert spans in [held_by(each) for each in rows]
        assert (found.first[row, size:] == -1).all() and (found.last[row, size:] == -1).all()


def test_an_output_that_does_not_fit_has_no_alignment() -> None:
    found = best_alignment(of(places([2, 2, 2]), targets([(0, 1, 3), (1, 1), (0, 1)])))
    assert (found.log_probability[:2] < IMPOSSIBLE / 2).all() and (found.first[:2] == -1).all()
    assert found.first[2].tolist() == found.last[2].tolist() == [0, 1, -1]


def test_outputs_of_no_tokens_at_all_are_aligned() -> None:
    logits = places([3, 2])
    found = best_alignment(of(logits, targets([(), ()])))
    normed_BPV = logits.values.log_softmax(-1)
    expected = [normed_BPV[0, :, BLANK].sum().item(), normed_BPV[1, :2, BLANK].sum().item()]
    assert found.log_probability.tolist() == pytest.approx(expected) and found.first.shape == (2, 0)
