"""`transduce evaluate MODEL --source A --reference B`."""

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    model: Annotated[Path, typer.Argument(help="A run directory or a model file.")],
    reference: Annotated[Path, typer.Option(help="What should come out, one a line; a language model's text.")],
    source: Annotated[Path | None, typer.Option(help="What goes in, one a line; none for a language model.")] = None,
    beam: Annotated[int | None, typer.Option(help="Beam width; 1 is greedy.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Outputs are ranked by log p / length^alpha.")] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Metric by name, repeatable; the recipe's by default.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Lines searched together.")] = 64,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    trust_code: Annotated[bool, typer.Option(help="Let the model file name code outside Transduce.")] = False,
) -> None:
    """Decode and score: each figure with its signature and a 95 % bootstrap interval."""
    from transduce.cli.text import bar, write_line
    from transduce.evaluation import evaluate_files
    from transduce.pipeline import load

    pipeline = load(model, trust_code=trust_code)
    asked = {"beam": beam, "alpha": alpha}
    search = {name: value for name, value in asked.items() if value is not None}
    with bar("translating", 0) as advance:
        report = evaluate_files(pipeline, source, reference, metric, batch_size, advance, search)
    if as_json:
        write_line(report)
        return
    for figure in report["scores"].values():
        interval = "" if figure["interval"] is None else " [{:.2f}, {:.2f}]".format(*figure["interval"])
        typer.echo(f"{figure['name']} {figure['value']:.2f}{interval}  {figure['signature']}")
    likelihood = report["likelihood"]
    typer.echo(f"perplexity {likelihood['perplexity']:.3f}  {likelihood['signature']}|tokens:{likelihood['tokens']}")
