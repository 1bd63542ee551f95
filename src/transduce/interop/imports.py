"""Models of others as model files of ours: which formats are read, and what a file is made of.

Shapes: V vocabulary, D model width.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.model_file import ModelFile, refuse_url
from transduce.core.registry import suggest
from transduce.data.columns.tokens import Tokens
from transduce.interop.adapters import Adapter
from transduce.interop.foreign_folder import ForeignFolder
from transduce.interop.generation_settings import generation_settings
from transduce.interop.import_bart import Weights, output_name, read_bart
from transduce.interop.import_columns import ColumnPair, columns_of
from transduce.interop.import_decoder import FAMILIES as DECODERS
from transduce.interop.import_decoder import read_decoder
from transduce.interop.import_encoder import FAMILIES as ENCODERS
from transduce.interop.import_encoder import read_encoder
from transduce.interop.import_marian_npz import NO_FILES, SentencePieceFiles, is_marian, read_marian
from transduce.interop.import_t5 import read_t5
from transduce.interop.import_whisper import is_whisper_ctranslate2, read_whisper, read_whisper_ctranslate2
from transduce.interop.imported_file import imported_file
from transduce.interop.model_card import Languages
from transduce.interop.text_to_text import NEVER
from transduce.pipeline.shortlists import with_lexicon
from transduce.search.keys import DEFAULTS
from transduce.version import __version__

Read = Callable[[ForeignFolder], tuple[dict[str, Any], Weights]]
KINDS: dict[str, Read] = {
    "marian": read_bart,
    "bart": read_bart,
    "mbart": read_bart,
    "m2m_100": read_bart,
    "pegasus": read_bart,
    "t5": read_t5,
    "mt5": read_t5,
}
"""By the model_type of a config.json."""
AROUND = 4  # positions of tokens around a text: start, end, languages
LONGEST = 512  # tokens of a source that is read in one piece, where the model's positions reach as far
HASHED = (".safetensors", ".bin", ".npz", ".spm", ".json")
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
CHECKPOINTS = (
    "{path}: this looks like a checkpoint of fairseq, OpenNMT-py, JoeyNMT or another program that writes with "
    "torch.save. That is a pickle, and opening one can run code, so Transduce never does. Have a program that you "
    "trust write it as a folder of Hugging Face with model.safetensors (transformers has scripts for fairseq's BART, "
    "mBART, M2M-100 and NLLB), and convert that folder."
)


@dataclass(frozen=True)
class Imported:
    """A model file of ours, and what it came from.

    kind: of the format, for people. compares: what it is compared as with its original, as a translator, an encoder, a
        decoder or a recognizer of speech; "" = nothing here runs the original. notes: what is to be told.
    adapter: the folder of an adapter that was merged; None = there was none.
    """

    file: ModelFile
    kind: str
    path: Path
    languages: Languages
    compares: Literal["translator", "encoder", "decoder", "speech", ""] = "translator"
    notes: tuple[str, ...] = ()
    adapter: Path | None = None


def read_foreign(
    path: Path,
    languages: Languages,
    name: str,
    pieces: SentencePieceFiles = NO_FILES,
    pairs: bool = False,
    base: Path | None = None,
) -> Imported:
    """The model at `path`: a folder of Hugging Face, one of CTranslate2 with Whisper, or Marian's `.npz`.

    Args:
        languages: codes of the source and the target, which a model of many languages needs; of Whisper, of what is
            said and what is written.
        name: of the recipe that is written into the file.
        pieces: of an `.npz` or `.bin`, the files of its tokenizers, where they are not beside it.
        pairs: of a classifier, that it reads pairs of texts.
        base: of a folder that has only an adapter, the model that it changes; None = as the adapter says.

    Raises:
        InputError: there is none, or it is none that can be read; all problems are told at once.
    """
    if not path.exists():
        refuse_url(path)
        raise InputError(
            f"{path}: there is no such file or folder; expected a folder of Hugging Face, or an .npz or .bin of Marian."
        )
    if is_marian(path):
        if pairs:
            raise InputError(f"{path}: pairs of texts are read by classifiers of texts; this is a translator.")
        return _marian_file(path, pieces, languages, name)
    if path.is_file():
        raise InputError(_no_folder(path))
    if is_whisper_ctranslate2(path):
        return _whisper(path, None, languages, name)
    folder = _folder(path, base)
    path = folder.path
    kind, known = folder.get("model_type", str), [*KINDS, *ENCODERS, *DECODERS, "whisper"]
    if kind not in known:
        raise InputError(
            f'{path / "config.json"}: model_type = "{kind}" cannot be converted.{suggest(kind, known)} '
            f"Known: {', '.join(known)}."
        )
    if pairs and kind not in ENCODERS:
        raise InputError(f"{path}: pairs of texts are read by classifiers of texts; this is a {kind} model.")
    if kind in ENCODERS or kind in DECODERS:
        return _one_sided(folder, kind, name, pairs)
    if kind == "whisper":
        return _whisper(path, folder, languages, name)
    with _shapes_told(path):
        table, weights = KINDS[kind](folder)
    size = len(weights["target_embedding.weight"])
    sizes = len(weights.get("source_embedding.weight", weights["target_embedding.weight"])), size
    columns = columns_of(folder, kind, sizes, languages)
    asked = generation_settings(folder, columns.target.end, size, len(columns.target.opening), _positions(table))
    columns = columns.never_writing(asked.never, asked.never_first)
    file = model_file(table, weights, columns, languages, name, asked.search, provenance(path, kind, folder.adapter))
    return Imported(
        file,
        f"Hugging Face {kind}",
        path,
        languages,
        notes=(*asked.notes, *folder.notes()),
        adapter=folder.adapter_folder,
    )


def _folder(path: Path, base: Path | None) -> ForeignFolder:
    """A model's, or an adapter's with the model that it changes."""
    if not Adapter.lies_in(path) or (path / "config.json").is_file():
        if base is not None:
            raise InputError(f"{path}: --base is for a folder that has only an adapter, which this has not.")
        return ForeignFolder(path)
    found = base or Adapter(path).base
    if found is None:
        named = Adapter(path).settings.get("base_model_name_or_path")
        raise InputError(
            f"{path}: this is an adapter alone, of the model {named!r:.200}, which is no folder here. Name the model's "
            f"folder: transduce convert {path} OUTPUT --base FOLDER"
        )
    return ForeignFolder(found, path)


def _marian_file(path: Path, pieces: SentencePieceFiles, languages: Languages, name: str) -> Imported:
    """Of an `.npz` or `.bin`."""
    with _shapes_told(path):
        read = read_marian(path, pieces)
    origin = provenance(path, "marian")
    file = model_file(read.table, read.weights, read.columns, languages, name, read.search, origin)
    file = with_lexicon(file, read.lexicon) if read.lexicon else file
    return Imported(file, "Marian", path, languages, compares="", notes=read.notes)


@contextmanager
def _shapes_told(path: Path) -> Iterator[None]:
    """What torch says of tensors of other shapes as an InputError."""
    try:
        yield
    except (IndexError, RuntimeError) as error:
        raise InputError(f"{path}: its tensors do not have the shapes of such a model: {error}.") from error


def _one_sided(folder: ForeignFolder, kind: str, name: str, pairs: bool) -> Imported:
    """An encoder or a decoder."""
    reads, origin = kind in ENCODERS, partial(provenance, folder.path, kind, folder.adapter)
    with _shapes_told(folder.path):
        file, notes = read_encoder(folder, name, origin, pairs) if reads else read_decoder(folder, name, origin)
    compares: Literal["encoder", "decoder"] = "encoder" if reads else "decoder"
    told = (*notes, *folder.notes())
    return Imported(file, f"Hugging Face {kind}", folder.path, Languages("", ""), compares, told, folder.adapter_folder)


def _whisper(path: Path, folder: ForeignFolder | None, languages: Languages, name: str) -> Imported:
    """folder: of Hugging Face; None = it is CTranslate2's."""
    origin, by = provenance(path, "whisper"), "CTranslate2" if folder is None else "Hugging Face"
    with _shapes_told(path):
        file, notes = (
            read_whisper_ctranslate2(path, languages, name, origin)
            if folder is None
            else read_whisper(folder, languages, name, origin)
        )
    told = (*notes, *(folder.notes() if folder else ()))
    return Imported(file, f"{by} whisper", path, languages, "speech", told)


