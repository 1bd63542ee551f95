"""`transduce predict MODEL < sources > outputs`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from transduce.cli.options import DeviceOption, PrecisionOption, PruneOption, SplitOption, models_and_search

if TYPE_CHECKING:
    from transduce.tasks.protocols import Prediction


def predict(
    model: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL|search.KEY=VALUE",
            help="A run directory or a model file; several are an ensemble. Any key of search, as search.beam=5.",
        ),
    ],
    source: Annotated[Path | None, typer.Option(help="Read this file (plain, .gz, .zst, .xz), not stdin.")] = None,
    method: Annotated[
        Literal["greedy", "beam", "sample", "mask_predict", "ctc"] | None, typer.Option(help="How to search.")
    ] = None,
    beam: Annotated[int | None, typer.Option(help="Beam width; 1 is greedy.")] = None,
    prune: PruneOption = None,
    length_rule: Annotated[
        Literal["power", "gnmt", "none"] | None,
        typer.Option(help="log p / length^alpha, log p / ((5 + length) / 6)^alpha, or log p."),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="See --length-rule.")] = None,
    coverage: Annotated[float | None, typer.Option(help="Weight of the penalty for what is left unread.")] = None,
    nbest: Annotated[int | None, typer.Option(help="Outputs listed for each line, with --json.")] = None,
    groups: Annotated[int | None, typer.Option(help="Diverse beam search in so many groups.")] = None,
    diversity: Annotated[float | None, typer.Option(help="Its strength.")] = None,
    max_new: Annotated[int | None, typer.Option(help="Length limit beyond what the source suggests.")] = None,
    min_length: Annotated[int | None, typer.Option(help="The fewest tokens of an output.")] = None,
    no_repeat_ngram: Annotated[int | None, typer.Option(help="No so many tokens in a row come twice.")] = None,
    shortlist: Annotated[
        int | None,
        typer.Option(help="So many candidates a source token, and no other words: faster; see transduce shortlist."),
    ] = None,
    must: Annotated[list[str] | None, typer.Option(help="Phrase that has to appear, repeatable.")] = None,
    must_not: Annotated[list[str] | None, typer.Option(help="Phrase that may not appear, repeatable.")] = None,
    prefix: Annotated[str, typer.Option(help="What every output begins with.")] = "",
    constraints: Annotated[
        Path | None,
        typer.Option(help='One JSON object for each line: {"must": [..], "must_not": [..], "prefix": ".."}.'),
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="For --method sample.")] = None,
    top_k: Annotated[int | None, typer.Option(help="For --method sample.")] = None,
    top_p: Annotated[float | None, typer.Option(help="For --method sample.")] = None,
    seed: Annotated[int | None, typer.Option(help="For --method sample; each line has a stream of its own.")] = None,
    iterations: Annotated[int | None, typer.Option(help="For mask_predict: how often words are written.")] = None,
    lengths: Annotated[int | None, typer.Option(help="For mask_predict: lengths that are tried.")] = None,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Lines searched together: speed and memory, nothing else.")
    ] = 64,
    workers: Annotated[int, typer.Option(min=1, help="So many at once, with one thread each; for many lines.")] = 1,
    split: SplitOption = "auto",
    long: Annotated[
        Literal["split", "truncate", "refuse"], typer.Option(help="A line longer than the model can read.")
    ] = "split",
    ensemble: Annotated[
        Literal["probability", "log_probability"], typer.Option(help="Several models say the mean of these.")
    ] = "probability",
    precision: PrecisionOption = "fp32",
    device: DeviceOption = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    lattice: Annotated[bool, typer.Option(help="With --json: everything that the beam weighed.")] = False,
    trust_code: Annotated[bool, typer.Option(help="Let the model file name code outside Transduce.")] = False,
) -> None:
    """Translate, or continue, each line of standard input: one line in, one line out, order kept.

    At a terminal it asks for lines, and answers each.
    """
    from transduce.cli.text import bar, is_terminal, read_source, tell, write_line
    from transduce.core.errors import InputError
    from transduce.inference.constraints import read_constraints
    from transduce.pipeline.pipeline import load
    from transduce.runtime.allocator import keep_freed_memory

    keep_freed_memory()
    at_terminal = source is None and is_terminal(sys.stdin)
    if at_terminal and constraints:
        raise InputError("--constraints has a line for each line of a file: name it with --source, or pipe it in.")
    lines = [] if at_terminal else read_source(source)
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
    wanted = read_constraints(constraints, len(lines)) if constraints else None
    pipeline = load(models, trust_code=trust_code, ensemble=ensemble, precision=precision, device=device)
    common: dict[str, Any] = {
        "split": split,
        "long": long,
        "must": must or [],
        "must_not": must_not or [],
        "prefix": prefix,
    }
    if at_terminal:
        _answer(lambda line: pipeline.predict([line], tell=tell, lattice=lattice, **common, **search), as_json)
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
    for prediction in predictions:
        write_line(prediction.to_dict() if as_json else prediction.text)


def _answer(predict: "Callable[[str], list[Prediction]]", as_json: bool) -> None:
    """Ask for lines at the terminal and answer each, until there are no more; what is wrong with one is told."""
    from transduce.cli.text import tell, write_line
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
                write_line(prediction.to_dict() if as_json else prediction.text)
                sys.stdout.flush()
        except UnicodeDecodeError as error:
            tell(f"This line is not UTF-8: {error.reason}.")
        except InputError as error:
            tell(str(error))
