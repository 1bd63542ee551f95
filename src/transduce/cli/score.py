"""`transduce score MODEL --source A --target B`."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli import options

if TYPE_CHECKING:
    from transduce.cli.refused_lines import GivenLines
    from transduce.data.corpus import TsvColumn
    from transduce.data.input_file import InputFile
    from transduce.data.pairs.known_columns import AskedColumns
    from transduce.inference.likelihood import Likelihood
    from transduce.pipeline.pipeline import Pipeline


def score(
    model: Annotated[
        list[Path], typer.Argument(help="A run directory or a model file. Several are used as an ensemble.")
    ],
    target: Annotated[Path | None, typer.Option(help="The texts to score, one a line.")] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            help="Their sources, one a line; or, without --target, one file with both sides, such as a .csv with the "
            "recipe's columns. A language model has none."
        ),
    ] = None,
    tsv: options.Tsv = None,
    source_column: options.SourceColumns = None,
    target_column: options.TargetColumn = None,
    to: options.To = "",
    output: options.Output = None,
    batch_size: Annotated[int, typer.Option(min=1, help="How many lines to score at once.")] = 64,
    engine: options.Engine = "local",
    workers: options.Workers = None,
    ensemble: options.Ensemble = "probability",
    device: options.Device = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="Write one JSON object a line, and the summary last.")
    ] = False,
    trust_code: options.TrustCode = False,
) -> None:
    """Write the log-probability of each text, and the perplexity.

        transduce score runs/my --source a.en --target a.sw

    Log-probabilities are in nats. Sources and targets belong together line by line.
    """
    from transduce.bulk.engine import engine_of
    from transduce.bulk.job import Placement
    from transduce.bulk.scoring import ScoringWorker, scored
    from transduce.cli.refused_lines import naming_lines
    from transduce.cli.text import bar, write_lines
    from transduce.core.destination import check_output
    from transduce.core.errors import InputError
    from transduce.core.model_file import find_model_file
    from transduce.data.tags import addressed, require_language
    from transduce.pipeline.pipeline import load

    if engine == "local" and workers:
        raise InputError("--workers is for --engine ray: one process scores with all its threads.")
    check_output(output, [*model, source, target, tsv], "--output")
    asked = options.asked_columns(source_column, target_column)
    sides = options.columns(tsv, source, asked)
    if [sides, target or source].count(None) != 1:
        raise InputError(
            "name --target (and --source, if the model reads one), or one file with both sides as --source or --tsv."
        )
    use: dict[str, Any] = {"trust_code": trust_code, "ensemble": ensemble}
    pipeline = load(model, **use, device="cpu" if engine == "ray" else device)
    sources, targets = _sides(pipeline, model[0], source, target, sides, asked)
    if not targets:
        raise InputError(f"{tsv or target or source}: the file is empty; expected lines of text.")
    given, reads = _given(pipeline, sources, targets, source, target, sides), pipeline.task.tokenizers.get("source")
    if to:
        sources = addressed(reads, sources, to)
    else:
        require_language(reads, sources)
    how = {"batch_size": batch_size}
    doer = engine_of(engine, ScoringWorker(how, [], pipeline), workers)
    job = Placement(doer, [find_model_file(each) for each in model], {**use, "device": device}).job("score", how)

    def again(pairs: list[tuple[str, str]]) -> object:
        return pipeline.score(pairs, batch_size=batch_size)

    pairs = zip(sources, targets, strict=True)
    with naming_lines(given, pairs, again), bar("scoring", len(targets)) as advance:
        found = scored(doer, job, zip(sources, targets, strict=True), advance)
        write_lines(_lines(found, targets, as_json), output)


def _given(
    pipeline: "Pipeline",
    sources: Collection[str],
    targets: Collection[str],
    source: Path | None,
    target: Path | None,
    columns: "tuple[TsvColumn, TsvColumn] | None",
) -> "list[GivenLines]":
    """Both sides with what a message calls their lines; of tables rows are counted."""
    from transduce.cli.refused_lines import GivenLines, place_name

    reads, by_line = pipeline.task.columns, columns is None and target is not None
    first, second = (columns[0].path, columns[1].path) if columns else (source, target or source)
    found = [GivenLines(place_name(second, by_line), targets, reads["target"])]
    if "source" not in reads:
        return found
    from transduce.cli.text import is_of_lines

    name = place_name(first, by_line and is_of_lines(sources))
    return [GivenLines(name, sources, reads["source"], pipeline.source_columns.joined), *found]


def _sides(
    pipeline: "Pipeline",
    model: Path,
    source: Path | None,
    target: Path | None,
    columns: "tuple[TsvColumn, TsvColumn] | None",
    asked: "AskedColumns | None",
) -> tuple[Collection[str], Collection[str]]:
    """The texts before and after; "" where there are no sources. How they were read is told, where that is a guess.

    Raises:
        InputError: unequal numbers of lines; sources for a model that reads none, or none for another; a source without
            targets.
    """
    from transduce.cli.text import source_lines, tell
    from transduce.core.errors import InputError
    from transduce.data.corpus import lines_of
    from transduce.data.files import existing_file
    from transduce.evaluation.texts import inputs_in

    reads = "source" in pipeline.task.columns
    if columns:
        targets: Collection[str] = lines_of(columns[1])
        return lines_of(columns[0]) if reads else [""] * len(targets), targets
    if target:
        existing_file(target)
    if reads != (source is not None):
        raise InputError(f"{model}: {'needs' if reads else 'is a language model and reads no'} --source.")
    file = inputs_in(pipeline, source, asked) if source else None
    if file and file.note:
        tell(file.note)
    if source and not target:
        return _with_targets(source, file)
    if file and any(file.references):
        raise InputError(f"{source} holds the targets itself: leave out --target.")
    targets = source_lines(target)
    sources = file.texts if file else source_lines(source) if source else [""] * len(targets)
    if len(sources) != len(targets):
        raise InputError(
            f"{source} has {len(sources):,} lines and {target} has {len(targets):,}: line n must belong to line n."
        )
    return sources, targets


def _with_targets(path: Path, file: "InputFile | None") -> tuple[list[str], list[str]]:
    """Both sides of one file. Raises InputError where it lacks some targets."""
    from transduce.core.errors import InputError
    from transduce.data.files import existing_file

    if file is None or not any(file.references):
        existing_file(path)
        more = f" ({file.missing.rstrip('.')})" if file and file.missing else ""
        raise InputError(f"{path}: holds no targets{more}; name their file with --target.")
    if lacking := sum(not each for each in file.references):
        raise InputError(
            f"{path}: {lacking:,} of {len(file.texts):,} pairs have no target. Add the targets, or delete the pairs."
        )
    return file.texts, [several[0] for several in file.references]


def _lines(found: "Iterable[Likelihood]", targets: Iterable[str], as_json: bool) -> Iterator[str]:
    """What is written; the summary last, or on standard error."""
    from transduce.cli.text import json_line, tell
    from transduce.inference.likelihood import Likelihood

    nats, tokens, unit = 0.0, 0, "token"
    for each, text in zip(found, targets, strict=True):
        nats, tokens, unit = nats + each.log_probability, tokens + each.tokens, each.unit
        yield json_line({"target": text, **each.to_dict()}) if as_json else f"{each.log_probability:.4f}\t{text}"
    total = Likelihood(nats, tokens, unit=unit)
    if as_json:
        yield json_line({"total": total.to_dict()})
    else:
        ends = "ends counted, " if unit == "token" else ""
        tell(
            f"perplexity {total.perplexity:.3f} a {unit} ({total.loss:.4f} nats, {total.tokens:,} {unit}s, {ends}"
            "each line alone)"
        )
