"""What is wrong with a table of settings, in sentences: the key, what was expected, what came instead."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ValidationError

from transduce.core.registry import suggest

Context = dict[str, Any]
EXPECTED: dict[str, Callable[[Context], str]] = {
    "bool": lambda about: "expected true or false",
    "float": lambda about: "expected a number",
    "int": lambda about: "expected a whole number",
    "string": lambda about: "expected text",
    "list": lambda about: "expected a list",
    "tuple": lambda about: "expected a list",
    "dict": lambda about: "expected a table of keys",
    "model": lambda about: "expected a table of keys",
    "finite_number": lambda about: "expected a finite number",
    "greater_than": lambda about: f"expected a number above {about['gt']:g}",
    "greater_than_equal": lambda about: f"expected a number of at least {about['ge']:g}",
    "less_than": lambda about: f"expected a number below {about['lt']:g}",
    "less_than_equal": lambda about: f"expected a number of at most {about['le']:g}",
    "literal_error": lambda about: f"expected {about['expected']}".replace("'", '"'),
    "too_short": lambda about: f"expected a list of length at least {about['min_length']}",
    "too_long": lambda about: f"expected a list of length at most {about['max_length']}",
}
KINDS = ("_type", "_parsing", "_from_float", "_attributes_type")  # int_type, int_parsing, model_attributes_type, ..


def explain(error: ValidationError, kind: type[BaseModel], section: str) -> list[str]:
    """Pydantic's errors, one sentence for each.

    Args:
        error: the error.
        kind: the class that was validated.
        section: the section of its keys, such as `training`.
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
    came = "" if isinstance(detail["input"], dict) else f"; got {detail['input']!r}"
    return f"{key}: {_expected(detail)}{came}."


def _expected(detail: Any) -> str:
    kind = str(detail["type"])
    for ending in sorted(KINDS, key=len, reverse=True):
        kind = kind.removesuffix(ending)
    if kind in EXPECTED:
        return EXPECTED[kind](detail.get("ctx", {}))
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
