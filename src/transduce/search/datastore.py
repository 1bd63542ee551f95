"""A datastore: the decoder's states over the targets of a translation memory, and the tokens that follow them.

It is the external memory of nearest neighbor machine translation (Khandelwal et al. 2021, section 2; the search with
it is `transduce.search.knn`). The states are those of one model, which the file names by a fingerprint.

The file is a safetensors file with a checksum, as model files are:

| tensor | contents |
|---|---|
| `keys` | fp16 (N, D): the state that predicts a target token, before the output layer |
| `values` | int32 (N,): this token |
| `pairs`, `positions` | int32 (N,): which pair of the memory it is from, and its place in the target, both from 0 |
| `sources`, `targets` | uint8: the texts of all P pairs in UTF-8, one after the other |
| `source_ends`, `target_ends` | int64 (P,): the byte at which each text ends |
| `numbers` | int64 (P,): the number of each pair in the file that the memory was read from, counted from 1 |

Its metadata has `format`, `format_version`, and as JSON `model`, `settings` and `facts`.

Shapes: N entries, D width, P pairs.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from pydantic import Field, ValidationError
from torch import Tensor, nn

from transduce.core.bounded_json import table_of_settings, what
from transduce.core.config import Config
from transduce.core.config_errors import explain
from transduce.core.errors import InputError
from transduce.core.model_file import lasting_tensors
from transduce.core.tensor_file import canonical_json, read_header, read_tensors, write_tensors

FORMAT = "transduce-datastore"
VERSION = 1
BUILD = "transduce datastore build MODEL MEMORY"
ENTRIES = {
    "keys": (torch.float16, 2),
    "values": (torch.int32, 1),
    "pairs": (torch.int32, 1),
    "positions": (torch.int32, 1),
}
TEXTS = ("sources", "targets")
CHECKED = 65_536  # keys that are looked at together


class KnnSettings(Config):
    """How search uses a datastore; see `transduce.search.knn`."""

    k: int = Field(default=8, ge=1, le=1024)
    """Number of nearest entries that are read for each token."""
    weight: float = Field(default=0.5, ge=0, lt=1)
    """Greatest weight of the memory beside the model."""
    temperature: float = Field(default=10.0, gt=0)
    """Squared distances are divided by this before the softmax."""
    distance: float | None = Field(default=None, gt=0)
    """Squared distance of the nearest entry at which the memory's weight becomes 0. Unset: the weight is the same at
    any distance, as in the paper."""

    def changed(self, asked: Mapping[str, Any]) -> Self:
        """With these keys in place of its own. Raises InputError for keys or values that cannot be."""
        return type(self).parsed({**self.model_dump(), **asked})

    @classmethod
    def parsed(cls, table: Mapping[str, Any]) -> Self:
        """Raises InputError for keys or values that cannot be."""
        try:
            return cls.model_validate(dict(table))
        except ValidationError as error:
            raise InputError(explain(error, cls, "knn")) from None


class ModelIdentity(NamedTuple):
    """Which model the states are of: its name, and a fingerprint of its weights and of what it reads and writes."""

    name: str
    fingerprint: str


class PackedTexts(Sequence[str]):
    """Texts in one array of bytes.

    Args:
        data: uint8, the texts in UTF-8, one after the other.
        ends: int64 (P,), where each ends.
    """

    def __init__(self, data: Tensor, ends: Tensor) -> None:
        self.data, self.ends = data, ends
        self._bytes = data.numpy().tobytes()
        self._ends = [0, *ends.tolist()]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Self:
        """These texts."""
        encoded = [text.encode() for text in texts]
        data = torch.frombuffer(bytearray(b"".join(encoded)) or bytearray(1), dtype=torch.uint8)
        ends = torch.tensor([len(each) for each in encoded], dtype=torch.int64).cumsum(0)
        return cls(data[: int(ends[-1]) if len(ends) else 0], ends)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError(place)
        return self._bytes[self._ends[place] : self._ends[place + 1]].decode("utf-8", "replace")


@dataclass(frozen=True)
class Datastore:
    """The contents of a datastore; see the table above.

    model: whose states these are. settings: how search uses it by default. facts: what was told when it was built.
    """

    keys: Tensor
    values: Tensor
    pairs: Tensor
    positions: Tensor
    sources: PackedTexts
    targets: PackedTexts
    numbers: Tensor
    model: ModelIdentity
    settings: KnnSettings = field(default_factory=KnnSettings)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def width(self) -> int:
        """D."""
        return self.keys.shape[1]

    @cached_property
    def largest_value(self) -> int:
        """The greatest token id."""
        return int(self.values.max()) if len(self) else 0


def identity_of(model: nn.Module, name: str, tokenizers: Mapping[str, str]) -> ModelIdentity:
    """What tells a model from others.

    Args:
        tokenizers: by side, each as text.
    """
    digest = hashlib.sha256()
    for name_of_weight, weight in sorted(lasting_tensors(model).items()):
        plain = weight.detach().cpu().contiguous()
        digest.update(f"{name_of_weight} {plain.dtype} {tuple(plain.shape)}\n".encode())
        digest.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    digest.update(canonical_json(dict(tokenizers)).encode())
    return ModelIdentity(name, digest.hexdigest())


def save_datastore(path: str | os.PathLike[str], store: Datastore) -> None:
    """Writes a datastore atomically. Equal content gives equal bytes.

    Raises:
        TransduceError: the system could not write it; the old file is unchanged.
    """
    tensors = {name: getattr(store, name) for name in (*ENTRIES, "numbers")}
    for side in TEXTS:
        texts: PackedTexts = getattr(store, side)
        tensors |= {side: texts.data, f"{side[:-1]}_ends": texts.ends}
    tables = {"model": store.model._asdict(), "settings": store.settings.model_dump(), "facts": dict(store.facts)}
    metadata = {name: canonical_json(table) for name, table in tables.items()}
    write_tensors(path, tensors, {"format": FORMAT, "format_version": str(VERSION), **metadata})


def load_datastore(path: str | os.PathLike[str]) -> Datastore:
    """Reads a datastore, and verifies its checksum.

    Raises:
        InputError: it is missing, no datastore, newer than this Transduce, or damaged.
    """
    path = Path(path)
    tables = _tables(path, read_header(path).metadata)  # a wrong file is refused before its keys are read
    tensors, metadata = read_tensors(path)
    tables = _tables(path, metadata)
    _check_tensors(path, tensors)
    texts: dict[str, Any] = {side: PackedTexts(tensors[side], tensors[f"{side[:-1]}_ends"]) for side in TEXTS}
    model = tables["model"]
    if not all(isinstance(model.get(key), str) for key in ModelIdentity._fields):
        raise InputError(f'{path}: damaged: its "model" has no name and fingerprint.')
    try:
        settings = KnnSettings.parsed(tables["settings"])
    except InputError as error:
        raise InputError(f"{path}: damaged: {problem}" for problem in error.problems) from None
    identity = ModelIdentity(model["name"], model["fingerprint"])
    entries: dict[str, Any] = {name: tensors[name] for name in (*ENTRIES, "numbers")}
    return Datastore(**entries, **texts, model=identity, settings=settings, facts=tables["facts"])


def read_facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a datastore says of itself, without its entries: entries, pairs, width, model, settings, facts.

    Raises:
        InputError: as `load_datastore`; the checksum is not verified.
    """
    path = Path(path)
    header = read_header(path)
    tables = _tables(path, header.metadata)
    if missing := [name for name in ("keys", "source_ends") if name not in header.tensors]:
        raise InputError(f'{path}: damaged: "{name}" is missing.' for name in missing)
    entries, width = header.tensors["keys"].shape
    return {"entries": entries, "pairs": header.tensors["source_ends"].shape[0], "width": width, **tables}


