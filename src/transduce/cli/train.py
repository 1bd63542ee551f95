"""`transduce train RECIPE [key=value ...] --run DIR`."""

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.options import DeviceOption


def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe (TOML), or a run directory, which holds its recipe.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Recipe keys to change, such as training.updates=2000."),
    ] = None,
    run: Annotated[Path | None, typer.Option(help="The run directory. By default runs/<recipe name>.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the recipe, parameters, memory and batches, and train nothing.")
    ] = False,
    device: DeviceOption = "auto",
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
) -> None:
    """Train the model that a recipe describes.

        transduce train my.toml

    The same command continues a training that was stopped. Text pairs are examined first, as `transduce doctor` does.
    """
    from rich.console import Console

    from transduce.core.model_file import NAME
    from transduce.data.files import fingerprint
    from transduce.recipe.recipe import load_recipe
    from transduce.runtime.allocator import keep_freed_memory
    from transduce.runtime.devices import use_device
    from transduce.training.display import Display

    use_device(device)
    recipe, run = _of_run(recipe, run, finish)
    resolved = load_recipe(recipe, overrides or [])
    console = Console()
    from transduce.distillation.backtranslation import finish_backtranslated, reverse_of, train_backtranslated
    from transduce.distillation.pipeline import finish_taught, teachers_of, train_taught
    from transduce.training.examination import examine_data
    from transduce.training.run import cache_folder
    from transduce.training.summary import tell_summary

    examine_data(resolved, cache_folder(), Display(console).warn, force or dry_run or finish)

    if dry_run:
        from transduce.training.dry_run import dry_run as show

        first = [reverse_of(resolved)] if resolved.backtranslation else teachers_of(resolved)[:1]
        for each in [*first, resolved]:  # its teachers differ by their seeds alone
            show(each, Display(console))
        return

    keep_freed_memory()
    folder = run or Path("runs") / resolved.name
    back = (finish_backtranslated if finish else train_backtranslated) if resolved.backtranslation else None
    report = (back or (finish_taught if finish else train_taught))(resolved, folder, Display(console))
    tell_summary(resolved, folder, report, Display(console))
    path = folder / NAME  # `transduce shortlist` may have added to it: its hash is not always the report's
    console.print(f"{path}  sha256 {fingerprint(path)}", highlight=False, soft_wrap=True)


def _of_run(recipe: Path, run: Path | None, finish: bool) -> tuple[Path, Path | None]:
    """A run directory, or the recipe that one holds, names both; any other recipe does not say where it was trained."""
    from transduce.core.errors import InputError
    from transduce.training.run_directory import NOTED, RESOLVED

    if recipe.is_dir():
        if not (recipe / RESOLVED).exists():
            raise InputError(
                f"{recipe}: expected a recipe or a run directory; this folder is neither: it holds no {RESOLVED}."
            )
        return recipe / RESOLVED, run or recipe
    if finish and recipe.name == RESOLVED and (recipe.parent / NOTED).exists():
        return recipe, run or recipe.parent
    return recipe, run
