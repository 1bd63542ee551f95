"""Linear-chain CRFs against sums over all rows of labels, pytorch-crf, and gradients by differences."""

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor
from torchcrf import CRF

from transduce.data.structures.label_schemes import allowed_transitions, labels_of, spans_of
from transduce.layers.crf import (
    Chain,
    LinearChain,
    best_rows,
    log_likelihood,
    log_likelihood_terms,
    log_marginals,
    log_partition,
    row_score,
)

LABELS = ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")
CLOSED = ("B", "E", "M", "S")


def drawn(words: int, labels: int, seed: int, forbid: bool) -> tuple[Tensor, Chain]:
    """Random scores of one text, in fp64; `forbid`: a quarter of the pairs, but no label behind itself."""
    random = torch.Generator().manual_seed(seed)
    sizes = ((words, labels), (labels,), (labels, labels), (labels,))
    emission_NC, start_C, between_CC, end_C = (
        torch.randn(size, generator=random, dtype=torch.float64) for size in sizes
    )
    if forbid:
        bad_CC = torch.rand(labels, labels, generator=random) < 0.25
        between_CC = between_CC.masked_fill(bad_CC.fill_diagonal_(False), -1e30)
    return emission_NC, Chain(start_C, between_CC, end_C)


def slow_scores(emission_NC: Tensor, chain: Chain) -> dict[tuple[int, ...], float]:
    """The score of every row of labels, term by term; -inf of a forbidden one."""
    words, labels = emission_NC.shape
    found = {}
    for row in itertools.product(range(labels), repeat=words):
        terms = [chain.start_C[row[0]], chain.end_C[row[-1]], *(emission_NC[n, y] for n, y in enumerate(row))]
        terms += [chain.between_CC[one, other] for one, other in itertools.pairwise(row)]
        found[row] = -torch.inf if min(map(float, terms)) < -1e29 else float(sum(terms))  # type: ignore[arg-type]
    return found


CASES = [(1 + seed % 6, 2 + seed % 4, seed, seed % 2 == 1) for seed in range(24)]


