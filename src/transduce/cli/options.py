"""Options that several verbs have, each with one meaning and one help text."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from transduce.data.corpus import Column

TsvOption = Annotated[Path | None, typer.Option(help="Instead: one tab-separated file, with both sides in columns.")]
SourceColumnOption = Annotated[int | None, typer.Option(min=0, help="With --tsv: counted from 0; 0 by default.")]
TargetColumnOption = Annotated[int | None, typer.Option(min=0, help="With --tsv: counted from 0; 1 by default.")]
PrecisionOption = Annotated[
    Literal["fp32", "int8"], typer.Option(help="Of matrix products; int8 is faster, and nearly the same.")
]
SplitOption = Annotated[
    Literal["auto", "sentences", "none"],
    typer.Option(
        help="Read a line sentence by sentence, or as a whole; auto: by sentences, if those were what it learnt from."
    ),
]
DeviceOption = Annotated[
    str, typer.Option(metavar="[auto|cpu|cuda|mps]", help="Where to compute; auto: a GPU of CUDA if there is one.")
]
PruneOption = Annotated[
    float | None, typer.Option(help="Drop hypotheses so many nats behind the best: 1.5 is faster and nearly the same.")
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
