"""Positions against Hugging Face's models with the same weights, where transformers is installed (4.57 was)."""

import pytest
import torch

from transduce.attention import MultiHeadAttention, masks
from transduce.attention.positions import rotate
from transduce.attention.relative import T5, buckets, slopes

pytest.importorskip("transformers", reason="transformers is not installed; its golden values are in test_relative.py")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("count", "far"), [(32, 128), (8, 20), (64, 256), (10, 50)])
def test_t5_buckets(causal: bool, count: int, far: int) -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    away = torch.arange(-3000, 3001)
    theirs = T5Attention._relative_position_bucket(away, not causal, count, far)
    assert torch.equal(buckets(away, causal, count, far), theirs)


@pytest.mark.parametrize("causal", [False, True])
def test_t5_attention(causal: bool) -> None:
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    torch.manual_seed(0)
    config = T5Config(d_model=12, d_kv=4, num_heads=3, dropout_rate=0.0, is_decoder=causal)
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).eval()
    positions = T5(3, 4, causal)
    ours = MultiHeadAttention(12, 3, score="dot", positions=positions)
    with torch.no_grad():
        theirs.relative_attention_bias.weight.normal_()
        positions.bias_KH.copy_(theirs.relative_attention_bias.weight)
        ours.query.weight.copy_(theirs.q.weight)
        ours.key_value.weight.copy_(torch.cat((theirs.k.weight, theirs.v.weight)))
        ours.output.weight.copy_(theirs.o.weight)
    x_BTD = torch.randn(2, 40, 12)
    allowed = masks.causal(40)
    mask = torch.zeros(1, 1, 40, 40).masked_fill(~allowed, -torch.inf) if causal else None
    expected = theirs(x_BTD, mask=mask, cache_position=torch.arange(40))[0]
    torch.testing.assert_close(ours(x_BTD, ours.keys_values(x_BTD), allowed if causal else None), expected)


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 8, 12, 20])
def test_alibi_slopes(heads: int) -> None:
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    theirs = build_alibi_tensor(torch.ones(1, 2), heads, torch.float32)[:, 0, 1]
    torch.testing.assert_close(slopes(heads).float(), theirs)


def test_rotary() -> None:
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb, create_sinusoidal_positions

    x_BTHE = torch.randn(2, 6, 3, 8)
    sin, cos = create_sinusoidal_positions(17, 8)[11:].expand(2, -1, -1).split(4, -1)
    torch.testing.assert_close(
        rotate(x_BTHE.transpose(1, 2), 11).transpose(1, 2), apply_rotary_pos_emb(x_BTHE, sin, cos)
    )