def _tables(path: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    if metadata.get("format") != FORMAT:
        found = f'says "{metadata["format"]}"' if "format" in metadata else "does not name its format"
        raise InputError(f'{path}: not a datastore: it should say "{FORMAT}", but {found}. Make one: {BUILD}')
    version = metadata.get("format_version", "")
    if not version.isdecimal() or len(version) > 9:
        raise InputError(f'{path}: damaged: its format_version is "{version}", not a number.')
    if int(version) > VERSION:
        raise InputError(
            f"{path}: written by a newer Transduce: format_version {version}, and this one reads up to {VERSION}. "
            "Upgrade Transduce."
        )
    tables, problems = {}, []
    for key in ("model", "settings", "facts"):
        try:
            tables[key] = table_of_settings(metadata.get(key, ""))
        except (ValueError, RecursionError) as error:
            problems.append(f'{path}: damaged: its "{key}" {what(error)}.')
    if problems:
        raise InputError(problems)
    return tables


def _check_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Raises InputError where tensors are missing, of other shapes, or point outside of the others."""
    wanted = ENTRIES | dict.fromkeys(TEXTS, (torch.uint8, 1))
    wanted |= dict.fromkeys(("numbers", *(f"{side[:-1]}_ends" for side in TEXTS)), (torch.int64, 1))
    problems = [
        f'{path}: damaged: "{name}" should be {dtype} on {axes} axes.'
        for name, (dtype, axes) in wanted.items()
        if name not in tensors or tensors[name].dtype is not dtype or tensors[name].ndim != axes
    ]
    if problems:
        raise InputError(problems)
    entries, pairs = len(tensors["keys"]), len(tensors["source_ends"])
    if any(len(tensors[name]) != entries for name in ENTRIES) or any(
        len(tensors[name]) != pairs for name in ("target_ends", "numbers")
    ):
        problems.append(f"{path}: damaged: its tensors have different lengths.")
    elif not entries or not tensors["keys"].shape[1]:
        problems.append(f"{path}: damaged: it has no entries.")
    else:
        problems += [f"{path}: damaged: {each}." for each in _wrong_numbers(tensors, pairs)]
    if problems:
        raise InputError(problems)


def _wrong_numbers(tensors: Mapping[str, Tensor], pairs: int) -> list[str]:
    wrong = [name for name in ("values", "positions", "pairs") if int(tensors[name].min()) < 0]
    if int(tensors["pairs"].max()) >= pairs:
        wrong.append("pairs")
    for side in TEXTS:
        ends, size = tensors[f"{side[:-1]}_ends"], len(tensors[side])
        if not pairs or int(ends[0]) < 0 or bool((ends.diff() < 0).any()) or int(ends[-1]) != size:
            wrong.append(f"{side[:-1]}_ends")
    found = [f'"{name}" has numbers that cannot be' for name in dict.fromkeys(wrong)]
    if not all(bool(part_ND.isfinite().all()) for part_ND in torch.split(tensors["keys"], CHECKED)):
        found.append('"keys" has numbers that are not finite')
    return found
