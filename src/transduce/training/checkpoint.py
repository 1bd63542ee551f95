"""Checkpoints of a training: whole or not there, checksummed, the newest undamaged one is resumed from."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from transduce.core.errors import InputError
from transduce.core.model_file import check_weights, lasting_tensors
from transduce.core.padded import leaves, map_tree
from transduce.core.tensor_file import canonical_json, read_metadata, read_tensors, write_tensors
from transduce.objectives.protocols import Objective
from transduce.runtime.process_group import ALONE, ProcessGroup
from transduce.training.average import MovingAverage
from transduce.training.optimizer import Optimizers
from transduce.training.progress import Progress

FOLDER = "checkpoints"
PATTERN = "update-*.safetensors"


@dataclass
class Carried:
    """The state that the last batch left in the model, for the next one to go on from; None = nothing."""

    state: Any = None


@dataclass(frozen=True)
class TrainingState:
    """What training changes, and by which objective. A checkpoint holds all but the latter."""

    model: nn.Module
    objective: Objective
    optimizers: Optimizers
    average: MovingAverage
    progress: Progress
    carried: Carried = field(default_factory=Carried)
    group: ProcessGroup = ALONE

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by `model/...`, `optimizer/...`, `average/...` and `carried/...`; all processes must ask."""
        parts: dict[str, dict[str, Tensor]] = {
            "model": {name: weight.detach() for name, weight in lasting_tensors(self.model).items()},
            "optimizer": self.optimizers.tensors(),
            "average": self.average.tensors(),
            "carried": {
                f"{place:06d}": self.group.joined_rows(leaf).contiguous()
                for place, leaf in enumerate(leaves(self.carried.state))
            },
        }
        named = {f"{part}/{name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}
        return self.group.whole(named)

    def restore(self, tensors: dict[str, Tensor]) -> None:
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}, "average": {}, "carried": {}}
        for key, tensor in tensors.items():
            part, _, name = key.partition("/")
            parts[part][name] = tensor
        for name, weight in lasting_tensors(self.model).items():
            weight.data.copy_(parts["model"][name])
        self.optimizers.restore(parts["optimizer"])
        self.average.restore(parts["average"])
        self._restore_carried([parts["carried"][name] for name in sorted(parts["carried"])])

    def _restore_carried(self, held: list[Tensor]) -> None:
        """The leaves of the state, into the tree that the model makes of them."""
        self.carried.state = None
        if held:
            device, left = next(self.model.parameters()).device, iter(held)
            like = self.model.initial_state(1)  # type: ignore[operator]
            if len(leaves(like)) != len(held):
                raise ValueError(f"expected a carried state of {len(leaves(like))} tensors; got {len(held)}")
            own = slice(self.group.rank, None, self.group.world)
            self.carried.state = map_tree(lambda _: next(left)[own].to(device), like)


class Checkpoints:
    """The folder `checkpoints/` of a run: `update-00000500.safetensors`, and the best weights they refer to.

    A best file is written before the first checkpoint that refers to it and deleted after the last one is gone,
    so that at every moment each checkpoint's best weights are on disk.
    """

    def __init__(self, run: Path, keep: int) -> None:
        self.folder = run / FOLDER
        self.folder.mkdir(parents=True, exist_ok=True)
        self.keep = keep

    def save(self, trained: TrainingState) -> None:
        """Write the checkpoint of this update, then delete all but the newest `keep`.

        Raises:
            TransduceError: the disk is full, or another failure of the system; older checkpoints are intact.
        """
        path, tensors = self.folder / f"update-{trained.progress.update:08d}.safetensors", trained.tensors()
        if not trained.group.first:
            return
        write_tensors(path, tensors, {"progress": canonical_json(trained.progress.to_dict())})
        for old in self._newest_first()[self.keep :]:
            old.unlink()
        self._delete_unused_bests()

    def restore_newest(self, trained: TrainingState, warn: Callable[[str], None]) -> Progress | None:
        """Restore the newest checkpoint that is undamaged; None when there is none.

        Each damaged one is named through `warn` and set aside under the suffix `.damaged`.

        Raises:
            InputError: it is undamaged, and of another training.
        """
        for path in self._newest_first():
            try:
                tensors, metadata = read_tensors(path)
                progress = _progress(path, metadata)
                if progress.best:
                    self.load_best(progress)
            except InputError as error:
                warn(f"{error} Going back to the checkpoint before it.")
                path.rename(path.with_suffix(".damaged"))
                continue
            _restore(trained, tensors, path)
            return progress
        return None

    def save_best(self, weights: dict[str, Tensor], update: int) -> None:
        """The weights of the best validation so far, made after update number `update`."""
        write_tensors(self._best(update), weights, {})

    def load_best(self, progress: Progress) -> dict[str, Tensor]:
        """The weights that `progress.best` speaks of.

        Raises:
            InputError: they are missing or damaged.
        """
        return read_tensors(self._best(int(progress.best["update"])))[0]

    def _best(self, update: int) -> Path:
        return self.folder / f"best-{update:08d}.safetensors"

    def _delete_unused_bests(self) -> None:
        referred = set()
        for path in self._newest_first():
            with suppress(InputError):  # a damaged older checkpoint refers to nothing; it is named when it is needed
                best = _progress(path, read_metadata(path)).best
                if best:
                    referred.add(self._best(int(best["update"])))
        for path in self.folder.glob("best-*.safetensors"):
            if path not in referred:
                path.unlink()

    def _newest_first(self) -> list[Path]:
        return sorted(self.folder.glob(PATTERN), reverse=True)


def _progress(path: Path, metadata: Mapping[str, str]) -> Progress:
    try:
        return Progress.from_dict(json.loads(metadata.get("progress", "null")))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: it is damaged, or not a checkpoint: {error}.") from error


def _restore(trained: TrainingState, tensors: dict[str, Tensor], path: Path) -> None:
    own = {f"model/{name}": tuple(weight.shape) for name, weight in lasting_tensors(trained.model).items()}
    try:
        check_weights(own, {name: tensor for name, tensor in tensors.items() if name.startswith("model/")})
        trained.restore(tensors)
    except (InputError, LookupError, RuntimeError, TypeError, ValueError) as error:
        told = error.problems if isinstance(error, InputError) else [f"{type(error).__name__}: {error}"]
        raise InputError(
            [f"{path}: it belongs to another training: {each}" for each in told]
            + ["Delete it, or choose another --run."]
        ) from error
