"""Hard attention: what it draws, what its gradient is on average, and that it learns by it."""

import itertools
import threading

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from text_columns import loss_of
from transduce.attention import attend
from transduce.attention.normalizers import Gumbel, Hard, Normalizer
from transduce.attention.pooling import AttentionPooling
from transduce.attention.reinforce import active_choices, choices, surrogate
from transduce.attention.scaled_dot_product import attend_by
from transduce.attention.scores import ScaledDot
from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.objectives.label import LabelCrossEntropy
from transduce.recipe.training import TrainingConfig


class Told(Hard):
    """Hard attention that chooses what it is told."""

    choice: Tensor

    def draw(self, log_alpha_BHTS: Tensor) -> Tensor:
        return self.choice


def weigh(made: Normalizer, scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    alpha: Tensor = made(scores, allowed, scores, torch.zeros(1, 1))
    return alpha


def test_nothing_is_kept_unless_asked_for_and_nothing_while_predicting() -> None:
    hard = Hard(4)
    weigh(hard, torch.randn(2, 1, 3, 4))
    assert active_choices() is None
    with choices() as made:
        weigh(hard.eval(), torch.randn(2, 1, 3, 4))
    assert made.log_probability is None


def test_log_probabilities_add_up_over_heads_queries_and_layers() -> None:
    told = Told(4)
    scores = torch.randn(2, 3, 2, 4, requires_grad=True)
    told.choice = torch.randint(4, (2, 3, 2, 1))
    with choices() as made:
        alpha = weigh(told, scores)
        weigh(told, 2 * scores)
    assert torch.equal(alpha.argmax(-1, keepdim=True), told.choice)
    assert not alpha.requires_grad
    wanted = sum(each.log_softmax(-1).gather(-1, told.choice).sum((1, 2, 3)) for each in (scores, 2 * scores))
    assert made.log_probability is not None
    torch.testing.assert_close(made.log_probability, wanted)


def test_the_inner_with_wins_and_threads_do_not_see_each_other() -> None:
    hard, seen = Hard(4), []
    with choices() as outer:
        with choices() as inner:
            weigh(hard, torch.randn(1, 1, 1, 4))
        thread = threading.Thread(target=lambda: seen.append(active_choices()))
        thread.start()
        thread.join()
    assert seen == [None]
    assert inner.log_probability is not None
    assert outer.log_probability is None


@pytest.mark.parametrize("name", ["hard", "gumbel"])
def test_draws_are_as_frequent_as_the_softmax_says(name: str) -> None:
    torch.manual_seed(0)
    made = Hard(1) if name == "hard" else Gumbel(1, temperature=0.3)
    draws = 20_000
    scores = torch.tensor([1.0, 0.0, -1.0, 2.0, 0.5]).expand(1, 1, draws, 5)
    allowed = torch.tensor([True, True, True, False, True])
    alpha = weigh(made, scores, allowed)
    assert ((alpha == 0) | (alpha == 1)).all()
    frequency = alpha.mean((0, 1, 2))
    p = scores[0, 0, 0].masked_fill(~allowed, -torch.inf).softmax(-1)
    error = (p * (1 - p) / draws).sqrt()
    assert ((frequency - p).abs() <= 4 * error).all()
    assert frequency[3] == 0


def test_soft_attention_is_the_expectation_of_hard_attention() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(1, 1, 1, 4), torch.randn(1, 1, 5, 4), torch.randn(1, 1, 5, 3)
    allowed = torch.tensor([True, True, False, True, True])
    soft = attend(query, key, value, allowed)
    # Exactly: every key that could be drawn, by its probability ...
    told, mean = Told(4), torch.zeros_like(soft)
    for s in range(5):
        told.choice = torch.full((1, 1, 1, 1), s)
        with choices() as made:
            read, _ = attend_by(ScaledDot(4, 4), told, query, key, value, allowed, torch.zeros(1, 1))
        assert made.log_probability is not None
        mean += made.log_probability.exp() * read
    torch.testing.assert_close(mean, soft)
    # ... and as a mean of many draws.
    draws = 20_000
    reads, alpha = attend_by(
        ScaledDot(4, 4), Hard(4), query.expand(1, 1, draws, 4), key, value, allowed, torch.zeros(1, 1)
    )
    assert ((alpha == 1).sum(-1) == 1).all()
    error = reads.std(2, keepdim=True) / draws**0.5
    assert ((reads.mean(2, keepdim=True) - soft).abs() <= 4 * error).all()


def test_the_gradient_of_gumbel_is_that_of_its_softmax() -> None:
    scores, value = torch.randn(2, 1, 3, 4, requires_grad=True), torch.randn(2, 1, 3, 4)
    torch.manual_seed(5)
    hard = weigh(Gumbel(1, temperature=0.7), scores)
    (through,) = torch.autograd.grad((hard * value).sum(), scores)
    torch.manual_seed(5)
    noise = -torch.empty(2, 1, 3, 4).exponential_().log()
    soft = ((scores + noise) / 0.7).softmax(-1)
    (wanted,) = torch.autograd.grad((soft * value).sum(), scores)
    torch.testing.assert_close(through, wanted)
    assert torch.equal(hard.argmax(-1), soft.argmax(-1))


# REINFORCE


class Chooser(nn.Module):
    """Each target position reads one of S vectors, which are its logits. Scores and vectors are parameters."""

    def __init__(self, rows: int, queries: int, keys: int, vocabulary: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.randn(rows, 1, queries, keys))
        self.value = nn.Parameter(torch.randn(keys, vocabulary))
        self.weigh = Told(1)

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        copies = len(target.values) // len(self.scores)  # R-Drop's second pass
        return weigh(self.weigh, self.scores.repeat(copies, 1, 1, 1))[:, 0] @ self.value


@pytest.mark.parametrize(("keys", "r_drop"), [(3, 0.0), (2, 1e-12)])
def test_on_average_the_gradient_is_that_of_the_expected_loss(keys: int, r_drop: float) -> None:
    # All ways to choose, each with its probability: E[d surrogate + d loss] = d E[loss].
    torch.manual_seed(0)
    model, copies = Chooser(2, 2, keys, 4), 2 if r_drop else 1
    target = Padded(torch.tensor([[1, 2, 3], [1, 3, 0]]), torch.tensor([3, 2]))
    batch = Batch(None, target, 3)
    parameters = (model.scores, model.value)
    mean = [torch.zeros_like(each) for each in parameters]
    alpha = model.scores.detach().softmax(-1).repeat(copies, 1, 1, 1)
    for chosen in itertools.product(range(keys), repeat=4 * copies):
        model.weigh.choice = torch.tensor(chosen).view(2 * copies, 1, 2, 1)
        minimised, loss = loss_of(model, batch, TrainingConfig(label_smoothing=0.0, r_drop=r_drop))
        probability = alpha.gather(-1, model.weigh.choice).prod()
        gradients = torch.autograd.grad(minimised, parameters)
        mean = [total + probability * gradient for total, gradient in zip(mean, gradients, strict=True)]
        assert not loss.requires_grad
    # A position's loss depends on its own choice only, so that the expected loss is a sum over positions.
    loss_ST = torch.stack(
        [F.cross_entropy(row.expand(3, 4), torch.tensor([2, 3, 3]), reduction="none") for row in model.value]
    )
    soft = model.scores.softmax(-1)[:, 0]
    expected = (torch.stack((soft[0, 0], soft[0, 1], soft[1, 0])).mT * loss_ST).sum()
    for total, wanted in zip(mean, torch.autograd.grad(expected, parameters), strict=True):
        torch.testing.assert_close(total, wanted, rtol=0, atol=1e-5)
    assert mean[0].abs().max() > 0.01


class LabelChooser(nn.Module):
    """Each row reads one of S vectors, which are the logits of its label, and is punished for what it reads."""

    def __init__(self, rows: int, keys: int, labels: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.randn(rows, 1, 1, keys))
        self.value = nn.Parameter(torch.randn(keys, labels))
        self.weigh = Told(1)

    def classify(self, inputs: object) -> Tensor:
        return weigh(self.weigh, self.scores)[:, 0, 0] @ self.value


class PunishedChooser(LabelChooser):
    def classify_with_penalty(self, inputs: object) -> tuple[Tensor, Tensor]:
        return self.classify(inputs), 0.3 * self.value.square().sum().expand(len(self.scores))


@pytest.mark.parametrize("kind", [LabelChooser, PunishedChooser])
@pytest.mark.parametrize("weights", [(), (0.5, 2.0, 1.0, 3.0)])
def test_of_labels_too_the_gradient_is_on_average_that_of_the_expected_loss(
    kind: type[LabelChooser], weights: tuple[float, ...]
) -> None:
    torch.manual_seed(0)
    rows, keys, labels = 3, 3, torch.tensor([2, 0, 1])
    model, parameters = kind(rows, keys, 4), ("scores", "value")
    wanted_parameters = [getattr(model, name) for name in parameters]
    mean = [torch.zeros_like(each) for each in wanted_parameters]
    alpha = model.scores.detach().softmax(-1)
    for chosen in itertools.product(range(keys), repeat=rows):
        model.weigh.choice = torch.tensor(chosen).view(rows, 1, 1, 1)
        found = LabelCrossEntropy(weights=weights).loss(model, Batch(None, labels, rows))
        probability = alpha.gather(-1, model.weigh.choice).prod()
        gradients = torch.autograd.grad(found.minimised, wanted_parameters)
        mean = [total + probability * gradient for total, gradient in zip(mean, gradients, strict=True)]
        read = model.value[torch.tensor(chosen)]
        weight = torch.tensor(weights) if weights else None
        torch.testing.assert_close(found.reported, F.cross_entropy(read, labels, weight, reduction="sum").detach())
    each = [
        F.cross_entropy(model.value, label.expand(keys), torch.tensor(weights) if weights else None, reduction="none")
        for label in labels
    ]
    expected = (model.scores.softmax(-1)[:, 0, 0] * torch.stack(each)).sum()
    if kind is PunishedChooser:
        expected = expected + 0.3 * rows * model.value.square().sum()
    for total, wanted in zip(mean, torch.autograd.grad(expected, wanted_parameters), strict=True):
        torch.testing.assert_close(total, wanted, rtol=0, atol=1e-5)
    assert mean[0].abs().max() > 0.01


def test_of_labels_that_are_rewarded_alike_no_choice_gains() -> None:
    """Each label counts as one, and the reward of the others is the baseline."""
    torch.manual_seed(0)
    model, labels = LabelChooser(3, 2, 4), torch.tensor([1, 1, 1])
    model.weigh.choice = torch.zeros(3, 1, 1, 1, dtype=torch.int64)
    (gradient,) = torch.autograd.grad(LabelCrossEntropy().loss(model, Batch(None, labels, 3)).minimised, model.scores)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient))


