"""Tokenizers of others as ours, with the same id for every token.

| there is | it becomes |
|---|---|
| `tokenizer.json` | itself |
| a SentencePiece unigram model | a unigram model of the library `tokenizers`, with SentencePiece's normalizer |
| a SentencePiece BPE model | a BPE model: pieces are merged in the order of their scores |
| `vocab.json` and `merges.txt` | a BPE model over bytes |

A table of ids (`vocab.json`) beside a SentencePiece model says which id each piece has. Where an embedding has more
rows than there are tokens, the ids behind get names that no text has.
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transduce.core.bounded_file import bounded_bytes, bounded_text
from transduce.core.errors import InputError
from transduce.data.tokenizers.patterns import once_a_run
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.interop.sentencepiece import BPE, SPACE, Kind, SentencePieceModel

UNKNOWN_PENALTY = 10.0  # of SentencePiece: an unknown character scores so much less than the lowest piece
LARGEST = 60_000_000  # bytes of a tokenizer, or of a part of it


class ImportedTokenizer(NamedTuple):
    """A tokenizer, and how many of its last tokens are read as the unknown one by the original."""

    tokenizer: Tokenizer
    further: int = 0


def named_ids(path: Path) -> dict[str, int]:
    """A `vocab.json`: the id of each token.

    Raises:
        InputError: there is no such file, or it is no such table.
    """
    table = json_of(path, LARGEST)
    if not isinstance(table, dict) or not table or not all(type(index) is int for index in table.values()):
        raise InputError(f"{path}: expected a table of tokens and their ids.")
    if len(set(table.values())) < len(table) or min(table.values()) < 0 or max(table.values()) > 2 * len(table) + 1000:
        raise InputError(f"{path}: expected an id of its own for each token, from 0.")
    return table


def json_of(path: Path, largest: int = 1_000_000) -> Any:
    """The JSON in a file. Raises InputError where it is none, or longer than `largest` bytes."""
    content = bounded_bytes(path, largest)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}.") from error


def tokenizer_file(path: Path, size: int, further: Sequence[str] = ()) -> Tokenizer:
    """A `tokenizer.json`, for an embedding of `size` rows.

    further: special tokens that get the next ids, where it lacks them, as transformers gives them when it reads one.

    Raises:
        InputError: it cannot be used.
    """
    text = bounded_text(path, LARGEST)
    tokenizer = Tokenizer.from_json(text, str(path))
    new = [name for name in dict.fromkeys(further) if tokenizer._inner.token_to_id(name) is None]
    if new and tokenizer.size + len(new) <= size:
        table = json.loads(text)
        added = [_added(tokenizer.size + place, name, True) for place, name in enumerate(new)]
        table["added_tokens"] = [*(table.get("added_tokens") or []), *added]
        tokenizer = Tokenizer.from_json(json.dumps(table, ensure_ascii=False), str(path))
    return filled(tokenizer, size, path.name)


def filled(tokenizer: Tokenizer, size: int, name: str) -> Tokenizer:
    """With tokens that no text has for the ids up to `size`. Raises InputError where it has more tokens than that."""
    if tokenizer.size > size:
        raise InputError(f"{name}: it has {tokenizer.size:,} tokens; the model's embedding has {size:,} rows.")
    table = json.loads(tokenizer.to_json())
    missing = sorted(set(range(size)) - set(tokenizer._inner.get_vocab(with_added_tokens=True).values()))
    if not missing:
        return tokenizer
    table["added_tokens"] = [*(table.get("added_tokens") or []), *map(_unused, missing)]
    return Tokenizer.from_json(json.dumps(table, ensure_ascii=False), name)


def _unused(index: int) -> dict[str, Any]:
    return _added(index, f"<unused {index}>", special=True)


def _added(index: int, content: str, special: bool) -> dict[str, Any]:
    sides = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": index, "content": content, **sides, "special": special}


def of_sentencepiece(
    model: SentencePieceModel,
    ids: Mapping[str, int],
    special: Iterable[str] = (),
    tags: Iterable[str] = (),
    extends: bool = False,
) -> ImportedTokenizer:
    """A tokenizer that cuts texts as `model` does, with these ids.

    Args:
        ids: of each token; those that are no pieces of the model can only be written.
        special: tokens that are no part of any text. tags: those that may stand in a text as they are.
        extends: pieces without an id get new ones, the unknown token's in the original; else they are left out, and
            texts are cut without them.

    Raises:
        InputError: the vocabulary lacks a token for padding, end or unknown.
    """
    if missing := [name for name in ("<pad>", "</s>", "<unk>") if name not in ids]:
        raise InputError(f"the vocabulary has no {', '.join(missing)}.")
    usable = [piece for piece in model.pieces if piece.kind in (Kind.NORMAL, Kind.USER_DEFINED, Kind.BYTE)]
    size = max(ids.values()) + 1
    lacking = [piece.text for piece in usable if piece.text not in ids] if extends else []
    numbered = {**ids, **{text: size + place for place, text in enumerate(lacking)}}
    whole = [piece.text for piece in usable if piece.kind == Kind.USER_DEFINED]
    special, tags = [each for each in special if each in ids], [each for each in (*tags, *whole) if each in ids]
    scores = {piece.text: piece.score for piece in usable if piece.text in numbered}
    names = {index: text for text, index in numbered.items()}
    make = _bpe if model.kind == BPE else _unigram
    table = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": sorted(
            [*(_added(ids[each], each, True) for each in special), *(_added(ids[each], each, False) for each in tags)],
            key=lambda token: token["id"],
        ),
        "normalizer": _normalizer(model),
        "pre_tokenizer": _metaspace(model),
        "post_processor": None,
        "decoder": _decoder(model),
        "model": make(model, names, scores, {*special, *tags}),
    }
    return ImportedTokenizer(Tokenizer.from_json(json.dumps(table, ensure_ascii=False), "the tokenizer"), len(lacking))


def _unigram(
    model: SentencePieceModel, names: Mapping[int, str], scores: Mapping[str, float], added: set[str]
) -> dict[str, Any]:
    """Tokens that are no pieces score as an unknown character if they are one, and else so low that they never win."""
    least = min(scores.values(), default=0.0)
    vocabulary: list[list[Any]] = []
    for index in range(max(names) + 1):
        name = names.get(index, f"<unused {index}>")
        score = scores.get(name)
        if score is None:
            single = len(name) == 1 and name not in added
            score = least - UNKNOWN_PENALTY if single else least - 100 * UNKNOWN_PENALTY
        vocabulary.append([name, score])
    unknown = next(index for index, name in names.items() if name == "<unk>")
    return {"type": "Unigram", "unk_id": unknown, "vocab": vocabulary, "byte_fallback": model.byte_fallback}


def _bpe(
    model: SentencePieceModel, names: Mapping[int, str], scores: Mapping[str, float], added: set[str]
) -> dict[str, Any]:
    """Every pair of pieces whose union is a piece, the best scored union first."""
    places = {piece.text: place for place, piece in enumerate(model.pieces)}
    merges: list[tuple[float, int, int, str, str]] = []
    for text, score in scores.items():
        for cut in range(1, len(text)):
            left, right = text[:cut], text[cut:]
            if left in scores and right in scores:
                merges.append((-score, places[left], places[right], left, right))
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": "<unk>",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": model.byte_fallback,
        "ignore_merges": False,
        "vocab": {name: index for index, name in names.items()},
        "merges": [[left, right] for *_, left, right in sorted(merges)],
    }


def _normalizer(model: SentencePieceModel) -> dict[str, Any] | None:
    steps: list[dict[str, Any]] = []
    if model.charsmap:
        encoded = base64.b64encode(model.charsmap).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": encoded})
    if model.trims:
        steps += [_replace(r"\A +", ""), _replace(once_a_run(r" +\z"), ""), _replace(" {2,}", " ")]
    return {"type": "Sequence", "normalizers": steps} if steps else None


def _replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def _metaspace(model: SentencePieceModel) -> dict[str, Any]:
    return {
        "type": "Metaspace",
        "replacement": SPACE,
        "prepend_scheme": "always" if model.prefix else "never",
        "split": True,
    }


def _decoder(model: SentencePieceModel) -> dict[str, Any]:
    metaspace = _metaspace(model)
    if not model.byte_fallback:
        return metaspace
    return {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, metaspace]}


def of_bytes(folder: Path, size: int) -> Tokenizer:
    """`vocab.json` and `merges.txt`: BPE over bytes, as GPT-2 and BART have it.

    Raises:
        InputError: a file is missing, or is not what it should be.
    """
    vocabulary = named_ids(folder / "vocab.json")
    special = [name for name in ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>") if name in vocabulary]
    byte_level = {"add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    table = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": sorted((_added(vocabulary[each], each, True) for each in special), key=lambda each: each["id"]),
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", **byte_level},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", **byte_level},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": _merges(folder / "merges.txt"),
        },
    }
    name = str(folder / "vocab.json")
    return filled(Tokenizer.from_json(json.dumps(table, ensure_ascii=False), name), size, name)


def of_wordpieces(vocabulary: str, settings: Mapping[str, Any], size: int) -> Tokenizer:
    """A `vocab.txt`: WordPiece, as BERT has it, with the settings of a `tokenizer_config.json`.

    Raises:
        InputError: a piece stands there twice, or special tokens are missing.
    """
    pieces = vocabulary.removesuffix("\n").split("\n")
    ids = {piece.rstrip("\r"): place for place, piece in enumerate(pieces)}
    if len(ids) < len(pieces):
        raise InputError(f"vocab.txt: expected {len(pieces):,} different pieces; got {len(ids):,}.")
    lowercase = settings.get("do_lower_case") is not False
    special = [name for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if name in ids]
    table = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(ids[each], each, True) for each in special],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": settings.get("tokenize_chinese_chars") is not False,
            "strip_accents": settings.get("strip_accents"),
            "lowercase": lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": ids,
        },
    }
    return filled(Tokenizer.from_json(json.dumps(table, ensure_ascii=False), "vocab.txt"), size, "vocab.txt")


def _merges(path: Path) -> Sequence[list[str]]:
    lines = bounded_text(path, LARGEST).split("\n")
    pairs = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    if any(len(pair) != 2 for pair in pairs):
        raise InputError(f"{path}: expected two pieces a line.")
    return pairs
