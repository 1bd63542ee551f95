"""`transduce export MODEL --to FORMAT`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from transduce.cli import options
from transduce.interop.exports import export_format, export_names

if TYPE_CHECKING:
    from transduce.interop.model_card import Languages
    from transduce.interop.parity import Parity, Text
    from transduce.pipeline.pipeline import Pipeline

    Format = str
else:
    Format = Literal[tuple(export_names())]


def export(
    model: Annotated[
        list[Path],
        typer.Argument(help="A run directory or a model file. With --to argos also several, one for each direction."),
    ],
    to: Annotated[Format, typer.Option(help="The format to write.")],
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
    source_language: Annotated[
        str, typer.Option(help="Code of the source language, such as en. By default the recipe's.")
    ] = "",
    target_language: Annotated[
        str, typer.Option(help="Code of the target language, such as sw. By default the recipe's.")
    ] = "",
    package_version: Annotated[str, typer.Option(help="With --to argos: the version of the package.")] = "1.0",
    license: Annotated[str, typer.Option(help="With --to argos: the licence of the package, such as CC-BY-4.0.")] = "",
    link: Annotated[
        list[str] | None,
        typer.Option(help="With --to argos: where the package can be fetched; a folder's link ends with a slash."),
    ] = None,
    allow_differences: Annotated[
        bool, typer.Option("--allow-differences", help="Exit with 0 even if the exported model says something else.")
    ] = False,
    trust_code: options.TrustCode = False,
) -> None:
    """Write a model in a format that other programs run, and check that outputs match.

        transduce export runs/my --to ctranslate2

    Both models translate the same lines greedily in fp32. If any output differs, the first one is shown and the exit
    code is 1; the exported model stays where it was written.
    """
    from transduce.cli.text import tell
    from transduce.core.folders import new_folder
    from transduce.core.model_file import find_model_file
    from transduce.interop.model_card import Languages
    from transduce.pipeline.pipeline import load

    given = Languages(source_language, target_language)
    _check(model, to, check, references, given)
    more = _package_facts(to, package_version, license, link or [])
    paths = [find_model_file(each) for each in model]
    folder = output or paths[0].with_name(f"{_name(paths[0])}-{to}")
    text = _text(check, references) if check else None
    pipelines = [load(path, trust_code=trust_code, device="cpu") for path in paths]
    with new_folder(folder) as staged:
        written = [
            export_format(to).write(pipeline, staged, _languages(pipeline, given), **more).relative_to(staged)
            for pipeline in pipelines
        ]
    tell(f"{folder}: written.")
    equal = True
    for path, pipeline, name in zip(paths, pipelines, written, strict=True):
        if lines := text or _held_out(path, trust_code):
            equal &= _report(_parity(pipeline, to, folder / name, lines))
    if not equal and not allow_differences:
        raise typer.Exit(1)


def _check(models: list[Path], to: str, check: Path | None, references: Path | None, given: "tuple[str, str]") -> None:
    from transduce.core.errors import InputError

    problems = []
    if references and not check:
        problems.append("--references goes with --check, whose lines they translate.")
    if len(models) > 1 and to != "argos":
        problems.append(f"--to {to}: give one model; only argos takes several.")
    if len(models) > 1 and check:
        problems.append("--check: give one model, whose source text this is; runs have text of their own.")
    if len(models) > 1 and any(given):
        problems.append("--source-language and --target-language: give one model, or say it in their recipes.")
    if problems:
        raise InputError(problems)


def _package_facts(to: str, version: str, licence: str, links: list[str]) -> dict[str, Any]:
    """What only packages for Argos say of themselves, as an argument of their export."""
    from transduce.core.errors import InputError

    if to == "argos":
        from transduce.interop.export_argos import PackageFacts

        return {"facts": PackageFacts(version, licence, tuple(links))}
    if version != "1.0" or licence or links:
        raise InputError(f"--package-version, --license and --link go with --to argos, not with --to {to}.")
    return {}


def _name(path: Path) -> str:
    """Of a run, or of a model file that lies somewhere else."""
    from transduce.core.model_file import NAME

    return path.absolute().parent.name if path.name == NAME else path.stem


def _languages(pipeline: "Pipeline", given: "Languages") -> "Languages":
    from transduce.interop.model_card import Languages

    return Languages(*(one or other for one, other in zip(given, Languages.of(pipeline), strict=True)))


def _text(check: Path, references: Path | None) -> "Text":
    from transduce.cli.text import read_source
    from transduce.interop.parity import Text

    return Text(str(check), read_source(check), read_source(references) if references else None)


def _held_out(path: Path, trust_code: bool) -> "Text | None":
    """The run's own text; None, and told, where there is none."""
    from transduce.cli.text import tell_red
    from transduce.core.errors import InputError
    from transduce.interop.parity import held_out_text

    try:
        return held_out_text(path, trust_code=trust_code)
    except InputError as error:
        tell_red(f"nothing was checked: {error} Name a text with --check.")
        return None


def _parity(pipeline: "Pipeline", to: str, written: Path, text: "Text") -> "Parity":
    from transduce.interop.parity import compare

    language = pipeline.task.languages[1] or None
    return compare(pipeline, export_format(to).engine(pipeline, written), text, language)


def _report(found: "Parity") -> bool:
    """Whether all outputs are equal, which is told."""
    from transduce.cli.text import tell, tell_red

    for line in found.report():
        tell(line)
    if not found.holds:
        differing = found.lines - found.equal
        tell_red(f"{differing:,} of {found.lines:,} outputs differ: {found.engine} does not say what the model says.")
    return found.holds