def test_the_baseline_knows_how_long_sentences_are() -> None:
    log_probability = torch.randn(3, requires_grad=True)
    size = torch.tensor([2, 5, 9])
    assert surrogate(log_probability, -3.0 * size, size) == 0  # all were rewarded alike for each token
    (gradient,) = torch.autograd.grad(surrogate(log_probability, torch.tensor([-4.0, -15, -27]), size), log_probability)
    assert gradient[0] < 0 < gradient[1]  # the first did better than the others: its choices gain
    (alone,) = torch.autograd.grad(surrogate(log_probability[:1], torch.tensor([-4.0]), size[:1]), log_probability)
    assert alone.tolist() == [4, 0, 0]


# Pick the marked item: one of six is marked, and its kind is asked for.

ITEMS, KINDS, ROWS = 6, 4, 64


def marked_items(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    kind = torch.randint(KINDS, (ROWS, ITEMS), generator=generator)
    place = torch.randint(ITEMS, (ROWS, 1), generator=generator)
    mark = (torch.arange(ITEMS) == place).float()
    return torch.cat((mark[..., None], F.one_hot(kind, KINDS).float()), -1), kind.gather(1, place)[:, 0]


def accuracy_of(normalizer: str, reinforced: bool = True, seed: int = 0, updates: int = 150) -> float:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed + 1)
    pooling, head = AttentionPooling("dot", normalizer, 1 + KINDS), nn.Linear(1 + KINDS, KINDS)
    nn.init.zeros_(pooling.query_RK)
    optimizer = torch.optim.Adam([*pooling.parameters(), *head.parameters()], lr=0.05)
    for _ in range(updates):
        items, kind = marked_items(generator)
        with choices() as made:
            logits = head(pooling(items)[:, 0])
        loss = F.cross_entropy(logits, kind, reduction="none")
        minimised = loss.sum()
        if reinforced and made.log_probability is not None:
            minimised = minimised + surrogate(made.log_probability, -loss, torch.ones(ROWS))
        optimizer.zero_grad()
        minimised.backward()
        optimizer.step()
    pooling.eval()
    batches = [marked_items(generator) for _ in range(10)]
    return sum((head(pooling(items)[:, 0]).argmax(-1) == kind).sum().item() for items, kind in batches) / (10 * ROWS)


def test_hard_attention_learns_to_pick_the_marked_item() -> None:
    soft = accuracy_of("softmax")
    assert soft > 0.95
    assert accuracy_of("hard") > soft - 0.02
    assert accuracy_of("gumbel") > soft - 0.02
    assert accuracy_of("hard", reinforced=False) < 0.6  # by chance 0.375: without REINFORCE nothing is learnt
