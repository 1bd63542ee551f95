"""Options that several verbs have, each with one meaning and one help text."""

from typing import Annotated, Literal

import typer

PrecisionOption = Annotated[
    Literal["fp32", "int8"], typer.Option(help="Of matrix products; int8 is faster, and nearly the same.")
]
PruneOption = Annotated[
    float | None, typer.Option(help="Drop hypotheses so many nats behind the best: 1.5 is faster and nearly the same.")
]
