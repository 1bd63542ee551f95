"""Which code from outside Transduce may be imported: that of files somebody named or vouched for, and no other.

Recipes, model files and run directories name classes as `file:Class`. Importing the file runs it. A recipe that a user
trains is the user's own, so what it names may run. What a model file or a run directory names may come from a stranger:
it needs `trust_code`, on the command line `--trust-code`.

`transduce.core.registry.resolve`, through which every such name passes, imports what was allowed here. What has run
cannot be made undone, so leave lasts as long as the process.
"""

import re
from typing import Any

from transduce.core.earlier_names import EARLIER_NAMES
from transduce.core.errors import InputError

NAMES_A_CLASS = {"kind", "score", "normalizer", "positions", *EARLIER_NAMES}
LOOKS_LIKE_CODE = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")  # my_package.my_file:MyModel
NOT_A_PLAIN_NAME = re.compile(r"[:./\\]")

_allowed: set[str] = set()


def allow_code(config: Any) -> None:
    """Let the files be imported that are named anywhere in `config`, as `file:Class`."""
    _allowed.update(file_of(name) for name in foreign_code(config) if is_class_name(name))


def is_allowed(name: str) -> bool:
    """Whether the class `file:Class` may be imported."""
    return is_class_name(name) and file_of(name) in _allowed


def check_code(config: Any, where: str, trust_code: bool | None) -> None:
    """Whether the code that `config` names may be imported.

    Args:
        config: of a file.
        where: the name of the file, for the message.
        trust_code: True = all of it from now on; False = none; None = what was allowed before, by one's own recipe.

    Raises:
        InputError: it names code that may not.
    """
    if trust_code:
        allow_code(config)
        return
    foreign = [name for name in foreign_code(config) if trust_code is False or not is_allowed(name)]
    if foreign:
        raise InputError(
            f"{where}: this file names code outside Transduce: {', '.join(foreign)}. If you trust whoever made it, "
            "load it with trust_code=True / --trust-code."
        )


def file_of(name: str) -> str:
    """`my_package.my_file` of `my_package.my_file:MyModel`."""
    return name.partition(":")[0]


def is_class_name(name: str) -> bool:
    """Whether it is written as `my_package.my_file:MyModel`."""
    file, _, class_name = name.partition(":")
    return all(part.isidentifier() for part in [*file.split("."), class_name])


def foreign_code(config: Any) -> list[str]:
    """Every text in `config` that could make Transduce import code from outside the package, sorted.

    For keys that name a class, that is anything but a plain name; for other keys, any text like `module:Class`.
    """
    found = set()
    waiting = [(config, False)]  # a list, not recursion: a hostile file may be nested thousands deep
    while waiting:
        value, names_a_class = waiting.pop()
        if isinstance(value, dict):
            waiting += [(below, names_a_class or key in NAMES_A_CLASS) for key, below in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [(below, names_a_class) for below in value]
        elif isinstance(value, str) and (_looks_like_code(value) or (names_a_class and NOT_A_PLAIN_NAME.search(value))):
            found.add(value)
    return sorted(found)


def _looks_like_code(text: str) -> bool:
    return bool(LOOKS_LIKE_CODE.fullmatch(text)) or (":" in text and is_class_name(text))
