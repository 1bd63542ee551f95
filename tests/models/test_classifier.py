"""Every encoder of the classifier under every pooling, and the penalty, against slow references."""

import math
from itertools import product
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from transduce.attention.capture import capture
from transduce.attention.pooling import redundancy
from transduce.core.padded import Padded
from transduce.core.registry import resolve
from transduce.data.collate import Batch
from transduce.data.columns import ColumnSpec, Specs
from transduce.layers.recurrent_stack import RecurrentEncoder
from transduce.models.classifier import Classifier, ClassifierConfig
from transduce.models.sentence_encoder import SentenceEncoder, SentenceEncoderConfig
from transduce.objectives.label import LabelCrossEntropy

SPECS = Specs(ColumnSpec("tokens", 20), ColumnSpec("label", 3))
ENCODERS: dict[str, dict[str, Any]] = {
    "transformer": {"encoder": "transformer", "heads": 2, "feed_forward": 8},
    "convolution": {"encoder": "convolution", "layers": 2},
    "linear": {"encoder": "linear", "heads": 2, "feed_forward": 8, "positions": "learned", "max_length": 8},
    "none": {"encoder": "none"},
    **{
        f"{cell} {direction}": {"encoder": "recurrent", "hidden": 8, "cell": cell, "direction": direction}
        for cell, direction in product(("lstm", "gru", "tanh", "lstmn", "ntm"), ("forward", "backward", "both"))
    },
}
POOLINGS = ("attention", "mean", "max", "last", "first")
COMBINED = [
    (encoder, pooling)
    for encoder, pooling in product(ENCODERS, POOLINGS)
    if (encoder, pooling) != ("none", "last") and (pooling != "first" or encoder in ("transformer", "linear"))
]


def built(encoder: str, pooling: str, **more: Any) -> Classifier:
    table = {**ENCODERS[encoder], "d_model": 8, "dropout": 0.0, "pooling": pooling, **more}
    table |= {"hops": 2} if pooling == "attention" else {}
    torch.manual_seed(1)
    return Classifier(ClassifierConfig.model_validate(table), SPECS)


@pytest.mark.parametrize(("encoder", "pooling"), COMBINED)
def test_padding_changes_nothing_and_pooling_is_its_definition(encoder: str, pooling: str) -> None:
    model = built(encoder, pooling).eval()
    values_BS, lengths_B = torch.randint(1, 20, (3, 6)), torch.tensor([6, 2, 4])
    logits_BC = model.classify(Padded(values_BS, lengths_B))
    for row, length in enumerate(lengths_B.tolist()):
        alone = Padded(values_BS[row : row + 1, :length], lengths_B[row : row + 1])
        states_SH = model.encode(alone).values[0]
        expected_C = model.output(pooled(model, pooling, states_SH))
        torch.testing.assert_close(logits_BC[row], expected_C, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("encoder", "pooling"), COMBINED)
def test_gradients_reach_every_parameter(encoder: str, pooling: str) -> None:
    model = built(encoder, pooling)
    lengths_B = torch.tensor([8, 8, 8]) if encoder == "linear" else torch.tensor([6, 2, 4])  # each learned position
    logits_BC = model.classify(Padded(torch.randint(4, 20, (3, int(lengths_B.max()))), lengths_B))
    logits_BC.logsumexp(1).sum().backward()  # type: ignore[no-untyped-call]
    untouched = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert not untouched


def pooled(model: Classifier, pooling: str, states_SH: Tensor) -> Tensor:
    """One text's states as one vector, position by position."""
    if pooling == "mean":
        return states_SH.sum(0) / len(states_SH)
    if pooling == "max":
        return torch.stack([max(column) for column in states_SH.unbind(1)])
    if pooling == "first":
        return states_SH[0]
    if pooling == "last" and isinstance(model.encoder, RecurrentEncoder):
        halves = zip(model.encoder.backward, states_SH.chunk(len(model.encoder.backward), -1), strict=True)
        return torch.cat([half_SH[0] if backward else half_SH[-1] for backward, half_SH in halves])
    if pooling == "last":
        return states_SH[-1]
    assert model.pool is not None and model.key is not None
    hops, states_SH = [], states_SH[: max(1, len(states_SH) - 1)]  # not the end token
    for query_H in model.pool.query_RK:
        score_S = torch.stack([query_H @ (model.key.weight @ state_H).tanh() for state_H in states_SH])
        alpha_S = score_S.exp() / score_S.exp().sum()
        hops.append(sum(a * h for a, h in zip(alpha_S, states_SH, strict=True)))
    return torch.cat(hops)  # type: ignore[arg-type]


