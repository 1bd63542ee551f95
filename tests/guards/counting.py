"""What a piece of work asks of torch, counted, so that it does not depend on the machine or the weather."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

COPIES = ("copy_", "clone", "_to_copy", "cat", "index_select", "index")  # what moves bytes and computes nothing
VIEWS = {
    "view",
    "_unsafe_view",
    "t",
    "transpose",
    "expand",
    "slice",
    "select",
    "split",
    "unsqueeze",
    "squeeze",
    "detach",
    "alias",
    "as_strided",
    "unbind",
    "permute",
    "_reshape_alias",
    "unfold",
    "diagonal",
    "view_as",
}


class Counts(TorchDispatchMode):
    """Counts while it is entered, backward passes included.

    calls: by operator, those that compute or move something; a view does not.
    made: every tensor that got memory of its own, as (shape, type), with how often.
    copied: of the tensors in `watched`, how often each was cast or copied as a whole.
    """

    def __init__(self, watched: dict[str, Tensor] | None = None) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.made: Counter[tuple[tuple[int, ...], torch.dtype]] = Counter()
        self.copied: Counter[str] = Counter()
        self._watched = {tensor.data_ptr(): name for name, tensor in (watched or {}).items()}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Called for every operator below autograd."""
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in VIEWS:
            return out
        self.calls[name] += 1
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        storages = {each.untyped_storage().data_ptr() for each in given}
        for each in tree_leaves(out):
            if isinstance(each, Tensor) and each.untyped_storage().data_ptr() not in storages:
                self.made[tuple(each.shape), each.dtype] += 1
        if name in COPIES:
            for each in given:
                if each.data_ptr() in self._watched:
                    self.copied[self._watched[each.data_ptr()]] += 1
        return out

    @property
    def operators(self) -> int:
        """Calls that compute or move something."""
        return sum(self.calls.values())

    @property
    def copies(self) -> int:
        """Calls that only move."""
        return sum(self.calls[name] for name in COPIES)

    @property
    def bytes(self) -> int:
        """Allocated in all, freed or not."""
        return sum(count * kind.itemsize * torch.Size(shape).numel() for (shape, kind), count in self.made.items())


def counted(work: Callable[[], Any], watched: dict[str, Tensor] | None = None) -> Counts:
    """`work` once to warm up, then once counted."""
    work()
    with Counts(watched) as counts:
        work()
    return counts
