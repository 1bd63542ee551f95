"""Multi-head attention against torch.nn.MultiheadAttention with the same weights, and against itself."""

import pytest
import torch
from torch import Tensor, nn

from transduce.attention import KeyValue, MultiHeadAttention, core, masks


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


@pytest.fixture(params=["explicit", "fused"], autouse=True)
def _kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "FUSED_FROM_KEYS", 0 if request.param == "fused" else 10**9)


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


@pytest.mark.parametrize("rotary", [False, True])
def test_a_cache_filled_in_pieces_equals_the_whole(rotary: bool) -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2, rotary=rotary).double()
    x_BTD = torch.randn(2, 6, 8, dtype=torch.float64)
    whole = attention(x_BTD, attention.keys_values(x_BTD), masks.causal(6))
    seen: KeyValue = attention.empty(2)
    outputs: list[Tensor] = []
    for piece in x_BTD.split((1, 2, 3), 1):
        offset = seen.length
        seen = seen.append(attention.keys_values(piece, offset))
        outputs.append(attention(piece, seen, masks.causal(piece.shape[1], offset), offset))
    assert seen.length == 6
    torch.testing.assert_close(torch.cat(outputs, 1), whole)


def test_rotary_attention_depends_on_distances_alone() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2, rotary=True).double()
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