def test_without_an_encoder_the_states_are_embeddings_and_positions() -> None:
    model = built("none", "mean").eval()
    ids_BS = torch.randint(1, 20, (1, 6))
    table_VD = model.source_embedding(torch.arange(20))
    alone_SD = torch.stack([table_VD[word] for word in ids_BS[0]])
    turned_SD = torch.tensor(
        [[f(place / 10_000 ** (pair / 4)) for pair in range(4) for f in (math.sin, math.cos)] for place in range(6)]
    )
    torch.testing.assert_close(model.encode(Padded(ids_BS, torch.tensor([6]))).values[0], alone_SD + turned_SD)


@pytest.mark.parametrize("normalizer", ["sparsemax", "entmax", "hard", "gumbel"])
def test_any_normalizer_makes_the_weights_of_pooling(normalizer: str) -> None:
    model = built("none", "attention", pooling_normalizer=normalizer).eval()
    assert model.pool is not None and model.key is not None
    values_BS, lengths_B = torch.randint(1, 20, (3, 6)), torch.tensor([6, 2, 4])
    with capture(model) as record:
        model.classify(Padded(values_BS, lengths_B))
    [alpha_B1RS] = record["pool"]
    weigh = resolve("attention.normalizers", normalizer)(8).eval()
    for row, length in enumerate((lengths_B - 1).tolist()):
        states_SH = model.encode(Padded(values_BS[row : row + 1], lengths_B[row : row + 1])).values[0, :length]
        score_RS = model.pool.query_RK @ model.key(states_SH).tanh().T
        place_1R = torch.arange(2)[None]
        expected_RS = weigh(score_RS[None, None], None, model.pool.query_RK[None, None], place_1R)[0, 0]
        torch.testing.assert_close(alpha_B1RS[row, 0, :, :length], expected_RS)
        assert not alpha_B1RS[row, 0, :, length:].any()


def test_hard_pooling_learns_by_reinforce() -> None:
    """Its scores have a gradient in the objective, and without it none."""
    model = built("none", "attention", pooling_normalizer="hard").train()
    batch = Batch(Padded(torch.randint(1, 20, (3, 6)), torch.tensor([6, 2, 4])), torch.tensor([0, 2, 1]), 3)
    assert model.pool is not None
    model.classify(batch.inputs).logsumexp(1).sum().backward()  # type: ignore[no-untyped-call]
    assert model.pool.query_RK.grad is None
    LabelCrossEntropy().loss(model, batch).minimised.backward()  # type: ignore[no-untyped-call]
    assert model.pool.query_RK.grad is not None and model.pool.query_RK.grad.any()


