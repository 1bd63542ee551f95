"""`transduce evaluate MODEL... --source A --reference B`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli import options
from transduce.cli.search_keys import models_and_search

if TYPE_CHECKING:
    from transduce.kernels.matmul import Precision
    from transduce.pipeline.pipeline import Pipeline


def evaluate(
    models: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MODEL|search.KEY=VALUE",
            help="Run directories or model files. A+B is an ensemble of A and B. search.KEY=VALUE sets any key of "
            "search, such as search.beam=5.",
        ),
    ] = None,
    outputs: Annotated[
        list[Path] | None, typer.Option(help="The outputs of another system for the source, one a line. Repeatable.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            help="The inputs, one a line; or a file that holds the references, too: pairs in a .tsv, .csv, .jsonl or "
            ".tmx with the recipe's columns, for classification a .csv or .jsonl, SQuAD's JSON, stories in bAbI's "
            "format, a table or a folder of recordings. A language model has none."
        ),
    ] = None,
    reference: Annotated[
        list[Path] | None,
        typer.Option(help="The reference translations, one a line, or the text for a language model. Repeatable."),
    ] = None,
    tsv: options.Tsv = None,
    source_column: options.SourceColumns = None,
    target_column: options.TargetColumn = None,
    beam: options.Beam = None,
    alpha: Annotated[
        float | None, typer.Option(help="The exponent alpha in log p / length^alpha, by which outputs are ranked.")
    ] = None,
    prune: options.Prune = None,
    shortlist: options.Shortlist = None,
    precision: options.Precision = "fp32",
    device: options.Device = "auto",
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="The name of a metric, or my_file:my_metric. Repeatable. By default the first model's metrics."
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            help="The code of the target language (de, zh-CN), which decides how words are split. By default the "
            "model's."
        ),
    ] = None,
    to: options.To = "",
    split: Annotated[
        options.HowSplit,
        typer.Option(
            help="Read each line as a whole (none), as in the tests at the end of a training; or as predict does "
            "(auto): sentence by sentence, if the model was trained on single ones."
        ),
    ] = "none",
    batch_size: options.BatchSize = 64,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object.")] = False,
    trust_code: options.TrustCode = False,
) -> None:
    """Score models on a test set, and compare them.

        transduce evaluate runs/my --source new.en --reference new.sw

    Each score comes with its signature and a 95 % bootstrap interval. With several systems, each is compared with the
    first by a paired bootstrap. Search options that are not given are those of the model's recipe.
    """
    from transduce.cli.text import bar, write_line
    from transduce.core.errors import InputError
    from transduce.core.trust import allow_code
    from transduce.evaluation.evaluate import Settings, evaluate_files
    from transduce.evaluation.texts import Files
    from transduce.runtime.allocator import keep_freed_memory

    keep_freed_memory()
    wanted = {"beam": beam, "alpha": alpha, "prune": prune, "shortlist": shortlist}
    models, search = models_and_search(models, wanted, needed=False)
    allow_code(metric)
    settings = Settings(metric, batch_size, search, split)
    named = _by_name(outputs or [], models)
    asked = options.asked_columns(source_column, target_column)
    sides = options.columns(tsv, source, asked)
    if sides and source:
        raise InputError("--tsv already holds the sources: leave out --source.")
    pipelines = _load(models, trust_code, precision, device)
    read = any("source" in model.task.columns for model in pipelines.values())  # a language model reads no sources
    inputs, references = sides[0] if sides and read else source, [*(sides[1:] if sides else ()), *(reference or [])]
    files = Files(inputs, references, named, language, to, asked)
    with bar("translating", 0) as advance:
        report = evaluate_files(pipelines, files, settings, advance)
    if as_json:
        write_line(report)
        return
    _show(report)


def _load(models: list[Path], trust_code: bool, precision: "Precision", device: str) -> "dict[str, Pipeline]":
    from transduce.pipeline.pipeline import load

    return {
        name: load(_members(path), trust_code=trust_code, precision=precision, device=device)
        for name, path in _by_name(models, []).items()
    }


def _members(path: Path) -> list[Path]:
    """The models of an ensemble, which is written A+B; a path that is there is itself."""
    return [path] if path.exists() else [Path(part) for part in str(path).split("+")]


def _by_name(paths: list[Path], earlier: list[Path]) -> dict[str, Path]:
    """Systems are told apart by the paths they were given as."""
    from transduce.core.errors import InputError

    everything = [str(path) for path in [*earlier, *paths]]
    twice = sorted({name for name in everything if everything.count(name) > 1})
    if twice:
        raise InputError(f"named twice: {', '.join(twice)}. Name each system once.")
    return {str(path): path for path in paths}


def _show(report: dict[str, Any]) -> None:
    from transduce.core.printable import printable
    from transduce.evaluation.report_tables import report_parts
    from transduce.runtime.console import make_console

    for part in report_parts(report):
        if isinstance(part, str):
            typer.echo(printable(part))
        else:
            make_console().print(part)
