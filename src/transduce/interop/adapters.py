"""LoRA adapters in a folder, merged into the weights that they change: W + alpha / r B A (Hu et al. 2021).

    adapter_config.json          settings, as the library peft writes them
    adapter_model.safetensors    base_model.model.NAME.lora_A.weight (r, inputs), .lora_B.weight (outputs, r);
                                 of embeddings lora_embedding_A (r, V) and lora_embedding_B (D, r);
                                 tensors without lora_ stand in the place of the model's own: biases, modules_to_save

With `use_rslora` the factor is alpha / sqrt(r) (Kalajdzievski 2023), with `fan_in_fan_out` W is (inputs, outputs).
Everything else that would change the model, such as DoRA, is refused by name.

Shapes: r rank, V vocabulary, D width.
"""

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.printable import PROBLEMS
from transduce.core.tensor_file import read_tensors
from transduce.interop.import_tokenizer import json_of

SETTINGS, TENSORS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
PATTERN = re.compile(r"\^?[\w.\-]+")  # the names that are understood as a pattern of names
READ = {"peft_type", "r", "lora_alpha", "use_rslora", "fan_in_fan_out", "rank_pattern", "alpha_pattern"}
OF_TRAINING = {
    "alpha",
    "auto_mapping",
    "base_model_name_or_path",
    "bias",
    "ensure_weight_tying",
    "eva_config",
    "exclude_modules",
    "inference_mode",
    "layers_pattern",
    "layers_to_transform",
    "lora_dropout",
    "lora_ga_config",
    "loftq_config",
    "megatron_core",
    "modules_to_save",
    "peft_version",
    "qalora_group_size",
    "revision",
    "runtime_config",
    "target_modules",
    "task_type",
    "velora_config",
}
"""They say which tensors there are, or how they were trained, and the tensors themselves say the rest."""
STARTS = (None, True, False, "gaussian", "eva", "orthogonal")  # those that leave the model's own weights alone
LONGEST_PATH = 1_000  # characters of a path that an adapter names


