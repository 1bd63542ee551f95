"""Multi-head attention against torch.nn.MultiheadAttention with the same weights, against slow loops and itself."""

import pytest
import torch
from torch import Tensor, nn

from transduce.attention import KeyValue, MultiHeadAttention, capture, masks, scaled_dot_product
from transduce.attention.blocked import attend_text
from transduce.attention.relative import Rotary, Shaw
from transduce.core.registry import known, resolve


def pair(width: int, heads: int) -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    """Ours, and torch's with our weights; biases are random too."""
    ours = MultiHeadAttention(width, heads)
    for projection in (ours.query, ours.key_value, ours.output):
        nn.init.normal_(projection.bias)
    theirs = nn.MultiheadAttention(width, heads, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat((ours.query.weight, ours.key_value.weight)))
        theirs.in_proj_bias.copy_(torch.cat((ours.query.bias, ours.key_value.bias)))
        theirs.out_proj.weight.copy_(ours.output.weight)
        theirs.out_proj.bias.copy_(ours.output.bias)
    return ours.double(), theirs.double()


def randomise(module: nn.Module) -> None:
    """No bias is 0 and no gain is 1."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))


@pytest.fixture(params=["explicit", "fused"], autouse=True)
def _kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaled_dot_product, "FUSED_FROM_KEYS", 0 if request.param == "fused" else 10**9)


@pytest.mark.parametrize("heads", [1, 2, 8])
@pytest.mark.parametrize("crossed", [False, True])
def test_equals_torchs(heads: int, crossed: bool) -> None:
    torch.manual_seed(heads)
    ours, theirs = pair(8, heads)
    x_BTD = torch.randn(3, 4, 8, dtype=torch.float64)
    y_BSD = torch.randn(3, 6, 8, dtype=torch.float64) if crossed else x_BTD
    real_BS = torch.arange(y_BSD.shape[1]) < torch.tensor([[4], [1], [3]])
    expected, alpha = theirs(x_BTD, y_BSD, y_BSD, key_padding_mask=~real_BS, average_attn_weights=False)
    output = ours(x_BTD, ours.keys_values(y_BSD), masks.padding(real_BS))
    torch.testing.assert_close(output, expected)
    assert (alpha[1, ..., 1:] == 0).all()  # torch's masks say True = may not: the negation was right


def test_causal_equals_torchs() -> None:
    torch.manual_seed(0)
    ours, theirs = pair(8, 2)
    x_BTD = torch.randn(2, 5, 8, dtype=torch.float64)
    forbidden = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    expected, _ = theirs(x_BTD, x_BTD, x_BTD, attn_mask=forbidden)
    torch.testing.assert_close(ours(x_BTD, ours.keys_values(x_BTD), masks.causal(5)), expected)


def test_gradients_equal_torchs() -> None:
    torch.manual_seed(0)
    ours, theirs = pair(8, 2)
    x_BTD = torch.randn(2, 5, 8, dtype=torch.float64)
    ours(x_BTD, ours.keys_values(x_BTD)).square().sum().backward()
    theirs(x_BTD, x_BTD, x_BTD)[0].square().sum().backward()
    stacked = torch.cat((ours.query.weight.grad, ours.key_value.weight.grad))
    torch.testing.assert_close(stacked, theirs.in_proj_weight.grad)
    torch.testing.assert_close(ours.output.weight.grad, theirs.out_proj.weight.grad)


@pytest.mark.parametrize("positions", [None, *known("attention.relative")])
@pytest.mark.parametrize("key_value_heads", [1, 2, 4])
def test_a_cache_filled_in_pieces_equals_the_whole(positions: str | None, key_value_heads: int) -> None:
    torch.manual_seed(0)
    relative = resolve("attention.relative", positions)(4, 4, causal=True) if positions else None
    attention = MultiHeadAttention(16, 4, positions=relative, key_value_heads=key_value_heads).double()
    randomise(attention)
    x_BTD = torch.randn(2, 6, 16, dtype=torch.float64)
    whole = attention(x_BTD, attention.keys_values(x_BTD), masks.causal(6))
    seen: KeyValue = attention.empty(2)
    outputs: list[Tensor] = []
    for piece in x_BTD.split((1, 2, 3), 1):
        offset = seen.length
        seen = seen.append(attention.keys_values(piece, offset))
        outputs.append(attention(piece, seen, masks.causal(piece.shape[1], offset), offset))
    assert seen.length == 6
    assert seen.key.shape == seen.value.shape == (2, key_value_heads, 6, 4)
    torch.testing.assert_close(torch.cat(outputs, 1), whole)


def test_rotary_attention_depends_on_distances_alone() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2, positions=Rotary(2, 4, causal=False)).double()
    x_BTD = torch.randn(1, 4, 8, dtype=torch.float64)

    def standing_at(offset: int) -> Tensor:
        read: Tensor = attention(x_BTD, attention.keys_values(x_BTD, offset), None, offset)
        return read

    torch.testing.assert_close(standing_at(0), standing_at(1000))
    apart = attention(x_BTD, attention.keys_values(x_BTD), None, offset=3)
    assert not torch.allclose(standing_at(0), apart)


def test_attention_dropout_only_while_training() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2, dropout=0.5)
    x_BTD = torch.randn(1, 9, 8)
    memory = attention.keys_values(x_BTD)
    assert not torch.equal(attention(x_BTD, memory), attention(x_BTD, memory))
    attention.eval()
    assert torch.equal(attention(x_BTD, memory), attention(x_BTD, memory))


def test_a_fresh_attention_is_xavier_with_no_bias() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(64, 4)
    for projection in (attention.query, attention.key_value, attention.output):
        rows, columns = projection.weight.shape
        bound = (6 / (rows + columns)) ** 0.5
        assert projection.weight.abs().max() <= bound
        assert projection.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.03)
        assert (projection.bias == 0).all()


# ---- parts ---------------------------------------------------------------------------------------------------


def at_once(room: str) -> list[str]:
    return [name for name in known(room) if not resolve(room, name).sequential]


@pytest.mark.parametrize("key_value_heads", [1, 2, 4])
def test_few_heads_of_keys_and_values_are_many_that_are_equal(key_value_heads: int) -> None:
    torch.manual_seed(0)
    few = MultiHeadAttention(16, 4, key_value_heads=key_value_heads).double()
    many = MultiHeadAttention(16, 4).double()
    randomise(few)
    many.query, many.output = few.query, few.output
    with torch.no_grad():
        for theirs, ours in ((many.key_value.weight, few.key_value.weight), (many.key_value.bias, few.key_value.bias)):
            heads = ours.unflatten(0, (2, key_value_heads, 4))
            theirs.copy_(heads.repeat_interleave(4 // key_value_heads, 1).flatten(0, 2))
    x_BTD = torch.randn(3, 5, 16, dtype=torch.float64)
    expected = many(x_BTD, many.keys_values(x_BTD), masks.causal(5))
    memory = few.keys_values(x_BTD)
    assert memory.key.shape == memory.value.shape == (3, key_value_heads, 5, 4)
    assert few.empty(3).key.shape == (3, key_value_heads, 0, 4)
    torch.testing.assert_close(few(x_BTD, memory, masks.causal(5)), expected)
    with capture(few) as record:
        torch.testing.assert_close(few(x_BTD, memory, masks.causal(5)), expected)
    assert record[""][0].shape == (3, 4, 5, 5)


@pytest.mark.parametrize("score", at_once("attention.scores"))
@pytest.mark.parametrize("normalizer", at_once("attention.normalizers"))
def test_any_score_with_any_weighing_one_head_of_one_sentence_at_a_time(score: str, normalizer: str) -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2, score=score, normalizer=normalizer, key_value_heads=1).double().eval()
    randomise(attention)
    x_BTD, y_BSD = torch.randn(2, 3, 8, dtype=torch.float64), torch.randn(2, 4, 8, dtype=torch.float64)
    real_BS = torch.tensor([[True, True, True, False], [True] * 4])
    output_BTD = attention(x_BTD, attention.keys_values(y_BSD), masks.padding(real_BS), offset=0)
    for b in range(2):
        query_TD, key_SE, value_SE = attention.query(x_BTD[b]), *attention.key_value(y_BSD[b]).chunk(2, -1)
        heads = []
        for query_TE in query_TD.split(4, -1):
            scores = attention.score(query_TE[None, None], attention.score.keys(key_SE[None, None]))
            may, where = real_BS[b, None, None, None], torch.arange(3)[None]
            alpha = attention.weigh(scores, may, query_TE[None, None], where)
            heads.append(sum(alpha[0, 0, :, s, None] * value_SE[s] for s in range(4)))
        torch.testing.assert_close(output_BTD[b], attention.output(torch.cat(heads, -1)))


@pytest.mark.parametrize(
    "parts", [{"score": "location_aware"}, *({"normalizer": name} for name in known("attention.normalizers"))]
)
def test_sequential_parts_have_no_place_here(parts: dict[str, str]) -> None:
    if parts.get("normalizer") in at_once("attention.normalizers"):
        MultiHeadAttention(8, 2, **parts)
        return
    with pytest.raises(AssertionError, match="all queries are computed at once"):
        MultiHeadAttention(8, 2, **parts)


def test_dropout_of_every_form_of_attention_leaves_the_mean() -> None:
    torch.manual_seed(0)
    x_BTD = torch.randn(1, 6, 8, dtype=torch.float64).expand(4000, -1, -1)
    for parts in ({}, {"score": "additive"}, {"positions": Shaw(2, 4, causal=False)}):
        attention = MultiHeadAttention(8, 2, 0.4, **parts).double()
        randomise(attention)
        dropped_BTD = attention(x_BTD, attention.keys_values(x_BTD))
        whole_BTD = attention.eval()(x_BTD[:1], attention.keys_values(x_BTD[:1]))
        assert dropped_BTD.std(0).min() > 0.01
        torch.testing.assert_close(dropped_BTD.mean(0), whole_BTD[0], rtol=0, atol=0.08)


def test_what_has_no_fused_kernel_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    heads = "transduce.attention.heads.attend_text"
    monkeypatch.setattr(heads, lambda *args: called.append("kernel") or attend_text(*args))
    x_BTD = torch.randn(1, 5, 8)
    for parts, kernel in (
        ({}, True),
        ({"positions": Rotary(2, 4, causal=False)}, True),
        ({"positions": resolve("attention.relative", "t5")(2, 4, causal=False)}, True),
        ({"key_value_heads": 1}, True),
        ({"positions": Shaw(2, 4, causal=False)}, False),
        ({"score": "dot"}, False),
    ):
        called.clear()
        attention = MultiHeadAttention(8, 2, **parts)
        attention(x_BTD, attention.keys_values(x_BTD))
        assert bool(called) == kernel, parts
