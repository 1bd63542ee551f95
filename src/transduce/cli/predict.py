"""`transduce predict MODEL < sources > outputs`."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def predict(
    model: Annotated[Path, typer.Argument(help="A run directory or a model file.")],
    source: Annotated[Path | None, typer.Option(help="Read this file (plain, .gz, .zst, .xz), not stdin.")] = None,
    method: Annotated[
        Literal["greedy", "beam", "sample", "mask_predict"] | None, typer.Option(help="How to search.")
    ] = None,
    beam: Annotated[int | None, typer.Option(help="Beam width; 1 is greedy.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Outputs are ranked by log p / length^alpha.")] = None,
    nbest: Annotated[int | None, typer.Option(help="Outputs listed for each line, with --json.")] = None,
    max_new: Annotated[int | None, typer.Option(help="Length limit beyond what the source suggests.")] = None,
    temperature: Annotated[float | None, typer.Option(help="For --method sample.")] = None,
    top_k: Annotated[int | None, typer.Option(help="For --method sample.")] = None,
    top_p: Annotated[float | None, typer.Option(help="For --method sample.")] = None,
    seed: Annotated[int | None, typer.Option(help="For --method sample; each line has a stream of its own.")] = None,
    iterations: Annotated[int | None, typer.Option(help="For mask_predict: how often words are written.")] = None,
    lengths: Annotated[int | None, typer.Option(help="For mask_predict: lengths that are tried.")] = None,
    batch_size: Annotated[int, typer.Option(help="Lines searched together: speed and memory, nothing else.")] = 64,
    long: Annotated[
        Literal["split", "truncate", "refuse"], typer.Option(help="A line longer than the model can read.")
    ] = "split",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    trust_code: Annotated[bool, typer.Option(help="Let the model file name code outside Transduce.")] = False,
) -> None:
    """Translate, or continue, each line of standard input: one line in, one line out, order kept."""
    from transduce.cli.text import bar, read_source, tell, write_line
    from transduce.pipeline import load

    lines = read_source(source)
    asked = {
        "method": method,
        "beam": beam,
        "alpha": alpha,
        "nbest": nbest,
        "max_length_offset": max_new,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
        "iterations": iterations,
        "lengths": lengths,
    }
    search = {name: value for name, value in asked.items() if value is not None}
    pipeline = load(model, trust_code=trust_code)
    with bar("predicting", len(lines)) as advance:
        predictions = pipeline.predict(lines, batch_size=batch_size, long=long, tell=tell, advance=advance, **search)
    for prediction in predictions:
        write_line(prediction.to_dict() if as_json else prediction.text)
