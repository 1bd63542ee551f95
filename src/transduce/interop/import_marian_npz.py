"""Marian's own `.npz`, or `.bin` as of Firefox, read into our Transformer, or that with SSRU in its decoder.

An `.npz` is read with numpy and without pickle; a `.bin` by `transduce.interop.marian_bin`. Both hold the same arrays:

    Wemb                                        embeddings; encoder_Wemb and decoder_Wemb, where they are two
    encoder_l1_self_Wq, .._bq, .. k, v, o       products of layer 1, (inputs, outputs) and (1, outputs)
    encoder_l1_self_Wo_ln_scale, .._ln_bias     the norm behind that sub-layer; .._ln_scale_pre: before it
    decoder_l1_context_.., .._ffn_W1, .._ffn_W2, .._ffn_ffn_ln_scale
    decoder_l1_rnn_W, .._Wf, .._bf              SSRU in the place of self-attention
    decoder_l1_rnn_ffn_ln_scale                 the norm behind it; decoder_l1_rnn_ln_scale_pre: before it
    decoder_ff_logit_out_b                      a bias of the logits
    special:model.yml                           the settings: bytes of a text

Marian's positions are those of Tensor2Tensor, also in decoders with SSRU, and its norms add 1e-6 (`layerNorm` of its
layers/generic.h). Its decoder begins with a vector of zeros (`zero_start`). Marian has no padding: `<pad>` is a token
behind all others that is never written.

Shapes: D model width, V vocabulary.
"""

import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from transduce.core.bounded_file import bounded_text
from transduce.core.errors import InputError
from transduce.data.files import zip_member
from transduce.data.lexicon import Lexicon
from transduce.data.limits import DAMAGED
from transduce.interop.foreign_folder import ForeignTensors
from transduce.interop.import_bart import Weights, output_name
from transduce.interop.import_columns import ColumnPair, marian_columns
from transduce.interop.import_shortlist import read_shortlist
from transduce.interop.import_tokenizer import LARGEST, named_ids
from transduce.interop.marian_bin import is_marian_bin, read_marian_bin
from transduce.interop.marian_settings import settings_beside, yaml_values
from transduce.interop.sentencepiece import read_sentencepiece
from transduce.interop.text_to_text import NEVER

SETTINGS = "special:model.yml"
EPSILON = 1e-6  # of Marian's norms
SIDES = ("source_embedding.weight", "target_embedding.weight")
MOST = 2**34  # bytes that all arrays may have together
ACTIVATIONS = {"relu": "relu", "swish": "swish"}
NORMS: dict[tuple[str, ...], str] = {
    ("", "dan", ""): "post",
    ("n", "da", "n"): "pre",
}  # preprocess, postprocess, postprocess-top
KEYS_ARE_NORMED = (1, 11)  # since this version, with norms before the sub-layers


class SentencePieceFiles(NamedTuple):
    """Of the tokenizers of an `.npz` or `.bin`; None = found beside it.

    shortlist: a `lex.*.bin` of a `.bin`, likewise.
    """

    source: Path | None = None
    target: Path | None = None
    shortlist: Path | None = None


NO_FILES = SentencePieceFiles()


class MarianModel(NamedTuple):
    """table, search: sections of the recipe. weights: by our names. lexicon: None = there is none."""

    table: dict[str, Any]
    weights: Weights
    columns: ColumnPair
    search: dict[str, Any]
    lexicon: Lexicon | None
    notes: tuple[str, ...]


def is_marian(path: Path) -> bool:
    """Whether a file may be a model of Marian, by its name and its first bytes."""
    return path.is_file() and (path.suffix == ".npz" or is_marian_bin(path))


def read_marian(path: Path, pieces: SentencePieceFiles) -> MarianModel:
    """The model in a file, with what is said of its search beside it.

    Raises:
        InputError: it is no such file; settings that our Transformer does not have; no tokenizer beside it.
    """
    table, weights, columns = _read_model(path, pieces)
    said, notes = settings_beside(path), []
    if said.file:
        notes.append(f"it searches as {said.file.name} says.")
    shortlist = pieces.shortlist
    if path.suffix == ".bin":
        columns = columns if said.writes_unknown else _never_unknown(columns)
        shortlist = shortlist or _beside(path, ("lex.*.bin",))
    search, lexicon = dict(said.search), None
    if shortlist:
        lexicon = read_shortlist(shortlist, (columns.source.tokenizer.size, columns.target.tokenizer.size))
        search["shortlist"] = lexicon.candidates_SC.shape[1]
        notes.append(f"its outputs are of words on shortlists, of {shortlist.name}; search.shortlist=none allows all.")
    return MarianModel(table, weights, columns, search, lexicon, tuple(notes))


