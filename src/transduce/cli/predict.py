"""`transduce predict MODEL < sources > outputs`."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from transduce.cli import options as option
from transduce.cli.datastore import Knn, settings_of
from transduce.cli.search_keys import models_and_recordings, models_and_search, refuse_texts
from transduce.cli.search_options import with_search_options

if TYPE_CHECKING:
    from transduce.bulk.job import Placement
    from transduce.cli.predictions import Write
    from transduce.data.input_file import InputFile
    from transduce.data.pairs.known_columns import AskedColumns
    from transduce.inference.constraints import Constraints
    from transduce.inference.glossary import Glossary
    from transduce.inference.loaded_model import LoadedModel
    from transduce.inference.options import PredictionOptions
    from transduce.inference.prediction import Prediction
    from transduce.pipeline.again import Again
    from transduce.pipeline.pipeline import Pipeline
    from transduce.without_torch.choice import Engine

    Draw = Callable[[Prediction], None]


@with_search_options
def predict(
    model: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL|search.KEY=VALUE",
            help="A run directory or a model file. Several are used as an ensemble. Sound files named after it are its "
            "inputs. search.KEY=VALUE sets any key of search, such as search.beam=5.",
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            help="Read this file (plain, .gz, .zst or .xz) instead of standard input: one input a line, or a file in "
            "a format of the model's task: for pairs of texts a .csv, .jsonl, .tmx or .tsv with the recipe's columns, "
            "for classification a .csv or .jsonl; SQuAD's JSON, whose outputs are one JSON object by the inputs' ids; "
            "a table or a folder of recordings; "
            "stories in bAbI's format, also as a pattern. A document (.md, .html, .srt, .vtt, .docx, .odt, .pptx, "
            ".xlsx, .epub, .po, .xlf, .tmx, .json) stays what it is: see --output."
        ),
    ] = None,
    source_column: option.SourceColumns = None,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Write to this file or URL instead of standard output. A .gz, .zst or .xz is compressed. It appears "
            "when everything is written. For a document it has the ending of its source; .tmx, .json and .xlsx are "
            "documents where it has, and tables of inputs elsewhere.",
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            help="Predict this one text instead of reading lines. Its line breaks and white space stand in the output."
        ),
    ] = None,
    asked: Mapping[str, Any] = MappingProxyType({}),
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
    glossary: option.GlossaryFile = None,
    protect: option.Protect = True,
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
    form: Annotated[
        Literal["conll", "json", "entities", "text", "marks"] | None,
        typer.Option(
            "--format",
            help="How labels of words are written. conll: a word and its label a line; json: as --json; entities: a "
            "JSON list a line; text: of segmented text the words; marks: the text with its spans or labels. Default: "
            "at a terminal marks in colour, else the labels with spaces between.",
        ),
    ] = None,
    draw: Annotated[
        bool,
        typer.Option(
            help="Draw each prediction below its output: the words that a classifier looked at, an answer in its text, "
            "the sentences of a story that were read, a tree, what a language model looks back at, or the attention."
        ),
    ] = False,
    datastore: Annotated[
        Path | None,
        typer.Option(help="A translation memory to consult, a file of transduce datastore build for this model."),
    ] = None,
    knn: Knn = None,
    matches: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            help="With --datastore and --json, list the pairs of the memory that are at least so similar, in percent.",
        ),
    ] = None,
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

    Or one text: `transduce predict runs/my --text "It rains. We stay at home."`, or recordings, for a model that hears:
    `transduce predict runs/my a.wav b.flac`

    Each input line gives one output line, in the same order. At a terminal it asks for lines and answers each. Search
    options that are not given are those of the model's recipe.
    """
    from transduce.cli.documents import is_document, translates, write_document
    from transduce.cli.predictions import writer
    from transduce.cli.text import is_terminal, tell, write_lines
    from transduce.core.destination import check_output
    from transduce.core.errors import InputError
    from transduce.inference.options import PredictionOptions
    from transduce.runtime.allocator import keep_freed_memory

    keep_freed_memory()
    as_json, further = as_json or form == "json", None if form in ("json", "marks") else form
    models, search = models_and_search(model, asked)
    models, recordings = models_and_recordings(models)
    at_terminal = source is None and text is None and not recordings and is_terminal(sys.stdin)
    _check(source, source_column, text, at_terminal, draw or form == "marks", as_json, constraints, engine, output)
    _check_recordings(recordings, source, text)
    refuse_texts(models)
    check_output(output, [*models, source, constraints, glossary, datastore], "--output")
    _check_datastore(datastore, bool(knn) or matches is not None, engine)
    load: dict[str, Any] = {"ensemble": ensemble, "precision": precision, "trust_code": trust_code, "device": device}
    documents = is_document(source, source_column, output)
    more = bool(draw or lattice or must or must_not or prefix or constraints or trust_code or documents or datastore)
    loaded = _loaded(models, engine, search, more, load)
    options = PredictionOptions(
        batch_size=batch_size,
        split=split,
        long=long,
        must=must or [],
        must_not=must_not or [],
        prefix=prefix,
        to=to,
        protect=protect,
        glossary=_glossary(glossary, loaded),
        lattice=lattice,
        word_times=as_json,
        workers=1 if engine == "ray" else workers or 1,
        datastore=datastore,
        knn=settings_of(knn),
        origins=as_json and datastore is not None,
        matches=matches,
        search=search,
    )
    if documents and source and translates(loaded):
        unfit = {"--json": as_json, "--format": form, "--draw": draw, "--constraints": constraints}
        write_document(loaded, source, output, options, {**unfit, "--engine ray": engine == "ray"})
        return
    file = _inputs(loaded, source, option.asked_columns(source_column, None)) if source else None
    if file and file.note:
        tell(file.note)
    lines = [] if at_terminal else recordings or _lines(source, text, file)
    _look_at(loaded, lines, to, text)
    if constraints:
        options = replace(options, constraints=_constraints(constraints, len(lines)))
    names, below = file.names if file else [], partial(draw_below, loaded) if draw else None
    write = writer(as_json, text is not None, below, further)
    shown = form is None and not (as_json or draw or output or engine == "ray") and is_terminal(sys.stdout)
    if (shown or form == "marks") and _marks_texts(loaded):
        draw, write = True, partial(show_marks, loaded)
    elif form == "marks":
        raise InputError("--format marks is for models that label words; this one does not. Leave it out.")
    if at_terminal:
        _answer(loaded, options, write)
    elif text is not None or draw:
        with _naming_lines(loaded, lines, source, text is not None or bool(recordings), file):
            _write_alone(loaded, lines, names, options, write)
    else:
        how = {"predict": options.to_table(), "form": f"format {further}" if further else "json" if as_json else "text"}
        placed = _placed(loaded, models, load, how, engine == "ray", workers)
        with _naming_lines(loaded, lines, source, bool(recordings), file):
            write_lines(_written(placed, how, lines, names, options.constraints), output)


