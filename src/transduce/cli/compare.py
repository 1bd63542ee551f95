"""`transduce compare FILE [key=value ...] --budget 20m --run DIR`."""

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.options import DeviceOption


def compare(
    comparison: Annotated[Path, typer.Argument(help="A comparison, TOML: see recipes/compare/.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Recipe keys to set for all variants, as data.root=my/folder."),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Of each training: 20m or 1.5h, 5Mtok target tokens, 1e15flop operations.")
    ] = None,
    run: Annotated[Path | None, typer.Option(help="Directory; runs/compare/<name> by default.")] = None,
    device: DeviceOption = "auto",
) -> None:
    """Train variants of a recipe on the same data with the same budget; one table, one page.

    The same command again goes on where it stopped.
    """
    from rich.console import Console

    from transduce.compare.config import load_comparison
    from transduce.compare.run import run_comparison
    from transduce.compare.show import show
    from transduce.runtime.devices import use_device
    from transduce.training.display import Display

    use_device(device)
    loaded = load_comparison(comparison, overrides or [], budget)
    folder = run or Path("runs") / "compare" / loaded.name
    console = Console()
    show(run_comparison(loaded, folder, Display(console)), console)
    console.print(f"{folder / 'compare.html'}, {folder / 'compare.json'}", highlight=False, soft_wrap=True)
