"""Which kind of task somebody means who names files and no recipe: the one they name, or what the files look like."""

import shlex

from transduce.core.errors import InputError
from transduce.core.registry import suggest
from transduce.data.files import suffix_of
from transduce.data.pairs.inputs import Named
from transduce.data.tagged import SUFFIXES
from transduce.planning.protocols import TaskPlanner
from transduce.planning.tasks import labels
from transduce.planning.tasks.labels import LabelsPlanner
from transduce.planning.tasks.pairs import PairsPlanner

PLANNERS: dict[str, type[LabelsPlanner] | type[PairsPlanner]] = {
    "classification": LabelsPlanner,
    "translation": PairsPlanner,
}


def planner_of(named: Named) -> TaskPlanner:
    """What plans the task that the files are for.

    Raises:
        InputError: there is no such task; the files may be for either task; what the planner of the task refuses.
    """
    return PLANNERS[kind_of(named)](named)


def kind_of(named: Named) -> str:
    """The kind of task: the one that is named, else classification where the files hold labels, else translation.

    Raises:
        InputError: there is no such task; the files may be for either.
    """
    if named.task is not None:
        if named.task not in PLANNERS:
            raise InputError(
                f"--task {named.task}: expected {' or '.join(PLANNERS)}.{suggest(named.task, [*PLANNERS])} Other tasks "
                "need a recipe."
            )
        return named.task
    if named.target is None and suffix_of(named.source) in SUFFIXES:
        raise InputError(
            f'{named.source}: such files hold words with labels, whose training needs a recipe: task.kind = "tagging" '
            f'and data.train = [{{ file = "{named.source.name}" }}]; see docs/tagging.md. For pairs of texts: --task '
            "translation."
        )
    found = labels.recognise(named)
    if found is None:
        return "translation"
    if found.doubt:
        command = f"transduce train {shlex.quote(str(named.source))}"
        raise InputError(
            f"{named.source}: may be texts with labels, as {found.why}, or pairs of texts, as {found.doubt}. Say "
            f"which: {command} --task classification, or {command} --task translation."
        )
    return "classification"
