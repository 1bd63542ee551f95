"""Which kind of task somebody means who names files and no recipe."""

from transduce.data.pairs.inputs import Named
from transduce.planning.protocols import TaskPlanner
from transduce.planning.tasks.pairs import PairsPlanner


def planner_of(named: Named) -> TaskPlanner:
    """What plans the task that the files are for.

    Raises:
        InputError: what the planner of this task refuses.
    """
    return PairsPlanner(named)
