"""Whisper (Radford et al. 2022): folders of Hugging Face, and of CTranslate2 as faster-whisper has them.

| | ours |
|---|---|
| two convolutions with GELU | `front_end = "gelu"`, `subsampling = 2` |
| 1,500 positions of the encoder, a table of sines and cosines | `positions = "learned"`, `encoder_max_length = 1500` |
| 448 learned positions of the decoder | `max_length = 448` |
| `<|startoftranscript|><|en|><|transcribe|><|notimestamps|>` | what an output begins with |
| tokens that generation suppresses, and times | tokens that search never chooses |

Keys have no bias; ours is 0, which changes no attention. Shapes: D model width, T positions, V vocabulary.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.model_file import ModelFile
from transduce.core.printable import listed
from transduce.core.registry import suggest
from transduce.data.columns.frames import Frames
from transduce.data.columns.tokens import Tokens
from transduce.data.speech.log_mel import FRAMES, RATE
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.interop.ctranslate2_weights import ctranslate2_specification, read_ctranslate2
from transduce.interop.foreign_folder import ForeignFolder, ForeignTensors
from transduce.interop.import_bart import ACTIVATIONS, Weights, affine, take_layer
from transduce.interop.import_columns import HOW
from transduce.interop.import_tokenizer import LARGEST, filled, json_of
from transduce.interop.imported_file import imported_file
from transduce.interop.model_card import Languages

SPECIFICATION = "WhisperSpec"
POSITIONS = FRAMES // 2
MULTILINGUAL = 51_865  # tokens, or more: the vocabulary of several languages
LANGUAGE = re.compile(r"<\|([a-z]{2,3})\|>")
WITHOUT_SPACES = {"zh", "yue", "ja", "th", "lo", "my", "km"}  # whose outputs begin without a space
START, TRANSCRIBE, TRANSLATE, NO_TIMES = "<|startoftranscript|>", "<|transcribe|>", "<|translate|>", "<|notimestamps|>"
LAYERS = {"self_attention": "self_attn", "attention": "encoder_attn"}  # CTranslate2's names, and Hugging Face's


@dataclass(frozen=True)
class WhisperSizes:
    """What tensors do not say of themselves."""

    heads: int
    activation: str = "gelu"
    dropout: float = 0.0
    inner_dropout: float = 0.0


@dataclass(frozen=True)
class Suppressed:
    """Ids that generation never chooses, and that it does not choose first."""

    never: Sequence[int]
    first: Sequence[int]


def is_whisper_ctranslate2(folder: Path) -> bool:
    """Whether it is a folder of CTranslate2 with a Whisper model."""
    return ctranslate2_specification(folder / "model.bin") == SPECIFICATION


def read_whisper(
    folder: ForeignFolder, languages: Languages, name: str, origin: dict[str, Any]
) -> tuple[ModelFile, list[str]]:
    """The model file of a folder of Hugging Face, and what is to be told of it.

    Args:
        languages: what is heard, and what is written: the same, or English. "" = English.
        name: of the recipe that is written into the file. origin: its provenance.

    Raises:
        InputError: settings that our Transformer does not have; tensors are missing, or are not known; no tokenizer;
            no such language.
    """
    heads = folder.size("encoder_attention_heads")
    activation, problems = folder.get("activation_function", str, "gelu"), []
    for key, wanted in (
        ("decoder_attention_heads", heads),
        ("decoder_ffn_dim", folder.size("encoder_ffn_dim")),
        ("max_source_positions", POSITIONS),
    ):
        if folder.size(key) != wanted:
            problems.append(f"{key}: expected {wanted}; got {folder.size(key)}.")
    if activation not in ACTIVATIONS:
        problems.append(f'activation_function: expected one of {", ".join(ACTIVATIONS)}; got "{activation}".')
    if folder.config.get("scale_embedding"):
        problems.append("scale_embedding = true is not supported.")
    if problems:
        raise InputError(f"{folder.path / 'config.json'}: {problem}" for problem in problems)
    dropouts = (float(folder.get(key, (int, float), 0.0)) for key in ("dropout", "attention_dropout"))
    multilingual = folder.generation.get("is_multilingual")
    suppressed = Suppressed(*(_ids(folder.generated(key)) for key in ("suppress_tokens", "begin_suppress_tokens")))
    sizes = WhisperSizes(heads, ACTIVATIONS[activation], *dropouts)
    return _imported(folder.path, folder.tensors(), sizes, suppressed, multilingual, languages, name, origin)


def read_whisper_ctranslate2(
    path: Path, languages: Languages, name: str, origin: dict[str, Any]
) -> tuple[ModelFile, list[str]]:
    """The same of a folder of CTranslate2. Raises InputError likewise, and where `model.bin` is damaged."""
    found = dict(read_ctranslate2(path / "model.bin").tensors)
    config = json_of(path / "config.json")
    if not isinstance(config, dict):
        raise InputError(f"{path / 'config.json'}: expected a table.")
    heads = {int(found.pop(f"{side}/num_heads", torch.zeros(1))) for side in ("encoder", "decoder")}
    if len(heads) > 1 or min(heads) < 1:
        raise InputError(f"{path / 'model.bin'}: expected num_heads, the same in encoder and decoder; got {heads}.")
    suppressed = Suppressed(*(_ids(config.get(key)) for key in ("suppress_ids", "suppress_ids_begin")))
    tensors = ForeignTensors(path, _as_huggingface(path, found))
    return _imported(path, tensors, WhisperSizes(heads.pop()), suppressed, None, languages, name, origin)


def _ids(given: Any) -> list[int]:
    return [each for each in given if type(each) is int and each >= 0] if isinstance(given, list) else []


def _as_huggingface(path: Path, found: dict[str, Tensor]) -> dict[str, Tensor]:
    """CTranslate2's tensors by Hugging Face's names, what it puts together cut into its parts."""
    named: dict[str, Tensor] = {}
    for name, tensor in found.items():
        if not tensor.is_floating_point():
            continue  # settings
        *layer, part = name.replace("gamma", "weight").replace("beta", "bias").split("/")
        targets = _targets("/".join(layer))
        if not tensor.ndim or len(tensor) % len(targets):
            raise InputError(f'{path / "model.bin"}: "{name}": expected {len(targets)} equal parts.')
        for target, piece in zip(targets, tensor.chunk(len(targets)), strict=True):
            named[target if part == "encodings" else f"{target}.{part}"] = piece
    return named


def _targets(layer: str) -> list[str]:
    """Hugging Face's names of one layer of CTranslate2."""
    whole = {
        "decoder/embeddings": "model.decoder.embed_tokens",
        "decoder/projection": "proj_out",
        "encoder/position_encodings": "model.encoder.embed_positions.weight",
        "decoder/position_encodings": "model.decoder.embed_positions.weight",
    }
    if layer in whole:
        return [whole[layer]]
    found = re.fullmatch(r"(encoder|decoder)/layer_(\d+)/(self_attention|attention|ffn)/(linear_\d|layer_norm)", layer)
    if found is None:
        return [f"model.{layer.replace('/', '.')}"]
    side, number, block, part = found.groups()
    begins = f"model.{side}.layers.{number}"
    if block == "ffn":
        return [f"{begins}.{ {'linear_0': 'fc1', 'linear_1': 'fc2', 'layer_norm': 'final_layer_norm'}[part] }"]
    theirs = f"{begins}.{LAYERS[block]}"
    parts = ["q_proj", "k_proj", "v_proj"]
    of_self = {"linear_0": parts, "linear_1": ["out_proj"]}
    of_cross = {"linear_0": parts[:1], "linear_1": parts[1:], "linear_2": ["out_proj"]}
    known = (of_self if block == "self_attention" else of_cross).get(part)
    return [f"{theirs}_layer_norm"] if known is None else [f"{theirs}.{each}" for each in known]


