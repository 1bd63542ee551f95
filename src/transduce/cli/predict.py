"""`transduce predict MODEL < sources > outputs`."""

import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from transduce.cli import options as option
from transduce.cli.search_keys import models_and_search, refuse_texts

if TYPE_CHECKING:
    from transduce.cli.predictions import Write
    from transduce.data.input_file import InputFile
    from transduce.data.pair_inputs import AskedColumns
    from transduce.inference.constraints import Constraints
    from transduce.inference.options import PredictionOptions
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
            "a format of the model's task: for pairs of texts a .csv, .jsonl, .tmx or .tsv with the recipe's columns, "
            "for classification a .csv or .jsonl; SQuAD's JSON, whose outputs are one JSON object by the inputs' ids; "
            "stories in bAbI's format, also as a pattern."
        ),
    ] = None,
    source_column: option.SourceColumns = None,
    output: option.Output = None,
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
    beam: option.Beam = None,
    prune: option.Prune = None,
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
    shortlist: option.Shortlist = None,
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
    batch_size: option.BatchSize = 64,
    workers: option.Workers = None,
    to: option.To = "",
    split: option.Split = "auto",
    long: Annotated[
        Literal["split", "truncate", "refuse"],
        typer.Option(help="What to do with a line that is longer than the model can read."),
    ] = "split",
    ensemble: option.Ensemble = "probability",
    precision: option.Precision = "fp32",
    device: option.Device = "auto",
    as_json: option.JsonLines = False,
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
    trust_code: option.TrustCode = False,
    engine: Annotated[
        Literal["auto", "torch", "kernels", "ray"],
        typer.Option(
            help="What computes. kernels starts in a fraction of the time, and translates with Transformers; torch "
            "runs all models. auto takes the kernels where they give the same output. ray spreads the lines over a "
            "Ray cluster (RAY_ADDRESS, else this machine)."
        ),
    ] = "auto",
) -> None:
    """Translate or continue each line of standard input.

        transduce predict runs/my < english.txt > swahili.txt

    Or one text: `transduce predict runs/my --text "It rains. We stay at home."`

    Each input line gives one output line, in the same order. At a terminal it asks for lines and answers each. Search
    options that are not given are those of the model's recipe.
    """
    from transduce.cli.predictions import answer, writer
    from transduce.cli.text import is_terminal, json_line, source_lines, tell, write_lines
    from transduce.core.destination import check_output
    from transduce.data.tags import require_language
    from transduce.inference.options import PredictionOptions
    from transduce.runtime.allocator import keep_freed_memory
    from transduce.without_torch.choice import translator_of

    keep_freed_memory()
    at_terminal = source is None and text is None and is_terminal(sys.stdin)
    _check(source, source_column, text, at_terminal, draw, as_json, constraints, engine, output)
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
    refuse_texts(models)
    check_output(output, [*models, source, constraints], "--output")
    use: dict[str, Any] = {"ensemble": ensemble, "precision": precision}
    more = bool(draw or lattice or must or must_not or prefix or constraints or trust_code)
    alone = translator_of(models, engine, search, device, more, **use)
    use |= {"trust_code": trust_code, "device": device}
    pipeline: Any = alone or _with_torch(models, {**use, "device": "cpu"} if engine == "ray" else use)
    file = _inputs(pipeline, source, option.asked_columns(source_column, None)) if source else None
    if file and file.note:
        tell(file.note)
    lines: Collection[str] = [text] if text is not None else file.texts if file else []
    if not (lines or file or at_terminal):
        lines = source_lines(source)
    if not to and (text is not None or lines):
        require_language(alone.source if alone else pipeline.task.tokenizers.get("source"), lines)
    if lines:
        _tell_unfamiliar(pipeline, lines)
    wanted = _constraints(constraints, len(lines)) if constraints else None
    options = PredictionOptions(
        batch_size=batch_size,
        split=split,
        long=long,
        must=must or [],
        must_not=must_not or [],
        prefix=prefix,
        to=to,
        lattice=lattice,
        workers=1 if engine == "ray" else workers or 1,
        search=search,
    )
    below = partial(draw_below, pipeline) if draw else None
    if at_terminal:
        write = writer(as_json, draw=below)

        def predicted(line: str) -> "list[Prediction]":
            _tell_unfamiliar(pipeline, [line])
            found: list[Prediction] = pipeline.predict_all([line], replace(options, tell=tell))
            return found

        answer(predicted, write)
        return
    names = file.names if file else []
    if text is not None or draw:
        write = writer(as_json, text is not None, below)
        _write_alone(pipeline, lines, names, replace(options, wanted=wanted), write)
        return
    how = {"predict": options.to_table(), "form": "json" if as_json else "text"}
    rows = _rows(lines, names if as_json else [], wanted)
    found = _in_bulk(pipeline, models, use, how, rows, len(lines), engine == "ray", workers)
    if names and not as_json:
        found = (json_line(dict(zip(names, outputs, strict=True))) for outputs in [found])
    write_lines(found, output)


