"""`transduce runs`: which trainings there are, how good they are, and which still run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from transduce.training.run_list import RunFacts

USUAL = Path("runs")
WIDE = 1_000  # columns where nobody looks: each run is one line, for grep


def runs(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[FOLDER]...", help="Folders of runs, or runs. By default runs.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON, for programs.")] = False,
) -> None:
    """List the runs in a folder, the newest last.

        transduce runs

    Each has its folder, the date, the task and its data, a score, and whether it is finished, stopped or training now.
    The score is the first one of its tests. Before these, it is that of the newest validation.
    """
    from transduce.cli.text import tell
    from transduce.training.run_list import runs_in

    given = folders or ([USUAL] if USUAL.is_dir() else [])
    found = runs_in(given)
    if as_json:
        import json

        typer.echo(json.dumps({"runs": [run.to_dict() for run in found]}, indent=2))
        return
    if not found:
        tell(f"There are no runs in {', '.join(map(str, given)) or USUAL}. `transduce train` makes one.")
        return
    _show(found)


def _show(found: "list[RunFacts]") -> None:
    from rich.table import Table
    from rich.text import Text

    from transduce.runtime.console import make_console

    console = make_console()
    if not console.is_terminal:
        console.width = WIDE
    table = Table("run", "date", "task", "data", "score", "state", box=None, header_style="bold", pad_edge=False)
    for run in found:
        cells = (run.folder, run.date[:16].replace("T", " "), run.task, run.data, _score(run), _state(run))
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)


def _score(run: "RunFacts") -> str:
    """`BLEU 34.12 (test_2016)`."""
    if run.score is None:
        return ""
    return f"{run.score.metric} {run.score.value:.2f} ({run.score.test or 'validation'})"


def _state(run: "RunFacts") -> str:
    """`training now: update 300 of 1,000, 30 %`."""
    if run.state == "finished":
        return "finished" + (f" ({run.problem})" if run.problem else "")
    if run.state == "damaged":
        return f"damaged: {run.problem}"
    words = {"training": "training now", "stopped": "stopped"}
    return f"{words[run.state]}: {_progress(run)}"


def _progress(run: "RunFacts") -> str:
    told = f"update {run.update:,}" + (f" of {run.updates:,}" if run.updates else "")
    if run.minutes_planned:
        told += f", {run.minutes:.0f} of {run.minutes_planned:g} minutes"
    return told + (f", {100 * share:.0f} %" if (share := _share(run)) is not None else "")


def _share(run: "RunFacts") -> float | None:
    """Of the updates or the minutes that are done, whichever ends the training first."""
    shares = [run.update / run.updates] if run.updates else []
    shares += [run.minutes / run.minutes_planned] if run.minutes_planned else []
    return min(1.0, max(shares)) if shares else None
