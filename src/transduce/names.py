"""A name is a file name: `transformer` in the room `models` is the class `Transformer` of `models/transformer.py`.

There is no registry. `my_package.my_file:MyModel` names a user's own class. What a model file may name is
narrower: see `transduce.model_file`.
"""

import difflib
import importlib
import pkgutil
import sys
from pathlib import Path
from typing import Any

from transduce.errors import InputError

NOT_A_KIND = {"protocols", "tokenizers"}


def known(room: str) -> list[str]:
    """The names that `room` offers, from its file names alone: nothing is imported but the (empty) room."""
    folder = Path(__file__).parent / room
    return sorted(m.name for m in pkgutil.iter_modules([str(folder)]) if m.name not in NOT_A_KIND)


def suggest(wrong: str, right: list[str]) -> str:
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
    module = importlib.import_module(f"transduce.{room}.{name}")
    return getattr(module, name.title().replace("_", ""))


def _users_own(room: str, name: str) -> Any:
    module_name, _, class_name = name.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), class_name]):
        raise InputError(f'{room}: "{name}" does not name a class; my_package.my_file:MyClass is wanted.')
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
