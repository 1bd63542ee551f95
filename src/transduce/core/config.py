"""The base class of all settings: unknown keys are errors, and values are frozen after they are read."""

from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, model_validator

from transduce.core.earlier_names import EARLIER_NAMES, current_names

UNSET = "none"  # unsets an optional key, on the command line or over a base; TOML has no null


class Config(BaseModel):
    """A frozen set of settings. A default is written once: in the subclass, beside the class that reads it.

    A key for a list also accepts a single entry. A key for named tables also accepts a single unnamed table, which gets
    the name of the key. "none" unsets an optional key. Numbers are finite, and texts can be written in UTF-8.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)

    @classmethod
    def known_keys(cls) -> frozenset[str]:
        """The keys that its table may have."""
        earlier = {old for old, new in EARLIER_NAMES.items() if new in cls.model_fields}
        return frozenset(cls.model_fields) | earlier

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        fields = cls.model_fields
        table = current_names(table, fields)
        _refuse_half_characters(table)
        return {
            key: _read(key, value, fields[key].annotation) if key in fields else value for key, value in table.items()
        }


def _refuse_half_characters(table: dict[str, Any]) -> None:
    """Raises ValueError for text that UTF-8 does not have, as Python reads a file's name of other bytes."""
    for key, value in table.items():
        if isinstance(value, str) and any("\ud800" <= each <= "\udfff" for each in value):
            raise ValueError(f"{key}: {value!a} is not UTF-8, so no recipe can name it. Rename the file")


def _read(key: str, value: Any, annotation: Any) -> Any:
    """`value` as the field `key`, which is of this type, has it."""
    if value == UNSET and isinstance(value, str) and _may_be_unset(annotation):
        return None
    if get_origin(annotation) is tuple and get_args(annotation)[1:] == (...,):
        return value if isinstance(value, list | tuple) else [value]
    if get_origin(annotation) is dict and isinstance(value, str) and value == UNSET:
        return {}
    if get_origin(annotation) is dict and isinstance(value, dict):
        if _is_one(value, get_args(annotation)[1]):
            return {key: value}
        return {name: each for name, each in value.items() if each != UNSET or get_args(annotation)[1] is Any}
    return value


def _may_be_unset(annotation: Any) -> bool:
    """Whether the type has None, and no choice of its own that is called so."""
    kinds = get_args(annotation)
    return NoneType in kinds and not any(UNSET in get_args(each) for each in kinds)


def _is_one(table: dict[str, Any], kind: Any) -> bool:
    """Whether it is a table of this kind itself, or of one of several, not tables of it by name."""
    if isinstance(kind, UnionType):
        return any(_is_one(table, each) for each in get_args(kind))
    if not (isinstance(kind, type) and issubclass(kind, Config)) or not table:
        return False
    if any(isinstance(value, dict) or value == UNSET for value in table.values()):
        return False
    return table.keys() <= kind.known_keys()
