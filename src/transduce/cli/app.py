"""The command `transduce`: one verb a file. Verbs import what is slow when they run, so that --help is instant."""

import gc
import signal
import sys
from types import FrameType

import typer

from transduce.cli.compare import compare
from transduce.cli.demo import demo
from transduce.cli.distill import distill
from transduce.cli.doctor import doctor
from transduce.cli.evaluate import evaluate
from transduce.cli.explore import explore
from transduce.cli.info import info
from transduce.cli.predict import predict
from transduce.cli.score import score
from transduce.cli.serve import serve
from transduce.cli.shortlist import shortlist
from transduce.cli.train import train
from transduce.errors import Interrupted, TransduceError
from transduce.version import __version__

app = typer.Typer(
    name="transduce",
    help="Train a sequence model on your own data in one command, see what its attention does, "
    "know honestly how good it is, ship it.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong input, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for verb in (train, predict, evaluate, score, compare, explore, serve, distill, shortlist, doctor, info, demo):
    app.command()(verb)


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Print versions, and which kernels run here, and leave."),
) -> None:
    """What is true of all verbs."""
    if show:
        from transduce.environment import kernels_in_words, library_versions

        versions = library_versions()
        typer.echo(f"transduce {__version__}")
        typer.echo(f"Python {versions['python']}, torch {versions['torch']}")
        typer.echo(f"kernels: {kernels_in_words()}")
        raise typer.Exit


def main() -> None:
    """Run the command line; every error on purpose becomes its message and its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    gc.set_threshold(20_000)  # importing torch makes as many objects that stay, and each search for garbage is in vain
    try:
        app()
    except TransduceError as error:
        print(f"transduce: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:  # whoever read our output has left
        sys.stderr.close()
        sys.exit(1)
    finally:
        # At the end the interpreter looks through everything once more, 0.4 s with torch, for nothing. But
        # Triton, which comes with torch for GPUs, takes what is frozen for leaked then, and says so in 30 lines.
        if "triton" not in sys.modules:
            gc.freeze()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(f"stopped by {signal.Signals(number).name}.")
