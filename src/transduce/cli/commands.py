"""Commands by their names. The file of a command is imported when the command is asked for, and no other.

The command `translate-back` is the function `translate_back` of `transduce.cli.translate_back`, and its docstring is
its help. A module may have commands of its own in `VERBS`; its function's docstring then is the help of all.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from inspect import cleandoc
from types import CodeType
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from transduce.cli.coercion import coerced_late

OUTPUTS = ("-o", "--output", "--output-dir", "--out", "--dir", "--save")  # as other tools call where results go


class OpensWithExample:
    """Help that opens with one sentence and an indented example."""

    help: str | None

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Paragraphs are wrapped; indented ones are written line by line."""
        for paragraph in paragraphs(self.help):
            formatter.write_paragraph()
            with formatter.indentation():
                if not paragraph.startswith("    "):
                    formatter.write_text(paragraph)
                    continue
                for line in paragraph.splitlines():
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class CommandHelp(OpensWithExample, TyperCommand):
    """A command, whose docstring is its help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """With `--help`."""
        return coerced_late(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """An option that other commands have is answered with what it is called here."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # NoSuchOption, which lies elsewhere in each version of typer
            known = {name for parameter in self.params for name in parameter.opts}
            if getattr(error, "option_name", None) in OUTPUTS and not getattr(error, "possibilities", None):
                error.possibilities = [name for name in ("--run", "--output") if name in known][:1]  # type: ignore[attr-defined]
            raise


class VerbGroup(OpensWithExample, TyperGroup):
    """A verb that has commands of its own."""


class OnDemand(Mapping[str, Any]):
    """The commands of these names, each made when it is asked for."""

    def __init__(self, names: Iterable[str]) -> None:
        self._made: dict[str, Any] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> Any:
        if self._made[name] is None:
            self._made[name] = _made(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


def docstring_of(name: str) -> str | None:
    """The help of a command, whose module need not be imported for it."""
    module, function = _place(name)
    if module in sys.modules:
        return str(getattr(sys.modules[module], function).__doc__)
    loader: Any = getattr(find_spec(module), "loader", None)
    codes = (each for each in loader.get_code(module).co_consts if isinstance(each, CodeType))
    code = next(each for each in codes if each.co_name == function)
    return code.co_consts[0] if isinstance(code.co_consts[0], str) else None


def paragraphs(text: str | None) -> list[str]:
    """The paragraphs of a docstring, without the indentation that all lines share."""
    return cleandoc(text or "").split("\n\n")


def _place(name: str) -> tuple[str, str]:
    """The module of a command, and its function."""
    function = name.replace("-", "_")
    return f"transduce.cli.{function}", function


def _made(name: str) -> Any:
    module_name, function_name = _place(name)
    module = import_module(module_name)
    function = getattr(module, function_name)
    plain: Any = {"add_completion": False, "rich_markup_mode": None}
    if not hasattr(module, "VERBS"):
        one = typer.Typer(**plain)
        one.command(name, cls=CommandHelp)(function)
        return get_command(one)
    several = typer.Typer(name=name, cls=VerbGroup, help=function.__doc__, no_args_is_help=True, **plain)
    for each in module.VERBS:
        several.command(each.__name__, cls=CommandHelp)(each)
    return get_command(several)
