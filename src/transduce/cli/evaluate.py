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
            help="The inputs, one a line, or a file in a format of the models' task with its references, such as "
            "SQuAD's JSON, for classification a .csv or .jsonl, or stories in bAbI's format. A language model has none."
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
        list[str] | None, typer.Option(help="The name of a metric. Repeatable. By default the first model's metrics.")
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            help="The code of the target language (de, zh-CN), which decides how words are split. By default the "
            "model's."
        ),
    ] = None,
    to: options.To = "",
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
    from transduce.evaluation.evaluate import Files, Settings, evaluate_files
    from transduce.runtime.allocator import keep_freed_memory

    keep_freed_memory()
    asked = {"beam": beam, "alpha": alpha, "prune": prune, "shortlist": shortlist}
    models, search = models_and_search(models, asked, needed=False)
    settings = Settings(metric, batch_size, search)
    named = _by_name(outputs or [], models)
    sides = options.columns(tsv, source_column, target_column)
    if sides and source:
        raise InputError("--tsv already holds the sources: leave out --source.")
    pipelines = _load(models, trust_code, precision, device)
    read = any("source" in model.task.columns for model in pipelines.values())  # a language model reads no sources
    inputs, references = sides[0] if sides and read else source, [*(sides[1:] if sides else ()), *(reference or [])]
    files = Files(inputs, references, named, language, to)
    with bar("translating", 0) as advance:
        report = evaluate_files(pipelines, files, settings, advance)
    if as_json:
        write_line(report)
        return
    if "left_out" in report:
        typer.echo(f"{report['left_out']:,} inputs without a correct answer were left out.")
    (_show_comparison if "systems" in report else _show)(report)


def _load(models: list[Path], trust_code: bool, precision: "Precision", device: str) -> "dict[str, Pipeline]":
    from transduce.pipeline.pipeline import load

    return {
        name: load(_members(path), trust_code=trust_code, precision=precision, device=device)
        for name, path in _by_name(models, []).items()
    }


def _members(path: Path) -> list[Path]:
    """The models of an ensemble, which is written A+B; a path that is there is itself."""
    return [path] if path.exists() else [Path(part) for part in str(path).split("+")]


def _by_name(paths: list[Path], taken: list[Path]) -> dict[str, Path]:
    """Systems are told apart by the paths they were given as."""
    from transduce.core.errors import InputError

    everything = [str(path) for path in [*taken, *paths]]
    twice = sorted({name for name in everything if everything.count(name) > 1})
    if twice:
        raise InputError(f"named twice: {', '.join(twice)}. Name each system once.")
    return {str(path): path for path in paths}


def _show(report: dict[str, Any]) -> None:
    for figure in report["scores"].values():
        typer.echo(f"{_figure(figure)}  {figure['signature']}")
    for note in dict.fromkeys(figure["note"] for figure in report["scores"].values() if "note" in figure):
        typer.echo(f"  {note}")
    if "likelihood" in report:
        typer.echo(_perplexity(report["likelihood"]))
    _show_unknown(report, "")
    _show_groups(report)
    _show_confusion(report)


def _show_comparison(report: dict[str, Any]) -> None:
    """Metric by metric: every system's figure, its difference to the first, and what that means."""
    systems, comparisons = report["systems"], report["comparisons"]
    width = max(map(len, systems))
    for metric in dict.fromkeys(each["metric"] for each in comparisons):
        against = {each["second"]: each for each in comparisons if each["metric"] == metric}
        any_of_them = next(iter(against.values()))
        typer.echo(f"{any_of_them['name']}  {any_of_them['signature']}")
        if "note" in any_of_them:
            typer.echo(f"  {any_of_them['note']}")
        for name, system in systems.items():
            figure = system["scores"].get(metric)
            difference = _difference(against[name]) if name in against else ""
            if figure or difference:
                typer.echo(f"  {name:<{width}}  {_with_interval(figure) if figure else '':<21}  {difference}".rstrip())
        for each in against.values():
            typer.echo(f"  {each['verdict']}")
    for name, system in systems.items():
        if "likelihood" in system:
            typer.echo(f"{name}: {_perplexity(system['likelihood'])}")
        _show_unknown(system, f"{name}: ")
        _show_groups(system, f"{name}, by task:")
        _show_confusion(system, f"{name}, counts of labels:")


def _show_groups(report: dict[str, Any], title: str = "By task:") -> None:
    if len(report.get("groups", {})) > 1:
        from rich.console import Console

        from transduce.training.summary import groups_table

        Console().print(groups_table(report["groups"], title))


def _show_confusion(report: dict[str, Any], title: str = "Counts of labels:") -> None:
    if "confusion" in report:
        from rich.console import Console

        from transduce.interpret.confusion import confusion_table
        from transduce.metrics.confusion import Confusion

        Console().print(confusion_table(Confusion.from_dict(report["confusion"]), title))


def _figure(figure: dict[str, Any]) -> str:
    return f"{figure['name']} {_with_interval(figure)}"


def _difference(comparison: dict[str, Any]) -> str:
    p_value = "" if comparison["p_value"] is None else f"  p = {comparison['p_value']:.3f}"
    return _with_interval(comparison, "+") + p_value


def _with_interval(figure: dict[str, Any], sign: str = "") -> str:
    from transduce.metrics.score import decimals

    form = f"{{:{sign}.{decimals(figure['signature'])}f}}"
    interval = "" if figure["interval"] is None else f" [{form}, {form}]".format(*figure["interval"])
    return form.format(figure["value"]) + interval


def _show_unknown(system: dict[str, Any], name: str) -> None:
    if count := system.get("unknown_answers"):
        typer.echo(f"{name}answers that no training question has, which count as wrong: {count:,}")


def _perplexity(likelihood: dict[str, Any]) -> str:
    return (
        f"perplexity {likelihood['perplexity']:.3f}  {likelihood['signature']}|context:{likelihood['context']}|"
        f"tokens:{likelihood['tokens']}"
    )
