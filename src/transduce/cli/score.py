"""`transduce score MODEL --source A --target B`."""

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli import options


def score(
    model: Annotated[
        list[Path], typer.Argument(help="A run directory or a model file. Several are used as an ensemble.")
    ],
    target: Annotated[Path | None, typer.Option(help="The texts to score, one a line.")] = None,
    source: Annotated[Path | None, typer.Option(help="Their sources, one a line. A language model has none.")] = None,
    tsv: options.Tsv = None,
    source_column: options.SourceColumns = None,
    target_column: options.TargetColumn = None,
    batch_size: Annotated[int, typer.Option(min=1, help="How many lines to score at once.")] = 64,
    ensemble: options.Ensemble = "probability",
    device: options.Device = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="Write one JSON object a line, and the summary last.")
    ] = False,
    trust_code: options.TrustCode = False,
) -> None:
    """Write the log-probability of each text, and the perplexity.

        transduce score runs/my --source a.en --target a.sw

    Log-probabilities are in nats. Sources and targets belong together line by line.
    """
    from transduce.cli.text import bar, tell, write_line
    from transduce.core.errors import InputError
    from transduce.data.corpus import lines_of
    from transduce.inference.likelihood import Likelihood
    from transduce.pipeline.pipeline import load

    sides = options.columns(tsv, source_column, target_column)
    if bool(sides) == bool(target) or (sides and source):
        raise InputError("name --target (and --source, if the model reads one), or a --tsv with both as columns.")
    texts, given = sides[::-1] if sides else (target, source)
    assert texts  # one of both, as was seen to
    targets = lines_of(texts)
    sources = lines_of(given) if given else [""] * len(targets)
    if len(sources) != len(targets):
        raise InputError(
            f"{source} has {len(sources):,} lines and {target} has {len(targets):,}: line n must belong to line n."
        )
    pipeline = load(model, trust_code=trust_code, ensemble=ensemble, device=device)
    if sides and "source" not in pipeline.task.columns:
        sources = [""] * len(targets)
    elif not sides and ("source" in pipeline.task.columns) != (source is not None):
        wanted = "needs --source" if source is None else "is a language model and reads no --source"
        raise InputError(f"{model[0]}: {wanted}.")
    with bar("scoring", len(targets)) as advance:
        found = pipeline.score(list(zip(sources, targets, strict=True)), batch_size=batch_size, advance=advance)
    unit = found[0].unit if found else "token"
    total = Likelihood(sum(each.log_probability for each in found), sum(each.tokens for each in found), unit=unit)
    for each, text in zip(found, targets, strict=True):
        write_line({"target": text, **each.to_dict()} if as_json else f"{each.log_probability:.4f}\t{text}")
    if as_json:
        write_line({"total": total.to_dict()})
    else:
        ends = "ends counted, " if unit == "token" else ""
        tell(
            f"perplexity {total.perplexity:.3f} a {unit} ({total.loss:.4f} nats, {total.tokens:,} {unit}s, {ends}"
            "each line alone)"
        )
