"""A folder of Hugging Face, read without its library and without pickle: settings, and tensors of safetensors files.

Everything that a file says of sizes is checked before memory is taken: JSON is bounded, a header of tensors is compared
with its file, and a number of layers with the number of tensors.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.printable import PROBLEMS, listed
from transduce.core.tensor_file import read_header, read_tensors
from transduce.interop.adapters import Adapter
from transduce.interop.ctranslate2_weights import ctranslate2_specification
from transduce.interop.import_tokenizer import json_of

GENERATION = "generation_config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
TO_SAFETENSORS = (
    "python -c \"from transformers import AutoModelForSeq2SeqLM as M; M.from_pretrained('{folder}')"
    ".save_pretrained('{folder}-safetensors')\""
)
OF_ADAPTERS = re.compile(r"adapter_config\.json|adapter_model\.safetensors|README.*|LICENSE.*|\..*")
UNDERSTOOD = re.compile(
    OF_ADAPTERS.pattern
    + r"|(generation_|tokenizer_|preprocessor_|processor_)?config\.json|tokenizer\.json|config_sentence_"
    r"transformers\.json|sentence_bert_config\.json|modules\.json|special_tokens_map\.json|added_tokens\.json|normalizer\.json"
    r"|model(-\d+-of-\d+)?\.safetensors(\.index\.json)?|(target_)?vocab\.(json|txt)|merges\.txt|chat_template\.\w+"
    r"|(source|target|spiece|sentencepiece(\.bpe)?|spm)\.(spm|model)|1_Pooling/|target/|2_Normalize/|NOTICE.*|USE_POLICY.*"
)
"""Names of files and folders that are read, that repeat what is read, or that are for people."""
MOST = 100_000_000  # bytes of an index of tensors
FP32 = 4  # bytes a weight


class ForeignFolder:
    """The settings of a model of Hugging Face; its tensors are read by `tensors`.

    An adapter beside the model is merged, as transformers does where peft is installed.

    Args:
        adapter: a folder with an adapter of this model; None = there is none elsewhere.

    Raises:
        InputError: the folder has no `config.json`, or no safetensors file; the adapter cannot be merged.
    """

    def __init__(self, path: Path, adapter: Path | None = None) -> None:
        self.path = path
        adapter = adapter or (path if Adapter.lies_in(path) else None)
        self.adapter = Adapter(adapter) if adapter else None
        self.config = self._table("config.json")
        self.has_generation = (path / GENERATION).is_file()
        self.generation = self._table(GENERATION) if self.has_generation else {}
        self.tokenizer = self._table("tokenizer_config.json") if (path / "tokenizer_config.json").is_file() else {}
        self.files = list(self._weight_files())

    def get(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """A setting. Raises InputError where it is not of this kind, or is missing and has no default."""
        value = self.config.get(key)
        value = default if value is None else value
        if value is None or not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise InputError(f"{self.path / 'config.json'}: {key}: expected {_kind_name(kind)}; got {value!r:.80}.")
        return value

    def size(self, key: str, default: int | None = None) -> int:
        """A setting that is a number of at least 1."""
        value: int = self.get(key, int, default)
        if value < 1:
            raise InputError(f"{self.path / 'config.json'}: {key}: expected at least 1; got {value}.")
        return value

    def layers(self, key: str, default: int | None = None) -> int:
        """A number of layers, which have a tensor each at least."""
        value, most = self.size(key, default), sum(len(read_header(file).tensors) for file in self.files)
        if value > most:
            raise InputError(f"{self.path / 'config.json'}: {key} = {value}, but there are {most} tensors.")
        return value

    def generated(self, key: str) -> Any:
        """A setting of generation, of either file; None = neither has it."""
        value = self.generation.get(key)
        return self.config.get(key) if value is None else value

    def generation_setting(self, key: str) -> Any:
        """The same as transformers reads it: of `config.json` only where there is no `generation_config.json`."""
        return (self.generation if self.has_generation else self.config).get(key)

    def token(self, key: str, strict: bool = False) -> int | None:
        """The id in a setting of generation; of several the first. Raises InputError where it is no id.

        strict: read as by `generation_setting`.
        """
        value = self.generation_setting(key) if strict else self.generated(key)
        value = value[0] if isinstance(value, list) and value else value
        if value is None:
            return None
        if type(value) is not int or value < 0:
            raise InputError(f"{self.path}: {key}: expected the id of a token; got {value!r:.80}.")
        return value

    def tensors(self) -> "ForeignTensors":
        """All of them, in fp32. Raises InputError where they take more than half of the memory."""
        check_memory(self)
        found: dict[str, Tensor] = {}
        for file in self.files:
            for name, tensor in read_tensors(file, verify=False)[0].items():
                found[name] = tensor.float() if tensor.is_floating_point() else tensor
        return ForeignTensors(self.path, self.adapter.merged(found) if self.adapter else found)

    @property
    def adapter_folder(self) -> Path | None:
        """Of the adapter that is merged; None = there is none."""
        return self.adapter.folder if self.adapter else None

    def notes(self) -> Iterator[str]:
        """What is to be told of the folder: an adapter, and files that nothing here reads."""
        if self.adapter:
            yield f"the adapter in {self.adapter.folder.name} was merged into the weights."
        for folder in dict.fromkeys([self.path, *([self.adapter.folder] if self.adapter else [])]):
            names = sorted(each.name + "/" * each.is_dir() for each in folder.iterdir())
            own = folder != self.path
            left = [name for name in names if not (OF_ADAPTERS if own else UNDERSTOOD).fullmatch(name)]
            if left:
                yield f"not read in {folder.name}: {listed(left)}."

    def _table(self, name: str) -> dict[str, Any]:
        table = json_of(self.path / name, MOST)
        if not isinstance(table, dict):
            raise InputError(f"{self.path / name}: expected a table.")
        return table

    def _weight_files(self) -> Iterator[Path]:
        if (self.path / WEIGHTS).is_file():
            yield self.path / WEIGHTS
            return
        if (self.path / INDEX).is_file():
            index = self._table(INDEX).get("weight_map")
            names = set(index.values()) if isinstance(index, dict) else set()
            if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
                raise InputError(f"{self.path / INDEX}: expected a weight_map, with names of files in this folder.")
            yield from (self.path / name for name in sorted(names))
            return
        if spec := ctranslate2_specification(self.path / "model.bin"):
            raise InputError(
                f"{self.path}: this is a model of CTranslate2 ({spec}), which is not read here. Convert the folder of "
                "Hugging Face that it was made from."
            )
        pickled = sorted(file.name for pattern in PICKLES for file in self.path.glob(pattern))
        if pickled:
            raise InputError(
                f"{self.path / pickled[0]}: this is a pickle, and opening one can run code, so Transduce never does. "
                "Convert it where you trust it, with the library transformers (which copies no tokenizer): "
                + TO_SAFETENSORS.format(folder=str(self.path).rstrip("/"))
            )
        raise InputError(f"{self.path}: there is no {WEIGHTS}.")


def check_memory(folder: ForeignFolder) -> None:
    """Raises InputError where the weights in fp32 take more than half of the memory."""
    headers = (read_header(file).tensors.values() for file in folder.files)
    count = sum(torch.Size(each.shape).numel() for tensors in headers for each in tensors)
    there = psutil.virtual_memory().total
    if count * FP32 > there / 2:
        raise InputError(
            f"{folder.path}: {count / 1e9:.1f} billion weights need {count * FP32 / 1e9:.0f} GB in fp32, and as much "
            f"again while they are converted; this machine has {there / 1e9:.0f} GB."
        )


def _kind_name(kind: type | tuple[type, ...]) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    names = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a text",
        list: "a list",
        dict: "a table",
    }
    return " or ".join(dict.fromkeys(names.get(each, each.__name__) for each in kinds))


class ForeignTensors:
    """Tensors by their names, each of which is taken once, so that none is forgotten."""

    def __init__(self, path: Path, found: Mapping[str, Tensor]) -> None:
        self.path, self._found, self._taken = path, dict(found), set[str]()
        self._missing: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def count(self, prefix: str) -> int:
        """How many layers there are, which are numbered behind `prefix`."""
        numbers = {name.removeprefix(prefix).partition(".")[0] for name in self._found if name.startswith(prefix)}
        return len(numbers)

    def take(self, *names: str) -> Tensor:
        """The first of these that there is. A missing one is told by `finish`, and an empty tensor stands for it."""
        for name in names:
            if name in self._found:
                self._taken.add(name)
                return self._found[name]
        self._missing.append(names[0])
        return Tensor()

    def names(self) -> list[str]:
        """Of all tensors, in order."""
        return sorted(self._found)

    def add(self, name: str, tensor: Tensor) -> None:
        """A tensor that the folder leaves out, as it is always the same."""
        self._found[name] = tensor

    def spare(self, *names: str) -> None:
        """These say again what another tensor says, where they are there."""
        self._taken.update(names)

    def left(self) -> list[str]:
        """The names of those that were not taken, in order; missing ones are refused.

        Raises:
            InputError: tensors are missing.
        """
        self.finish(spare=tuple(self._found))
        return sorted(set(self._found) - self._taken)

    def finish(self, spare: Sequence[str] = ()) -> None:
        """Raises InputError where tensors are missing, or where some were not taken; spare: those that need not be."""
        left = sorted(set(self._found) - self._taken - set(spare))
        problems = [f'{self.path}: the tensor "{name}" is missing.' for name in self._missing]
        problems += [f'{self.path}: nothing is known of the tensor "{name}".' for name in left]
        if problems:
            more = [f"and {len(problems) - PROBLEMS:,} more."] if len(problems) > PROBLEMS else []
            raise InputError(problems[:PROBLEMS] + more)
