"""Where a training stands when it begins: at its start, or at its newest checkpoint; the same in all its processes."""

from dataclasses import replace
from pathlib import Path

from transduce.core.errors import InputError
from transduce.recipe.recipe import Recipe
from transduce.runtime.process_group import ALONE, ProcessGroup
from transduce.tasks.base import Task
from transduce.tasks.protocols import TaskData
from transduce.training.checkpoint import Checkpoints, TrainingState
from transduce.training.display import Display
from transduce.training.finished import set_aside
from transduce.training.initialization import count_embeddings
from transduce.training.progress import Progress


def restore_or_start(
    recipe: Recipe,
    run: Path,
    task: Task,
    data: TaskData,
    trained: TrainingState,
    checkpoints: Checkpoints,
    display: Display,
) -> TrainingState:
    """`trained` as it stands, which is told.

    Raises:
        InputError: the checkpoint is of another training, or of another number of processes.
    """
    group, whole = trained.group, replace(trained, group=ALONE)  # with the state of all streams, if there is any

    def restored() -> Progress:
        progress = checkpoints.restore_newest(whole, display.warn)
        _check_size(run, progress, group)
        set_aside(run, display)
        if progress:
            display.tell(f"Going on after update {progress.update}.")
        elif recipe.training.embeddings == "cooccurrence":
            count_embeddings(trained, recipe, task, data, display)
        return progress or trained.progress

    trained = replace(trained, progress=group.from_first(restored))
    trained.progress.world = group.world
    if group.world > 1:
        trained.restore(group.copy_from_first(whole.tensors() if group.first else None))
    return trained


def _check_size(run: Path, progress: Progress | None, group: ProcessGroup) -> None:
    """Raises InputError where another number of processes has trained there, and nobody said that it may change."""
    before = (progress.world or 1) if progress else group.world
    if before != group.world and not group.resize:
        raise InputError(
            f"{run}: trained by {before} process{'es' if before > 1 else ''} so far; got {group.world}. Start as many "
            "again, or go on with --resize: the same data in the same order, but other dropout."
        )
