"""`transduce new FILE.toml --source FILE --target FILE [key=value ...]`."""

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli import data_files, options


def new(
    file: Annotated[Path, typer.Argument(help="The recipe to write (TOML).")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Recipe keys to decide yourself, such as model.d_model=256."),
    ] = None,
    source: data_files.SourceFile = None,
    target: data_files.TargetFile = None,
    source_column: data_files.SourceColumns = None,
    target_column: data_files.TargetColumn = None,
    source_separator: data_files.SourceSeparator = None,
    separator: data_files.Separator = None,
    languages: data_files.Languages = None,
    validation: data_files.Validation = None,
    validation_target: data_files.ValidationTarget = None,
    test: data_files.Test = None,
    test_target: data_files.TestTarget = None,
    task: data_files.Task = None,
    start: data_files.Start = None,
    time: data_files.Time = None,
    device: options.Device = "auto",
    force: Annotated[bool, typer.Option("--force", help="Replace a file of this name.")] = False,
) -> None:
    """Write a recipe for your data, each key with its reason.

        transduce new my.toml --source train.en --target train.sw

    It holds what `transduce train --source .. --target ..` decides, to read and to change.
    """
    from transduce.core.atomic import write_text
    from transduce.core.destination import check_output
    from transduce.core.errors import InputError
    from transduce.core.overrides import apply_overrides
    from transduce.core.trust import allow_code
    from transduce.planning.plan import make_plan
    from transduce.planning.planned_run import decisions_table, recipe_text
    from transduce.planning.promise import parse_minutes
    from transduce.runtime.console import make_console
    from transduce.runtime.devices import use_device
    from transduce.training.display import Display

    problems = []
    if source is None:
        problems.append("expected the data: name it with --source, and with --target where it is in two files.")
    if file.suffix != ".toml":
        problems.append(f"{file}: expected the name of a recipe, which ends in .toml.")
    if (file.exists() or file.is_symlink()) and not force:
        problems.append(f"{file}: there is such a file already. Choose another name, or replace it with --force.")
    if problems or source is None:
        raise InputError(problems)
    check_output(file, [source, target])
    use_device(device)
    held_out = validation, validation_target, test, test_target
    named = data_files.named_files(
        source, target, source_column, target_column, source_separator, separator, languages, *held_out, task
    )
    minutes = parse_minutes(time) if time else None
    console = make_console()
    given = apply_overrides({}, data_files.with_start(overrides or [], start))
    allow_code(given)
    plan = make_plan(named, given, minutes, Display(console), file.stem, force=True)  # training refuses
    console.print(decisions_table(plan))
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, recipe_text(plan))
    console.print(plan.promised.sentence(), highlight=False)
    console.print(f"{file} is written. Next: transduce train {file}", highlight=False, soft_wrap=True)