def _never_unknown(columns: ColumnPair) -> ColumnPair:
    """The translators of Firefox and Bergamot never choose the unknown token, unless they are told to."""
    target = columns.target
    never = target.tokenizer.tokens(sorted({*target.unwritten, target.tokenizer.unknown}))
    return replace(columns, target=replace(target, never=tuple(never)))


def _read_model(path: Path, pieces: SentencePieceFiles) -> tuple[dict[str, Any], Weights, ColumnPair]:
    arrays = read_marian_bin(path) if path.suffix == ".bin" else _arrays(path)
    settings = _settings_of(path, arrays.pop(SETTINGS, None))
    table = _model_table(path, settings, len(arrays))
    tensors = ForeignTensors(path, {name: _tensor(name, array) for name, array in arrays.items()})
    weights: Weights = {}
    for side in ("encoder", "decoder"):
        for layer in range(table[f"{side}_layers"]):
            _layer(tensors, weights, side, layer, table)
        if table["norm"] == "pre":
            _norm(tensors, weights, f"{side}_top", f"{side}.norm")
        if table["embedding_norm"]:
            _norm(tensors, weights, f"{side}_emb", f"{side}.embedding_norm")
    tied = _embeddings(tensors, weights)
    tensors.finish(["decoder_ff_logit_out_W", "Wpos"])
    columns = _columns(path, pieces, weights)
    return {**table, **tied, "output_bias": True}, weights, columns


def _arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """All arrays. What they hold is compared with the limit before it is read, and counted while it is."""
    try:
        with zipfile.ZipFile(path) as packed:
            sizes = {entry.filename: entry.file_size for entry in packed.infolist()}
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from error
    except DAMAGED as error:
        raise _no_arrays(path, error) from error
    if (size := sum(sizes.values())) > MOST:
        raise InputError(f"{path}: its arrays have {size:,} bytes; expected at most {MOST:,}.")
    return {name.removesuffix(".npy"): _array(path, name) for name in sizes}


def _array(path: Path, name: str) -> np.ndarray[Any, Any]:
    with zip_member(path, name) as stream:
        try:
            found: np.ndarray[Any, Any] = np.lib.format.read_array(cast(BinaryIO, stream), allow_pickle=False)
        except (ValueError, EOFError, TypeError, OverflowError, MemoryError) as error:
            raise _no_arrays(path, error) from error
    return found


def _no_arrays(path: Path, error: Exception) -> InputError:
    return InputError(f"{path}: expected an .npz of Marian, but it cannot be read: {error}.")


def _tensor(name: str, array: np.ndarray[Any, Any]) -> Tensor:
    if array.dtype not in (np.float32, np.float16):
        raise InputError(f'the array "{name}" is {array.dtype}; expected float32, as `marian-conv` writes it.')
    return torch.from_numpy(array.astype(np.float32))


def _settings_of(path: Path, array: np.ndarray[Any, Any] | None) -> dict[str, str]:
    if array is None:
        raise InputError(f"{path}: it has no {SETTINGS}, so it is no model of Marian.")
    return yaml_values(array.tobytes().rstrip(b"\0").decode("utf-8", "replace"))