def _no_folder(path: Path) -> str:
    if path.suffix in PICKLES:
        return CHECKPOINTS.format(path=path)
    return f"{path}: expected a folder of Hugging Face with config.json and model.safetensors."


def with_further(table: dict[str, Any], weights: Weights, count: int, unknown: int) -> dict[str, Any]:
    """The model with rows for tokens that its vocabulary lacks: read as the unknown one, and never written."""
    for name in ("target_embedding.weight", "source_embedding.weight", "output.weight"):
        if name in weights:
            row_1D = weights[name][unknown : unknown + 1]
            weights[name] = torch.cat((weights[name], row_1D.expand(count, -1)))
    bias = f"{output_name(table)}.bias"
    size = len(weights["target_embedding.weight"]) - count
    bias_V = weights[bias] if bias in weights else torch.zeros(size)
    weights[bias] = torch.cat((bias_V, torch.full((count,), NEVER)))
    return {**table, "output_bias": True}


def model_file(
    table: dict[str, Any],
    weights: dict[str, Tensor],
    columns: ColumnPair,
    languages: Languages,
    name: str,
    search: dict[str, Any],
    origin: dict[str, Any],
) -> ModelFile:
    """A model file, checked as any that is loaded.

    Raises:
        InputError: the weights are not those of such a model, or not all of them are numbers.
    """
    target = _forbidden_by_search(weights, f"{output_name(table)}.bias", columns.target)
    if columns.further:
        table = with_further(table, weights, columns.further, columns.unknown)
    longest, limits = _limits(table, search)
    joint = columns.source.tokenizer.equals(target.tokenizer)
    recipe = {
        "name": name,
        "task": {"kind": "translation", "source": languages.source, "target": languages.target},
        "data": {
            "train": [{"source": "unknown", "target": "unknown"}],
            "filters": {"max_tokens": longest},
        },
        "tokenizer": {"joint": joint},
        "model": table,
        "search": {**search, **limits},
    }
    return imported_file(recipe, weights, {"source": columns.source, "target": target}, origin)


