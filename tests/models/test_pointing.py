"""Models that point into a text: against slow loops, and what every model promises."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError
from torch import Tensor

from transduce.attention import capture
from transduce.attention.heads import MultiHeadAttention
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.core.registry import resolve
from transduce.data.columns import ColumnSpec, Specs
from transduce.data.columns.question_context import LONGEST_TOKEN, Passage, QuestionContext
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.layers.attention_flow import AttentionFlow, TrilinearSimilarity
from transduce.layers.recurrent_stack import RecurrentEncoder
from transduce.layers.shared_ngrams import shared_ngrams
from transduce.models.protocols import Points
from transduce.models.qanet import QanetBlock, QanetConfig, SeparableConvolution

TINY: dict[str, dict[str, Any]] = {
    "bidaf": {"d_model": 6, "hidden": 8, "character_width": 3, "character_filters": 4},
    "qanet": {"d_model": 8, "heads": 2, "blocks": 2, "character_width": 3, "character_filters": 4},
    "span_reader": {"encoder": "transformer", "d_model": 8, "heads": 2, "feed_forward": 8},
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
        question, context = given.question.values[row, :asked].tolist(), given.context.values[row, :length].tolist()
        assert found[0][row, :length].tolist() == shared_by_hand(context, question, 3)
        assert found[1][row, :asked].tolist() == shared_by_hand(question, context, 3)
        assert not found[0][row, length:].any()
        assert not found[1][row, asked:].any()


def shared_by_hand(own: list[int], other: list[int], longest: int) -> list[list[float]]:
    """For each token of a side and each n: 1 if it is inside an n-gram that the other side has too."""
    own_words, other_words = own[:-1], other[:-1]  # the last is the end token
    columns = []
    for n in range(1, longest + 1):
        theirs = [other_words[at : at + n] for at in range(len(other_words) - n + 1)]
        shared = [at for at in range(len(own_words) - n + 1) if own_words[at : at + n] in theirs]
        columns.append([float(any(at <= place < at + n for at in shared)) for place in range(len(own))])
    return [list(row) for row in zip(*columns, strict=True)]


def read_by_hand(model: Any, given: Passage, side: str) -> Tensor:
    """(1, T, D + N): embeddings of the question or the context of one example, with the n-grams that both share."""
    other = {"question": "context", "context": "question"}[side]
    tokens, others = getattr(given, side), getattr(given, other)
    shared = shared_by_hand(tokens.values[0].tolist(), others.values[0].tolist(), model.orders)
    embedded_1TD = model.embed(tokens, getattr(given, f"{side}_characters"))
    return torch.cat((embedded_1TD, torch.tensor([shared])), -1)


def few_words() -> list[Passage]:
    """Examples in which questions and texts share n-grams."""
    given = passage([(5, 9), (3, 4), (4, 12)])
    for side in (given.question, given.context):
        side.values[:] = side.values % 3 + 4
    return [given, *(alone(given, row) for row in range(3))]


def reader_of(part: RecurrentEncoder, width: int, layers: int) -> RecurrentEncoder:
    """Both directions, and no layer's input added to its output, with the weights of a part of the model."""
    reader = RecurrentEncoder("lstm", width, 8, layers, residual=False, dropout=0.0, direction="both").eval()
    reader.load_state_dict(part.state_dict())
    return reader


def test_bidaf_is_its_equations() -> None:
    model = model_of("bidaf", shared_ngrams=2).eval()
    encoder = reader_of(model.encoder, model.embed.width + 2, layers=1)
    modeling, ending = reader_of(model.modeling, 4 * 8, layers=2), reader_of(model.ending, 8, layers=1)
    together, *rows = few_words()
    found = model.point(together)
    for row, given in enumerate(rows):
        length = int(given.context.lengths)
        context_1SH, question_1QH = (
            encoder.states(read_by_hand(model, given, side), getattr(given, side).lengths)
            for side in ("context", "question")
        )
        flow_1SG = model.flow(context_1SH, question_1QH, given)
        first_1SH = modeling.states(flow_1SG, given.context.lengths)
        last_1SH = ending.states(first_1SH, given.context.lengths)
        wanted = (
            model.pointer.first(torch.cat((flow_1SG, first_1SH), -1)),
            model.pointer.last(torch.cat((flow_1SG, last_1SH), -1)),
        )
        for logits_BS, wanted_1S1 in zip(found, wanted, strict=True):
            torch.testing.assert_close(logits_BS[row, :length], wanted_1S1[0, :, 0], rtol=1e-4, atol=1e-5)