def _written(
    placed: "Placement",
    how: dict[str, Any],
    lines: Collection[str],
    names: list[str],
    constraints: "Sequence[Constraints] | None",
) -> "Iterator[str]":
    """The lines of the outputs. how: settings of `PredictingWorker`."""
    as_json, form = how["form"] == "json", how["form"]
    found = _in_bulk(placed, how, _rows(lines, names if as_json else [], constraints), len(lines))
    found = (line for each in found for line in each.split("\n")) if form == "format conll" else found
    return found if as_json or not names else _by_name(names, found)


def _loaded(
    models: list[Path], engine: "Engine", search: dict[str, Any], more: bool, load: dict[str, Any]
) -> "LoadedModel":
    """The models with what computes them. more: see `transduce.without_torch.choice.translator_of`."""
    from transduce.without_torch.choice import translator_of

    device, how = load["device"], {name: load[name] for name in ("ensemble", "precision")}
    if alone := translator_of(models, engine, search, device, more, **how):
        alone.again = _again(models, load)
        return alone
    from transduce.pipeline.pipeline import load as load_pipeline

    return load_pipeline(models, **{**load, "device": "cpu"} if engine == "ray" else load)


def _again(models: list[Path], load: dict[str, Any]) -> "Again | None":
    """Second searches with torch, where it is installed."""
    from importlib.util import find_spec

    from transduce.pipeline.again import searching_again

    if find_spec("torch") is None:
        return None

    def pipeline() -> "Pipeline":
        from transduce.pipeline.pipeline import load as load_pipeline

        return load_pipeline(models, **load)

    return searching_again(pipeline)


