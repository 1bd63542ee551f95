"""`transduce doctor`: examine text files before a model learns from them, and write a cleaned copy."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from transduce.cli import options
from transduce.core.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from transduce.data.doctor import Cleaned, Report
    from transduce.data.doctor.scan import Progress, Scanner

COLOURS = {"error": "bold red", "warning": "yellow", "note": "dim"}
LINES_SHOWN = 5
BIG = 10_000_000  # bytes on disk from which progress is shown

SourceFile = Annotated[Path | None, typer.Option(help="The source side, one sentence a line; plain, .gz, .xz or .zst.")]
TargetFile = Annotated[Path | None, typer.Option(help="The target side, line for line.")]
PlainText = Annotated[Path | None, typer.Option(help="A single text, as for a language model, instead of two sides.")]
TestSource = Annotated[
    Path | None, typer.Option(help="The source side of a test set, which is looked for in the training data.")
]
TextColumn = Annotated[int | None, typer.Option(min=0, help="Examine only this column of --text, counted from 0.")]
TestTsv = Annotated[Path | None, typer.Option(help="A test set as a tab-separated file, with the columns of --tsv.")]
TestTarget = Annotated[Path | None, typer.Option(help="The target side of the test set.")]
CleanSource = Annotated[Path | None, typer.Option(help="Write the cleaned source side to this file.")]
CleanTarget = Annotated[Path | None, typer.Option(help="Write the cleaned target side to this file.")]
SpeechRecipe = Annotated[
    Path | None,
    typer.Argument(
        help="A recipe of speech recognition, whose recordings are examined instead of texts; or a .tsv, as with --tsv."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print only the report, as JSON.")]


def doctor(
    recipe: SpeechRecipe = None,
    *,
    source: SourceFile = None,
    target: TargetFile = None,
    tsv: options.Tsv = None,
    source_column: options.SourceColumn = None,
    target_column: options.TargetColumn = None,
    text: PlainText = None,
    column: TextColumn = None,
    test_source: TestSource = None,
    test_target: TestTarget = None,
    test_tsv: TestTsv = None,
    clean_source: CleanSource = None,
    clean_target: CleanTarget = None,
    engine: options.Engine = "local",
    workers: options.Workers = None,
    as_json: AsJson = False,
) -> None:
    """Find errors in a corpus before you train on it.

        transduce doctor --source train.en --target train.sw

    It finds shifted lines, copies, duplicates, bad characters, damaged encodings, wrong scripts, mixed simplified and
    traditional Chinese and leaked test sets, and can write a cleaned copy.

    Given a recipe of speech recognition, as in `transduce doctor recipes/fsdd.toml`, it tells the durations of its
    recordings, and finds silence, clipping, missing texts, leaks and files that cannot be read.

    Exit code 0: no finding of severity "error". 1: at least one. 2: wrong arguments or files.
    """
    held_out, cleans = (test_source, test_target), (clean_source, clean_target)
    if recipe is not None and ".tsv" in recipe.suffixes and tsv is None:
        recipe, tsv = None, recipe
    if recipe is not None:
        _check_alone(recipe, [source, target, tsv, text, test_tsv, *held_out, *cleans])
        _tell(_of_recordings(recipe), None, as_json)
        return
    _check_arguments((source, target), tsv, text, held_out, cleans)
    places = source_column, target_column
    _check_columns(tsv, text, test_tsv, (test_source, test_target), places, column)
    from transduce.cli.text import libraries_on_stderr
    from transduce.data.doctor import ScannedFile, clean, columns_of, examine, examine_text
    from transduce.data.doctor.lines import as_text_file
    from transduce.data.doctor.scan import scan

    cleaned, scanner = None, cast("Scanner", scan)
    if engine == "local" and workers:
        raise InputError("--workers is for --engine ray: the doctor reads a corpus in this process otherwise.")
    if engine != "local":
        from transduce.bulk.engine import engine_of
        from transduce.bulk.scanning import scanner_on

        scanner = scanner_on(engine_of(engine, workers=workers))
    with libraries_on_stderr(), _progress([path for path in (source, target, tsv, text) if path]) as progress:
        if text:
            report = examine_text(ScannedFile(text, column), test_source, progress, scanner)
        else:
            sides = columns_of(tsv, *places) if tsv else tuple(as_text_file(path) for path in (source, target) if path)
            tests = columns_of(test_tsv, *places) if test_tsv else (test_source, test_target)
            report = examine(sides[0], sides[1], tests[0], tests[1], progress, scanner)
            if clean_source and clean_target:
                cleaned = clean(sides[0], sides[1], clean_source, clean_target, report, progress=progress)
    _tell(report, cleaned, as_json)


def _tell(report: "Report", cleaned: "Cleaned | None", as_json: bool) -> None:
    if as_json:
        _print_json(report, cleaned)
    else:
        _print_tables(report, cleaned)
    if report.has_errors:
        raise typer.Exit(1)


def _check_alone(recipe: Path, others: list[Path | None]) -> None:
    if any(others):
        raise InputError(f"{recipe}: a recipe names its files itself: give no other files beside it.")


def _of_recordings(path: Path) -> "Report":
    """Of all files that a recipe of speech recognition names."""
    from transduce.data.doctor import examine_recordings
    from transduce.data.recordings import RecordingFile
    from transduce.recipe.recipe import load_recipe
    from transduce.tasks.speech_recognition import SpeechData

    advice = "For files of text give --source and --target, --tsv or --text."
    if path.is_file() and path.suffix != ".toml":
        raise InputError(f"{path}: expected a recipe of speech_recognition (.toml) or a .tsv. {advice}")
    data = load_recipe(path).data
    if not isinstance(data, SpeechData):
        raise InputError(f"{path}: expected a recipe of speech_recognition. {advice}")
    files: dict[str, RecordingFile] = {"train": data.train[0]}
    files |= {f"train {number}": file for number, file in enumerate(data.train[1:], 2)}
    files |= {"validation": data.validation} if data.validation else {}
    files |= {f"test {name}": file for name, file in data.test.items()}
    root = Path(data.root)
    with _progress([each for file in files.values() for each in file.paths(root)], "recordings") as progress:
        return examine_recordings(files, root, data.words, data.rate, data.max_frames, progress)


Two = tuple[Path | None, Path | None]


def _check_arguments(sides: Two, tsv: Path | None, text: Path | None, tests: Two, cleaned: Two) -> None:
    problems: list[str] = []
    if sum((any(sides), tsv is not None, text is not None)) != 1:
        problems.append("Give one of: --source and --target, --tsv, or --text.")
    elif any(sides) and not all(sides):
        problems.append("--source and --target go together; for a single file give --text.")
    if any(cleaned) and not all(cleaned):
        problems.append("--clean-source and --clean-target go together.")
    if text and any(cleaned):
        problems.append("--clean-source and --clean-target need two sides, not --text.")
    if tests[1] and not tests[0]:
        problems.append("--test-target needs --test-source.")
    if text and tests[1]:
        problems.append("With --text the test set is a single file: give --test-source alone.")
    if problems:
        raise InputError(problems)


def _check_columns(
    tsv: Path | None,
    text: Path | None,
    test_tsv: Path | None,
    tests: Two,
    places: tuple[int | None, int | None],
    column: int | None,
) -> None:
    problems: list[str] = []
    if any(place is not None for place in places) and not tsv:
        problems.append(
            "--source-column and --target-column choose columns of a tab-separated file: name it with --tsv."
        )
    if column is not None and not text:
        problems.append("--column goes with --text; with --tsv use --source-column and --target-column.")
    if test_tsv and not tsv:
        problems.append("--test-tsv goes with --tsv, and its columns are the same.")
    if test_tsv and any(tests):
        problems.append("Give the test set as --test-tsv or as --test-source and --test-target, not as both.")
    if problems:
        raise InputError(problems)


@contextmanager
def _progress(paths: list[Path], unit: str = "lines") -> "Iterator[Progress]":
    """How many units are done so far on standard error, when the files are big and someone is watching."""
    from transduce.cli.text import is_terminal
    from transduce.data.doctor.scan import in_silence

    big = sum(path.stat().st_size for path in paths if path.is_file()) > BIG
    if not (big and is_terminal(sys.stderr)):
        yield in_silence
        return
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,.0f} " + unit),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {}

        def advance(stage: str, lines: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=None)
            bars.advance(tasks[stage], lines)

        yield advance


def _print_json(report: "Report", cleaned: "Cleaned | None") -> None:
    answer = report.to_dict() | {"cleaned": cleaned.to_dict() if cleaned else None}
    typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))


def _print_tables(report: "Report", cleaned: "Cleaned | None") -> None:
    from rich.console import Console

    from transduce.data.doctor.report import plural

    console = Console(highlight=False)
    for role, file in report.files.items():
        console.print(f"{role}: {file}, {plural(report.lines[role], report.unit)}", markup=False, soft_wrap=True)
    if report.findings:
        console.print(_findings_table(report))
    else:
        console.print("Nothing found.", style="green")
    for each in report.not_looked_for:
        console.print(f"Not looked for: {each}", markup=False, soft_wrap=True)
    if cleaned:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in cleaned.dropped.items()) or "nothing"
        console.print(f"Cleaned copy: {cleaned.written:,} pairs written, {cleaned.mended:,} of them mended.")
        console.print(f"Left out: {reasons}.", markup=False)


def _findings_table(report: "Report") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table("severity", "finding", "count", "first lines", show_lines=True)
    table.columns[2].justify = "right"
    for finding in report.findings:
        said = Text(finding.sentence)
        for example in finding.examples[:1]:
            said.append(f"\n{example}", style="dim italic")
        table.add_row(
            Text(finding.severity.value, style=COLOURS[finding.severity.value]),
            said,
            f"{finding.count:,}",
            ", ".join(f"{line:,}" for line in finding.lines[:LINES_SHOWN]),
        )
    return table
