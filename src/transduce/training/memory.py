"""How much memory there is, how much a step needs, and whether an error says that there was too little."""

from pathlib import Path

import psutil
import torch
from torch import Tensor, nn

from transduce.data.collate import Batch
from transduce.layers.recomputation import Recomputable
from transduce.objectives.protocols import Objective
from transduce.runtime.control_groups import GROUPS, OWN, own_groups
from transduce.training.precision import autocast

PROCESSOR = ("DefaultCPUAllocator", "can't allocate memory", "bad_alloc")  # of torch's own allocator and C++'s


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch failed for want of memory: on an accelerator a type of its own, on the processor by its words."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in PROCESSOR)


def free_bytes(device: torch.device) -> int:
    """What could be allocated on `device` now. Of the processor's memory others may want some, too."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    of_machine, of_group = psutil.virtual_memory().available, _free_of_group()
    return int(of_machine if of_group is None else min(of_machine, of_group))


def _free_of_group(root: Path = GROUPS, own: Path = OWN) -> int | None:
    """What a container's limit leaves (Linux control groups, version 2), which psutil knows nothing of; else None."""
    try:
        folder = root / own_groups(own)[""]
        limit = (folder / "memory.max").read_text().strip()
        if limit == "max":
            return None
        counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        held = int((folder / "memory.current").read_text()) - int(counts["inactive_file"])  # files go when asked to
        return max(0, int(limit) - held)
    except (OSError, KeyError, ValueError):
        return None


def activation_bytes(model: nn.Module, objective: Objective, batch: Batch, precision: str) -> int:
    """What the backward pass keeps of one forward pass over `batch`, measured by running it.

    With blocks that recompute: what is kept, and the activations of the largest block.
    """
    kept = _kept_bytes(model, objective, batch, precision)
    return kept + max((_added(each, kept, model, objective, batch, precision) for each in _kinds(model)), default=0)


def _kinds(model: nn.Module) -> list[Recomputable]:
    """The first of each list of equal blocks that recompute."""
    lists = ([each for each in parent.children() if isinstance(each, Recomputable)] for parent in model.modules())
    return [blocks[0] for blocks in lists if blocks and blocks[0].recomputes]


def _added(block: Recomputable, kept: int, model: nn.Module, objective: Objective, batch: Batch, precision: str) -> int:
    """How much more is kept where this block does not recompute."""
    block.recomputes = False
    try:
        return max(0, _kept_bytes(model, objective, batch, precision) - kept)
    finally:
        block.recomputes = True


def _kept_bytes(model: nn.Module, objective: Objective, batch: Batch, precision: str) -> int:
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    device = batch.device
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), autocast(precision, device):
        objective.loss(model, batch, objective.draw(model, batch))
    return sum(size for place, size in kept.items() if place not in weights)
