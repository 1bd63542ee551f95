"""The command `transduce`: a file for each subcommand, imported when it is asked for: --help is instant."""

import gc
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from transduce.cli.coercion import coerced_late
from transduce.cli.commands import OnDemand, docstring_of, paragraphs
from transduce.cli.process import run
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


class Commands(TyperGroup):
    """All commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = OnDemand(name for names in GROUPS.values() for name in names)  # type: ignore[assignment]

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
            sentence, example, *_ = paragraphs(docstring_of(name))
            yield name.ljust(width), " ".join(sentence.split())
            yield "", example.splitlines()[0].strip()


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
