"""Models that point into a text: against slow loops, and what every model promises."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from transduce.attention import capture
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.core.registry import resolve
from transduce.data.columns import ColumnSpec, Specs
from transduce.data.columns.question_context import LONGEST_TOKEN, Passage, QuestionContext
from transduce.data.tokenizer import TokenizerConfig, train_tokenizer
from transduce.layers.attention_flow import AttentionFlow, TrilinearSimilarity
from transduce.layers.shared_ngrams import shared_ngrams
from transduce.models.protocols import Points

TINY: dict[str, dict[str, Any]] = {
    "bidaf": {"d_model": 6, "hidden": 8, "character_width": 3, "character_filters": 4},
    "qanet": {"d_model": 8, "heads": 2, "blocks": 2, "character_width": 3, "character_filters": 4},
}
SPECS = Specs(ColumnSpec("question_context", 30, 9), ColumnSpec("span", 99))


def passage(lengths: list[tuple[int, int]], seed: int = 1) -> Passage:
    random_ = torch.Generator().manual_seed(seed)
    sides = []
    for side in (0, 1):
        length_B = torch.tensor([each[side] for each in lengths])
        shape = len(lengths), int(length_B.max())
        values = torch.randint(4, 30, shape, generator=random_)
        spelled = torch.randint(0, 9, (*shape, LONGEST_TOKEN), generator=random_)
        sides.append((Padded(values, length_B), Padded(spelled, length_B)))
    return Passage(sides[0][0], sides[1][0], sides[0][1], sides[1][1])


def alone(given: Passage, row: int) -> Passage:
    return Passage(*(Padded(e.values[row : row + 1, : int(e.lengths[row])], e.lengths[row : row + 1]) for e in given))


def model_of(kind: str, **more: Any) -> Any:
    torch.manual_seed(3)
    architecture = resolve("models", kind)
    return architecture(architecture.Config.model_validate({**TINY[kind], **more}), SPECS)


def slow_similarity(layer: TrilinearSimilarity, context_SD: Tensor, question_QD: Tensor) -> Tensor:
    """w . [c; q; c * q], pair by pair."""
    weight = layer.weight_3D.flatten()
    return torch.stack([torch.stack([weight @ torch.cat((c, q, c * q)) for q in question_QD]) for c in context_SD])


@pytest.mark.parametrize("back", ["max", "each"])
def test_the_flow_is_its_equations(back: Any) -> None:
    torch.manual_seed(1)
    flow, given = AttentionFlow(5, back).double().requires_grad_(False), passage([(3, 6), (2, 4)])
    context_BSD, question_BQD = torch.randn(2, 6, 5).double(), torch.randn(2, 3, 5).double()
    with capture(flow) as record:
        found = flow(context_BSD, question_BQD, given)
    for row, (asked, length) in enumerate([(3, 6), (2, 4)]):
        context_SD, question_QD = context_BSD[row, :length], question_BQD[row, :asked]
        score_SQ = slow_similarity(flow.similarity, context_SD, question_QD)
        alpha = [[float(s.exp() / sum(other.exp() for other in line)) for s in line] for line in score_SQ]
        most = [max(line) for line in score_SQ]
        one = [float(each.exp() / sum(other.exp() for other in most)) for each in most]
        columns = [[float(s.exp() / sum(other.exp() for other in line)) for s in line] for line in score_SQ.T]
        for t in range(length):
            c = context_SD[t]
            a = sum(alpha[t][j] * question_QD[j] for j in range(asked))
            summaries = [sum(columns[j][u] * context_SD[u] for u in range(length)) for j in range(asked)]
            b = (
                sum(one[u] * context_SD[u] for u in range(length))
                if back == "max"
                else sum(alpha[t][j] * summaries[j] for j in range(asked))
            )
            torch.testing.assert_close(found[row, t], torch.cat((c, a, c * a, c * b)), rtol=1e-5, atol=1e-6)  # type: ignore[arg-type]
        [weights] = record[""]
        size = asked + length
        torch.testing.assert_close(weights[row, 0, :size].sum(-1), torch.ones(size).double(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(
            weights[row, 0, asked:size, :asked], torch.tensor(alpha).double(), rtol=1e-5, atol=1e-6
        )
        told = [one] * asked if back == "max" else columns
        torch.testing.assert_close(
            weights[row, 0, :asked, asked:size], torch.tensor(told).double(), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("lengths", [[(7, 12), (1, 3), (5, 9), (2, 1)], [(1, 2)], [(2, 1)]])
@pytest.mark.parametrize("seed", range(10))
def test_shared_ngrams_are_those_of_slow_loops(seed: int, lengths: list[tuple[int, int]]) -> None:
    given = passage(lengths, seed)
    for side in (given.question, given.context):
        side.values[:] = side.values % 3 + 4  # few different tokens, also behind the ends
    found = shared_ngrams(given, 3)
    for row, (asked, length) in enumerate(lengths):
        question = given.question.values[row, : asked - 1].tolist()  # the last is the end token
        context = given.context.values[row, : length - 1].tolist()
        for values_BTN, own, other in ((found[0], context, question), (found[1], question, context)):
            for n in (1, 2, 3):
                theirs = [other[at : at + n] for at in range(len(other) - n + 1)]
                inside = {
                    at + step for at in range(len(own) - n + 1) if own[at : at + n] in theirs for step in range(n)
                }
                assert values_BTN[row, :, n - 1].nonzero().flatten().tolist() == sorted(inside)


@pytest.mark.parametrize("shared", [0, 2])
@pytest.mark.parametrize("kind", TINY)
def test_padding_and_company_change_nothing(kind: str, shared: int) -> None:
    model, given = model_of(kind, shared_ngrams=shared).eval(), passage([(4, 9), (1, 3), (6, 12), (2, 1)])
    assert isinstance(model, Points)
    together = model.point(given)
    for row, length in enumerate(given.context.lengths.tolist()):
        for logits_BS, single_1S in zip(together, model.point(alone(given, row)), strict=True):
            torch.testing.assert_close(logits_BS[row, :length], single_1S[0], rtol=1e-4, atol=1e-5)
            assert bool((logits_BS[row, length:] == -torch.inf).all())


@pytest.mark.parametrize("kind", TINY)
def test_gradients_reach_every_parameter(kind: str) -> None:
    model = model_of(kind, dropout=0.0, **({"layer_dropout": 0.0} if kind == "qanet" else {}))
    start_BS, end_BS = model.point(passage([(4, 9), (3, 9)]))
    (start_BS.softmax(1)[:, 2].sum() + end_BS.softmax(1)[:, 5].sum()).backward()
    assert not [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("bidaf", {"d_model": 7}),
        ("bidaf", {"character_width": 4}),
        ("bidaf", {"character_filters": 0}),
        ("bidaf", {"character_kernel": 3}),
        ("bidaf", {"cell": "gru"}),
        ("bidaf", {"shared_ngrams": 2}),
        ("qanet", {"shared_ngrams": 2}),
        ("bidaf", {"hidden": 6}),
        ("bidaf", {"modeling_layers": 1}),
        ("qanet", {"character_filters": 0}),
        ("qanet", {"heads": 4}),
        ("qanet", {"blocks": 1}),
        ("qanet", {"encoder_convolutions": 1}),
        ("qanet", {"encoder_kernel": 3}),
        ("qanet", {"convolutions": 0}),
        ("qanet", {"kernel": 3}),
        ("qanet", {"layer_dropout": 0.9}),
    ],
    ids=str,
)
def test_every_setting_matters(kind: str, settings: dict[str, Any]) -> None:
    given = passage([(4, 9), (3, 9)])
    plain, other = (model_of(kind, dropout=0.0, **{**more}).train() for more in ({}, settings))
    torch.manual_seed(5)
    one = plain.point(given)[0]
    torch.manual_seed(5)
    assert not torch.equal(one, other.point(given)[0])


@pytest.mark.parametrize("kind", TINY)
def test_another_task_is_refused(kind: str) -> None:
    architecture = resolve("models", kind)
    with pytest.raises(InputError, match="expected a task with questions, texts and spans"):
        architecture(architecture.Config(), Specs.of_tokens(5, 5))


def test_a_row_is_read_as_two_sides_with_their_characters() -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="whitespace", min_frequency=1), ["who ran home", "the dog ran"])
    column = QuestionContext.of(tokenizer)
    [ids] = column.encode(["who ran\tthe dog ran home"])
    given = column.collate([np.asarray(ids, np.int32), np.asarray(ids[:-2], np.int32)])
    assert column.tokens(given.question.values[0].tolist()) == ["who", "ran", "</s>"]
    assert column.tokens(given.context.values[0].tolist()) == ["the", "dog", "ran", "home", "</s>"]
    assert column.tokens(given.context.values[1, :3].tolist()) == ["the", "dog", "</s>"]
    names = "".join(sorted(set("".join(tokenizer.tokens(range(tokenizer.size))))))
    spelled = [
        "".join(names[each - 1] for each in token if each) for token in given.context_characters.values[0].tolist()
    ]
    assert spelled == ["the", "dog", "ran", "home", "</s>"]
    assert column.spec.characters == 1 + len(names)
    read = column.inputs([np.asarray(column.closed(ids), np.int32)])
    assert all(torch.equal(one.values[:1], other.values) for one, other in zip(given, read, strict=True))
    assert column.parts("who ran\tthe dog") == [(0, 7), (8, 15)]
    with pytest.raises(InputError, match="expected a question, a tab"):
        column.encode(["who ran"])
