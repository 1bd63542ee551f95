"""The model file, `model.safetensors`: weights, everything that is needed to use them, and scores.

The file's metadata contains, as JSON:

| key | contents |
|---|---|
| `format`, `format_version` | `transduce-model`, `2` |
| `config` | the resolved recipe |
| `tokenizer` | `{"source": tokenizer.json as text, "target": ...}`, or `{"joint": ...}` |
| `columns` | `{"source": {"kind": "tokens", ..}, "target": {"kind": "label", "labels": [..]}}` |
| `provenance` | hashes of data, seed, versions, updates; whether pairs were single sentences; characters; examples |
| `metrics` | scores on the validation data |
| `tied` | `{name: name}`: weights that share one tensor, which is stored and counted once |

The file may also contain a lexicon (`transduce.data.lexicon`): int32 tensors `shortlist.candidates`, the target tokens
that translate each source token, and `shortlist.frequent`, the frequent target tokens. A language model of counted
n-grams (`transduce.data.kneser_ney`) is tensors whose names begin with `ngrams.`. Neither are weights.

Format 1 had no `columns`: all were tokens, of pairs with start and end, of language models as they are.

The file contains no times and no paths of the machine, so that repeating a training gives the same bytes.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.core.bounded_json import table_of_settings, table_of_texts, what
from transduce.core.errors import InputError
from transduce.core.registry import resolve, suggest
from transduce.core.tensor_file import (
    DTYPES,
    TensorInfo,
    canonical_json,
    read_header,
    read_tensors,
    write_tensors,
)
from transduce.core.trust import check_code

if TYPE_CHECKING:
    from torch import Tensor, nn

NAME = "model.safetensors"
FORMAT = "transduce-model"
VERSION = 2
TABLES = ("config", "tokenizer", "columns", "provenance", "metrics", "tied")
CONVERT = "transduce convert {} model.safetensors"
UNSAFE = (
    "this looks like a PyTorch checkpoint, which is a pickle. Opening one can run code, so Transduce never does; give "
    "the model.safetensors of a run, or a folder of Hugging Face that holds safetensors."
)
NO_MODELS = {
    ".toml": "this is a recipe, not a model; train it first: transduce train {path}",
    ".npz": f"this looks like a model of Marian; convert it first: {CONVERT.format('{path}')}",
    ".bin": f"if this is a model of Marian or Firefox, convert it first: {CONVERT.format('{path}')}. If not, {UNSAFE}",
    **dict.fromkeys((".pt", ".pth", ".ckpt", ".pkl", ".pickle"), UNSAFE),
}
LEFT = ("recipe.toml", "plan.json", "log.jsonl", "checkpoints")  # by a training, in its run directory
URL = re.compile(r"([a-z][a-z0-9+.-]+):/+(.+)", re.IGNORECASE)  # a Path has one slash where there were two
TOLD = 100  # weights that a message names
LEXICON = ("shortlist.candidates", "shortlist.frequent")  # names of tensors
NGRAMS = "ngrams."  # begins the names of tensors


ColumnTables = dict[str, dict[str, Any]]
Check = Callable[[dict[str, Any], dict[str, str], ColumnTables, dict[str, TensorInfo]], None]
Read = Callable[[Path], tuple[dict[str, Any], dict[str, str]]]


@dataclass(frozen=True)
class ModelFile:
    """The contents of a model file.

    `tokenizers` maps "source" and "target", or "joint", to the text of a tokenizer.json. `lexicon` contains the
    candidates (S, C), padded with -1, and the frequent tokens (F,), both int32; None = there is no lexicon.
    `ngrams` contains the tensors of a language model; empty = there is none.
    `columns` describes each side, and contains what is no tokenizer; by default all is text.
    """

    weights: "dict[str, Tensor]"
    config: dict[str, Any]
    tokenizers: dict[str, str]
    provenance: dict[str, Any]
    metrics: dict[str, Any]
    lexicon: "tuple[Tensor, Tensor] | None" = None
    columns: ColumnTables = field(default_factory=dict)
    ngrams: "dict[str, Tensor]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.columns:
            object.__setattr__(self, "columns", columns_of_text(self.tokenizers))


def columns_of_text(tokenizers: Mapping[str, str]) -> ColumnTables:
    """The columns of a translator, or where there is no source of a language model."""
    if "joint" in tokenizers or "source" in tokenizers:
        source = {"kind": "tokens", "starts": False, "ends": True, "stream": False}
        return {"source": source, "target": source | {"starts": True}}
    return {"target": {"kind": "tokens", "starts": False, "ends": False, "stream": True}}


# ---- save and load -----------------------------------------------------------------------------------------


def save_model_file(path: str | os.PathLike[str], model: ModelFile) -> None:
    """Writes `model` atomically. Equal content gives equal bytes.

    Raises:
        InputError: a value cannot be represented in JSON or safetensors, or a weight is named like what is no weight.
        TransduceError: the system could not write it; the old file is unchanged.
    """
    tied = _tied(model.weights)
    tables = {
        "config": model.config,
        "tokenizer": model.tokenizers,
        "columns": model.columns,
        "provenance": model.provenance,
        "metrics": model.metrics,
        "tied": tied,
    }
    tensors = {name: weight for name, weight in model.weights.items() if name not in tied}
    metadata = {"format": FORMAT, "format_version": str(VERSION)}
    problems = []
    for key, table in tables.items():
        try:
            metadata[key] = canonical_json(table)
        except (TypeError, ValueError) as error:
            problems.append(f"{path}: the model's {key} cannot be written as JSON: {error}.")
    problems += [
        f'{path}: "{name}" cannot name a weight: a shortlist or n-grams have such names.'
        for name in tensors
        if not is_weight(name)
    ]
    if problems:
        raise InputError(problems)
    if model.lexicon is not None:
        tensors |= dict(zip(LEXICON, model.lexicon, strict=True))
    tensors |= {NGRAMS + name: tensor for name, tensor in model.ngrams.items()}
    write_tensors(path, tensors, metadata)


def load_model_file(
    path: str | os.PathLike[str],
    *,
    trust_code: bool | None = False,
    check: Check | None = None,
    read: Read = read_tensors,
) -> ModelFile:
    """Reads a model file, checks it, and verifies its checksum. Nothing named in it is imported here.

    Args:
        path: the file, or the folder of a finished run.
        trust_code: let the file name classes outside Transduce; building the model will import them. None = those that
            one's own recipe named.
        check: called before the weights are read, with the config, the tokenizers, the columns, and the shapes and
            dtypes of the weights by name.
        read: makes the tensors of the file; `read_arrays` makes NumPy's arrays of them.

    Raises:
        InputError: not a model file, newer than this Transduce, incomplete, damaged, or naming foreign code.
    """
    path = find_model_file(path)
    return _loaded(path, check, read, lambda tables: check_code(naming(tables), str(path), trust_code))


def read_model_file(path: str | os.PathLike[str]) -> ModelFile:
    """The same of whatever it names, which is not imported, and may not be afterwards.

    Raises:
        InputError: as `load_model_file`.
    """
    return _loaded(find_model_file(path), None, read_tensors, lambda tables: None)


def _loaded(path: Path, check: Check | None, read: Read, check_names: Callable[[Mapping[str, Any]], None]) -> ModelFile:
    header = read_header(path)
    tables = parsed_tables(path, header.metadata)  # a wrong file is refused before its weights are read
    check_names(tables)
    if check:
        infos = {name: info for name, info in header.tensors.items() if is_weight(name)}
        infos |= {name: infos[first] for name, first in tables["tied"].items() if first in infos}
        check(tables["config"], tables["tokenizer"], tables["columns"], infos)
    weights, metadata = read(path)
    if metadata != header.metadata:  # the file was replaced meanwhile
        tables = parsed_tables(path, metadata)
        check_names(tables)
    lexicon = _lexicon(path, weights)
    ngrams = {name.removeprefix(NGRAMS): weights.pop(name) for name in list(weights) if name.startswith(NGRAMS)}
    for name, first in tables["tied"].items():
        if first not in weights:
            raise InputError(f'{path}: damaged: "{name}" is tied to "{first}", which is not in the file.')
        weights[name] = weights[first]
    config, tokenizers, columns, provenance, metrics = (tables[key] for key in TABLES[:-1])
    return ModelFile(weights, config, tokenizers, provenance, metrics, lexicon, columns, ngrams)


def is_weight(name: str) -> bool:
    """Whether a tensor of a model file is one of the model's weights."""
    return name not in LEXICON and not name.startswith(NGRAMS)


