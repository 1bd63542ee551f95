"""Keys of search among the arguments of a command: `search.beam=5`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

Named = TypeVar("Named", Path, str)
SOUNDS = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff")
SEARCH = "search."  # the beginning of an argument that is a key of search instead of a model


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
    from transduce.core.overrides import apply_overrides  # late: it reads TOML

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
        got = "; got only search keys" if overrides else ""
        problems.append(f"expected a run directory or a model file{got}.")
    if problems:
        raise InputError(problems)
    return models, {**asked, **named}


def models_and_recordings(given: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Separate what is named behind the first model into further models and sound files, which are its inputs."""
    recordings = [path for path in given[1:] if path.suffix.lower() in SOUNDS]
    return [path for path in given if path not in recordings], [str(path) for path in recordings]


def refuse_texts(models: Sequence[Path | str]) -> None:
    """Raises InputError where a text to predict for is named like one more model, as `predict MODEL TEXT`."""
    from transduce.core.errors import InputError
    from transduce.core.model_file import NO_MODELS  # whose refusal says more
    from transduce.core.tensor_file import may_hold_tensors

    files = (path for path in map(Path, models[1:]) if path.is_file() and path.suffix not in NO_MODELS)
    if texts := [path for path in files if not may_hold_tensors(path)]:
        raise InputError([f"{path}: not a model. To read its lines: --source {path}" for path in texts])
