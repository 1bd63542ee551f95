"""The command `transduce`, with a file for each verb. Verbs import slow modules when they run, so --help is instant."""

import gc
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

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
from transduce.cli.score import score
from transduce.cli.serve import serve
from transduce.cli.shortlist import shortlist
from transduce.cli.train import train
from transduce.cli.translate_back import translate_back
from transduce.core.errors import InputError, Interrupted, TransduceError
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
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    gc.set_threshold(200_000)  # importing torch makes as many objects that stay, and each search for garbage is in vain
    _open_standard_streams()
    try:
        _run()
    except TransduceError as error:
        _leave(str(error), error.exit_code)
    except BrokenPipeError:  # whoever read our output has left
        _leave("", 1)
    except OSError as error:
        if error.errno is None:  # not the system's
            raise
        place = "standard output" if error.filename is None else os.fsdecode(error.filename)
        _leave(f"{place}: {error.strerror or error}.", InputError.exit_code)
    except (MemoryError, RuntimeError) as error:
        from transduce.training.memory import is_out_of_memory  # what fails so has loaded torch

        if not is_out_of_memory(error):
            raise
        said = str(error).split("\n")[0][:300]
        _leave(f"out of memory: a smaller --batch-size, --beam or model needs less ({said}).", 1)
    finally:
        # At the end the interpreter looks through everything once more, 0.4 s with torch, for nothing. But
        # Triton, which comes with torch for GPUs, takes what is frozen for leaked then, and says so in 30 lines.
        if "triton" not in sys.modules:
            gc.freeze()


def _run() -> None:
    try:
        app()
    except SystemExit:
        if sys.stdout is not None:
            sys.stdout.flush()  # a full disk is told, too, where only the end of the output meets it
        raise


def _open_standard_streams() -> None:
    """Open closed standard streams on the null device, so that no other file gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (to its end)


def _leave(message: str, code: int) -> NoReturn:
    """Print the message and exit. Output that could not be written before is dropped."""
    with suppress(OSError):
        if message:
            print(f"transduce: {message}", file=sys.stderr)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(f"stopped by {signal.Signals(number).name}.")
