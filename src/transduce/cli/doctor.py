"""`transduce doctor`: examine text files before a model learns from them, and write a cleaned copy."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from transduce.cli import data_files, options
from transduce.core.destination import check_output
from transduce.core.errors import InputError
from transduce.core.printable import printable_json

if TYPE_CHECKING:
    from rich.table import Table

    from transduce.data.pairs.inputs import Named
    from transduce.data.speech.recordings import Recordings
    from transduce.doctor import Cleaned, Report, ScannedFile
    from transduce.doctor.corpora import ExaminedPairs
    from transduce.doctor.scan import Progress, Scanner
    from transduce.recipe.recipe import Recipe

    Tests = tuple[Path | ScannedFile | None, Path | ScannedFile | None]


COLOURS = {"error": "bold red", "warning": "yellow", "note": "dim"}
LINES_SHOWN = 5
BIG = 10_000_000  # bytes on disk from which progress is shown

SourceFile = Annotated[
    Path | None,
    typer.Option(
        help="The source side, one sentence a line; plain, .gz, .xz or .zst. Or both sides: a table as of `transduce "
        "train`, a .zip of OPUS, a folder, or the common beginning of two names."
    ),
]
TargetFile = Annotated[Path | None, typer.Option(help="The target side, line for line.")]
PlainText = Annotated[Path | None, typer.Option(help="A single text, as for a language model, instead of two sides.")]
TestSource = Annotated[
    Path | None,
    typer.Option(
        help="A test set, which is looked for in the training data: its source side, or pairs as of --source, whose "
        "columns are the same."
    ),
]
TextColumn = Annotated[int | None, typer.Option(min=0, help="Examine only this column of --text, counted from 0.")]
TestTsv = Annotated[Path | None, typer.Option(help="A test set as a tab-separated file, with the columns of --tsv.")]
TestTarget = Annotated[Path | None, typer.Option(help="The target side of the test set.")]
CleanSource = Annotated[Path | None, typer.Option(help="Write the cleaned source side to this file.")]
CleanTarget = Annotated[Path | None, typer.Option(help="Write the cleaned target side to this file.")]
Examinee = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="A recipe of translation, classification or speech recognition, or a run directory, whose files are "
        "examined; or pairs or texts with labels, as with --source.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, help="How many workers read lines side by side, with --engine ray. By default one a processor there."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print only the report, as JSON; of several files, a list.")]


def doctor(
    recipe: Examinee = None,
    *,
    source: SourceFile = None,
    target: TargetFile = None,
    tsv: options.Tsv = None,
    source_column: data_files.SourceColumns = None,
    target_column: data_files.TargetColumn = None,
    source_separator: data_files.SourceSeparator = None,
    separator: data_files.Separator = None,
    languages: data_files.Languages = None,
    text: PlainText = None,
    column: TextColumn = None,
    test_source: TestSource = None,
    test_target: TestTarget = None,
    test_tsv: TestTsv = None,
    clean_source: CleanSource = None,
    clean_target: CleanTarget = None,
    engine: options.Engine = "local",
    workers: Workers = None,
    as_json: AsJson = False,
    trust_code: options.TrustCode = False,
) -> None:
    """Find errors in a corpus before you train on it.

        transduce doctor --source train.en --target train.sw

    It finds shifted lines, exchanged sides, wrong partners, other languages and scripts, copies, duplicates, cut or
    repeated targets, numbers and placeholders that differ, bad characters, damaged encodings, HTML, mixed simplified
    and traditional Chinese and leaked test sets, and can write a cleaned copy. Pairs are named as for `transduce
    train`: two files, one file with columns, a folder; or the recipe.

    Of a table of texts with labels, or of a recipe of classification, it tells texts with two labels, rare labels, and
    texts that held-out files beside it, or --test-source, have, too.

    Of a recipe of speech recognition, as in `transduce doctor recipes/fsdd.toml`, it tells the durations of its
    recordings, and finds silence, clipping, missing texts, leaks and files that cannot be read.

    Exit code 0: no finding of severity "error". 1: at least one. 2: wrong arguments or files.
    """
    held_out, cleans = (test_source, test_target), (clean_source, clean_target)
    if recipe is not None and tsv is None and source is None and is_data(recipe, separator):
        recipe, source = None, recipe
    named = data_files.named_files(
        source or tsv or Path(), target, source_column, target_column, source_separator, separator, languages
    )
    if recipe is not None:
        _check_alone(recipe, [source, target, tsv, text, test_tsv, *held_out])
        _of_recipe(recipe_at(recipe, trust_code), recipe, cleans, _scanner(engine, workers), as_json)
        return
    if source is not None and not any([target, tsv, text, test_tsv, test_target, *cleans]):
        labelled = _labelled(replace(named, test=test_source))
        if labelled is not None:
            _tell([labelled], None, as_json)
            return
        _refuse_others(named)
    _check_arguments((source, target), tsv, text, held_out, cleans)
    _check_columns((source, target), tsv, text, test_tsv, held_out, named, column)
    scanner = _scanner(engine, workers)
    if text:
        _tell([_of_text(text, column, test_source, scanner)], None, as_json)
        return
    _examine([_corpus(named)], _tests(named, test_source or test_tsv, test_target), cleans, scanner, as_json)


def _labelled(named: "Named") -> "Report | None":
    """Of files that hold texts with labels; None: they hold something else, or may be pairs."""
    from transduce.data.labelled import LabelledFile, LabelledFiles
    from transduce.doctor import examine_labelled
    from transduce.planning.tasks.labels import labelled_inputs, recognise

    found = recognise(named)
    if found is None or found.doubt:
        return None
    inputs = labelled_inputs(named)
    entries = {"train": inputs.train, "validation": inputs.validation}
    entries |= {f"test {name}": entry for name, entry in inputs.tests.items()}
    files = {role: LabelledFile.model_validate(entry) for role, entry in entries.items() if entry}
    return examine_labelled(LabelledFiles(files, Path()))


def _refuse_others(named: "Named") -> None:
    """Raises InputError for files that training recognises as what is not examined here."""
    from transduce.core.errors import InputError
    from transduce.planning.recognition import KINDS

    examined = ("classification", "translation")
    for kind, each in KINDS.items():
        found = None if kind in examined else each.recognise(named)
        if found:
            how = " Name a recipe of them." if kind == "speech_recognition" else ""
            raise InputError(
                f"{named.source}: {found.why}, which the doctor does not examine; it examines pairs of texts, texts "
                f"with labels, and text alone (--text).{how}"
            )


def _scanner(engine: options.Engine, workers: int | None) -> "Scanner":
    """What reads the lines. Raises InputError for workers of no engine."""
    from transduce.doctor.scan import scan

    if engine == "local" and workers:
        raise InputError("--workers is for --engine ray: the doctor reads a corpus in this process otherwise.")
    if engine == "local":
        return cast("Scanner", scan)
    from transduce.bulk.engine import engine_of
    from transduce.bulk.scanning import scanner_on

    return scanner_on(engine_of(engine, workers=workers))


def _corpus(named: "Named") -> "ExaminedPairs":
    from transduce.doctor.corpora import of_named

    try:
        return of_named(named)
    except InputError as error:
        raise InputError([*error.problems, *_single(named)]) from error


def _tests(named: "Named", source: Path | None, target: Path | None) -> "Tests":
    """The sides of the test set. A file of pairs is read as that of the corpus is: with the same columns."""
    if source is not None and target is None and is_data(source, named.separator):
        return _corpus(replace(named, source=source, target=None)).sides
    return source, target


def _single(named: "Named") -> list[str]:
    """Advice where one text is named that has no other side."""
    alone = named.target is None and named.source.is_file() and not is_data(named.source)
    return ["To examine a single text: --text."] if alone else []


def _of_text(text: Path, column: int | None, test: Path | None, scanner: "Scanner") -> "Report":
    from transduce.cli.text import libraries_on_stderr
    from transduce.doctor import examine_text

    has_columns = test is not None and is_data(test)
    unlike = test is not None and column is None and has_columns != is_data(text)
    tested = _texts(test, column if has_columns else None) if test and not unlike else None
    with libraries_on_stderr(), _progress([text]) as progress:
        report = examine_text(_texts(text, column), tested, progress, scanner)
    return replace(report, not_looked_for=[*report.not_looked_for, _incomparable(text, test)]) if unlike else report


def _texts(path: Path, column: int | None) -> "ScannedFile":
    from transduce.doctor import ScannedFile, column_of

    return ScannedFile(path) if column is None else column_of(path, column)


def _incomparable(text: Path, test: Path | None) -> str:
    return (
        f"lines of {test} in {text}: one of the files has columns, the other has none, so their lines cannot be the "
        "same. Name the column with --column, or give a test set of the same kind."
    )


def _of_recipe(recipe: "Recipe", path: Path, cleans: "Two", scanner: "Scanner", as_json: bool) -> None:
    """All files that a recipe names."""
    from transduce.doctor import examine_labelled
    from transduce.doctor.corpora import of_data
    from transduce.tasks.base import pairs_of, task_class

    for output in cleans:
        check_output(output, [path])
    if recordings := task_class(recipe).recordings(recipe.data):
        if any(cleans):
            raise InputError("--clean-source and --clean-target are for pairs of texts, not for recordings.")
        _tell([_of_recordings(recordings)], None, as_json)
    elif labelled := task_class(recipe).labelled(recipe.data):
        if any(cleans):
            raise InputError("--clean-source and --clean-target are for pairs of texts, not for labels.")
        _tell([examine_labelled(labelled)], None, as_json)
    elif pairs := pairs_of(recipe):
        _examine(of_data(pairs), (None, None), cleans, scanner, as_json)
    else:
        raise InputError(f"{path}: expected a recipe of translation, classification or speech_recognition. {ADVICE}")


def _examine(
    corpora: "list[ExaminedPairs]",
    tests: "Tests",
    cleans: "Two",
    scanner: "Scanner",
    as_json: bool,
) -> None:
    """Examine each corpus, tell what was found, and write the cleaned copy of one."""
    from transduce.cli.text import libraries_on_stderr, tell
    from transduce.doctor import clean, examine

    cleaned, reports = None, []
    if any(cleans) and len(corpora) > 1:
        raise InputError("--clean-source and --clean-target are for one corpus; name it with --source and --target.")
    for output in cleans:
        check_output(output, [*(file for each in corpora for file in each.files()), *map(_path, tests)])
    for note in (note for each in corpora for note in each.notes):
        tell(note)
    with libraries_on_stderr(), _progress([side.path for each in corpora for side in each.sides]) as progress:
        for each in corpora:
            reports.append(examine(*each.sides, tests[0], tests[1], progress, scanner, each.tests))
        if cleans[0] and cleans[1]:
            cleaned = clean(*corpora[0].sides, cleans[0], cleans[1], reports[0], progress=progress)
    _tell(reports, cleaned, as_json)


def _path(file: "Path | ScannedFile | None") -> Path | None:
    return file if file is None or isinstance(file, Path) else file.path


def _tell(reports: "list[Report]", cleaned: "Cleaned | None", as_json: bool) -> None:
    if as_json:
        answers = [report.to_dict() | {"cleaned": cleaned.to_dict() if cleaned else None} for report in reports]
        answer = json.dumps(answers if len(answers) > 1 else answers[0], ensure_ascii=False, indent=2)
        typer.echo(printable_json(answer))
    else:
        for report in reports:
            _print_tables(report, cleaned)
    if any(report.has_errors for report in reports):
        raise typer.Exit(1)


def _check_alone(recipe: Path, others: list[Path | None]) -> None:
    if any(others):
        raise InputError(f"{recipe}: a recipe names its files itself: give no other files beside it.")


def _of_recordings(named: "Recordings") -> "Report":
    """Of all files that a recipe of speech recognition names."""
    from transduce.doctor import examine_recordings

    paths = [each for file in named.files.values() for each in file.paths(named.root)]
    with _progress(paths, "recordings") as progress:
        return examine_recordings(*named, progress)


Two = tuple[Path | None, Path | None]


def _check_arguments(sides: Two, tsv: Path | None, text: Path | None, tests: Two, cleaned: Two) -> None:
    problems: list[str] = []
    if sum((any(sides), tsv is not None, text is not None)) != 1:
        problems.append("Give one of: --source and --target, --tsv, or --text.")
    elif any(sides) and not sides[0]:
        problems.append("--target needs --source; for a single file give --text.")
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
    sides: Two,
    tsv: Path | None,
    text: Path | None,
    test_tsv: Path | None,
    tests: Two,
    named: "Named",
    column: int | None,
) -> None:
    problems: list[str] = []
    if (named.columns or named.target_column is not None) and (all(sides) or text):
        problems.append(
            "--source-column and --target-column choose columns of one file: name it with --tsv or --source."
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
    from transduce.doctor.scan import in_silence

    big = sum(path.stat().st_size for path in paths if path.is_file()) > BIG
    if not (big and is_terminal(sys.stderr)):
        yield in_silence
        return
    from rich.progress import Progress as Bars
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    from transduce.runtime.console import make_console

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,.0f} " + unit),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=make_console(stderr=True), transient=True) as bars:
        tasks = {}

        def advance(stage: str, lines: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=None)
            bars.advance(tasks[stage], lines)

        yield advance


def _print_tables(report: "Report", cleaned: "Cleaned | None") -> None:
    from transduce.doctor.report import plural
    from transduce.runtime.console import make_console

    console = make_console(highlight=False)
    for role, file in report.files.items():
        console.print(f"{role}: {file}, {plural(report.lines[role], report.unit)}", markup=False, soft_wrap=True)
    if report.findings:
        console.print(_findings_table(report))
    else:
        looked = "Nothing found in what was looked for." if report.not_looked_for else "Nothing found."
        console.print(looked, style="green")
    for each in report.not_looked_for:
        console.print(f"Not looked for: {each}", markup=False, soft_wrap=True)
    if cleaned:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in cleaned.dropped.items()) or "nothing"
        console.print(f"Cleaned copy: {cleaned.written:,} pairs written, {cleaned.mended:,} of them mended.")
        console.print(f"Left out: {reasons}.", markup=False)
        if cleaned.changes:
            changes = ", ".join(f"{what} {count:,}" for what, count in cleaned.changes.items())
            console.print(f"Lines mended: {changes}.", markup=False)


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


def is_data(path: Path, separator: str | None = None) -> bool:
    """Whether pairs lie at a path, where a recipe may be named too; separator: as of `looks_like_data`."""
    from transduce.data.pairs import inputs

    return inputs.is_data(path) or inputs.looks_like_data(path, separator)


def recipe_at(path: Path, trust_code: bool = False) -> "Recipe":
    """A recipe, or that of a run directory. Raises InputError for anything else."""
    from transduce.core.folders import RESOLVED
    from transduce.recipe.recipe import load_recipe, load_run_recipe

    if path.is_dir():
        if not (path / RESOLVED).exists():
            raise InputError(f"{path}: holds neither a recipe.toml nor files such as train.en and train.sw.")
        return load_run_recipe(path / RESOLVED, trust_code=trust_code)
    if path.is_file() and path.suffix != ".toml":
        raise InputError(f"{path}: expected a recipe (.toml), a run directory or pairs. {ADVICE}")
    return load_recipe(path, trust_code=trust_code)


ADVICE = "For files of text give --source and --target, --tsv or --text."
