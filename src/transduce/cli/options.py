"""Options that several verbs have, each with one meaning and one help text."""

from typing import Annotated, Literal

import typer

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