def find_model_file(path: str | os.PathLike[str]) -> Path:
    """The model file at `path`: the path itself, or the model in the folder of a finished run.

    A folder of Hugging Face is converted once, into the cache.

    Raises:
        InputError: there is none; the message distinguishes unfinished runs from other folders.
    """
    path = Path(path)
    if not path.is_dir():
        if not path.exists():
            refuse_url(path)
            raise InputError(
                f"{path}: there is no such file or folder; expected a model file or a run directory.{_meant(path)}"
                + (' To predict a text, name the model and: --text "TEXT".' if " " in str(path) else "")
            )
        if path.suffix in NO_MODELS:
            raise InputError(f"{path}: {NO_MODELS[path.suffix].format(path=path)}")
        return path
    if (path / "config.json").is_file():
        return _converted(path)
    if (path / NAME).is_file():
        return path / NAME
    if _is_run(path):
        begun = any((path / "checkpoints").glob("update-*.safetensors"))
        what = (
            f"`transduce train --finish {path}` makes one from its best checkpoint so far; training can go on later."
            if begun
            else "Wait until its training ends, or reaches its first checkpoint."
        )
        raise InputError(f"{path}: this run is not finished: it has no {NAME} yet. {what}")
    raise InputError(f"{path}: this folder has no {NAME}, so it is not the directory of a finished run.")