@pytest.mark.parametrize(("words", "labels", "seed", "forbid"), CASES)
def test_sums_over_all_rows(words: int, labels: int, seed: int, forbid: bool) -> None:
    emission_NC, chain = drawn(words, labels, seed, forbid)
    scores = slow_scores(emission_NC, chain)
    every = torch.tensor(list(scores.values()), dtype=torch.float64)
    one = emission_NC[None], torch.tensor([words])
    log_z = every.logsumexp(0)
    torch.testing.assert_close(log_partition(*one, chain)[0], log_z)
    best = max(scores, key=lambda row: scores[row])
    assert best_rows(*one, chain)[0].tolist() == list(best)
    marginals_NC = log_marginals(*one, chain)[0]
    for place, label in itertools.product(range(words), range(labels)):
        agreeing = torch.tensor([s for row, s in scores.items() if row[place] == label], dtype=torch.float64)
        torch.testing.assert_close(marginals_NC[place, label], agreeing.logsumexp(0) - log_z)
    for row in [best, *itertools.islice(scores, 0, None, max(1, len(scores) // 7))]:
        ids_1N = torch.tensor([row])
        assert float(row_score(one[0], ids_1N, one[1], chain)) == pytest.approx(scores[row])
        wanted = scores[row] - float(log_z)
        assert float(log_likelihood(one[0], ids_1N, one[1], chain)) == pytest.approx(wanted)
        terms_N = log_likelihood_terms(one[0], ids_1N, one[1], chain)[0]
        assert float(terms_N.sum()) == pytest.approx(wanted)
        assert float(terms_N.max()) <= 1e-12


def test_each_term_is_the_share_of_the_rows_that_agree_so_far() -> None:
    emission_NC, chain = drawn(4, 3, 7, True)
    scores = slow_scores(emission_NC, chain)
    one = emission_NC[None], torch.tensor([4])
    for known in ([0, 1, 2, 0], [-1, 1, -1, 0], [2, -1, -1, -1], [-1, -1, -1, -1]):
        terms = log_likelihood_terms(one[0], torch.tensor([known]), one[1], chain)[0].tolist()
        before = torch.tensor(list(scores.values()), dtype=torch.float64).logsumexp(0)
        for place in range(4):
            agree = [
                s
                for row, s in scores.items()
                if all(label in (-1, row[n]) for n, label in enumerate(known[: place + 1]))
            ]
            now = torch.tensor(agree, dtype=torch.float64).logsumexp(0)
            assert terms[place] == pytest.approx(float(now - before))
            before = now
            if now == -torch.inf:
                break
        whole = float(log_likelihood(one[0], torch.tensor([known]), one[1], chain))
        assert sum(terms) == pytest.approx(whole, abs=1e-12)


def padded(seed: int) -> tuple[Tensor, Tensor, Chain]:
    """A batch of texts of 1 to 6 words in fp32, with noise behind their ends."""
    random = torch.Generator().manual_seed(seed)
    module = LinearChain(len(LABELS), allowed_transitions(LABELS, "bio"))
    assert module.scores_DD is not None
    with torch.no_grad():
        module.scores_DD.normal_(generator=random)
    emission_BNC = torch.randn(6, 6, len(LABELS), generator=random)
    length_B = torch.tensor([6, 1, 3, 5, 2, 6])
    return emission_BNC, length_B, module.chain()


def test_padding_changes_nothing_and_a_text_is_what_it_is_alone() -> None:
    emission_BNC, length_B, chain = padded(3)
    label_BN = best_rows(emission_BNC, length_B, chain)
    together: tuple[Any, ...] = (
        log_partition(emission_BNC, length_B, chain),
        log_likelihood(emission_BNC, label_BN, length_B, chain),
        log_likelihood_terms(emission_BNC, label_BN, length_B, chain),
        log_marginals(emission_BNC, length_B, chain),
    )
    for row, length in enumerate(length_B.tolist()):
        alone = emission_BNC[row : row + 1, :length], length_B[row : row + 1]
        labels = label_BN[row : row + 1, :length]
        assert best_rows(*alone, chain).equal(labels)
        assert log_partition(*alone, chain).equal(together[0][row : row + 1])
        assert log_likelihood(alone[0], labels, alone[1], chain).equal(together[1][row : row + 1])
        assert log_likelihood_terms(alone[0], labels, alone[1], chain)[0].equal(together[2][row, :length])
        assert log_marginals(*alone, chain)[0].equal(together[3][row, :length])
        assert not together[2][row, length:].any()


def test_gradients_are_those_of_differences() -> None:
    random = torch.Generator().manual_seed(5)
    emission_BNC = torch.randn(2, 3, 3, generator=random, dtype=torch.float64, requires_grad=True)
    scores = [
        torch.randn(size, generator=random, dtype=torch.float64, requires_grad=True) for size in ((3,), (3, 3), (3,))
    ]
    label_BN, length_B = torch.tensor([[0, 2, 1], [1, -1, 0]]), torch.tensor([3, 2])

    def function(emission_BNC: Tensor, *chain: Tensor) -> Tensor:
        kept_CC = chain[1].masked_fill(torch.tensor([[0, 1, 0], [0, 0, 0], [0, 0, 0]]).bool(), -1e30)
        return log_likelihood(emission_BNC, label_BN, length_B, Chain(chain[0], kept_CC, chain[2]))

    assert torch.autograd.gradcheck(function, (emission_BNC, *scores))


def test_it_is_pytorch_crf() -> None:
    torch.manual_seed(2)
    theirs, ours = CRF(5, batch_first=True), LinearChain(5)
    assert ours.scores_DD is not None
    with torch.no_grad():
        ours.scores_DD[-1, :-1] = theirs.start_transitions
        ours.scores_DD[:-1, :-1] = theirs.transitions
        ours.scores_DD[:-1, -1] = theirs.end_transitions
    emission_BNC, length_B, label_BN = torch.randn(4, 7, 5), torch.tensor([7, 3, 1, 5]), torch.randint(5, (4, 7))
    mask_BN = torch.arange(7) < length_B[:, None]
    theirs_B = theirs(emission_BNC, label_BN, mask=mask_BN, reduction="none")
    torch.testing.assert_close(log_likelihood(emission_BNC, label_BN, length_B, ours.chain()), theirs_B)
    best_BN = best_rows(emission_BNC, length_B, ours.chain())
    assert [row[:n] for row, n in zip(best_BN.tolist(), length_B.tolist(), strict=True)] == theirs.decode(
        emission_BNC, mask=mask_BN
    )


@pytest.mark.parametrize(("labels", "scheme"), [(LABELS, "bio"), (CLOSED, "bmes")])
@pytest.mark.parametrize("learned", [True, False])
def test_what_comes_out_keeps_to_the_scheme(labels: tuple[str, ...], scheme: str, learned: bool) -> None:
    random = torch.Generator().manual_seed(1)
    module = LinearChain(len(labels), allowed_transitions(labels, scheme), learned)
    emission_BNC = 3 * torch.randn(2_500, 8, len(labels), generator=random)
    length_B = torch.randint(1, 9, (2_500,), generator=random)
    for row, length in zip(best_rows(emission_BNC, length_B, module.chain()).tolist(), length_B.tolist(), strict=True):
        said = [labels[each] for each in row[:length]]
        assert labels_of(spans_of(said), length, scheme) == said


def test_forbidden_labels_have_no_probability_and_all_parameters_a_finite_gradient() -> None:
    module = LinearChain(len(LABELS), allowed_transitions(LABELS, "bio"))
    emission_BNC = torch.randn(3, 4, len(LABELS), requires_grad=True)
    length_B = torch.tensor([4, 2, 1])
    first_BC = log_marginals(emission_BNC, length_B, module.chain())[:, 0].exp()
    assert not first_BC[:, [2, 3]].any()
    torch.testing.assert_close(first_BC.sum(1), torch.ones(3))
    bad = torch.tensor([[4, 2, 4, 4], [4, 4, 0, 0], [0, 0, 0, 0]])
    found_B = log_likelihood(emission_BNC, bad, length_B, module.chain())
    assert found_B[0] == -torch.inf
    found_B[1:].sum().backward()
    assert module.scores_DD is not None and module.scores_DD.grad is not None and emission_BNC.grad is not None
    assert module.scores_DD.grad.isfinite().all() and emission_BNC.grad.isfinite().all()


def test_without_scores_of_pairs_each_word_has_its_own_best_label() -> None:
    emission_BNC = torch.randn(3, 4, 3, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    chain = LinearChain(3, learned=False).chain(torch.float64)
    found_BN = best_rows(emission_BNC, torch.tensor([4, 2, 1]), chain)
    for row, length in enumerate((4, 2, 1)):
        scores = {
            labels: sum(float(emission_BNC[row, place, label]) for place, label in enumerate(labels))
            for labels in itertools.product(range(3), repeat=length)
        }
        best = max(scores, key=lambda labels: scores[labels])
        assert found_BN[row].tolist() == [*best, *[0] * (4 - length)]
