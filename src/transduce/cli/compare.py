"""`transduce compare FILE [key=value ...] --budget 20m --run DIR`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli import options
from transduce.core.errors import InputError


def compare(
    comparison: Annotated[Path, typer.Argument(help="A comparison (TOML). Examples are in recipes/compare/.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...", help="Recipe keys to change in all variants, such as data.root=my/folder."
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="The budget of each training: time (20m, 1.5h), target tokens (5Mtok) or operations (1e15flop). By "
            "default the comparison's."
        ),
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="The directory for all runs. By default runs/compare/<name>.")
    ] = None,
    device: options.Device = "auto",
) -> None:
    """Train variants of a recipe with one budget, and compare them.

        transduce compare recipes/compare/cells.toml --budget 5Mtok

    All variants have the same data. The result is a table and a page. The same command continues a comparison
    that was stopped.
    """
    from transduce.compare.config import load_comparison
    from transduce.compare.run import run_comparison
    from transduce.compare.show import show
    from transduce.runtime.console import make_console
    from transduce.runtime.devices import use_device
    from transduce.training.display import Display
    from transduce.training.run_directory import default_run

    use_device(device)
    _refuse_models([comparison, *(Path(each) for each in overrides or [])])
    loaded = load_comparison(comparison, overrides or [], budget)
    folder = run or default_run(loaded.name, "compare")
    console = make_console()
    show(run_comparison(loaded, folder, Display(console)), console)
    console.print(f"{folder / 'compare.html'}, {folder / 'compare.json'}", highlight=False, soft_wrap=True)


def _refuse_models(given: list[Path]) -> None:
    """Raises InputError for trained models in the place of a comparison: another command compares those."""
    first, *_ = given
    if first.is_dir() or first.suffix == ".safetensors":
        models = " ".join(shlex.quote(str(path)) for path in given if path.exists())
        raise InputError(
            f"{first}: expected a comparison (TOML), whose variants are trained. Trained models are compared by: "
            f"transduce evaluate {models} --source TEST --reference TEST"
        )