def _forbidden_by_search(weights: Weights, bias: str, target: Tokens) -> Tokens:
    """The output's column, which forbids what a bias of `NEVER` forbade, as our exports write it; the bias goes.

    With it, the loss of a text that holds an unknown token would be that of something impossible. Padding stands in no
    text, so its bias stays, as does that of an id without a spelling.
    """
    if bias not in weights:
        return target
    forbidden_V = weights[bias] <= NEVER
    forbidden_V[target.tokenizer.pad] = False
    nameless = [each for each in forbidden_V.nonzero().flatten().tolist() if not target.tokenizer.spells(each)]
    forbidden_V[nameless] = False
    if not forbidden_V.any():
        return target
    weights[bias] = weights[bias].masked_fill(forbidden_V, 0.0)
    ids = {*target.unwritten, *forbidden_V.nonzero().flatten().tolist()}
    return replace(target, never=tuple(target.tokens(sorted(ids))))


def _positions(table: Mapping[str, Any]) -> int | None:
    """How many positions source and target have; None = any number."""
    return table["max_length"] if table.get("positions") == "learned" else None


def _limits(table: Mapping[str, Any], search: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """The longest source that is read in one piece, and keys of search by which outputs stay within the positions."""
    if (positions := _positions(table)) is None:
        return LONGEST, {}
    positions = max(2, positions - AROUND)
    if "max_length_offset" in search:
        return min(LONGEST, positions), {}
    offset = min(DEFAULTS["max_length_offset"], positions // 2)
    longest = int((positions - offset) / DEFAULTS["max_length_factor"])
    return max(1, min(LONGEST, longest)), {"max_length_offset": offset}


def provenance(path: Path, kind: str, adapter: Adapter | None = None) -> dict[str, Any]:
    """What the file came from, without a path."""
    folders = dict.fromkeys([path, *([adapter.folder] if adapter else [])])
    files = [
        file
        for folder in folders
        for file in (sorted(each for each in folder.iterdir() if each.is_file()) if folder.is_dir() else [folder])
    ]
    hashes = {file.name: _sha256(file) for file in files if file.suffix in HASHED}
    return {"converted": {"kind": kind, "files": hashes, "transduce": __version__}}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
