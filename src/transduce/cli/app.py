"""The command `transduce`: a file for each subcommand, which imports slow modules when it runs: --help is instant."""

import gc
import sys
from collections.abc import Sequence
from inspect import cleandoc
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from transduce.cli.coercion import coerced_late
from transduce.cli.compare import compare
from transduce.cli.convert import convert
from transduce.cli.datastore import build as build_datastore
from transduce.cli.datastore import info as datastore_info
from transduce.cli.demo import demo
from transduce.cli.distill import distill
from transduce.cli.doctor import doctor
from transduce.cli.evaluate import evaluate
from transduce.cli.explore import explore
from transduce.cli.export import export
from transduce.cli.generate import generate
from transduce.cli.info import info
from transduce.cli.keys import keys
from transduce.cli.new import new
from transduce.cli.predict import predict
from transduce.cli.process import run
from transduce.cli.runs import runs
from transduce.cli.score import score
from transduce.cli.serve import serve
from transduce.cli.shortlist import shortlist
from transduce.cli.train import train
from transduce.cli.translate_back import translate_back
from transduce.runtime import spinning
from transduce.runtime.processors import limit_threads
from transduce.version import __version__

GROUPS = {
    "First steps": ("demo",),
    "Train": ("train", "new", "distill", "translate-back", "shortlist", "datastore"),
    "Use": ("predict", "generate", "serve", "keys", "export", "convert"),
    "Evaluate": ("evaluate", "score", "compare"),
    "Look inside": ("explore", "info", "runs"),
    "Data": ("doctor",),
}

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


class Commands(TyperGroup):
    """All commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """With `--help`."""
        return coerced_late(super().get_params(ctx))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One section a group: each command with its first sentence, and an example under it."""
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(self._rows(names)))
        with formatter.section("Help for one of them"):
            formatter.write_text("transduce COMMAND --help")

    def _rows(self, names: Sequence[str]) -> Any:
        width = max(map(len, self.commands))
        for name in names:
            sentence, example, *_ = paragraphs(self.commands[name].help)
            yield name.ljust(width), " ".join(sentence.split())
            yield "", example.splitlines()[0].strip()


def paragraphs(text: str | None) -> list[str]:
    """The paragraphs of a docstring, without the indentation that all lines share."""
    return cleandoc(text or "").split("\n\n")


app = typer.Typer(
    name="transduce",
    cls=Commands,
    help="Train a sequence model on your own data, see what its attention does, know how good it is, and ship it.",
    epilog="Exit codes: 0 for success, 1 for a failure, 2 for wrong input, 130 when interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
COMMANDS = (
    train,
    new,
    predict,
    generate,
    evaluate,
    score,
    compare,
    explore,
    serve,
    keys,
    export,
    convert,
    distill,
    translate_back,
    shortlist,
    doctor,
    info,
    runs,
    demo,
)
for command in COMMANDS:
    app.command(cls=CommandHelp)(command)

datastore = typer.Typer(
    cls=VerbGroup,
    help="""Let a model consult a translation memory while it translates.

    transduce datastore build runs/my memory.tmx

`build` makes a datastore of a memory, `info` shows what one holds. predict and serve take it with --datastore.""",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
datastore.command("build", cls=CommandHelp)(build_datastore)
datastore.command("info", cls=CommandHelp)(datastore_info)
app.add_typer(datastore, name="datastore")


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Print the versions and the kernels in use, and exit."),
) -> None:
    """Options of the command itself."""
    if show:
        from transduce.runtime.environment import kernels_in_words, library_versions

        versions = library_versions()
        typer.echo(f"transduce {__version__}")
        typer.echo(f"Python {versions['python']}, torch {versions['torch']}")
        typer.echo(f"kernels: {kernels_in_words()}")
        raise typer.Exit


def main() -> None:
    """Run the command line. Each of our errors becomes a message and an exit code."""
    limit_threads()
    spinning.watch()
    gc.set_threshold(200_000)  # importing torch makes as many objects that stay, and each search for garbage is in vain
    try:
        run("transduce", app)
    finally:
        # At the end the interpreter looks through everything once more, 0.4 s with torch, for nothing. But
        # Triton, which comes with torch for GPUs, takes what is frozen for leaked then, and says so in 30 lines.
        if "triton" not in sys.modules:
            gc.freeze()
