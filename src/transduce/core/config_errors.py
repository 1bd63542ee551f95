"""What is wrong with a table of settings, in sentences: the key, what was wanted, what came."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ValidationError

from transduce.core.registry import suggest

Context = dict[str, Any]
WANTED: dict[str, Callable[[Context], str]] = {
    "bool": lambda about: "true or false is wanted",
    "float": lambda about: "a number is wanted",
    "int": lambda about: "a whole number is wanted",
    "string": lambda about: "text is wanted",
    "list": lambda about: "a list is wanted",
    "tuple": lambda about: "a list is wanted",
    "dict": lambda about: "a table of keys is wanted",
    "model": lambda about: "a table of keys is wanted",
    "finite_number": lambda about: "a finite number is wanted",
    "greater_than": lambda about: f"a number above {about['gt']:g} is wanted",
    "greater_than_equal": lambda about: f"a number from {about['ge']:g} on is wanted",
    "less_than": lambda about: f"a number below {about['lt']:g} is wanted",
    "less_than_equal": lambda about: f"a number up to {about['le']:g} is wanted",
    "literal_error": lambda about: f"{about['expected']} is wanted".replace("'", '"'),
    "too_short": lambda about: f"a list of at least {about['min_length']} is wanted",
    "too_long": lambda about: f"a list of at most {about['max_length']} is wanted",
}
KINDS = ("_type", "_parsing", "_from_float", "_attributes_type")  # int_type, int_parsing, model_attributes_type, ..


def explain(error: ValidationError, kind: type[BaseModel], section: str) -> list[str]:
    """Pydantic's errors as sentences, one each.

    Args:
        kind: what was validated.
        section: what its keys stand under, as `training`.
    """
    return [_explain_one(detail, kind, section) for detail in error.errors() if not _follows(detail)]


def _follows(detail: Any) -> bool:
    """A list that is long enough but for its wrong entries, which are told themselves."""
    return detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]


def _explain_one(detail: Any, kind: type[BaseModel], section: str) -> str:
    location = [str(part) for part in detail["loc"]]
    key = ".".join([section, *location])
    if detail["type"] == "extra_forbidden":
        meant = getattr(kind, "OTHER_NAMES", {}).get(location[-1], location[-1])
        return f"unknown key {key}.{suggest(meant, _keys_at(kind, location[:-1]))}"
    if detail["type"] == "missing":
        return f"{key} is missing."
    came = "" if isinstance(detail["input"], dict) else f"; this was given: {detail['input']!r}"
    return f"{key}: {_wanted(detail)}{came}."


def _wanted(detail: Any) -> str:
    kind = str(detail["type"])
    for ending in sorted(KINDS, key=len, reverse=True):
        kind = kind.removesuffix(ending)
    if kind in WANTED:
        return WANTED[kind](detail.get("ctx", {}))
    return str(detail["msg"]).removeprefix("Value error, ")  # of our own validators


def _keys_at(kind: type[BaseModel], location: list[str]) -> list[str]:
    """The keys of the model that stands at `location` inside `kind`."""
    for part in location:
        field = kind.model_fields.get(part)
        if field is None:
            continue
        models = [
            each for each in _types_in(field.annotation) if isinstance(each, type) and issubclass(each, BaseModel)
        ]
        if models:
            kind = models[0]
    return list(kind.model_fields)


def _types_in(annotation: Any) -> list[Any]:
    inner = getattr(annotation, "__args__", ())
    return [annotation, *(found for each in inner for found in _types_in(each))]