def _model_table(path: Path, settings: Mapping[str, str], arrays: int) -> dict[str, Any]:
    problems: list[str] = []

    def number(key: str) -> int:
        value = settings.get(key, "")
        if not re.fullmatch(r"[1-9][0-9]{0,6}", value):
            problems.append(f'{key}: expected a number; got "{value}".')
            return 1
        return int(value)

    def expect(key: str, *values: str) -> None:
        if (value := settings.get(key, values[0])) not in values:
            problems.append(f'{key}: expected {" or ".join(map(repr, values))}; got "{value}".')

    recurrent = settings.get("transformer-decoder-autoreg") == "rnn"
    expect("type", "transformer")
    expect("transformer-decoder-autoreg", "self-attention", "rnn")
    if recurrent:
        expect("dec-cell", "ssru")
        expect("layer-normalization", "false")
        expect("transformer-rnn-projection", "false")
    expect("transformer-train-position-embeddings", "false")
    expect("transformer-train-positions", "false")
    expect("transformer-no-projection", "false")
    expect("transformer-postprocess-emb", "d", "", *(() if recurrent else ("n", "nd")))
    expect("transformer-ffn-depth", "2")
    expect("transformer-ffn-activation", *ACTIVATIONS)
    expect("transformer-tied-layers", "[]", "")
    kinds = tuple(settings.get(f"transformer-{key}", "") for key in ("preprocess", "postprocess", "postprocess-top"))
    if kinds not in NORMS:
        problems.append(f"transformer-preprocess, -postprocess and -postprocess-top: {kinds} is not supported.")
    elif NORMS[kinds] == "pre" and _version(settings) < KEYS_ARE_NORMED:
        problems.append(
            "transformer-preprocess: before its version 1.11, Marian did not norm the keys of self-attention."
        )
    table = {
        **({"kind": "ssru_transformer", "decoder_positions": True} if recurrent else {"kind": "transformer"}),
        "zero_start": True,
        "d_model": number("dim-emb"),
        "heads": number("transformer-heads"),
        "feed_forward": number("transformer-dim-ffn"),
        "encoder_layers": number("enc-depth"),
        "decoder_layers": number("dec-depth"),
        "activation": ACTIVATIONS.get(settings.get("transformer-ffn-activation", "swish"), "relu"),
        "norm": NORMS.get(kinds, "post"),
        "norm_epsilon": EPSILON,
        "embedding_norm": "n" in settings.get("transformer-postprocess-emb", "d"),
        "positions": "tensor2tensor",
    }
    problems += [
        f"{key} = {value}, but there are {arrays} arrays."
        for key, value in (("enc-depth", table["encoder_layers"]), ("dec-depth", table["decoder_layers"]))
        if isinstance(value, int) and value > arrays
    ]
    if problems:
        raise InputError(f"{path}: {SETTINGS}: {problem}" for problem in problems)
    return table


def _version(settings: Mapping[str, str]) -> tuple[int, int]:
    """Of the Marian that made the model; where it does not say, of one that norms keys."""
    found = re.match(r"v(\d+)\.(\d+)", settings.get("version", ""))
    return (int(found[1]), int(found[2])) if found else KEYS_ARE_NORMED


def _layer(tensors: ForeignTensors, weights: Weights, side: str, layer: int, table: Mapping[str, Any]) -> None:
    theirs, ours = f"{side}_l{layer + 1}", f"{side}.blocks.{layer}"
    roles = [("self", "self"), ("context", "cross")][: 2 if side == "decoder" else 1]
    if side == "decoder" and table["kind"] == "ssru_transformer":
        del roles[0]
        _unit(tensors, weights, f"{theirs}_rnn", ours, table["norm"])
    for name, role in roles:
        _linear(tensors, weights, f"{theirs}_{name}", "q", f"{ours}.{role}_attention.query")
        _linear(tensors, weights, f"{theirs}_{name}", "kv", f"{ours}.{role}_attention.key_value")
        _linear(tensors, weights, f"{theirs}_{name}", "o", f"{ours}.{role}_attention.output")
        _norm(tensors, weights, f"{theirs}_{name}_Wo", f"{ours}.{role}_residual.norm")
    _linear(tensors, weights, f"{theirs}_ffn", "1", f"{ours}.feed_forward.inner")
    _linear(tensors, weights, f"{theirs}_ffn", "2", f"{ours}.feed_forward.outer")
    _norm(tensors, weights, f"{theirs}_ffn_ffn", f"{ours}.feed_forward_residual.norm")


def _unit(tensors: ForeignTensors, weights: Weights, theirs: str, ours: str, norm: str) -> None:
    weights[f"{ours}.unit.value.weight"] = tensors.take(f"{theirs}_W").t()
    _linear(tensors, weights, theirs, "f", f"{ours}.unit.forget")
    _norm(tensors, weights, f"{theirs}_ffn" if norm == "post" else theirs, f"{ours}.unit_residual.norm")


def _linear(tensors: ForeignTensors, weights: Weights, theirs: str, parts: str, ours: str) -> None:
    """One product, or several with the same inputs, one behind the other."""
    weights[f"{ours}.weight"] = torch.cat([tensors.take(f"{theirs}_W{part}").t() for part in parts])
    weights[f"{ours}.bias"] = torch.cat([tensors.take(f"{theirs}_b{part}").flatten() for part in parts])