def _imported(
    path: Path,
    tensors: ForeignTensors,
    sizes: WhisperSizes,
    suppressed: Suppressed,
    multilingual: Any,
    languages: Languages,
    name: str,
    origin: dict[str, Any],
) -> tuple[ModelFile, list[str]]:
    table, weights = _model(tensors, sizes)
    vocabulary, mels = (
        len(weights["target_embedding.weight"]),
        weights["source_embedding.convolutions.0.weight"].shape[1],
    )
    if type(multilingual) is not bool:
        multilingual = vocabulary >= MULTILINGUAL
    prompt, notes = _prompt(path, languages, multilingual)
    written = languages.target or languages.source or "en"
    tokenizer = _tokenizer(path, vocabulary, spaced=written not in WITHOUT_SPACES)
    target = _target(path, tokenizer, prompt, suppressed)
    longest = table["max_length"] // 2 + len(prompt) - 1  # as many tokens as Whisper itself writes of 30 s
    recipe = {
        "name": name,
        "task": {"kind": "speech_recognition", "target": written},
        "data": {
            "train": [{"file": "unknown"}],
            "rate": RATE,
            "mels": mels,
            "features": "whisper",
            "max_frames": FRAMES,
        },
        "model": table,
        "search": {"method": "greedy", "max_length_factor": 0.0, "max_length_offset": longest},
    }
    columns = {"source": Frames(mels, RATE, features="whisper"), "target": target}
    return imported_file(recipe, weights, columns, origin), notes