def _converted(folder: Path) -> Path:
    """The model file of a folder of Hugging Face, by a part that is found by its name, as this room knows none above.

    Raises:
        InputError: it cannot be converted, or this is the package without torch, which converts nothing.
    """
    if not (Path(__file__).parents[1] / "interop").is_dir():
        raise InputError(
            f"{folder}: this looks like a model of Hugging Face; convert it first: {CONVERT.format(folder)}"
        )
    found: Path = resolve("interop", "converted_folder")(folder).model_file
    return found


def refuse_url(path: Path, what: str = "models") -> None:
    """Raises InputError for a path that was meant as a URL; `what` are read from files alone."""
    if url := URL.fullmatch(path.as_posix()):
        raise InputError(
            f"{url[1]}://{url[2]}: this is a URL, and {what} are read from files. Download it, and name the file."
        )


def _meant(path: Path) -> str:
    """What a missing path may have been meant for: a run beside it or in runs/, or a recipe."""
    for folder in dict.fromkeys((path.parent, Path("runs"))):
        runs = [each.name for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []
        if near := suggest(path.name, runs):
            name = near.partition('"')[2].partition('"')[0]
            return f' Did you mean "{folder / name}"?'
    recipe = Path("recipes") / f"{path.name.removesuffix('.toml')}.toml"
    return f" There is a recipe of this name: transduce train {recipe}" if recipe.is_file() else ""


def _is_run(folder: Path) -> bool:
    """Whether a training has begun there, by the names of what it leaves; other folders hold such suffixes, too."""
    return any((folder / name).exists() for name in LEFT)


def check_weights(expected: Mapping[str, Sequence[int]], weights: "Mapping[str, Tensor | TensorInfo]") -> None:
    """Compares a model's weights, name -> shape, with those of a file.

    Raises:
        InputError: weights are missing, unexpected, or have another shape; the message lists the first of them.
    """
    problems = [
        f'weight "{name}" {list(shape)} is missing from the file.'
        for name, shape in expected.items()
        if name not in weights
    ]
    problems += [f'weight "{name}" is in the file, but not in the model.' for name in weights if name not in expected]
    problems += [
        f'weight "{name}" has shape {list(weights[name].shape)} in the file and {list(shape)} in the model.'
        for name, shape in expected.items()
        if name in weights and tuple(weights[name].shape) != tuple(shape)
    ]
    if problems:
        more = [f"and {len(problems) - TOLD} more such weights."] if len(problems) > TOLD else []
        raise InputError(problems[:TOLD] + more)


def check_dtypes(expected: "Mapping[str, Tensor]", weights: "Mapping[str, Tensor | TensorInfo]") -> None:
    """Checks that a file's weights have the model's dtypes. Another dtype could silently round them.

    Raises:
        InputError: some have another dtype; the message names all of them.
    """
    wanted = {name: str(tensor.dtype).removeprefix("torch.") for name, tensor in expected.items()}
    found = {name: _type_of(each) for name, each in weights.items() if name in wanted}
    problems = [
        f'weight "{name}" is {found[name]} in the file and {wanted[name]} in the model: convert it first.'
        for name in found
        if found[name] != wanted[name]
    ]
    if problems:
        raise InputError(problems)


def _type_of(tensor: "Tensor | TensorInfo") -> str:
    return DTYPES[tensor.dtype][0] if isinstance(tensor, TensorInfo) else str(tensor.dtype).removeprefix("torch.")


def _lexicon(path: Path, tensors: "dict[str, Tensor]") -> "tuple[Tensor, Tensor] | None":
    """The lexicon among the tensors, which is removed from them; None if there is none.

    Raises:
        InputError: the lexicon is incomplete or invalid.
    """
    found = {name: tensors.pop(name) for name in LEXICON if name in tensors}
    if not found:
        return None
    problems = [
        f'{path}: damaged: its shortlist is incomplete: "{name}" is missing.' for name in LEXICON if name not in found
    ]
    problems += [
        f'{path}: damaged: "{name}" is {found[name].dtype} {list(found[name].shape)}; expected int32 numbers on '
        f"{axes} axes, each at least {least}."
        for name, axes, least in zip(LEXICON, (2, 1), (-1, 0), strict=True)
        if name in found and not _is_of(found[name], axes, least)
    ]
    if problems:
        raise InputError(problems)
    return found[LEXICON[0]], found[LEXICON[1]]


def _is_of(tensor: "Tensor", axes: int, minimum: int) -> bool:
    is_table = str(tensor.dtype).endswith("int32") and tensor.ndim == axes and 0 not in tensor.shape
    return is_table and int(tensor.min()) >= minimum


def lasting_tensors(model: "nn.Module") -> "dict[str, Tensor]":
    """All tensors that determine the predictions of `model`, by name: parameters and persistent buffers.

    Buffers such as the running statistics of batch norm belong to a model, too. Each tensor is listed once.
    """
    lasting = model.state_dict()
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in lasting}
    return {**dict(model.named_parameters()), **buffers}