@pytest.mark.parametrize(
    "settings",
    [
        {"layers": 2},
        {"cell": "gru"},
        {"hidden": 12},
        {"direction": "forward"},
        {"pooling": "max"},
        {"hops": 3},
        {"word_dropout": 0.5},
        {"encoder": "transformer", "heads": 2},
        {"encoder": "transformer", "heads": 2, "positions": "none"},
        {"encoder": "linear", "heads": 2},
        {"encoder": "convolution"},
        {"encoder": "none"},
        {"pooling_normalizer": "sparsemax"},
    ],
    ids=str,
)
def test_every_setting_matters_and_gradients_reach_every_parameter(settings: dict[str, Any]) -> None:
    inputs = Padded(torch.randint(4, 20, (3, 6)), torch.tensor([6, 2, 4]))

    def logits(**more: Any) -> tuple[Tensor, Classifier]:
        torch.manual_seed(2)
        model = Classifier(ClassifierConfig.model_validate({"d_model": 8, "dropout": 0.0, **more}), SPECS)
        return model.classify(inputs), model

    changed_BC, model = logits(**settings)
    assert not torch.equal(changed_BC, logits()[0])
    changed_BC.logsumexp(1).sum().backward()  # type: ignore[no-untyped-call]
    assert not [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"encoder": "convolution", "kernel": 2}, "kernel must be odd"),
        ({"encoder": "convolution", "cell": "gru"}, "cell: not read with this encoder"),
        (
            {"encoder": "linear", "heads": 2, "positions": "rotary"},
            'positions none, sinusoidal, tensor2tensor, learned, not "rot',
        ),
        ({"encoder": "transformer", "heads": 2, "kernel": 5}, "kernel: not read with this encoder"),
        ({"encoder": "none", "layers": 2}, "layers: not read with this encoder"),
        ({"encoder": "none", "positions": "rotary"}, "positions none, sinusoidal, tensor2tensor, learned"),
        ({"encoder": "none", "pooling": "last"}, "reads the end token alone"),
        (
            {"pooling": "mean", "pooling_normalizer": "hard"},
            "pooling_normalizer: not read with this encoder and pooling",
        ),
        ({"pooling_normalizer": "hart"}, 'there is no "hart". Did you mean "hard"'),
        ({"pooling": "mean", "penalty": 1.0}, "penalty: not read with this encoder and pooling"),
    ],
)
def test_settings_of_another_encoder_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        ClassifierConfig.model_validate({"d_model": 8, **settings})


# ---- the penalty ---------------------------------------------------------------------------------------------


def test_the_penalty_is_its_definition() -> None:
    """Lin et al. 2017, equation 8, entry by entry, over the words that are there."""
    model = built("lstm both", "attention", penalty=0.7).train()
    inputs, targets = Padded(torch.randint(1, 20, (3, 6)), torch.tensor([6, 2, 4])), torch.tensor([0, 2, 1])
    with capture(model) as record:
        loss = LabelCrossEntropy().loss(model, Batch(inputs, targets, 3))
    [alpha_B1RS] = record["pool"]
    penalty = 0.0
    for row, length in enumerate(inputs.lengths.tolist()):
        alpha_RS = alpha_B1RS[row, 0, :, :length].tolist()
        for r, one in enumerate(alpha_RS):
            for q, other in enumerate(alpha_RS):
                overlap = sum(a * b for a, b in zip(one, other, strict=True)) - (r == q)
                penalty += overlap**2
    plain = torch.nn.functional.cross_entropy(model.classify(inputs), targets, reduction="sum")
    torch.testing.assert_close(loss.reported, plain.detach())  # what is shown is the loss of the labels
    torch.testing.assert_close(loss.minimised, plain + 0.7 * penalty)


def test_the_penalty_is_for_training_alone_and_moves_hops_apart() -> None:
    with_, without = built("lstm both", "attention", penalty=5.0), built("lstm both", "attention")
    batch = Batch(Padded(torch.randint(1, 20, (3, 6)), torch.tensor([6, 2, 4])), torch.tensor([0, 2, 1]), 3)
    objective = LabelCrossEntropy()
    assert torch.equal(*(objective.log_probabilities(model.eval(), batch) for model in (with_, without)))
    for model in (with_, without):
        step = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(20):
            step.zero_grad()
            objective.loss(model.train(), batch).minimised.backward()  # type: ignore[no-untyped-call]
            step.step()
    overlaps = []
    for model in (with_, without):
        with capture(model) as record:
            model.classify(batch.inputs)
        overlaps.append(redundancy(record["pool"][0][:, 0]).sum())
    assert overlaps[0] < overlaps[1]


