"""Options shared by several verbs, each with the same meaning and help text everywhere."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from transduce.data.corpus import TsvColumn

Named = TypeVar("Named", Path, str)
SEARCH = "search."  # the beginning of an argument that is a key of search instead of a model

TsvOption = Annotated[
    Path | None, typer.Option(help="One tab-separated file with both sides as columns, instead of two files.")
]
SourceColumnOption = Annotated[
    int | None, typer.Option(min=0, help="The column of the source in --tsv, counted from 0. By default 0.")
]
SourceColumnsOption = Annotated[
    list[int] | None,
    typer.Option(
        min=0,
        help="The column of the source in --tsv, counted from 0. By default 0. Repeatable, for models that read pairs "
        "of texts.",
    ),
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


def models_and_search(
    given: Sequence[Named] | None, options: Mapping[str, Any], needed: bool = True
) -> tuple[list[Named], dict[str, Any]]:
    """Separate the arguments of a command that searches into models and search keys, which override the recipe's.

    Every such command takes any search key among its models, as `search.beam=5`, and some keys as options too. The
    search itself checks which keys exist.

    Args:
        given: models, and `search.KEY=VALUE`.
        options: the values of options by search key; None = not given.
        needed: whether at least one model is required.

    Raises:
        InputError: there is no model, an override is malformed, or a key was given in both ways.
    """
    from transduce.core.errors import InputError
    from transduce.recipe.recipe import apply_overrides

    models = [each for each in given or () if not str(each).startswith(SEARCH)]
    overrides = [str(each) for each in given or () if str(each).startswith(SEARCH)]
    named = apply_overrides({"search": {}}, overrides)["search"]
    asked = {key: value for key, value in options.items() if value is not None}
    problems = [
        f"search.{key} was given twice, as an option and as search.{key}=...; give it once."
        for key in asked
        if key in named
    ]
    if needed and not models:
        problems.append("expected a run directory or a model file; got only search keys.")
    if problems:
        raise InputError(problems)
    return models, {**asked, **named}


def columns(tsv: Path | None, source: list[int] | None, target: int | None) -> "tuple[TsvColumn, TsvColumn] | None":
    """The two sides in a tab-separated file, if one is named.

    Raises:
        InputError: columns of no file.
    """
    from transduce.core.errors import InputError
    from transduce.data.corpus import TsvColumn

    if tsv:
        first, *more = source or [0]
        return TsvColumn(tsv, first, tuple(more)), TsvColumn(tsv, 1 if target is None else target)
    if source or target is not None:
        raise InputError(
            "--source-column and --target-column choose columns of a tab-separated file: name it with --tsv."
        )
    return None