def _tied(weights: "Mapping[str, Tensor]") -> dict[str, str]:
    """Name -> the first name (alphabetically) of the very same tensor in memory."""
    first: dict[tuple[Any, ...], str] = {}
    tied: dict[str, str] = {}
    for name in sorted(weights):
        weight = weights[name]
        if weight.numel() == 0:
            continue
        place = (weight.device, weight.data_ptr(), weight.dtype, tuple(weight.shape), weight.stride())
        if first.setdefault(place, name) != name:
            tied[name] = first[place]
    return tied


# ---- what a file says --------------------------------------------------------------------------------------


def naming(tables: Mapping[str, Any]) -> list[Any]:
    """What of a model file's metadata names classes: its config, and the kinds of its columns."""
    return [tables["config"], {side: {"kind": column.get("kind")} for side, column in tables["columns"].items()}]


def parsed_tables(path: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    """The JSON of a model file's metadata. Raises InputError for what is no model file, or a damaged one."""
    _check_format(path, metadata)
    tables: dict[str, Any] = {}
    problems = []
    first_format = metadata["format_version"] == "1"
    for key in TABLES:
        if key == "columns" and first_format:
            continue
        if key not in metadata:
            problems.append(f'{path}: not a whole model file: it has no "{key}".')
            continue
        try:
            tables[key] = (
                table_of_texts(metadata[key]) if key in ("tokenizer", "tied") else table_of_settings(metadata[key])
            )
        except (ValueError, RecursionError) as error:
            problems.append(f'{path}: damaged: its "{key}" {what(error)}.')
    if not all(isinstance(column, dict) for column in tables.get("columns", {}).values()):
        problems.append(f'{path}: damaged: its "columns" are no tables.')
    if problems:
        raise InputError(problems)
    return tables | ({"columns": columns_of_text(tables["tokenizer"])} if first_format else {})


def _check_format(path: Path, metadata: Mapping[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        found = f'says "{metadata["format"]}"' if "format" in metadata else "does not name its format"
        raise InputError(f'{path}: not a Transduce model file: it should say "{FORMAT}", but {found}.')
    version = metadata.get("format_version", "")
    if not re.fullmatch(r"[1-9][0-9]{0,8}", version):
        raise InputError(f'{path}: damaged: its format_version is "{version}", not a number.')
    if int(version) > VERSION:
        raise InputError(
            f"{path}: written by a newer Transduce: format_version {version}, and this one reads up to "
            f"{VERSION}. Upgrade Transduce."
        )
