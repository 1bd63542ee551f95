"""`transduce-runtime predict MODEL < sources > outputs`: the command of the package without torch.

Its other commands are in `transduce.cli.runtime_serve`.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from transduce.cli.process import run
from transduce.cli.runtime_options import PRECISION, SEARCH
from transduce.cli.search_keys import models_and_search, refuse_texts
from transduce.runtime import spinning
from transduce.runtime.processors import limit_threads
from transduce.version import __version__

NAME = "transduce-runtime"


def commands() -> argparse.ArgumentParser:
    """What `transduce-runtime` does when no command is named."""
    whole = argparse.ArgumentParser(
        prog=NAME,
        description="Translate with Transformers that Transduce trained, without torch.",
        epilog="Exit codes: 0 for success, 1 for a failure, 2 for wrong input, 130 when interrupted.",
    )
    whole.add_argument("--version", action="version", version=f"{NAME} {__version__}")
    whole.add_argument(
        "command",
        choices=["predict", "serve", "keys"],
        help="predict: lines of text. serve: over HTTP. keys: API keys of the server. Its options follow it; see "
        f"{NAME} COMMAND --help.",
    )
    return whole


def parser() -> argparse.ArgumentParser:
    """Of the arguments of `predict`, which are named as those of `transduce predict`."""
    whole = argparse.ArgumentParser(
        prog=f"{NAME} predict",
        description="Translate each line of standard input with a Transformer that Transduce trained, without torch.",
    )
    whole.add_argument(
        "model",
        nargs="+",
        metavar="MODEL|search.KEY=VALUE",
        help="A run directory or a model file. Several are used as an ensemble.",
    )
    whole.add_argument("--source", type=Path, help="Read this file (plain, .gz or .xz) instead of standard input.")
    whole.add_argument("--text", help="Translate this one text instead of reading lines.")
    for name, option in SEARCH.items():
        whole.add_argument(name, **option)
    whole.add_argument("--batch-size", type=int, default=64, help="How many lines to search at once.")
    whole.add_argument("--workers", type=int, default=1, help="How many threads search side by side.")
    whole.add_argument("--threads", type=int, help="How many threads one search uses. By default all cores.")
    whole.add_argument("--to", default="", help="The code of the language to write, for a model that writes several.")
    whole.add_argument(
        "--split", choices=["auto", "sentences", "none"], default="auto", help="Read by sentences or not."
    )
    whole.add_argument(
        "--long",
        choices=["split", "truncate", "refuse"],
        default="split",
        help="What to do with lines that are too long.",
    )
    whole.add_argument("--ensemble", choices=["probability", "log_probability"], default="probability")
    whole.add_argument("--precision", **PRECISION)
    whole.add_argument("--json", action="store_true", help="Write one JSON object a line.")
    return whole


def predict(given: argparse.Namespace) -> None:
    """Translate each line, as `transduce predict` does."""
    from transduce.cli.predictions import answer, writer
    from transduce.cli.text import bar, is_terminal, read_source, tell
    from transduce.core.errors import InputError
    from transduce.data.tags import require_language
    from transduce.inference.options import PredictionOptions
    from transduce.without_torch.translator import load

    if given.source is not None and given.text is not None:
        raise InputError("--source names a file of inputs and --text is the input itself: give one of them.")
    keys = [option.get("dest", name[2:].replace("-", "_")) for name, option in SEARCH.items()]
    models, search = models_and_search(given.model, {key: getattr(given, key) for key in keys})
    refuse_texts(models)
    model = load(models, ensemble=given.ensemble, precision=given.precision, threads=given.threads, search=search)
    options = PredictionOptions(
        given.batch_size, given.split, given.long, tell, to=given.to, workers=given.workers, search=search
    )
    if given.source is None and given.text is None and is_terminal(sys.stdin):
        answer(lambda line: model.predict_all([line], options), writer(given.json))
        return
    lines = [given.text] if given.text is not None else read_source(given.source)
    if not given.to and lines:
        require_language(model.source_tokenizer, lines)
    with bar("predicting", len(lines)) as advance:
        found = model.predict_all(lines, replace(options, advance=advance))
    write = writer(given.json, given.text is not None)
    for prediction in found:
        write(prediction, {})


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    limit_threads()
    spinning.watch()
    run(NAME, lambda: _run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(arguments: list[str]) -> None:
    command = arguments[0] if arguments else ""
    if command == "predict":
        predict(parser().parse_intermixed_args(arguments[1:]))
    elif command == "serve":
        from transduce.cli.runtime_serve import serve

        serve(NAME, arguments[1:])
    elif command == "keys":
        from transduce.cli.runtime_serve import keys

        keys(NAME, arguments[1:])
    else:
        commands().parse_args(arguments)