def _tell_unfamiliar(pipeline: Any, lines: Collection[str]) -> None:
    """What of the input is in no training text, in a line."""
    from transduce.cli.text import tell
    from transduce.inference.familiarity import LOOKED_AT

    found = pipeline.familiarity.of_inputs(pipeline.source_columns.joined([*islice(lines, LOOKED_AT)]))
    if sentence := found.sentence():
        tell(sentence)


def _inputs(pipeline: Any, path: Path, asked: "AskedColumns | None") -> "InputFile | None":
    """What a file in a format of the model's task holds; None: it has an input a line."""
    if asked:
        from transduce.data.pair_inputs import read_asked

        return read_asked(path, pipeline.recipe.to_table() if hasattr(pipeline, "recipe") else pipeline.config, asked)
    if hasattr(pipeline.task, "read_inputs"):
        return pipeline.task.read_inputs(path)
    from transduce.data.formats import is_table

    if not is_table(path):
        return None
    from transduce.data.pair_inputs import known_of, read_pair_inputs

    return read_pair_inputs(path, known_of(pipeline.config))


def _check(
    source: Path | None,
    source_column: list[str] | None,
    text: str | None,
    at_terminal: bool,
    draw: bool,
    as_json: bool,
    constraints: Path | None,
    engine: str,
    output: str | None,
) -> None:
    """Raises InputError for options that do not go together."""
    from transduce.core.errors import InputError

    problems = []
    if source is not None and text is not None:
        problems.append("--source names a file of inputs and --text is the input itself: give one of them.")
    if source_column and source is None:
        problems.append("--source-column chooses a column of a file: name it with --source.")
    if draw and as_json:
        problems.append("--draw shows pictures and --json writes numbers: choose one of them.")
    if at_terminal and constraints:
        problems.append(
            "--constraints needs one line for each input line: name the input with --source, or pipe it in."
        )
    if engine == "ray" and (draw or text is not None or at_terminal):
        problems.append("--engine ray is for many lines: name them with --source, or pipe them in; no --draw.")
    if output is not None and (draw or text is not None or at_terminal):
        problems.append(
            "--output is for the outputs of many lines: name these with --source, or pipe them in; no --draw."
        )
    if problems:
        raise InputError(problems)


def _rows(lines: Collection[str], names: list[str], wanted: "list[Constraints] | None") -> "Iterator[dict[str, Any]]":
    """What is said of each line to who predicts it."""
    from transduce.bulk.predicting import wanted_row

    for place, line in enumerate(lines):
        named = {"id": names[place]} if names else {}
        yield {"text": line, **named, **({"wanted": wanted_row(wanted[place])} if wanted else {})}


def _in_bulk(
    pipeline: Any,
    models: list[Path],
    use: dict[str, Any],
    how: dict[str, Any],
    rows: "Iterator[dict[str, Any]]",
    count: int,
    spread: bool,
    workers: int | None,
) -> "Iterator[str]":
    """The outputs of rows, in order, while a bar tells how far it is. spread: over a Ray cluster."""
    from transduce.bulk.engine import engine_of
    from transduce.bulk.job import Placement
    from transduce.bulk.predicting import PredictingWorker, outputs
    from transduce.cli.text import bar, tell
    from transduce.core.model_file import find_model_file

    engine = engine_of("ray" if spread else "local", PredictingWorker(how, [], pipeline), workers)
    placed = Placement(engine, [find_model_file(each) for each in models], use)
    job = placed.job("predict", how)
    with bar("predicting", count) as advance:
        yield from outputs(placed.engine, job, rows, advance, tell)


def _write_alone(
    pipeline: Any, lines: Collection[str], names: list[str], options: "PredictionOptions", write: "Write"
) -> None:
    """Predict and write one text, or lines with their pictures."""
    from transduce.cli.text import bar, tell

    with bar("predicting", len(lines)) as advance:
        predictions = pipeline.predict_all([*lines], replace(options, tell=tell, advance=advance))
    for place, prediction in enumerate(predictions):
        write(prediction, {"id": names[place]} if names else {})


def _with_torch(models: list[Path], use: dict[str, Any]) -> "Pipeline":
    from transduce.pipeline.pipeline import load

    return load(models, **use)


def _constraints(path: Path, count: int) -> "list[Constraints]":
    from transduce.inference.constraints import read_constraints

    return read_constraints(path, count)


def draw_below(pipeline: "Pipeline", prediction: "Prediction") -> None:
    """Draw a prediction on standard output, with an empty line behind. Raises InputError where there is no picture."""
    from transduce.interpret.drawings import drawn
    from transduce.runtime.console import make_console

    alone = pipeline.task.drawing or not pipeline.others  # an ensemble looks at nothing, but its trees can be drawn
    picture = (drawn(pipeline.model, pipeline.task, prediction) if alone else None) or prediction.attention()
    sys.stdout.flush()
    make_console(file=sys.stdout, highlight=False).print(picture)
    print(flush=True)