class Adapter:
    """An adapter's settings and tensors.

    Args:
        folder: with its two files.

    Raises:
        InputError: a file is missing; settings that are not supported. All problems are told at once.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.settings = folder, json_of(folder / SETTINGS)
        if not isinstance(self.settings, dict):
            raise InputError(f"{folder / SETTINGS}: expected a table.")
        problems = [f"{folder / SETTINGS}: {problem}" for problem in self._problems()]
        if not (folder / TENSORS).is_file():
            problems.append(f"{folder}: there is {SETTINGS}, but no {TENSORS}. No other form of an adapter is read.")
        if problems:
            raise InputError(problems)

    @staticmethod
    def lies_in(folder: Path) -> bool:
        return (folder / SETTINGS).is_file()

    @property
    def base(self) -> Path | None:
        """The model that it changes, where that is a folder here."""
        named = self.settings.get("base_model_name_or_path")
        if not isinstance(named, str) or not named or len(named) > LONGEST_PATH:
            return None
        return next((each for each in (self.folder / named, Path(named)) if (each / "config.json").is_file()), None)

    def merged(self, found: dict[str, Tensor]) -> dict[str, Tensor]:
        """A model's tensors with the adapter's changes.

        Raises:
            InputError: a tensor of the adapter belongs to none of the model's, or is not understood.
        """
        tensors = {
            name: tensor.float() for name, tensor in read_tensors(self.folder / TENSORS, verify=False)[0].items()
        }
        problems, changed = list[str](), dict(found)
        for name, (module, kind) in sorted((name, _parts(name)) for name in tensors):
            if kind in ("lora_B.weight", "lora_embedding_B"):
                continue  # with its A
            if kind in ("lora_A.weight", "lora_embedding_A"):
                problem = self._add(changed, tensors, name, module, embeds=kind == "lora_embedding_A")
            else:
                problem = self._replace(changed, tensors[name], name, module, kind)
            problems += [problem] if problem else []
        if lonely := [name for name in tensors if ".lora_" in name and _twin(name) not in tensors]:
            problems.append(f'"{lonely[0]}" lacks "{_twin(lonely[0])}".')
        if problems:
            raise InputError(f"{self.folder / TENSORS}: {problem}" for problem in problems[:PROBLEMS])
        return changed

    def _problems(self) -> Iterator[str]:
        table = self.settings
        if table.get("peft_type") != "LORA":
            yield f'peft_type: only "LORA" can be merged; got {table.get("peft_type")!r:.80}.'
            return
        if table.get("init_lora_weights") not in STARTS:
            yield (
                f"init_lora_weights = {table['init_lora_weights']!r:.80}: it changes the model's own weights as well, "
                "which are not here. Merge it with peft (merge_and_unload), and convert what that saves."
            )
        known = {*READ, *OF_TRAINING, "init_lora_weights"}
        for key, value in sorted(table.items()):
            if key not in known and value not in (None, False, {}, []):
                yield f"{key} = {value!r:.80}: this is not supported; only plain LoRA is merged."
        for key in ("rank_pattern", "alpha_pattern"):
            patterns = table.get(key) or {}
            if not isinstance(patterns, dict) or not all(map(_is_finite, patterns.values())):
                yield f"{key}: expected an object of names and numbers; got {patterns!r:.80}."
                continue
            for pattern in patterns:
                if not PATTERN.fullmatch(pattern):
                    yield f"{key}: {pattern!r:.80}: only names and ends of names are understood, not patterns."
        if not _is_finite(table.get("lora_alpha")) or type(table.get("r")) is not int or table["r"] < 1:
            yield f"lora_alpha and r: expected numbers; got {table.get('lora_alpha')!r:.40} and {table.get('r')!r:.40}."
        for key in ("use_rslora", "fan_in_fan_out"):
            if table.get(key) not in (None, True, False):
                yield f"{key}: expected true or false; got {table[key]!r:.80}."
        if not isinstance(table.get("modules_to_save") or [], list):
            yield f"modules_to_save: expected a list of names; got {table['modules_to_save']!r:.80}."

    def _scale(self, module: str, rank: int) -> float:
        """The factor of B A; a pattern names a module, or how its name ends."""
        patterns = self.settings.get("alpha_pattern") or {}
        own = [value for pattern, value in patterns.items() if _names(pattern, module)]
        alpha = float(own[0] if own else self.settings["lora_alpha"])
        return alpha / (math.sqrt(rank) if self.settings.get("use_rslora") else rank)

    def _add(
        self, changed: dict[str, Tensor], tensors: Mapping[str, Tensor], name: str, module: str, embeds: bool
    ) -> str | None:
        """Adds B A to a weight; what is wrong with them."""
        down, up = tensors[name], tensors.get(_twin(name))
        if up is None:
            return None  # told already
        if down.ndim != 2 or up.ndim != 2 or down.shape[0] != up.shape[1] or not down.shape[0]:
            return f'"{name}": expected matrices (r, inputs) and (outputs, r); got {[*down.shape]} and {[*up.shape]}.'
        key = _found(changed, f"{module}.weight")
        if key is None:
            return f'"{name}": the model has no "{module}.weight".'
        delta = self._scale(module, down.shape[0]) * (up @ down)
        delta = delta.T if embeds or self.settings.get("fan_in_fan_out") else delta
        if embeds and _is_shared(changed, module):
            return (
                f'"{name}": the model\'s output has the same matrix, which peft leaves as it is; this is not supported.'
            )
        if delta.shape != changed[key].shape:
            return f'"{name}": it changes {[*delta.shape]} numbers; "{key}" has {[*changed[key].shape]}.'
        changed[key] = changed[key] + delta
        return None

    def _replace(self, changed: dict[str, Tensor], tensor: Tensor, name: str, module: str, kind: str) -> str | None:
        """Puts a whole tensor in the place of the model's, or beside them; what is wrong with it."""
        if "lora_" in kind or "magnitude" in kind:
            return f'"{name}": this is not supported; only plain LoRA is merged.'
        key = _found(changed, f"{module}.{kind}")
        saved = self.settings.get("modules_to_save") or []
        if key is None and module.rpartition(".")[2] in saved:
            changed[f"{module}.{kind}"] = tensor  # such as a head that the model lacks
            return None
        if key is not None and _is_shared(changed, module):
            return (
                f'"{name}": the model\'s output has the same matrix, which peft leaves as it is; this is not supported.'
            )
        if key is None or changed[key].shape != tensor.shape:
            return f'"{name}": the model has no "{module}.{kind}" of its shape, {[*tensor.shape]}.'
        changed[key] = tensor
        return None


def _parts(name: str) -> tuple[str, str]:
    """The module that a tensor belongs to, and what of it it is."""
    name = name.removeprefix(PREFIX).replace(".modules_to_save.default", "").replace(".base_layer", "")
    for kind in ("lora_A.weight", "lora_B.weight", "lora_embedding_A", "lora_embedding_B"):
        if name.endswith(f".{kind}"):
            return name.removesuffix(f".{kind}"), kind
    if (place := name.find(".lora_")) >= 0:
        return name[:place], name[place + 1 :]
    module, _, kind = name.rpartition(".")
    return module, kind


def _twin(name: str) -> str:
    """The other one of A and B."""
    first = "lora_embedding_" if "lora_embedding_" in name else "lora_"
    one, other = (f".{first}{letter}" for letter in ("AB" if f".{first}A" in name else "BA"))
    return name.replace(one, other)


def _found(tensors: Mapping[str, Tensor], name: str) -> str | None:
    """The model's own name for a tensor: files of a bare model lack the first part of the name, or have one more."""
    if name in tensors:
        return name
    shorter = name.partition(".")[2]
    longer = [each for each in tensors if each.partition(".")[2] == name]
    return shorter if shorter in tensors else longer[0] if len(longer) == 1 else None


def _is_shared(tensors: Mapping[str, Tensor], module: str) -> bool:
    """Whether an embedding is the output's matrix as well."""
    last = module.rpartition(".")[2]
    return last == "shared" or (last in ("embed_tokens", "wte") and "lm_head.weight" not in tensors)


def _names(pattern: str, module: str) -> bool:
    """As peft's patterns do: the whole name, or what stands behind a point of it."""
    if pattern.startswith("^"):
        return module == pattern[1:]
    return module == pattern or module.endswith(f".{pattern}")


def _is_finite(value: object) -> bool:
    """Whether it is a number that a weight can be multiplied by."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e30