def block_by_hand(block: QanetBlock, x_TD: Tensor, kept: list[bool] | None = None) -> Tensor:
    """A block reads one text: Figure 1 of Yu et al. 2018, sublayer by sublayer."""
    for t in range(len(x_TD)):
        angles = [t / 10000 ** (2 * j / x_TD.shape[1]) for j in range(x_TD.shape[1] // 2)]
        waves = [wave for angle in angles for wave in (math.sin(angle), math.cos(angle))]
        x_TD = torch.cat((x_TD[:t], x_TD[t : t + 1] + torch.tensor(waves), x_TD[t + 1 :]))
    sublayers = [
        *(partial(convolved_by_hand, each) for each in block.convolutions),
        partial(attended_by_hand, block.attention),
        block.feed_forward,
    ]
    for place, (norm, sublayer) in enumerate(zip(block.norms, sublayers, strict=True)):
        if kept is None or kept[place]:
            x_TD = x_TD + sublayer(F.layer_norm(x_TD, x_TD.shape[1:], norm.weight, norm.bias))  # type: ignore[operator]
    return x_TD


def convolved_by_hand(layer: SeparableConvolution, x_TD: Tensor) -> Tensor:
    """relu(W (k_d * x_d for each feature d) + b), a token after the other; what lies outside the text is 0."""
    kernel_DK = layer.depthwise.weight[:, 0]
    middle = kernel_DK.shape[1] // 2
    seen_TD = []
    for t in range(len(x_TD)):
        inside = [k for k in range(kernel_DK.shape[1]) if 0 <= t + k - middle < len(x_TD)]
        seen_TD.append(sum(kernel_DK[:, k] * x_TD[t + k - middle] for k in inside))
    return (torch.stack(seen_TD) @ layer.pointwise.weight.T + layer.pointwise.bias).relu()  # type: ignore[arg-type]


def attended_by_hand(attention: MultiHeadAttention, x_TD: Tensor) -> Tensor:
    """Every token attends to every token, head by head."""
    width = x_TD.shape[1] // attention.heads
    query_TD = x_TD @ attention.query.weight.T + attention.query.bias
    key_TD, value_TD = (x_TD @ attention.key_value.weight.T + attention.key_value.bias).chunk(2, -1)
    heads = []
    for head in range(attention.heads):
        query_TE, key_TE, value_TE = (
            each[:, head * width : (head + 1) * width] for each in (query_TD, key_TD, value_TD)
        )
        heads.append((query_TE @ key_TE.T / math.sqrt(width)).softmax(-1) @ value_TE)
    return torch.cat(heads, -1) @ attention.output.weight.T + attention.output.bias


def block_of(**more: Any) -> QanetBlock:
    torch.manual_seed(4)
    config = QanetConfig(d_model=8, heads=2, dropout=0.0, **more)
    block = QanetBlock(config, 2, 3)
    for each in block.parameters():
        torch.nn.init.normal_(each, std=0.5)
    return block


def test_a_block_of_qanet_is_its_equations() -> None:
    block = block_of().eval()
    x_BTD, lengths = torch.randn(2, 7, 8), (7, 4)
    found_BTD = block(x_BTD, Padded(x_BTD, torch.tensor(lengths)).mask())
    for row, length in enumerate(lengths):
        wanted_TD = block_by_hand(block, x_BTD[row, :length])
        torch.testing.assert_close(found_BTD[row, :length], wanted_TD, rtol=1e-4, atol=1e-5)


def test_training_leaves_out_sublayer_l_of_a_block_with_probability_l_by_their_number() -> None:
    """Huang et al. 2016: each sublayer draws a number."""
    block = block_of(layer_dropout=0.9).train()
    x_TD = torch.randn(5, 8)
    left_out = set()
    for seed in range(12):
        torch.manual_seed(seed)
        kept = [float(torch.rand(())) >= 0.9 * number / 4 for number in (1, 2, 3, 4)]
        left_out |= {number for number, each in enumerate(kept, 1) if not each}
        torch.manual_seed(seed)
        found_TD = block(x_TD[None], torch.ones(1, 5, dtype=torch.bool))[0]
        torch.testing.assert_close(found_TD, block_by_hand(block, x_TD, kept), rtol=1e-4, atol=1e-5)
    assert left_out == {1, 2, 3, 4}


def test_qanet_is_its_equations() -> None:
    model = model_of("qanet", shared_ngrams=2).eval()
    together, *rows = few_words()
    found = model.point(together)
    for row, given in enumerate(rows):
        length = int(given.context.lengths)
        context_1SD, question_1QD = (
            block_by_hand(model.encoder, model.narrow(read_by_hand(model, given, side))[0])[None]
            for side in ("context", "question")
        )
        state_SD, passes = model.join(model.flow(context_1SD, question_1QD, given))[0], []
        for _ in range(3):
            for block in model.blocks:
                state_SD = block_by_hand(block, state_SD)
            passes.append(state_SD)
        wanted = (
            model.pointer.first(torch.cat((passes[0], passes[1]), -1)),
            model.pointer.last(torch.cat((passes[0], passes[2]), -1)),
        )
        for logits_BS, wanted_S1 in zip(found, wanted, strict=True):
            torch.testing.assert_close(logits_BS[row, :length], wanted_S1[:, 0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", TINY)
def test_maps_of_attention_say_what_attends_to_what(kind: str) -> None:
    model = model_of(kind).eval()
    with capture(model) as record:
        model.point(passage([(4, 9)]))
    assert set(record.roles.values()) == {("self", "encoder"), ("cross", "decoder")}


@pytest.mark.parametrize("kind", TINY)
def test_dropout_is_for_training(kind: str) -> None:
    """And each rate has its part in it: embeddings, layers, and sublayers."""
    given = passage([(4, 9), (3, 9)])
    none = {"dropout": 0.0} | ({"layer_dropout": 0.0, "inner_dropout": 0.0} if kind == "qanet" else {})
    for key in none:
        model = model_of(kind, **{**none, key: 0.5})
        seen = [model.train(training).point(given)[0] for training in (True, True, False, False)]
        assert not torch.equal(seen[0], seen[1])
        assert torch.equal(seen[2], seen[3])


@pytest.mark.parametrize("shared", [0, 2])
@pytest.mark.parametrize("kind", TINY)
def test_padding_and_company_change_nothing(kind: str, shared: int) -> None:
    more = {} if kind == "span_reader" else {"shared_ngrams": shared}
    model, given = model_of(kind, **more).eval(), passage([(4, 9), (1, 3), (6, 12), (2, 1)])
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
    untouched = {name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()}
    assert not untouched - {"pointer.first.bias", "pointer.last.bias"}  # which a softmax does not see


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


@pytest.mark.parametrize(
    ("kind", "key", "allowed", "refused"),
    [
        ("bidaf", "character_kernel", [1, 3], [0, -1, 2]),
        ("bidaf", "character_filters", [0], [-1]),
        ("bidaf", "shared_ngrams", [0], [-1]),
        ("bidaf", "hidden", [2], [0, 3]),
        ("bidaf", "modeling_layers", [1], [0]),
        ("bidaf", "dropout", [0.0], [-0.1, 1.0]),
        ("qanet", "character_kernel", [1, 3], [0, -1, 2]),
        ("qanet", "encoder_kernel", [1, 3], [0, -1, 2]),
        ("qanet", "kernel", [1, 3], [0, -1, 2]),
        ("qanet", "character_filters", [0], [-1]),
        ("qanet", "shared_ngrams", [0], [-1]),
        ("qanet", "encoder_convolutions", [0], [-1]),
        ("qanet", "convolutions", [0], [-1]),
        ("qanet", "blocks", [1], [0]),
        ("qanet", "heads", [1], [0, 3]),
        ("qanet", "dropout", [0.0], [-0.1, 1.0]),
        ("qanet", "inner_dropout", [0.0], [-0.1, 1.0]),
        ("qanet", "layer_dropout", [0.0], [-0.1, 1.0]),
    ],
)
def test_settings_have_their_limits(kind: str, key: str, allowed: list[Any], refused: list[Any]) -> None:
    config = resolve("models", kind).Config
    for value in allowed:
        assert getattr(config(**{**TINY[kind], key: value}), key) == value
    for value in refused:
        with pytest.raises(ValidationError):
            config(**{**TINY[kind], key: value})


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
