"""Models of Hugging Face with random weights, and tokenizers trained by SentencePiece's own library, in folders."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from random_models import sentences

LINES = [line for line in sentences(400, 9) if line]
SIZES: dict[str, Any] = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 128,
}


def train_spm(path: Path, lines: Sequence[str], size: int = 60, kind: str = "unigram", **more: Any) -> Path:
    """A SentencePiece model with <unk>, <s> and </s> as its library numbers them."""
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(path.with_suffix("")),
        vocab_size=size,
        model_type=kind,
        hard_vocab_limit=False,
        minloglevel=2,
        **more,
    )
    path.with_suffix(".model").rename(path)
    path.with_suffix(".vocab").unlink()
    return path


def pieces_of(path: Path) -> list[str]:
    """All pieces of a SentencePiece model."""
    import sentencepiece

    read = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [read.id_to_piece(index) for index in range(read.get_piece_size())]


def marian_vocabulary(folder: Path, tags: Sequence[str] = (), without: Sequence[str] = ()) -> dict[str, int]:
    """Two SentencePiece models and `vocab.json` of the pieces of both, as Marian's converter numbers them."""
    train_spm(folder / "source.spm", LINES)
    train_spm(folder / "target.spm", [line[::-1] for line in LINES], 50)
    both = dict.fromkeys([*pieces_of(folder / "source.spm"), *pieces_of(folder / "target.spm")])
    named = [piece for piece in both if piece not in ("<unk>", "<s>", "</s>", *without)]
    ids = {piece: index for index, piece in enumerate(["</s>", "<unk>", *named, *tags, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    return ids


def marian(
    folder: Path, tags: Sequence[str] = (), without: Sequence[str] = (), bias: float = 0.5, **settings: Any
) -> Any:
    """A Marian model and its tokenizer, saved into `folder`; the model."""
    import transformers

    ids = marian_vocabulary(folder, tags, without)
    config = transformers.MarianConfig(
        **{
            "vocab_size": len(ids),
            "activation_function": "swish",
            "scale_embedding": True,
            "pad_token_id": ids["<pad>"],
            "decoder_start_token_id": ids["<pad>"],
            "bad_words_ids": [[ids["<pad>"]]],
            "num_beams": 4,
            **SIZES,
            **settings,
        }
    )
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "MarianTokenizer"}', encoding="utf-8")
    return saved(transformers.MarianMTModel, config, folder, bias)


def saved(kind: Any, config: Any, folder: Path, bias: float = 0.0, seed: int = 3) -> Any:
    """A model with random weights, none of which is left at 0 or 1, saved into `folder`."""
    torch.manual_seed(seed)
    model = kind(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name or parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.2)
        if bias:
            model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias) * bias)
    model.save_pretrained(str(folder))
    return model