def _naming_lines(
    model: "LoadedModel", lines: Collection[str], path: Path | None, named: bool, file: "InputFile | None"
) -> AbstractContextManager[None]:
    """Let errors name the lines that the model refuses. named: the input is one text, or recordings with names."""
    from transduce.cli.refused_lines import GivenLines, naming_lines, place_name

    columns = getattr(getattr(model, "task", None), "columns", {})  # the kernels alone have none, and read any text
    column = columns.get("source")
    if named or column is None:
        return nullcontext()
    return naming_lines([GivenLines(place_name(path, file is None), lines, column, model.source_columns.joined)])


def _lines(source: Path | None, text: str | None, file: "InputFile | None") -> Collection[str]:
    from transduce.cli.text import source_lines

    if text is not None:
        return [text]
    return file.texts if file else source_lines(source)


def _look_at(model: "LoadedModel", lines: Collection[str], to: str, text: str | None) -> None:
    """Tell what of the input is new to the model. Raises InputError where it does not know which language to write."""
    from transduce.data.tags import require_language

    if not to and (text is not None or lines):
        require_language(model.source_tokenizer, lines)
    if lines:
        _tell_unfamiliar(model, lines)


def _tell_unfamiliar(model: "LoadedModel", lines: Collection[str]) -> None:
    """What of the input is in no training text, in a line."""
    from transduce.cli.text import tell
    from transduce.inference.familiarity import LOOKED_AT

    found = model.familiarity.of_inputs(model.source_columns.joined([*islice(lines, LOOKED_AT)]))
    if sentence := found.sentence():
        tell(sentence)


def _inputs(model: "LoadedModel", path: Path, asked: "AskedColumns | None") -> "InputFile | None":
    """What a file in a format of the model's task holds; None: it has an input a line."""
    from transduce.data.formats import is_table
    from transduce.inference.loaded_model import ReadsInputs

    if not asked and isinstance(model, ReadsInputs):
        return model.read_inputs(path)
    if not asked and not is_table(path):
        return None
    from transduce.data.pairs.known_columns import known_of, read_asked, read_pair_inputs

    return read_asked(path, model.config, asked) if asked else read_pair_inputs(path, known_of(model.config))


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
            "--output is for the outputs of many lines: name these with --source, or pipe them in; no --draw, and no "
            "--format marks."
        )
    if problems:
        raise InputError(problems)


def _check_datastore(datastore: Path | None, more: bool, engine: str) -> None:
    from transduce.core.errors import InputError

    if more and datastore is None:
        raise InputError("--knn and --matches are about a translation memory: name it with --datastore.")
    if datastore is not None and engine == "ray":
        raise InputError("--datastore is read in this process: leave out --engine ray.")


def _check_recordings(recordings: Sequence[str], source: Path | None, text: str | None) -> None:
    from transduce.core.errors import InputError

    if recordings and (source is not None or text is not None):
        raise InputError(f"{recordings[0]}: this is an input; leave out --source and --text.")


def _answer(model: "LoadedModel", options: "PredictionOptions", write: "Write") -> None:
    """Answer lines at the terminal."""
    from transduce.cli.predictions import answer
    from transduce.cli.text import tell

    def predicted(line: str) -> "list[Prediction]":
        _tell_unfamiliar(model, [line])
        return told_of(model.predict_all([line], replace(options, tell=tell)))

    answer(predicted, write)


def told_of(predictions: "list[Prediction]") -> "list[Prediction]":
    """The predictions, when what a person should know of them has been told; see `told_lines`."""
    from transduce.cli.text import tell
    from transduce.inference.prediction import told_lines

    for line in told_lines(predictions):
        tell(line)
    return predictions