def test_parts_of_a_batch_have_the_loss_of_the_whole() -> None:
    model = built("gru both", "attention", penalty=0.5)
    batch = Batch(Padded(torch.randint(1, 20, (4, 6)), torch.tensor([6, 2, 4, 5])), torch.tensor([0, 2, 1, 1]), 4)
    objective = LabelCrossEntropy(0.1, (0.5, 2.0, 1.0))
    parts = sum(objective.loss(model, batch.rows(slice(first, first + 2))).minimised for first in (0, 2))
    torch.testing.assert_close(objective.loss(model, batch).minimised, parts)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_class_weights_are_those_of_torch(smoothing: float) -> None:
    model = built("gru both", "mean")
    batch = Batch(Padded(torch.randint(1, 20, (3, 6)), torch.tensor([6, 2, 4])), torch.tensor([0, 2, 1]), 3)
    weights = (0.5, 3.0, 1.0)
    expected = torch.nn.functional.cross_entropy(
        model.classify(batch.inputs), batch.targets, torch.tensor(weights), reduction="none", label_smoothing=smoothing
    )
    loss = LabelCrossEntropy(smoothing, weights).loss(model, batch)
    torch.testing.assert_close(loss.minimised, expected.sum())
    unweighted = model.eval().classify(batch.inputs).double().log_softmax(-1)
    found = LabelCrossEntropy(smoothing, weights).log_probabilities(model, batch)[:, 0]
    torch.testing.assert_close(found, unweighted[torch.arange(3), batch.targets])


@pytest.mark.parametrize("activation", ["tanh", "relu", "gelu"])
def test_a_pooler_is_one_more_layer(activation: str) -> None:
    model = built("transformer", "first", pooler=activation).eval()
    source = Padded(torch.randint(1, 20, (2, 5)), torch.tensor([5, 5]))
    assert model.pooler is not None
    inner_BH = model.pooler(model.encode(source).values[:, 0])
    expected_BC = model.output(getattr(torch.nn.functional, activation)(inner_BH))
    torch.testing.assert_close(model.classify(source), expected_BC)


def test_embeddings_may_be_narrower_than_the_model_and_have_types() -> None:
    """The states are those of a stack that reads what the definitions say, token by token."""
    more = {"embedding_width": 4, "token_types": 2, "positions": "learned", "max_length": 6, "embedding_norm": True}
    table = {**ENCODERS["transformer"], "d_model": 8, "dropout": 0.0, "pooling": "mean", "scale_embeddings": False}
    torch.manual_seed(1)
    specs = SPECS._replace(source=SPECS.source._replace(separator=9))
    model = Classifier(ClassifierConfig.model_validate(table | more), specs).eval()
    ids = [3, 9, 5, 9, 2]
    types = [0, 0, 1, 1, 1]
    rows = []
    for place, (word, kind) in enumerate(zip(ids, types, strict=True)):
        sum_E = model.source_embedding.weight[word] + model.token_types.weight[kind]
        sum_E = sum_E + model.widen.positions.weight_TD[place]
        rows.append(model.widen.output(torch.nn.functional.layer_norm(sum_E, (4,), *model.widen.norm.parameters())))
    expected_1SH = model.encoder.encode(torch.stack(rows)[None], torch.ones(1, 5, dtype=torch.bool))
    states = model.encode(Padded(torch.tensor([ids]), torch.tensor([5])))
    torch.testing.assert_close(states.values, expected_1SH)


@pytest.mark.parametrize("pooling", ["mean", "max", "first"])
@pytest.mark.parametrize("normalize", [True, False])
def test_a_text_is_embedded_alone_as_in_a_batch(pooling: str, normalize: bool) -> None:
    table = {**ENCODERS["transformer"], "d_model": 8, "dropout": 0.0, "pooling": pooling, "normalize": normalize}
    torch.manual_seed(1)
    specs = SPECS._replace(target=ColumnSpec("text_vector", 8))
    model = SentenceEncoder(SentenceEncoderConfig.model_validate(table), specs).eval()
    values_BS, lengths_B = torch.randint(1, 20, (3, 6)), torch.tensor([6, 2, 4])
    vectors_BH = model.embed_text(Padded(values_BS, lengths_B))
    for row, length in enumerate(lengths_B.tolist()):
        states_SH = model.encode(Padded(values_BS[row : row + 1, :length], lengths_B[row : row + 1])).values[0]
        expected_H = {"mean": states_SH.mean(0), "max": states_SH.amax(0), "first": states_SH[0]}[pooling]
        expected_H = expected_H / expected_H.norm() if normalize else expected_H
        torch.testing.assert_close(vectors_BH[row], expected_H, rtol=1e-4, atol=1e-5)