def _norm(tensors: ForeignTensors, weights: Weights, theirs: str, ours: str) -> None:
    for name, part in (("scale", "weight"), ("bias", "bias")):
        found = tensors.take(f"{theirs}_ln_{name}", f"{theirs}_ln_{name}_pre")
        weights[f"{ours}.{part}"] = found.flatten()


def _embeddings(tensors: ForeignTensors, weights: Weights) -> dict[str, Any]:
    """Puts the embeddings among the weights, each with a row of zeros for `<pad>`; returns which of them are one."""
    joint = "Wemb" in tensors
    target = _with_pad(tensors.take("Wemb", "decoder_Wemb"))
    weights["target_embedding.weight"] = target
    if not joint:
        weights["source_embedding.weight"] = _with_pad(tensors.take("encoder_Wemb"))
    output = next((name for name in ("decoder_ff_logit_out_Wt", "decoder_ff_logit_out_W") if name in tensors), None)
    if output:
        own = tensors.take(output)
        weights["output.weight"] = _with_pad(own if output.endswith("Wt") else own.T)
    tied = ("input" if joint else "none") if output else ("all" if joint else "output")
    bias_V = tensors.take("decoder_ff_logit_out_b").flatten()
    weights[f"{output_name({'tied': tied})}.bias"] = torch.cat((bias_V, torch.tensor([NEVER])))
    return {"tied": tied}


def _with_pad(table_VD: Tensor) -> Tensor:
    return torch.cat((table_VD, table_VD.new_zeros(1, *table_VD.shape[1:])))


def _columns(path: Path, pieces: SentencePieceFiles, weights: Weights) -> ColumnPair:
    """The tokenizers: SentencePiece models beside the file, and `vocab.json` or `vocab.yml` where there is one."""
    source = pieces.source or _beside(path, ("source.spm", "vocab.spm", "*.source.spm", "src*.spm", "*.spm"))
    if source is None:
        raise InputError(
            f"{path}: there is no SentencePiece model (.spm) beside it: name that of the source with --source-spm, and "
            "that of the target with --target-spm if it is another."
        )
    target = pieces.target or _beside(source, ("target.spm", "*.target.spm", "trg*.spm", "tgt*.spm")) or source
    sizes = [len(weights.get(name, weights["target_embedding.weight"])) for name in SIDES]
    tables = _vocabularies(path, source, target)
    problems = [
        f"{file}: {len(table):,} tokens; the model has {size - 1:,}."
        for file, table, size in zip((source, target), tables, sizes, strict=True)
        if max(table.values()) >= size - 1
    ]
    if problems:
        raise InputError(problems)
    numbered = [{**table, "<pad>": size - 1} for table, size in zip(tables, sizes, strict=True)]
    return marian_columns(source, target, numbered[0], numbered[1], (sizes[0], sizes[1]), None)


def _beside(path: Path, patterns: tuple[str, ...]) -> Path | None:
    found = (file for pattern in patterns for file in sorted(path.parent.glob(pattern)))
    return next(found, None)


def _vocabularies(path: Path, source: Path, target: Path) -> tuple[dict[str, int], dict[str, int]]:
    """The ids of both sides: of one file, or those that the SentencePiece models themselves have."""
    if (table := path.with_name("vocab.json")).is_file():
        ids = {name: index for name, index in named_ids(table).items() if name != "<pad>"}  # of Hugging Face
        return ids, ids
    if listed := _beside(path, ("vocab.yml", "*.vocab.yml")):
        ids = _yaml_ids(listed)
        return ids, ids
    each = [
        {piece.text: place for place, piece in enumerate(read_sentencepiece(file).pieces)} for file in (source, target)
    ]
    return each[0], each[1]


def _yaml_ids(path: Path) -> dict[str, int]:
    """A vocabulary of Marian: lines of a token, in quotes where it needs them, and its id."""
    ids: dict[str, int] = {}
    for number, line in enumerate(bounded_text(path, LARGEST).split("\n"), 1):
        if not line.strip():
            continue
        token, colon, index = line.rpartition(":")
        if not colon or not index.strip().isdigit():
            raise InputError(f"{path}, line {number}: expected a token, a colon and its id; got {line[:60]!r}.")
        token = token.strip()
        if token.startswith('"'):
            try:
                token = json.loads(token)
            except ValueError:
                raise InputError(f"{path}, line {number}: a token that cannot be read: {line[:60]!r}.") from None
        elif token.startswith("'"):
            token = token[1:-1].replace("''", "'")
        ids[token] = int(index)
    return ids
