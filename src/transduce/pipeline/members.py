"""Which models go together in an ensemble."""

from collections.abc import Sequence
from typing import Any, Protocol

from transduce.core.errors import InputError
from transduce.models.protocols import Steps
from transduce.pipeline.arguments import differing_target
from transduce.tasks.base import Task


class EnsembleMember(Protocol):
    """A loaded model."""

    @property
    def model(self) -> Any: ...
    @property
    def task(self) -> Task: ...


def check_members(members: Sequence[EnsembleMember], names: Sequence[str]) -> None:
    """Raises InputError that says of all that do not go together why, by their `names`."""
    first = members[0].task
    problems = [
        f"{name}: does not write token by token, as the members of an ensemble must."
        for name, member in zip(names, members, strict=True)
        if not isinstance(member.model, Steps)
    ]
    for name, member in zip(names[1:], members[1:], strict=True):
        task = member.task
        if not task.tokenizers["target"].equals(first.tokenizers["target"]):
            problems.append(differing_target(name, names[0]))
        elif task.columns.keys() != first.columns.keys():
            problems.append(f"{name}: its task is not that of {names[0]}: one reads a source, the other does not.")
        elif first.columns.get("source") != task.columns.get("source") and "source" not in first.tokenizers:
            problems.append(f"{name}: it hears other features than {names[0]}; the members of an ensemble share them.")
    if problems:
        raise InputError(problems)
