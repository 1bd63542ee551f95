"""`transduce predict MODEL < sources > outputs`."""

import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from transduce.cli import options

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
    output: options.Output = None,
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
    engine: options.Engine = "local",
    workers: options.Workers = None,
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
) -> None:
    """Translate or continue each line of standard input.

        transduce predict runs/my < english.txt > swahili.txt

    Or one text: `transduce predict runs/my --text "It rains. We stay at home."`

    Each input line gives one output line, in the same order. At a terminal it asks for lines and answers each. Search
    options that are not given are those of the model's recipe.
    """
    from transduce.cli.text import is_terminal, json_line, source_lines, tell, write_lines
    from transduce.data.tags import require_language
    from transduce.inference.constraints import read_constraints
    from transduce.pipeline.pipeline import load
    from transduce.runtime.allocator import keep_freed_memory

    keep_freed_memory()
    at_terminal = source is None and text is None and is_terminal(sys.stdin)
    _check(source, text, at_terminal, draw, as_json, constraints, engine, output)
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
    models, search = options.models_and_search(model, asked)
    use: dict[str, Any] = {"trust_code": trust_code, "ensemble": ensemble, "precision": precision}
    pipeline = load(models, **use, device="cpu" if engine == "ray" else device)
    file = pipeline.task.read_inputs(source) if source else None
    lines: Collection[str] = [text] if text is not None else file.texts if file else []
    if not (lines or file or at_terminal):
        lines = source_lines(source)
    if not to and (text is not None or lines):
        require_language(pipeline.task.tokenizers.get("source"), lines)
    wanted = read_constraints(constraints, len(lines)) if constraints else None
    common: dict[str, Any] = {
        "split": split,
        "long": long,
        "must": must or [],
        "must_not": must_not or [],
        "prefix": prefix,
        "to": to,
        "lattice": lattice,
        **search,
    }
    if at_terminal:
        write = _writer(pipeline, as_json, draw)
        _answer(lambda line: pipeline.predict([line], tell=tell, **common), write)
        return
    common |= {"batch_size": batch_size, "workers": workers or 1 if engine == "local" else 1}
    names = file.names if file else []
    if text is not None or draw:
        _write_alone(pipeline, lines, names, {**common, "wanted": wanted}, as_json, draw, text is not None)
        return
    how = {"predict": common, "form": "json" if as_json else "text"}
    rows = _rows(lines, names if as_json else [], wanted)
    found = _in_bulk(pipeline, models, {**use, "device": device}, how, rows, len(lines), engine, workers)
    if names and not as_json:
        found = (json_line(dict(zip(names, outputs, strict=True))) for outputs in [found])
    write_lines(found, output)


def _check(
    source: Path | None,
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
    if draw and as_json:
        problems.append("--draw shows pictures and --json writes numbers: choose one of them.")
    if at_terminal and constraints:
        problems.append(
            "--constraints needs one line for each input line: name the input with --source, or pipe it in."
        )
    if engine != "local" and (draw or text is not None or at_terminal):
        problems.append(f"--engine {engine} is for many lines: name them with --source, or pipe them in; no --draw.")
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
    pipeline: "Pipeline",
    models: list[Path],
    use: dict[str, Any],
    how: dict[str, Any],
    rows: "Iterator[dict[str, Any]]",
    count: int,
    engine: Literal["local", "ray"],
    workers: int | None,
) -> "Iterator[str]":
    """The outputs of rows, in order, while a bar tells how far it is."""
    from transduce.bulk.engine import engine_of
    from transduce.bulk.predicting import PredictingWorker, outputs
    from transduce.bulk.work import Placement
    from transduce.cli.text import bar, tell
    from transduce.core.model_file import find_model_file

    worker = PredictingWorker(how, [], pipeline) if engine == "local" else None
    placed = Placement(engine_of(engine, worker, workers), [find_model_file(each) for each in models], use)
    work = placed.work("predict", how)
    with bar("predicting", count) as advance:
        yield from outputs(placed.engine, work, rows, advance, tell)


def _write_alone(
    pipeline: "Pipeline",
    lines: Collection[str],
    names: list[str],
    options: dict[str, Any],
    as_json: bool,
    draw: bool,
    whole: bool,
) -> None:
    """Predict and write one text, or lines with their pictures."""
    from transduce.cli.text import bar, tell

    with bar("predicting", len(lines)) as advance:
        predictions = pipeline.predict([*lines], tell=tell, advance=advance, **options)
    write = _writer(pipeline, as_json, draw, whole=whole)
    for place, prediction in enumerate(predictions):
        write(prediction, {"id": names[place]} if names else {})


def _writer(
    pipeline: "Pipeline", as_json: bool, draw: bool, whole: bool = False
) -> "Callable[[Prediction, dict[str, str]], None]":
    """What writes a prediction, with what it is called: its text or JSON, and where asked for its picture.

    whole: with its line breaks and the white space around its source; else a prediction is one line.
    """
    from transduce.cli.text import tell, write_line, write_text
    from transduce.core.errors import InputError

    def write(prediction: "Prediction", named: dict[str, str]) -> None:
        if whole and not as_json:
            write_text(_surrounded(prediction))
        else:
            write_line({**named, **prediction.to_dict()} if as_json else prediction.text)
        if draw:
            try:
                draw_below(pipeline, prediction)
            except InputError as error:  # an empty text, one in several pieces, an ensemble
                tell(str(error))

    return write


def _surrounded(prediction: "Prediction") -> str:
    """The output with the white space that stands around its source."""
    source = prediction.source
    if not source.strip():
        return source
    before, after = source[: len(source) - len(source.lstrip())], source[len(source.rstrip()) :]
    return f"{before}{prediction.text.strip()}{after}"


def draw_below(pipeline: "Pipeline", prediction: "Prediction") -> None:
    """Draw a prediction on standard output, with an empty line behind. Raises InputError where there is no picture."""
    from rich.console import Console

    from transduce.interpret.drawings import drawn

    alone = pipeline.task.drawing or not pipeline.others  # an ensemble looks at nothing, but its trees can be drawn
    picture = (drawn(pipeline.model, pipeline.task, prediction) if alone else None) or prediction.attention()
    sys.stdout.flush()
    Console(file=sys.stdout, highlight=False).print(picture)
    print(flush=True)


def _answer(
    predict: "Callable[[str], list[Prediction]]", write: "Callable[[Prediction, dict[str, str]], None]"
) -> None:
    """Ask for lines at the terminal and answer each, until there are no more; what is wrong with one is told."""
    from transduce.cli.text import tell
    from transduce.core.errors import InputError

    tell("One line in, one line out; Ctrl-D ends.")
    while True:
        print("> ", end="", file=sys.stderr, flush=True)
        raw = sys.stdin.buffer.readline()
        if not raw:
            print(file=sys.stderr)
            return
        try:
            line = raw.decode("utf-8").rstrip("\n")
            if line:
                [prediction] = predict(line)
                write(prediction, {})
                sys.stdout.flush()
        except UnicodeDecodeError as error:
            tell(f"This line is not UTF-8: {error.reason}.")
        except InputError as error:
            tell(str(error))