def _write_alone(
    model: "LoadedModel", lines: Collection[str], names: list[str], options: "PredictionOptions", write: "Write"
) -> None:
    """Predict and write one text, or lines with their pictures."""
    from transduce.cli.text import bar, tell

    with bar("predicting", len(lines)) as advance:
        predictions = told_of(model.predict_all([*lines], replace(options, tell=tell, advance=advance)))
    for place, prediction in enumerate(predictions):
        write(prediction, {"id": names[place]} if names else {})


def _placed(
    model: "LoadedModel",
    models: list[Path],
    load: dict[str, Any],
    how: dict[str, Any],
    spread: bool,
    workers: int | None,
) -> "Placement":
    """Where the model works. how: settings of `PredictingWorker`. spread: over a Ray cluster."""
    from transduce.bulk.engine import engine_of
    from transduce.bulk.job import Placement
    from transduce.bulk.predicting import PredictingWorker
    from transduce.core.model_file import find_model_file

    engine = engine_of("ray" if spread else "local", PredictingWorker(how, [], model), workers)
    return Placement(engine, [find_model_file(each) for each in models], load)


def _rows(
    lines: Collection[str], names: list[str], constraints: "Sequence[Constraints] | None"
) -> "Iterator[dict[str, Any]]":
    """What is said of each line to who predicts it."""
    from transduce.bulk.predicting import constraints_row

    for place, line in enumerate(lines):
        named = {"id": names[place]} if names else {}
        yield {"text": line, **named, **({"constraints": constraints_row(constraints[place])} if constraints else {})}


def _in_bulk(placed: "Placement", how: dict[str, Any], rows: "Iterator[dict[str, Any]]", count: int) -> "Iterator[str]":
    """The outputs of rows, in order, while a bar tells how far it is."""
    from transduce.bulk.predicting import outputs
    from transduce.cli.text import bar, tell

    with bar("predicting", count) as advance:
        yield from outputs(placed.engine, placed.job("predict", how), rows, advance, tell)


def _by_name(names: list[str], outputs: "Iterator[str]") -> "Iterator[str]":
    """One JSON object of all outputs."""
    from transduce.cli.text import json_line

    yield json_line(dict(zip(names, outputs, strict=True)))


def _glossary(path: Path | None, model: "LoadedModel") -> "Glossary":
    from transduce.inference.glossary import Glossary, read_glossary

    if path is None:
        return Glossary()
    task = model.config.get("task", {})
    return read_glossary(path, (str(task.get("source", "")), str(task.get("target", ""))))


def _constraints(path: Path, count: int) -> "list[Constraints]":
    from transduce.inference.constraints import read_constraints

    return read_constraints(path, count)


def draw_below(model: "LoadedModel", prediction: "Prediction") -> None:
    """Draw a prediction on standard output, with an empty line behind. Raises InputError where there is no picture."""
    from transduce.runtime.console import make_console

    picture = _own_drawing(model, prediction) or prediction.attention()
    sys.stdout.flush()
    make_console(file=sys.stdout, highlight=False).print(picture)
    print(flush=True)


def show_marks(model: "LoadedModel", prediction: "Prediction", named: dict[str, str]) -> None:
    """Write a text with what is marked in it, in colour where standard output is a terminal that has colours."""
    from transduce.runtime.console import make_console

    sys.stdout.flush()
    console = make_console(file=sys.stdout, highlight=False)
    console.print(_own_drawing(model, prediction), soft_wrap=not console.is_terminal)  # a line stays one in a file
    sys.stdout.flush()


def _marks_texts(model: "LoadedModel") -> bool:
    """Whether people are shown the text with marks in the place of the output."""
    from transduce.pipeline.pipeline import Pipeline

    return isinstance(model, Pipeline) and model.task.drawn_at_terminals


def _own_drawing(model: "LoadedModel", prediction: "Prediction") -> Any:
    """What the model's task draws; None: nothing. An ensemble looks at nothing, but its trees can be drawn."""
    from transduce.interpret.drawings import drawn
    from transduce.pipeline.pipeline import Pipeline

    if not isinstance(model, Pipeline) or (model.others and not model.task.drawing):
        return None
    return drawn(model.model, model.task, prediction)
