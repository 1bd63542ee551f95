"""Classes by file name: `transformer` in `models` is the class `Transformer` of `models/transformer.py`.

In a package that is a single file, such as `attention.scores`, a name is a class of it: `scaled_dot` is `ScaledDot`.

Nothing has to be registered. `my_package.my_file:MyModel` names a user's own class, `my_file:my_metric` a user's own
metric, where `transduce.core.trust` allows that.
"""

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.trust import is_allowed, is_class_name

NEEDED = {  # what a class of one's own has, by the room that it could lie in
    "tasks": ("Config", "Data", "kinds", "learn_columns", "open", "objective", "predictor"),
    "models": ("Config", "named_parameters"),
    "attention.scores": ("keys", "sequential", "named_parameters"),
    "attention.normalizers": ("sequential", "named_parameters"),
    "attention.relative": ("shared", "turn", "named_parameters"),
    "layers.recurrent": ("gates", "begin", "named_parameters"),
    "data.columns": ("from_dict", "to_dict"),
    "data.formats": ("columns", "rows"),
    "interpret": ("of",),
}
EXPECTED = "a class; expected my_package.my_file:MyClass"
FUNCTIONS = {"metrics"}  # rooms of functions: what is named there is no class
NOT_A_KIND = {"base", "encoding_processes", "column_cache", "packed", "protocols"}


@cache
def known(room: str) -> tuple[str, ...]:
    """The names in the package or module `room`, read from its file names or its source text without importing it."""
    folder = Path(__file__).parents[1] / room.replace(".", "/")
    if not folder.is_dir():
        return tuple(_classes_in(folder.with_suffix(".py")))
    return tuple(sorted(m.name for m in pkgutil.iter_modules([str(folder)]) if m.name not in NOT_A_KIND))


def suggest(wrong: str, right: Sequence[str]) -> str:
    """` Did you mean "x"?`, or an empty text if no name is similar."""
    import difflib  # late: errors alone need it

    near = difflib.get_close_matches(wrong, right, n=1, cutoff=0.5)
    return f' Did you mean "{near[0]}"?' if near else ""


def resolve(room: str, name: str) -> Any:
    """The class with this name in the package or module `room`; in a room of functions, the function.

    Raises:
        InputError: there is no such file or class, which the message says with the nearest name; or it is outside of
            Transduce, and was not allowed.
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
    """Returns `name` if it is known in `room` or names a user's own class; a validator for configs.

    Raises:
        ValueError: the name is unknown; the message suggests the nearest one.
    """
    if ":" not in name and name not in known(room):
        raise ValueError(f'there is no "{name}".{suggest(name, known(room))} Known: {", ".join(known(room))}')
    return name


def _classes_in(file: Path) -> list[str]:
    """The classes of a file that derive from a base class in the same file, in snake case."""
    classes = [node for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
    own = {each.name for each in classes}
    public = [each.name for each in classes if any(getattr(base, "id", None) in own for base in each.bases)]
    return sorted(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in public if not name.startswith("_"))


def _users_own(room: str, name: str) -> Any:
    if not is_class_name(name):
        wanted = "a function; expected my_file:my_metric" if room in FUNCTIONS else EXPECTED
        raise InputError(f'{room}: "{name}" does not name {wanted}.')
    if not is_allowed(name):
        raise InputError(f'{room}: "{name}" is code outside Transduce, which needs trust_code=True / --trust-code.')
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module_name, _, class_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise InputError(f'{room}: "{name}" cannot be imported: {error}.') from error
    if not hasattr(module, class_name):
        what = "function" if room in FUNCTIONS else "class"
        raise InputError(f'{room}: "{module_name}" has no {what} "{class_name}".')
    return _of_the_sort(room, name, getattr(module, class_name))


def _of_the_sort(room: str, name: str, found: Any) -> Any:
    if room in FUNCTIONS:
        return _function(room, name, found)
    if not isinstance(found, type):
        raise InputError(f'{room}: "{name}" is no class, but a {type(found).__name__}.')
    if missing := [each for each in NEEDED.get(room, ()) if not _has(found, each)]:
        raise InputError(f'{room}: "{name}" is another kind of class: it has no {" and no ".join(missing)}.')
    return found


def _function(room: str, name: str, found: Any) -> Any:
    if isinstance(found, type) or not callable(found):
        raise InputError(f'{room}: "{name}" is no function, but a {type(found).__name__}.')
    return found


def _has(found: type, name: str) -> bool:
    """Whether a class has this attribute, not only a base that asks for it; one called as a section is settings."""
    value = getattr(found, name, None)
    if name in ("Config", "Data"):
        return hasattr(value, "model_validate")
    return value is not None and not getattr(value, "__isabstractmethod__", False)
