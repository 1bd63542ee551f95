"""Values of options that already are what they should be stay as they are, without typer's validation.

Newer versions of typer validate each value by pydantic, whose import takes as long as all that a first answer needs of
ours. Defaults, flags, texts and paths need no validation, as no option here asks that a path exists; whatever else is
given is validated as ever.
"""

from pathlib import Path
from typing import Any, Literal, get_args, get_origin


class LateCoercion:
    """What typer keeps for a parameter as `_runtime_param`; `descriptor` is what it knows of the parameter's type."""

    def __init__(self, descriptor: Any) -> None:
        self.descriptor = descriptor
        self._real: Any = None

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """As typer's `RuntimeParam.coerce`."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        kinds = _kinds(self.descriptor.annotation)
        if not several:
            if type(value) in kinds or any(get_origin(kind) is Literal and value in get_args(kind) for kind in kinds):
                return value
            if kinds[0] is Path and type(value) is str:
                return Path(value)
        elif all(type(each) is str for each in value) and kinds[0] in (list[str], list[Path]):
            [kind] = get_args(kinds[0])
            return [kind(each) for each in value]
        if self._real is None:
            from typer._coercion import build_runtime_param

            self._real = build_runtime_param(self.descriptor)
        return self._real.coerce(value, param=param, ctx=ctx)


def coerced_late(parameters: list[Any]) -> list[Any]:
    """The parameters of a command; as they were in versions of typer that validate otherwise."""
    for each in parameters:
        if getattr(each, "_runtime_param", 0) is None and hasattr(each, "type_descriptor"):
            each._runtime_param = LateCoercion(each.type_descriptor)
    return parameters


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """The types of an annotation, those of a union each."""
    return (annotation,) if get_origin(annotation) in (None, list, Literal) else get_args(annotation)
