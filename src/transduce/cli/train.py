"""`transduce train RECIPE [key=value ...] --run DIR`, or `transduce train --source FILE --target FILE`."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli import data_files, options

if TYPE_CHECKING:
    from transduce.data.pairs.inputs import Named
    from transduce.recipe.recipe import Recipe
    from transduce.runtime.process_group import ProcessGroup
    from transduce.training.display import Display
    from transduce.training.finished import Report


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="A recipe (TOML), a run directory, which holds its recipe, or examples: pairs, labels, tags."
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Recipe keys to change, such as training.updates=2000."),
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
    run: Annotated[Path | None, typer.Option(help="The run directory. By default runs/<recipe name>.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the recipe, parameters, memory and batches, and train nothing.")
    ] = False,
    device: options.Device = "auto",
    force: Annotated[
        bool, typer.Option("--force", help="Train even if the examination of the data found errors.")
    ] = False,
    finish: Annotated[
        bool,
        typer.Option(
            "--finish",
            help="Stop training: write the model file, report and figures from the best checkpoint so far.",
        ),
    ] = False,
    resize: Annotated[
        bool, typer.Option("--resize", help="Go on with a training that another number of processes began.")
    ] = False,
    trust_code: options.TrustCode = False,
) -> None:
    """Train the model that a recipe describes, or the best one for your data.

        transduce train --source train.en --target train.sw

    Without a recipe, everything is decided from the data and the speed of this machine, and told first; a table of
    texts with labels trains a classifier, words with labels train a tagger. `transduce train my.toml` trains a recipe.
    The same command continues a training that was stopped. Text pairs are examined first, as `transduce doctor` does.
    """
    from transduce.core.trust import allow_code
    from transduce.recipe.recipe import load_recipe, load_run_recipe
    from transduce.runtime.devices import use_device

    use_device(device)
    given = data_files.with_start(list(overrides or []), start)
    held_out = validation, validation_target, test, test_target
    data = [target, source_column, target_column, source_separator, separator, languages, task, time, *held_out]
    if recipe is not None and source is None and _names_examples(recipe, separator, task):
        source, recipe = Path(recipe), None
    if source is not None and recipe is not None and "=" in recipe:
        given, recipe = [recipe, *given], None
    if target is None:
        _refuse_two_files(recipe, given, source)
    _refuse_mixed(recipe, source, any(each is not None for each in data))
    if source is not None:
        named = data_files.named_files(
            source, target, source_column, target_column, source_separator, separator, languages, *held_out, task
        )
        _train_planned(named, given, time, run, dry_run, force, finish)
        return
    path, run = _of_run(Path(recipe or ""), run, finish)
    load = load_recipe if path == Path(recipe or "") else load_run_recipe
    from transduce.runtime.process_group import leave, started_group
    from transduce.training.run_directory import default_run

    with started_group(resize) as group:
        resolved = group.from_first(lambda: load(path, given, trust_code))
        allow_code(resolved.to_table())  # in the other processes, too
        _train(resolved, run or default_run(resolved.name), dry_run, force, finish, group)
    leave(group)


def _train(
    resolved: "Recipe",
    folder: Path,
    dry_run: bool,
    force: bool,
    finish: bool,
    group: "ProcessGroup",
    examined: bool = False,
    display: "Display | None" = None,
) -> "Report | None":
    """The recipe into the folder; None where nothing was trained, or another process has the report.

    examined: its data was looked at already. display: that of its planning, which is not told again.
    """
    from transduce.core.cache import cache_folder
    from transduce.core.model_file import NAME
    from transduce.data.files import fingerprint
    from transduce.distillation.pipeline import finish_recipe, first_recipes, train_recipe
    from transduce.runtime.allocator import keep_freed_memory
    from transduce.runtime.console import make_console
    from transduce.training.display import Display
    from transduce.training.examination import examine_data
    from transduce.training.summary import tell_summary

    display = display or Display(make_console(quiet=not group.first))
    if not examined:
        group.from_first(lambda: examine_data(resolved, cache_folder(), display.warn, force or dry_run or finish))
    if not group.first and (dry_run or finish):
        return None

    if dry_run:
        from transduce.training.dry_run import dry_run as show

        for each in [*first_recipes(resolved)[:1], resolved]:  # its teachers differ by their seeds alone
            show(each, display)
        return None

    keep_freed_memory()
    report = finish_recipe(resolved, folder, display) if finish else train_recipe(resolved, folder, display, group)
    if not group.first:
        return None
    tell_summary(resolved, folder, report, display)
    path = folder / NAME  # `transduce shortlist` may have added to it: its hash is not always the report's
    display.console.print(f"{path}  sha256 {fingerprint(path)}", highlight=False, soft_wrap=True)
    return report


def _train_planned(
    named: "Named", overrides: list[str], time: str | None, run: Path | None, dry_run: bool, force: bool, finish: bool
) -> None:
    """Decide, tell, train; the same command goes on with what was decided first."""
    from time import monotonic

    since = monotonic()
    from transduce.core.overrides import apply_overrides
    from transduce.core.trust import allow_code
    from transduce.planning.planned_run import planned_run, tell_taken
    from transduce.planning.promise import parse_minutes
    from transduce.planning.recognition import planner_of
    from transduce.runtime.allocator import keep_freed_memory
    from transduce.runtime.console import make_console
    from transduce.runtime.process_group import ALONE, refuse_several
    from transduce.training.display import Display
    from transduce.training.run_directory import default_run

    refuse_several("training without a recipe; write one by `transduce new` first, and train that by torchrun")
    display, minutes = Display(make_console()), parse_minutes(time) if time else None
    folder = run or default_run(planner_of(named).inputs.name)
    given, asked = apply_overrides({}, overrides), {"overrides": overrides}
    allow_code(given)
    keep_freed_memory()
    plan, begun = planned_run(folder, named, given, asked, minutes, display, force, dry_run, since)
    report = _train(plan.recipe, folder, dry_run, force, finish, ALONE, not begun, display)
    if report is not None and not finish:
        tell_taken(folder, report, plan, display.console)


def _names_examples(name: str, separator: str | None, task: str | None) -> bool:
    """Whether data is named where a recipe may be; a file that is not there is told by its suffix."""
    from transduce.planning.recognition import names_examples

    return "=" not in name and names_examples(Path(name), separator, task)


def _is_other(name: str) -> bool:
    from transduce.data.pairs.inputs import names_data

    return name.endswith(".toml") or ("=" not in name and names_data(Path(name)))


def _refuse_two_files(recipe: str | None, given: list[str], source: Path | None) -> None:
    """Raises InputError where the second of two text files is named without its option, or both are."""
    from transduce.core.errors import InputError

    unnamed = [name for name in (recipe, *given) if name and Path(name).is_file() and not _is_other(name)]
    files = [str(each) for each in (source, *unnamed) if each is not None]
    if unnamed and len(files) == 2:
        raise InputError(
            f"{' and '.join(files)}: expected the options --source and --target before two files: "
            f"{shlex.join(['transduce', 'train', '--source', files[0], '--target', files[1]])}"
        )


def _refuse_mixed(recipe: str | None, source: Path | None, other: bool) -> None:
    """Raises InputError where both or neither are named, a recipe and data."""
    from transduce.core.errors import InputError

    if recipe is not None and source is not None:
        raise InputError(
            f"{recipe}: a recipe names its own data; expected either a recipe or --source. `transduce new` writes a "
            "recipe for your data."
        )
    if recipe is None and source is None:
        raise InputError(
            "expected a recipe, a run directory, or data: transduce train --source train.en --target train.sw."
        )
    if recipe is not None and other:
        raise InputError(
            "--target, --source-column, --target-column, --source-separator, --separator, --languages, --validation, "
            "--test, --task and --time are for training without a recipe, with --source. A recipe has keys for these: "
            "data.train, data.validation, data.test, training.minutes."
        )


def _of_run(recipe: Path, run: Path | None, finish: bool) -> tuple[Path, Path | None]:
    """A run directory, or the recipe that one holds, names both; any other recipe does not say where it was trained."""
    from transduce.core.errors import InputError
    from transduce.core.folders import RESOLVED
    from transduce.training.run_directory import NOTED

    if recipe.is_dir():
        if not (recipe / RESOLVED).exists():
            raise InputError(
                f"{recipe}: expected a recipe or a run directory; this folder is neither: it holds no {RESOLVED}."
            )
        return recipe / RESOLVED, run or recipe
    if finish and recipe.name == RESOLVED and (recipe.parent / NOTED).exists():
        return recipe, run or recipe.parent
    return recipe, run