def _model(tensors: ForeignTensors, sizes: WhisperSizes) -> tuple[dict[str, Any], Weights]:
    """The [model] section, and the weights by our names."""
    weights: Weights = {"target_embedding.weight": tensors.take("model.decoder.embed_tokens.weight")}
    table: dict[str, Any] = {"kind": "transformer", "tied": "output"}
    if "proj_out.weight" in tensors and not torch.equal(
        output := tensors.take("proj_out.weight"), weights["target_embedding.weight"]
    ):
        weights["output.weight"], table["tied"] = output, "none"
    _with_key_biases(tensors)
    for number in (0, 1):
        affine(tensors, weights, f"model.encoder.conv{number + 1}", f"source_embedding.convolutions.{number}")
    for side in ("encoder", "decoder"):
        table[f"{side}_layers"] = max(1, tensors.count(f"model.{side}.layers."))
        for layer in range(table[f"{side}_layers"]):
            take_layer(tensors, weights, side, layer)
        affine(tensors, weights, f"model.{side}.layer_norm", f"{side}.norm")
    encoded_TD, written_TD = (tensors.take(f"model.{side}.embed_positions.weight") for side in ("encoder", "decoder"))
    tensors.finish()
    if encoded_TD.ndim != 2 or len(encoded_TD) != POSITIONS:
        raise InputError(
            f"{tensors.path}: expected {POSITIONS} positions of the encoder; got {tuple(encoded_TD.shape)}."
        )
    weights["encoder.positions.weight_TD"] = encoded_TD
    weights["decoder.positions.weight_TD"] = written_TD
    return {
        **table,
        "d_model": encoded_TD.shape[1],
        "heads": sizes.heads,
        "feed_forward": len(weights["encoder.blocks.0.feed_forward.inner.bias"]),
        "activation": sizes.activation,
        "dropout": sizes.dropout,
        "inner_dropout": sizes.inner_dropout,
        "norm": "pre",
        "positions": "learned",
        "max_length": len(written_TD),
        "encoder_max_length": POSITIONS,
        "scale_embeddings": False,
        "front_end": "gelu",
        "subsampling": 2,
    }, weights


def _with_key_biases(tensors: ForeignTensors) -> None:
    """Biases of 0 for keys, which have none."""
    for name in tensors.names():
        if name.endswith("k_proj.weight"):
            bias = name.replace("weight", "bias")
            if bias not in tensors:
                tensors.add(bias, torch.zeros(len(tensors.take(name))))


def _prompt(path: Path, languages: Languages, multilingual: bool) -> tuple[list[str], list[str]]:
    """The tokens that an output begins with, and what is to be told of them."""
    heard, written = languages.source or "en", languages.target or languages.source or "en"
    if written not in (heard, "en"):
        raise InputError(f'{path}: expected what is said as text, or translated into English; got "{written}".')
    if not multilingual:
        if heard != "en":
            raise InputError(f'{path}: this model hears English only; got "{heard}".')
        return [START, NO_TIMES], []
    task = TRANSCRIBE if written == heard else TRANSLATE
    notes = [] if languages.source else ["it writes down English; convert it with --language for another one."]
    return [START, f"<|{heard}|>", task, NO_TIMES], notes


def _tokenizer(path: Path, size: int, spaced: bool) -> Tokenizer:
    """That of the folder, whose further tokens no text spells. spaced: a space stands before the first word."""
    file = path / "tokenizer.json"
    if not file.is_file():
        raise InputError(f"{path}: there is no tokenizer.json. {HOW.format(folder=path)}")
    table = json_of(file, LARGEST)
    if not isinstance(table, dict) or not isinstance(added := table.get("added_tokens"), list):
        raise InputError(f"{file}: expected a tokenizer.json of the library tokenizers.")
    special = [{**each, "special": True} if isinstance(each, dict) else each for each in added]
    table |= {"added_tokens": special, "post_processor": None}
    before = table.get("pre_tokenizer")
    if spaced and isinstance(before, dict) and before.get("type") == "ByteLevel":
        table["pre_tokenizer"] = {**before, "add_prefix_space": True}
    return filled(Tokenizer.from_json(json.dumps(table, ensure_ascii=False), str(file)), size, file.name)


def _target(path: Path, tokenizer: Tokenizer, prompt: Sequence[str], suppressed: Suppressed) -> Tokens:
    known: dict[str, int] = tokenizer._inner.get_vocab(with_added_tokens=True)
    if missing := [name for name in prompt if name not in known]:
        codes = [found[1] for name in known if (found := LANGUAGE.fullmatch(name))]
        code = LANGUAGE.fullmatch(missing[0])
        told = (
            f'no language "{code[1]}".{suggest(code[1], codes)} Known: {listed(sorted(codes))}'
            if code
            else f"no {missing[0]}"
        )
        raise InputError(f"{path / 'tokenizer.json'}: there is {told}.")
    times = range(known[NO_TIMES] + 1, tokenizer.size)
    if outside := [each for each in (*suppressed.never, *suppressed.first) if each >= tokenizer.size]:
        raise InputError(f"{path}: token {outside[0]} is to be suppressed; there are {tokenizer.size:,}.")
    never = sorted({*suppressed.never, *times} - {tokenizer.end})
    return Tokens(
        tokenizer,
        starts=True,
        ends=True,
        before=tuple(prompt),
        never=tuple(tokenizer.tokens(never)),
        never_first=tuple(tokenizer.tokens(sorted({*suppressed.first} - {*never}))),
    )
