"""Options of a command for the keys of search, made of `transduce.search.keys`."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Literal, Optional

import typer

from transduce.search.keys import KEYS, SearchKey

OPTIONS = {(key.flag or name).replace("-", "_"): name for name, key in KEYS.items() if key.help}
"""Argument of a command -> the key that it sets."""


def with_search_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each key that has one, in the place of its argument `asked`.

    The command gets `asked`: the values by key; None = not given.
    """
    signature = inspect.signature(command)
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        parameters += _parameters() if name == "asked" else [parameter]

    @wraps(command)
    def with_options(**given: Any) -> None:
        asked = {key: given.pop(name) for name, key in OPTIONS.items()}
        command(asked=asked, **given)

    with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": None}
    return with_options


def _parameters() -> list[inspect.Parameter]:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [
        inspect.Parameter(name, kind, default=None, annotation=option_of(KEYS[key])) for name, key in OPTIONS.items()
    ]


def option_of(key: SearchKey) -> Any:
    """The type of a command's argument for a key, with its help."""
    kind = Literal[key.kind] if isinstance(key.kind, tuple) else key.kind
    return Annotated[Optional[kind], typer.Option(help=key.help)]  # noqa: UP045
