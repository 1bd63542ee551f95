"""The command `transduce`, with a file for each verb. Verbs import slow modules when they run, so --help is instant."""

import gc
import sys

import typer

from transduce.cli.compare import compare
from transduce.cli.convert import convert
from transduce.cli.demo import demo
from transduce.cli.distill import distill
from transduce.cli.doctor import doctor
from transduce.cli.evaluate import evaluate
from transduce.cli.explore import explore
from transduce.cli.export import export
from transduce.cli.generate import generate
from transduce.cli.help import VerbHelp, Verbs
from transduce.cli.info import info
from transduce.cli.new import new
from transduce.cli.predict import predict
from transduce.cli.process import run
from transduce.cli.runs import runs
from transduce.cli.score import score
from transduce.cli.serve import serve
from transduce.cli.shortlist import shortlist
from transduce.cli.train import train
from transduce.cli.translate_back import translate_back
from transduce.version import __version__

app = typer.Typer(
    name="transduce",
    cls=Verbs,
    help="Train a sequence model on your own data, see what its attention does, know how good it is, and ship it.",
    epilog="Exit codes: 0 for success, 1 for a failure, 2 for wrong input, 130 when interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
VERBS = (
    train,
    new,
    predict,
    generate,
    evaluate,
    score,
    compare,
    explore,
    serve,
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
for verb in VERBS:
    app.command(cls=VerbHelp)(verb)


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
    gc.set_threshold(200_000)  # importing torch makes as many objects that stay, and each search for garbage is in vain
    try:
        run("transduce", app)
    finally:
        # At the end the interpreter looks through everything once more, 0.4 s with torch, for nothing. But
        # Triton, which comes with torch for GPUs, takes what is frozen for leaked then, and says so in 30 lines.
        if "triton" not in sys.modules:
            gc.freeze()
