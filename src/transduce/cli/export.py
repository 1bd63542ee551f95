"""`transduce export MODEL --to FORMAT`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from transduce.cli import options

if TYPE_CHECKING:
    from transduce.interop.parity import Parity, Text
    from transduce.pipeline.pipeline import Pipeline


def export(
    model: Annotated[Path, typer.Argument(help="A run directory or a model file.")],
    to: Annotated[Literal["ctranslate2"], typer.Option(help="The format to write.")],
    output: Annotated[
        Path | None,
        typer.Option(help="The folder to write, which must not exist yet. By default beside the model file."),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            help="Lines of text on which the exported model must say the same. By default up to 1,000 lines of the "
            "run's test or validation text."
        ),
    ] = None,
    references: Annotated[
        Path | None, typer.Option(help="Translations of --check, line by line, for BLEU of both models.")
    ] = None,
    allow_differences: Annotated[
        bool, typer.Option("--allow-differences", help="Exit with 0 even if the exported model says something else.")
    ] = False,
    trust_code: options.TrustCode = False,
) -> None:
    """Write a model in a format that other programs run, and check that it says the same there.

        transduce export runs/my --to ctranslate2

    Both models translate the same lines greedily in fp32. If any output differs, the first one is shown and the exit
    code is 1; the exported model stays where it was written.
    """
    from transduce.cli.text import tell
    from transduce.core.errors import InputError
    from transduce.core.model_file import find_model_file
    from transduce.interop.exports import EXPORTS
    from transduce.interop.folders import new_folder
    from transduce.pipeline.pipeline import load

    if references and not check:
        raise InputError("--references goes with --check, whose lines they translate.")
    path = find_model_file(model)
    folder = output or path.with_name(
        f"{path.parent.name}-{to}" if path.name == "model.safetensors" else f"{path.stem}-{to}"
    )
    text = _text(check, references) if check else None
    pipeline = load(path, trust_code=trust_code, device="cpu")
    with new_folder(folder) as staged:
        EXPORTS[to].write(pipeline, staged)
    tell(f"{folder}: written.")
    text = text or _held_out(path)
    if text and not _told(_parity(pipeline, to, folder, text)) and not allow_differences:
        raise typer.Exit(1)


def _text(check: Path, references: Path | None) -> "Text":
    from transduce.cli.text import read_source
    from transduce.interop.parity import Text

    return Text(str(check), read_source(check), read_source(references) if references else None)


def _held_out(path: Path) -> "Text | None":
    """The run's own text; None, and told, where there is none."""
    from transduce.core.errors import InputError
    from transduce.interop.held_out import held_out_text

    try:
        return held_out_text(path)
    except InputError as error:
        _red(f"nothing was checked: {error} Name a text with --check.")
        return None


def _parity(pipeline: "Pipeline", to: str, folder: Path, text: "Text") -> "Parity":
    from transduce.interop.exports import EXPORTS
    from transduce.interop.parity import compare

    language = str(getattr(pipeline.recipe.task, "target", "")) or None
    return compare(pipeline, EXPORTS[to].engine(pipeline, folder), text, language)


def _told(found: "Parity") -> bool:
    """Whether all outputs are equal, which is told."""
    from transduce.cli.text import tell

    for line in found.report():
        tell(line)
    if not found.holds:
        differing = found.lines - found.equal
        _red(f"{differing:,} of {found.lines:,} outputs differ: {found.engine} does not say what the model says.")
    return found.holds


def _red(line: str) -> None:
    """Print a line on standard error, in red on a terminal."""
    from transduce.cli.text import is_terminal, tell

    tell(f"\x1b[31m{line}\x1b[0m" if is_terminal(sys.stderr) else line)
