"""Options that several verbs have, each with one meaning and one help text."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from transduce.data.corpus import Column

Named = TypeVar("Named", Path, str)
SEARCH = "search."  # what an argument begins with that is a key of search, and no model

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


def models_and_search(
    given: Sequence[Named] | None, options: Mapping[str, Any], needed: bool = True
) -> tuple[list[Named], dict[str, Any]]:
    """The models among arguments, and the keys of search that are asked for in place of the recipe's.

    These are asked for by any verb that searches, in the same two ways: each by its name among the models, as
    `search.beam=5`, and some by an option of their own. Which keys there are is said by whoever searches.

    Args:
        given: models, and `search.KEY=VALUE`.
        options: the options' values by key; None = not asked for.
        needed: whether there must be a model.

    Raises:
        InputError: no model, an override that is none, a key that was given in both ways.
    """
    from transduce.core.errors import InputError
    from transduce.recipe.recipe import apply_overrides

    models = [each for each in given or () if not str(each).startswith(SEARCH)]
    overrides = [str(each) for each in given or () if str(each).startswith(SEARCH)]
    named = apply_overrides({"search": {}}, overrides)["search"]
    asked = {key: value for key, value in options.items() if value is not None}
    problems = [
        f"search.{key} was given twice, as an option and as search.{key}=..: leave one out."
        for key in asked
        if key in named
    ]
    if needed and not models:
        problems.append("a run directory or a model file is wanted: only keys of search were named.")
    if problems:
        raise InputError(problems)
    return models, {**asked, **named}


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
        raise InputError("--source-column and --target-column are columns of a tab-separated file: name it with --tsv.")
    return None
