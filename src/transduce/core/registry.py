"""A name is a file name: `transformer` in the room `models` is the class `Transformer` of `models/transformer.py`.

Where a room is one file, as `attention.scores` is, a name is a class of it: `scaled_dot` is the class `ScaledDot`.

There is no registry. `my_package.my_file:MyModel` names a user's own class. What a model file may name is
narrower: see `transduce.core.model_file`.
"""

import ast
import difflib
import importlib
import pkgutil
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError

NOT_A_KIND = {"inputs", "protocols", "tokenizers"}


@cache
def known(room: str) -> tuple[str, ...]:
    """The names that `room` offers, from its file names alone, or from its text: nothing of it is imported."""
    folder = Path(__file__).parents[1] / room.replace(".", "/")
    if not folder.is_dir():
        return tuple(_classes_in(folder.with_suffix(".py")))
    return tuple(sorted(m.name for m in pkgutil.iter_modules([str(folder)]) if m.name not in NOT_A_KIND))


def suggest(wrong: str, right: Sequence[str]) -> str:
    """` Did you mean "x"?`, or nothing when no name is near."""
    near = difflib.get_close_matches(wrong, right, n=1, cutoff=0.5)
    return f' Did you mean "{near[0]}"?' if near else ""


def resolve(room: str, name: str) -> Any:
    """The class that `name` stands for in `room`.

    Raises:
        InputError: no such file, or no such class in it; the nearest name is suggested.
    """
    if ":" in name:
        return _users_own(room, name)
    names = known(room)
    if name not in names:
        raise InputError(
            f'{room}: there is no "{name}".{suggest(name, names)} '
            f"Known: {', '.join(names)}; or name your own class as my_package.my_file:MyClass."
        )
    in_a_file = not hasattr(importlib.import_module(f"transduce.{room}"), "__path__")
    module = importlib.import_module(f"transduce.{room}" if in_a_file else f"transduce.{room}.{name}")
    return getattr(module, name.title().replace("_", ""))


def check(room: str, name: str) -> str:
    """`name` itself, for a config to use as a validator: a name that the room knows, or a user's own class.

    Raises:
        ValueError: the room has no such name; the nearest is suggested.
    """
    if ":" not in name and name not in known(room):
        raise ValueError(f'there is no "{name}".{suggest(name, known(room))} Known: {", ".join(known(room))}')
    return name


def _classes_in(file: Path) -> list[str]:
    """The classes of a file that stand on one of its own, which is what they have in common, in snake case."""
    classes = [node for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
    own = {each.name for each in classes}
    public = [each.name for each in classes if any(getattr(base, "id", None) in own for base in each.bases)]
    return sorted(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in public if not name.startswith("_"))


def _users_own(room: str, name: str) -> Any:
    module_name, _, class_name = name.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), class_name]):
        raise InputError(f'{room}: "{name}" does not name a class; expected my_package.my_file:MyClass.')
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise InputError(f'{room}: "{name}" cannot be imported: {error}.') from error
    if not hasattr(module, class_name):
        raise InputError(f'{room}: "{module_name}" has no class "{class_name}".')
    return getattr(module, class_name)
