"""Options shared by several verbs, each with the same meaning and help text everywhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from transduce.data.corpus import Column

TsvOption = Annotated[
    Path | None, typer.Option(help="One tab-separated file with both sides as columns, instead of two files.")
]
SourceColumnOption = Annotated[
    int | None, typer.Option(min=0, help="The column of the source in --tsv, counted from 0. By default 0.")
]
TargetColumnOption = Annotated[
    int | None, typer.Option(min=0, help="The column of the target in --tsv, counted from 0. By default 1.")
]
PrecisionOption = Annotated[
    Literal["fp32", "int8"],
    typer.Option(help="The precision of matrix products. int8 is faster and gives nearly the same results."),
]
SplitOption = Annotated[
    Literal["auto", "sentences", "none"],
    typer.Option(
        help="Read each line sentence by sentence (sentences) or as a whole (none). auto reads by sentences if the "
        "model was trained on single sentences."
    ),
]
DeviceOption = Annotated[
    str,
    typer.Option(
        metavar="[auto|cpu|cuda|mps]", help="The device to compute on. auto takes a CUDA GPU if there is one."
    ),
]
PruneOption = Annotated[
    float | None,
    typer.Option(
        help="Drop hypotheses that are this many nats less likely than the best. 1.5 is faster and gives nearly the "
        "same results."
    ),
]


def columns(tsv: Path | None, source: int | None, target: int | None) -> "tuple[Column, Column] | None":
    """The two sides in a tab-separated file, if one is named.

    Raises:
        InputError: columns of no file.
    """
    from transduce.core.errors import InputError
    from transduce.data.corpus import Column

    if tsv:
        return Column(tsv, 0 if source is None else source), Column(tsv, 1 if target is None else target)
    if source is not None or target is not None:
        raise InputError(
            "--source-column and --target-column choose columns of a tab-separated file: name it with --tsv."
        )
    return None
