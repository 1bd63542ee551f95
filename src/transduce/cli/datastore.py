"""`transduce datastore build MODEL MEMORY` and `transduce datastore info FILE`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli import data_files
from transduce.cli import options as option

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

KEPT_LINES = 100_000  # of the model's validation that are looked through
Knn = Annotated[
    list[str] | None,
    typer.Option(
        help="A setting of the datastore, as k=8, weight=0.5, temperature=10 or distance=50. Repeatable. See "
        "docs/translation-memory.md."
    ),
]


def build(
    model: Annotated[Path, typer.Argument(help="A run directory or a model file.")],
    memory: Annotated[
        Path | None,
        typer.Argument(
            help="The translation memory: .tmx, .tsv, .csv, .jsonl, .json, .parquet, .xlsx, a .zip of OPUS, or the "
            "common beginning of two names. Or name two files with --source and --target."
        ),
    ] = None,
    source: Annotated[Path | None, typer.Option(help="The sources of the memory, one a line, beside --target.")] = None,
    target: Annotated[Path | None, typer.Option(help="The targets of the memory, one a line, beside --source.")] = None,
    source_column: data_files.SourceColumns = None,
    target_column: data_files.TargetColumn = None,
    source_separator: data_files.SourceSeparator = None,
    separator: data_files.Separator = None,
    languages: data_files.Languages = None,
    validation: Annotated[
        Path | None,
        typer.Option(
            help="Pairs like those that will be translated, on which the settings are chosen: one file with the "
            "columns of the memory, or its sources beside --validation-target. By default pairs of the memory, each "
            "without its own entries."
        ),
    ] = None,
    validation_target: data_files.ValidationTarget = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Sources whose outputs should stay as they are, one a line. By default those of the validation that "
            "the model's run names."
        ),
    ] = None,
    kept: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="The share of the outputs of --keep that must stay. 0 lets all of them change."
        ),
    ] = 0.99,
    knn: Knn = None,
    to: option.To = "",
    output: Annotated[
        Path | None, typer.Option(help="The file to write. By default the memory's name with .datastore.")
    ] = None,
    batch_size: option.BatchSize = 64,
    device: option.Device = "auto",
    trust_code: option.TrustCode = False,
) -> None:
    """Make a datastore of a translation memory.

        transduce datastore build runs/my memory.tmx --output memory.datastore

    The datastore is for this model alone. Its settings are chosen on validation data and stored in it. --knn sets some
    of them instead.
    """
    from transduce.cli.text import bar, tell
    from transduce.core.destination import check_output
    from transduce.core.errors import InputError
    from transduce.data.corpus import read_tagged_pairs
    from transduce.data.pairs.inputs import pair_files, resolve_inputs
    from transduce.pipeline.datastores import BuildOptions, build_datastore, check_model
    from transduce.pipeline.pipeline import load

    if (memory is None) == (source is None):
        raise InputError("expected one translation memory: MODEL MEMORY, or --source and --target.")
    first = memory or source
    assert first is not None
    how = (source_column, target_column, source_separator, separator, languages, validation, validation_target)
    named = data_files.named_files(first, target, *how)
    path = output or Path(f"{first.name.removesuffix('.gz').rpartition('.')[0] or first.name}.datastore")
    check_output(path, [model, first, target, validation, validation_target, keep], "--output")
    inputs = resolve_inputs(named)
    for note in inputs.notes:
        tell(note)
    pipeline = load(model, trust_code=trust_code, device=device)
    check_model(pipeline)
    held_out = read_tagged_pairs(pair_files(inputs.validation), Path()) if inputs.validation else ()
    sources, kept_of = _kept_sources(pipeline, model, keep, trust_code) if kept > 0 else ([], "")
    asked = BuildOptions(
        validation=[(a, b) for _, a, b in held_out],
        keep=sources,
        kept=kept,
        knn=settings_of(knn),
        batch_size=batch_size,
        to=to,
    )
    store = build_datastore(pipeline, read_tagged_pairs(pair_files(inputs.train), Path()), path, asked, bar)
    _tell_built(path, len(store), len(store.sources), store.facts, kept_of, tell)


def info(
    file: Annotated[Path, typer.Argument(help="A datastore.")],
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object.")] = False,
) -> None:
    """Show what a datastore holds, and how search uses it.

    transduce datastore info memory.datastore
    """
    from transduce.cli.text import write_line
    from transduce.core.atomic import human_size
    from transduce.search.datastore import read_facts

    facts = read_facts(file)
    if as_json:
        write_line(facts)
        return
    model, settings, chosen = facts["model"], facts["settings"], facts["facts"].get("chosen", {})
    rows = [
        ("model", f"{model.get('name')} ({str(model.get('fingerprint'))[:12]})"),
        ("pairs", f"{facts['pairs']:,}"),
        ("entries", f"{facts['entries']:,} states of {facts['width']:,} numbers"),
        ("size", human_size(file.stat().st_size)),
        ("settings", ", ".join(f"{key} {value}" for key, value in settings.items() if value is not None)),
    ]
    if chosen:
        rows.append(("validation", f"perplexity {chosen['before']:.2f} without it, {chosen['after']:.2f} with it"))
    if chosen and chosen.get("kept") is not None:
        rows.append(("kept", f"{chosen['kept']:.1%} of {chosen['sentences']:,} other outputs"))
    for name, value in rows:
        write_line(f"{name:10}  {value}")


def datastore() -> None:
    """Let a model consult a translation memory while it translates.

        transduce datastore build runs/my memory.tmx

    `build` makes a datastore of a memory, `info` shows what one holds. predict and serve take it with --datastore.
    """


VERBS = (build, info)


def settings_of(given: Sequence[str] | None) -> dict[str, Any]:
    """The settings that KEY=VALUE name. Raises InputError for what is malformed; names are checked later."""
    from transduce.core.overrides import apply_overrides

    return apply_overrides({}, given or ())


def _kept_sources(pipeline: "Pipeline", model: Path, keep: Path | None, trust_code: bool) -> tuple[list[str], str]:
    """Sources whose outputs should stay as they are, and where they are from; [] where nobody knows any."""
    from itertools import islice

    from transduce.cli.text import read_source, tell
    from transduce.cli.training_data import training_data
    from transduce.core.errors import InputError
    from transduce.core.model_file import find_model_file
    from transduce.data.corpus import read_tagged_pairs
    from transduce.pipeline.datastores import keep_of

    if keep is not None:
        return keep_of(read_source(keep)), str(keep)
    try:
        data = training_data(find_model_file(model), None, "--keep", trust_code)
        if data.validation is None:
            raise InputError("its recipe names no validation")
        pairs = read_tagged_pairs(data.validation, Path(data.root))
        return keep_of([source for _, source, _ in islice(pairs, KEPT_LINES)]), "the model's validation"
    except InputError as error:
        tell(
            "nothing is known of other texts that the model translates, so the settings are chosen on the memory "
            f"alone; name some with --keep. ({error})"
        )
        return [], ""


def _tell_built(path: Path, entries: int, pairs: int, facts: Any, kept_of: str, tell: Any) -> None:
    from transduce.core.atomic import human_size
    from transduce.pipeline.datastores import told_dropped

    chosen = facts["chosen"]
    if dropped := told_dropped(facts["dropped"]):
        tell(f"not taken: {dropped}.")
    tell(f"{path}: {entries:,} entries of {pairs:,} pairs, {human_size(path.stat().st_size)}.")
    settings = ", ".join(f"{key} {value}" for key, value in chosen["settings"].items() if value is not None)
    tell(
        f"{settings}: perplexity of {chosen['tokens']:,} tokens {chosen['before']:.2f} without the memory, "
        f"{chosen['after']:.2f} with it."
    )
    if chosen["kept"] is not None:
        tell(f"{chosen['kept']:.1%} of the outputs for {chosen['sentences']:,} sentences of {kept_of} stay the same.")
