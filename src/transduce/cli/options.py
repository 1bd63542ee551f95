"""Options shared by several commands, each with the same meaning and help text everywhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from transduce.cli.search_options import option_of
from transduce.search.keys import KEYS

if TYPE_CHECKING:
    from transduce.data.corpus import TsvColumn
    from transduce.data.pairs.known_columns import AskedColumns


Tsv = Annotated[
    Path | None, typer.Option(help="One tab-separated file with both sides as columns, instead of two files.")
]
SourceColumns = Annotated[
    list[str] | None,
    typer.Option(
        help="The column of the source in --source or --tsv: its number from 0, or its name in .csv and .jsonl. By "
        "default the recipe's; in --tsv 0. Repeatable, for models that read several columns."
    ),
]
TargetColumn = Annotated[
    str | None,
    typer.Option(
        help="The column of the target: its number from 0, or its name in .csv and .jsonl. By default the recipe's; in "
        "--tsv 1."
    ),
]
Precision = Annotated[
    Literal["fp32", "int8"],
    typer.Option(help="The precision of matrix products. int8 is faster and gives nearly the same results."),
]
HowSplit = Literal["auto", "sentences", "none"]
Split = Annotated[
    HowSplit,
    typer.Option(
        help="Read each line sentence by sentence (sentences) or as a whole (none). auto reads by sentences if the "
        "model was trained on single sentences."
    ),
]
Device = Annotated[
    str,
    typer.Option(
        metavar="[auto|cpu|cuda|mps]", help="The device to compute on. auto takes a CUDA GPU if there is one."
    ),
]
TrustCode = Annotated[
    bool,
    typer.Option(
        help="Allow a model file, or a run's recipe, to name code outside Transduce. Only for files from people you "
        "trust."
    ),
]
_NAMED_MODELS = (
    "Run directories or model files, each also as name=path. search.KEY=VALUE sets any key of search, such as "
    "search.beam=5."
)
NamedModels = Annotated[list[str], typer.Argument(metavar="MODEL|search.KEY=VALUE", help=_NAMED_MODELS)]
SomeNamedModels = Annotated[list[str] | None, typer.Argument(metavar="[MODEL|search.KEY=VALUE]...", help=_NAMED_MODELS)]
Port = Annotated[int, typer.Option(help="The port to listen on. 0 takes any free one.")]
Ensemble = Annotated[
    Literal["probability", "log_probability"], typer.Option(help="What an ensemble averages over its models.")
]
JsonLines = Annotated[bool, typer.Option("--json", help="Write one JSON object a line.")]
BatchSize = Annotated[
    int, typer.Option(min=1, help="How many lines to search at once. It changes speed and memory, not results.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="How many workers translate in parallel, with one thread each. For many lines. By default 1; with "
        "--engine ray as many as the cluster has processors, or GPUs.",
    ),
]
Engine = Annotated[
    Literal["local", "ray"],
    typer.Option(help="Where the work is done: in this process, or on a Ray cluster (RAY_ADDRESS, else this machine)."),
]
Output = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Write to this file or URL instead of standard output. A .gz, .zst or .xz is compressed. It appears when "
        "everything is written.",
    ),
]
To = Annotated[
    str, typer.Option(help="The code of the language to write, such as fr, for a model that writes several.")
]
GlossaryFile = Annotated[
    Path | None,
    typer.Option(
        "--glossary",
        help="A file of terms and their translations, which outputs use: .tsv or .csv with a term and its "
        "translation a line, or .tbx.",
    ),
]
Protect = Annotated[
    bool,
    typer.Option(
        "--protect/--no-protect",
        help="Keep numbers, addresses, codes, placeholders and emoji of the source, leave text without letters and "
        "digits as it is, and read capitals, quotes and invisible characters as the training text had them.",
    ),
]
Shortlist = option_of(KEYS["shortlist"])
Beam = option_of(KEYS["beam"])
Prune = option_of(KEYS["prune"])


def asked_columns(source: list[str] | None, target: str | None) -> "AskedColumns | None":
    """The columns that the options name; None: they name none."""
    if not source and target is None:
        return None
    from transduce.data.pairs.known_columns import AskedColumns

    return AskedColumns(tuple(map(column, source or ())), None if target is None else column(target))


def column(text: str) -> int | str:
    """Its number, or its name."""
    return int(text) if text.isascii() and text.isdigit() else text


def columns(
    tsv: Path | None, source: Path | None, asked: "AskedColumns | None"
) -> "tuple[TsvColumn, TsvColumn] | None":
    """The two sides in a tab-separated file, if one is named.

    Raises:
        InputError: columns of no file.
    """
    from transduce.core.errors import InputError
    from transduce.data.corpus import TsvColumn

    if not tsv:
        if asked and not source:
            raise InputError("--source-column and --target-column choose columns of one file: name it with --source.")
        return None
    first, *more = (asked.source if asked else ()) or (0,)
    target = 1 if asked is None or asked.target is None else asked.target
    return TsvColumn(tsv, first, tuple(more)), TsvColumn(tsv, target)
