"""Models of Hugging Face with random weights, and tokenizers trained by SentencePiece's own library, in folders."""

import io
import json
from collections.abc import Sequence
from functools import cache
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
    path.write_bytes(_trained_spm(tuple(lines), size, kind, tuple(more.items())))
    return path


@cache
def _trained_spm(lines: tuple[str, ...], size: int, kind: str, more: tuple[tuple[str, Any], ...]) -> bytes:
    """Trained once, as that takes a second."""
    import sentencepiece

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=written,
        vocab_size=size,
        model_type=kind,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        **dict(more),
    )
    return written.getvalue()


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


def scored(folder: Path, size: int = 60) -> list[tuple[str, float]]:
    """The pieces of a new unigram model of SentencePiece with their scores, <unk>, <s> and </s> first."""
    import sentencepiece

    read = sentencepiece.SentencePieceProcessor(model_file=str(train_spm(folder / "made.spm", LINES, size)))
    (folder / "made.spm").unlink()
    return [(read.id_to_piece(index), read.get_score(index)) for index in range(read.get_piece_size())]


def merged(kind: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The vocabulary and the merges of a BPE model, over bytes or with "\u2581" for a space."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = (
        pre_tokenizers.ByteLevel(add_prefix_space=False) if kind == "bytes" else pre_tokenizers.Metaspace()
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet() if kind == "bytes" else []
    inner.train_from_iterator(
        LINES,
        trainers.BpeTrainer(vocab_size=330, special_tokens=special, show_progress=False, initial_alphabet=alphabet),
    )
    model = json.loads(inner.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def bart(folder: Path, **settings: Any) -> Any:
    """A BART model."""
    import transformers

    vocabulary, merges = merged("bytes")
    vocabulary["<mask>"] = len(vocabulary)
    transformers.BartTokenizer(vocab=vocabulary, merges=merges).save_pretrained(str(folder))
    config = transformers.BartConfig(
        **{"vocab_size": len(vocabulary) + 3, "forced_bos_token_id": 0, **SIZES, **settings}
    )
    return saved(transformers.BartForConditionalGeneration, config, folder)


def mbart(folder: Path, **settings: Any) -> Any:
    """An mBART-50 model."""
    import transformers

    tokenizer = transformers.MBart50Tokenizer(vocab=scored(folder), src_lang="en_XX", tgt_lang="fr_XX")
    tokenizer.save_pretrained(str(folder))
    config = transformers.MBartConfig(**{"vocab_size": len(tokenizer), "scale_embedding": True, **SIZES, **settings})
    config.decoder_start_token_id = 2
    return saved(transformers.MBartForConditionalGeneration, config, folder)


def nllb(folder: Path, **settings: Any) -> Any:
    """An M2M-100 model with the tokenizer of NLLB."""
    import transformers

    vocabulary, merges = merged("spaces")
    tokenizer = transformers.NllbTokenizer(vocab=vocabulary, merges=merges, src_lang="eng_Latn", tgt_lang="fra_Latn")
    tokenizer.save_pretrained(str(folder))
    return _m2m_100(folder, len(tokenizer), settings)


def m2m_100(folder: Path, **settings: Any) -> Any:
    """An M2M-100 model with a BPE model of SentencePiece."""
    import transformers

    spm = train_spm(folder / "sentencepiece.bpe.model", LINES, 60, "bpe")
    pieces = [piece for piece in pieces_of(spm) if piece not in ("<unk>", "<s>", "</s>")]
    ids = {piece: index for index, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces])}
    (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    tokenizer = transformers.M2M100Tokenizer(str(folder / "vocab.json"), str(spm), src_lang="en", tgt_lang="fr")
    tokenizer.save_pretrained(str(folder))
    return _m2m_100(folder, len(ids) + 100 + 8, settings)


def _m2m_100(folder: Path, size: int, settings: Any) -> Any:
    import transformers

    config = transformers.M2M100Config(
        **{"vocab_size": size, "activation_function": "relu", "scale_embedding": True, **SIZES, **settings}
    )
    return saved(transformers.M2M100ForConditionalGeneration, config, folder)


def t5(folder: Path, **settings: Any) -> Any:
    """A T5 model; of T5 1.1 with `tie_word_embeddings=False, feed_forward_proj="gated-gelu"`."""
    import transformers

    pieces = [each for each in scored(folder) if each[0] not in ("<unk>", "<s>", "</s>")]
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *pieces]
    tokenizer = transformers.T5Tokenizer(vocab=pieces, extra_ids=4)
    tokenizer.save_pretrained(str(folder))
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2}
    config = transformers.T5Config(
        **{"vocab_size": len(tokenizer) + 5, "decoder_start_token_id": 0, **sizes, **settings}
    )
    return saved(transformers.T5ForConditionalGeneration, config, folder)


def whisper(folder: Path, multilingual: bool = True, **settings: Any) -> Any:
    """A Whisper model of a few mel filters, its tokenizer and settings of generation."""
    import transformers

    vocabulary, merges = merged("bytes")
    whisper_tokenizer(folder, [each for each in vocabulary if each not in ("<s>", "<pad>", "</s>", "<unk>")], merges)
    ids = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    named = {each["content"]: each["id"] for each in ids}
    end, size = named["<|endoftext|>"], max(named.values()) + 1
    config = transformers.WhisperConfig(
        **{
            "vocab_size": size + 1,
            "num_mel_bins": 8,
            "max_source_positions": 1500,
            "max_target_positions": 24,
            "decoder_start_token_id": named["<|startoftranscript|>"],
            "suppress_tokens": None,
            "begin_suppress_tokens": None,
            **dict.fromkeys(("eos_token_id", "pad_token_id", "bos_token_id"), end),
            **{key: value for key, value in SIZES.items() if key != "max_position_embeddings"},
            **settings,
        }
    )
    model = saved(transformers.WhisperForConditionalGeneration, config, folder)
    with torch.no_grad():
        model.model.decoder.embed_positions.weight.mul_(5)  # else it would write what it read, again and again
    model.save_pretrained(str(folder))
    generation = json.loads((folder / "generation_config.json").read_text())
    more = {"is_multilingual": multilingual, "suppress_tokens": [3, 9], "begin_suppress_tokens": [5, end]}
    (folder / "generation_config.json").write_text(json.dumps({**generation, **more}))
    return model


def whisper_tokenizer(folder: Path, pieces: Sequence[str], merges: Sequence[tuple[str, str]]) -> None:
    """A `tokenizer.json` of bytes with Whisper's further tokens, and two times."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    inner = Tokenizer(models.BPE({piece: place for place, piece in enumerate(pieces)}, list(merges)))
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    names = ["endoftext", "startoftranscript", "en", "zh", "translate", "transcribe", "notimestamps"]
    inner.add_special_tokens([AddedToken(f"<|{name}|>", special=True) for name in names])
    inner.add_tokens([AddedToken(f"<|{time}|>") for time in ("0.00", "0.02")])
    inner.save(str(folder / "tokenizer.json"))
