"""`transduce predict MODEL < sources > outputs`."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from transduce.cli import options
from transduce.cli.search_keys import models_and_search

if TYPE_CHECKING:
    from transduce.inference.constraints import Constraints
    from transduce.inference.prediction import Prediction
    from transduce.pipeline.pipeline import Pipeline


def predict(
    model: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL|search.KEY=VALUE",
            help="A run directory or a model file. Several are used as an ensemble. search.KEY=VALUE sets any key of "
            "search, such as search.beam=5.",
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            help="Read this file (plain, .gz, .zst or .xz) instead of standard input: one input a line, or a file in "
            "a format of the model's task: SQuAD's JSON, whose outputs are one JSON object by the inputs' ids; for "
            "classification a .csv or .jsonl with the recipe's columns; stories in bAbI's format, also as a pattern."
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            help="Predict this one text instead of reading lines. Its line breaks and white space stand in the output."
        ),
    ] = None,
    method: Annotated[
        Literal["greedy", "beam", "sample", "mask_predict", "ctc"] | None,
        typer.Option(help="The search method. mask_predict and ctc are for models of these kinds."),
    ] = None,
    beam: options.Beam = None,
    prune: options.Prune = None,
    length_rule: Annotated[
        Literal["power", "gnmt", "none"] | None,
        typer.Option(
            help="How outputs are ranked: power is log p / length^alpha, gnmt is log p / ((5 + length) / 6)^alpha, "
            "none is log p."
        ),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="The exponent in --length-rule.")] = None,
    coverage: Annotated[
        float | None, typer.Option(help="The weight of the penalty for source words that were not attended to.")
    ] = None,
    nbest: Annotated[int | None, typer.Option(help="How many outputs to list for each line, with --json.")] = None,
    groups: Annotated[int | None, typer.Option(help="The number of groups of a diverse beam search.")] = None,
    diversity: Annotated[float | None, typer.Option(help="The strength of diversity between groups.")] = None,
    max_new: Annotated[
        int | None,
        typer.Option(help="How many tokens longer an output may be than search.max_length_factor times its source."),
    ] = None,
    min_length: Annotated[int | None, typer.Option(help="The least number of tokens in an output.")] = None,
    no_repeat_ngram: Annotated[
        int | None, typer.Option(help="Forbid that a sequence of this many tokens appears twice in an output.")
    ] = None,
    shortlist: options.Shortlist = None,
    must: Annotated[
        list[str] | None, typer.Option(help="A phrase that must appear in every output. Repeatable.")
    ] = None,
    must_not: Annotated[
        list[str] | None, typer.Option(help="A phrase that must not appear in any output. Repeatable.")
    ] = None,
    prefix: Annotated[str, typer.Option(help="The text that every output begins with.")] = "",
    constraints: Annotated[
        Path | None,
        typer.Option(
            help='A file with a JSON object for each input line: {"must": [..], "must_not": [..], "prefix": ".."}.'
        ),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="With --method sample, divide the logits by this number first.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(help="With --method sample, draw from this many of the most probable tokens.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(help="With --method sample, draw from the most probable tokens that make up this share."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="With --method sample, the seed. Each line has its own stream.")
    ] = None,
    iterations: Annotated[int | None, typer.Option(help="With mask_predict, the number of iterations.")] = None,
    lengths: Annotated[int | None, typer.Option(help="With mask_predict, the number of output lengths to try.")] = None,
    batch_size: options.BatchSize = 64,
    workers: options.Workers = 1,
    to: options.To = "",
    split: options.Split = "auto",
    long: Annotated[
        Literal["split", "truncate", "refuse"],
        typer.Option(help="What to do with a line that is longer than the model can read."),
    ] = "split",
    ensemble: options.Ensemble = "probability",
    precision: options.Precision = "fp32",
    device: options.Device = "auto",
    as_json: options.JsonLines = False,
    draw: Annotated[
        bool,
        typer.Option(
            help="Draw each prediction below its output: the words that a classifier looked at, an answer in its text, "
            "the sentences of a story that were read, a tree, what a language model looks back at, or the attention."
        ),
    ] = False,
    lattice: Annotated[
        bool, typer.Option(help="With --json, write every hypothesis that the beam search considered.")
    ] = False,
    trust_code: options.TrustCode = False,
    engine: Annotated[
        Literal["auto", "torch", "kernels"],
        typer.Option(
            help="What computes. kernels starts in a fraction of the time, and translates with Transformers; torch "
            "runs all models. auto takes the kernels where they give the same output."
        ),
    ] = "auto",
) -> None:
    """Translate or continue each line of standard input.

        transduce predict runs/my < english.txt > swahili.txt

    Or one text: `transduce predict runs/my --text "It rains. We stay at home."`

    Each input line gives one output line, in the same order. At a terminal it asks for lines and answers each. Search
    options that are not given are those of the model's recipe.
    """
    from transduce.cli.engine import translator_of
    from transduce.cli.predictions import answer, writer
    from transduce.cli.text import bar, is_terminal, read_source, tell, write_line
    from transduce.core.errors import InputError
    from transduce.data.tags import require_language
    from transduce.runtime.allocator import keep_freed_memory

    keep_freed_memory()
    at_terminal = source is None and text is None and is_terminal(sys.stdin)
    if source is not None and text is not None:
        raise InputError("--source names a file of inputs and --text is the input itself: give one of them.")
    if draw and as_json:
        raise InputError("--draw shows pictures and --json writes numbers: choose one of them.")
    if at_terminal and constraints:
        raise InputError(
            "--constraints needs one line for each input line: name the input with --source, or pipe it in."
        )
    asked = {
        "method": method,
        "beam": beam,
        "prune": prune,
        "length_rule": length_rule,
        "alpha": alpha,
        "coverage": coverage,
        "nbest": nbest,
        "groups": groups,
        "diversity": diversity,
        "max_length_offset": max_new,
        "min_length": min_length,
        "no_repeat_ngram": no_repeat_ngram,
        "shortlist": shortlist,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
        "iterations": iterations,
        "lengths": lengths,
    }
    models, search = models_and_search(model, asked)
    more = bool(draw or lattice or must or must_not or prefix or constraints or trust_code)
    alone = translator_of(models, engine, search, device, more, ensemble=ensemble, precision=precision)
    pipeline: Any = alone or _with_torch(models, trust_code, ensemble, precision, device)
    file = pipeline.task.read_inputs(source) if source and not alone else None
    lines = [text] if text is not None else file.texts if file else [] if at_terminal else read_source(source)
    if not to and (text is not None or lines):
        require_language(alone.source if alone else pipeline.task.tokenizers.get("source"), lines)
    wanted = _constraints(constraints, len(lines)) if constraints else None
    common: dict[str, Any] = {
        "split": split,
        "long": long,
        "must": must or [],
        "must_not": must_not or [],
        "prefix": prefix,
        "to": to,
    }
    below = partial(draw_below, pipeline) if draw else None
    if at_terminal:
        write = writer(as_json, draw=below)
        answer(lambda line: pipeline.predict([line], tell=tell, lattice=lattice, **common, **search), write)
        return
    with bar("predicting", len(lines)) as advance:
        predictions = pipeline.predict(
            lines,
            batch_size=batch_size,
            workers=workers,
            tell=tell,
            advance=advance,
            wanted=wanted,
            lattice=lattice,
            **common,
            **search,
        )
    if file and file.names and not (as_json or draw):
        write_line({name: each.text for name, each in zip(file.names, predictions, strict=True)})
        return
    write = writer(as_json, text is not None, below)
    for place, prediction in enumerate(predictions):
        write(prediction, {"id": file.names[place]} if file and file.names else {})


def _with_torch(models: list[Path], trust_code: bool, ensemble: Any, precision: Any, device: str) -> "Pipeline":
    from transduce.pipeline.pipeline import load

    return load(models, trust_code=trust_code, ensemble=ensemble, precision=precision, device=device)


def _constraints(path: Path, count: int) -> "list[Constraints]":
    from transduce.inference.constraints import read_constraints

    return read_constraints(path, count)


def draw_below(pipeline: "Pipeline", prediction: "Prediction") -> None:
    """Draw a prediction on standard output, with an empty line behind. Raises InputError where there is no picture."""
    from rich.console import Console

    from transduce.interpret.drawings import drawn

    alone = pipeline.task.drawing or not pipeline.others  # an ensemble looks at nothing, but its trees can be drawn
    picture = (drawn(pipeline.model, pipeline.task, prediction) if alone else None) or prediction.attention()
    sys.stdout.flush()
    Console(file=sys.stdout, highlight=False).print(picture)
    print(flush=True)
