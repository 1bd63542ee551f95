"""The fixed work's sizes as Hugging Face's Marian takes them, and our weights under its names."""

import torch
from transformers import MarianConfig
from work import DROPOUT, END, HEADS, LAYERS, PAD, SIZES, START


def config(vocabulary: int, sizes: tuple[int, int, int] = SIZES["small"], heads: int = HEADS) -> MarianConfig:
    """Post-norm, ReLU, sinusoidal, tied: the original Transformer. sizes: width, layers, feed-forward."""
    width, layers, hidden = sizes
    return MarianConfig(
        vocab_size=vocabulary,
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=hidden,
        decoder_ffn_dim=hidden,
        dropout=DROPOUT,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=PAD,
        eos_token_id=END,
        bos_token_id=START,
        decoder_start_token_id=START,
        forced_eos_token_id=None,
    )


def renamed(ours: dict[str, torch.Tensor], positions: torch.Tensor, layers: int = LAYERS) -> dict[str, torch.Tensor]:
    """Marian's names for a post-norm Transformer of Transduce, its own order of sines and cosines included."""
    theirs = {
        "model.shared.weight": ours["target_embedding.weight"],
        "final_logits_bias": torch.zeros(1, len(ours["target_embedding.weight"])),
        "lm_head.weight": ours["target_embedding.weight"],
    }
    for side in ("encoder", "decoder"):
        theirs[f"model.{side}.embed_tokens.weight"] = ours["target_embedding.weight"]
        theirs[f"model.{side}.embed_positions.weight"] = positions
        for layer in range(layers):
            theirs |= _layer(ours, f"{side}.blocks.{layer}", f"model.{side}.layers.{layer}", side == "decoder")
    return theirs


def _layer(ours: dict[str, torch.Tensor], here: str, there: str, cross: bool) -> dict[str, torch.Tensor]:
    found = _attention(ours, f"{here}.self_attention", f"{there}.self_attn")
    norms = {"self_attn_layer_norm": "self_residual", "final_layer_norm": "feed_forward_residual"}
    if cross:
        found |= _attention(ours, f"{here}.cross_attention", f"{there}.encoder_attn")
        norms["encoder_attn_layer_norm"] = "cross_residual"
    for part in ("weight", "bias"):
        for theirs, mine in norms.items():
            found[f"{there}.{theirs}.{part}"] = ours[f"{here}.{mine}.norm.{part}"]
        found[f"{there}.fc1.{part}"] = ours[f"{here}.feed_forward.inner.{part}"]
        found[f"{there}.fc2.{part}"] = ours[f"{here}.feed_forward.outer.{part}"]
    return found


def _attention(ours: dict[str, torch.Tensor], here: str, there: str) -> dict[str, torch.Tensor]:
    found = {}
    for part in ("weight", "bias"):
        key, value = ours[f"{here}.key_value.{part}"].chunk(2)
        found[f"{there}.q_proj.{part}"] = ours[f"{here}.query.{part}"]
        found[f"{there}.k_proj.{part}"], found[f"{there}.v_proj.{part}"] = key, value
        found[f"{there}.out_proj.{part}"] = ours[f"{here}.output.{part}"]
    return found
