"""Blocks, stacks and the whole Transformer against torch.nn's, with the same random weights, in fp64."""

import pytest
import torch
from torch import Tensor, nn

from transduce.attention import MultiHeadAttention, masks
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.block import Block
from transduce.layers.feedforward import FeedForward
from transduce.layers.residual import NormPlacement, Residual
from transduce.layers.stack import Stack
from transduce.models.transformer import Transformer, TransformerConfig

WIDTH, HEADS, HIDDEN = 8, 2, 12
REAL_BS = torch.arange(6) < torch.tensor([[6], [2], [4]])
NORMS: list[NormPlacement] = ["pre", "post"]


def randomised(module: nn.Module) -> nn.Module:
    """No bias is 0 and no gain is 1, so that one in the wrong place shows."""
    for name, parameter in module.named_parameters():
        if parameter.ndim == 1:
            nn.init.normal_(parameter, mean=float("norm" in name), std=0.5)
    return module.double()


def copy_linear(theirs: nn.Linear | nn.LayerNorm, ours: nn.Linear | nn.LayerNorm) -> None:
    theirs.load_state_dict(ours.state_dict())


def copy_attention(theirs: nn.MultiheadAttention, ours: MultiHeadAttention) -> None:
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat((ours.query.weight, ours.key_value.weight)))
        theirs.in_proj_bias.copy_(torch.cat((ours.query.bias, ours.key_value.bias)))
    copy_linear(theirs.out_proj, ours.output)


def copy_block(theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer, ours: Block) -> None:
    copy_attention(theirs.self_attn, ours.self_attention)
    copy_linear(theirs.linear1, ours.feed_forward.inner)
    copy_linear(theirs.linear2, ours.feed_forward.outer)
    residuals = [ours.self_residual, ours.feed_forward_residual]
    if isinstance(theirs, nn.TransformerDecoderLayer):
        assert ours.cross_attention is not None
        assert ours.cross_residual is not None
        copy_attention(theirs.multihead_attn, ours.cross_attention)
        residuals.insert(1, ours.cross_residual)
    for number, residual in enumerate(residuals, 1):
        copy_linear(getattr(theirs, f"norm{number}"), residual.norm)


def copy_stack(theirs: nn.TransformerEncoder | nn.TransformerDecoder, ours: Stack) -> None:
    for their_layer, our_block in zip(theirs.layers, ours.blocks, strict=True):
        copy_block(their_layer, our_block)
    if isinstance(ours.norm, nn.LayerNorm):
        assert isinstance(theirs.norm, nn.LayerNorm)
        copy_linear(theirs.norm, ours.norm)
    else:
        theirs.norm = None  # torch norms the top of post-norm stacks a second time; the paper does not


def random_states(length: int) -> Tensor:
    return torch.randn(3, length, WIDTH, dtype=torch.float64)


def block(norm: NormPlacement, cross: bool) -> Block:
    attention, crossed = MultiHeadAttention(WIDTH, HEADS), MultiHeadAttention(WIDTH, HEADS) if cross else None
    parts = (attention, crossed, FeedForward(WIDTH, HIDDEN))
    ours = randomised(Block(*parts, residual=lambda: Residual(WIDTH, 0.0, norm)))
    assert isinstance(ours, Block)
    return ours


@pytest.mark.parametrize("norm", NORMS)
def test_encoder_block(norm: NormPlacement) -> None:
    torch.manual_seed(0)
    ours = block(norm, cross=False)
    sizes = {"dim_feedforward": HIDDEN, "dropout": 0.0, "batch_first": True, "norm_first": norm == "pre"}
    theirs = nn.TransformerEncoderLayer(WIDTH, HEADS, **sizes).double()
    copy_block(theirs, ours)
    x_BSD = random_states(6)
    expected = theirs(x_BSD, src_key_padding_mask=~REAL_BS)
    torch.testing.assert_close(ours(x_BSD, masks.padding(REAL_BS))[0], expected)


@pytest.mark.parametrize("norm", NORMS)
def test_decoder_block(norm: NormPlacement) -> None:
    torch.manual_seed(0)
    ours = block(norm, cross=True)
    sizes = {"dim_feedforward": HIDDEN, "dropout": 0.0, "batch_first": True, "norm_first": norm == "pre"}
    theirs = nn.TransformerDecoderLayer(WIDTH, HEADS, **sizes).double()
    copy_block(theirs, ours)
    x_BTD, encoded_BSD = random_states(4), random_states(6)
    expected = theirs(x_BTD, encoded_BSD, tgt_mask=~masks.causal(4)[0, 0], memory_key_padding_mask=~REAL_BS)
    source = ours.cross_keys_values(encoded_BSD)
    output, seen = ours(x_BTD, masks.causal(4), None, source, masks.padding(REAL_BS))
    torch.testing.assert_close(output, expected)
    assert seen.length == 4


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("tied", ["all", "none"])
def test_the_whole_transformer(norm: NormPlacement, tied: str) -> None:
    torch.manual_seed(0)
    config = TransformerConfig.model_validate(
        {
            "d_model": WIDTH,
            "heads": HEADS,
            "feed_forward": HIDDEN,
            "dropout": 0.0,
            "norm": norm,
            "tied": tied,
            "encoder_layers": 2,
            "decoder_layers": 3,
        }
    )
    ours = randomised(Transformer(config, Specs.of_tokens(11, 11)))
    assert isinstance(ours, Transformer)
    sizes = {"dim_feedforward": HIDDEN, "dropout": 0.0, "batch_first": True, "norm_first": norm == "pre"}
    theirs = nn.Transformer(WIDTH, HEADS, 2, 3, **sizes).double()
    copy_stack(theirs.encoder, ours.encoder)
    copy_stack(theirs.decoder, ours.decoder)
    source = Padded(torch.randint(11, (3, 6)), REAL_BS.sum(1))
    target = Padded(torch.randint(11, (3, 4)), torch.tensor([4, 4, 4]))
    hidden_BTD = theirs(
        ours.encoder.positions(ours.source_embedding(source.values)),
        ours.decoder.positions(ours.target_embedding(target.values)),
        tgt_mask=~masks.causal(4)[0, 0],
        src_key_padding_mask=~REAL_BS,
        memory_key_padding_mask=~REAL_BS,
    )
    logits_BTV = ours(source, target)
    torch.testing.assert_close(logits_BTV, hidden_BTD @ ours.output.weight.T)
    assert (ours.output is ours.source_embedding) == (tied == "all")
