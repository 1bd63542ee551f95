"""A device that is not the processor, on any machine: tensors there say that they are on `meta`, and hold numbers.

As on a GPU, an operation that is given tensors of two devices fails, but for scalars and indices on the processor.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

HERE, THERE = torch.device("cpu"), torch.device("meta")
aten = torch.ops.aten
MOVES = {aten._to_copy.default, aten.copy_.default}
INDEXES = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}


class Foreign(torch.Tensor):
    """A tensor there; `inner` are its numbers."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> "Foreign":
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            inner.stride(),
            inner.storage_offset(),
            dtype=inner.dtype,
            device=THERE,
            requires_grad=inner.requires_grad,
        )
        made.inner = inner
        return made

    def tolist(self) -> Any:
        return self.inner.tolist()

    # Of lists and numbers torch would make tensors of `meta`, which hold none.
    def __getitem__(self, place: Any) -> torch.Tensor:
        return super().__getitem__(_with_tensors(place))

    def __setitem__(self, place: Any, value: Any) -> None:
        if not isinstance(value, torch.Tensor):
            value = torch.full((), value, dtype=self.dtype, device=THERE)
        super().__setitem__(_with_tensors(place), value)

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatched(function, args, kwargs or {})


def _with_tensors(place: Any) -> Any:
    if isinstance(place, tuple):
        return tuple(_with_tensors(each) for each in place)
    return torch.tensor(place) if isinstance(place, list) else place


class There(TorchDispatchMode):
    """Makes what is asked for on that device."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatched(function, args, kwargs or {})


def dispatched(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What the operation gives, done here, with its results where the operands are, or where they are asked for."""
    given = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, torch.Tensor)]
    foreign = [each for each in given if isinstance(each, Foreign)]
    assert all(isinstance(each, Foreign) or each.device == HERE for each in given), (
        f"{function}: a tensor without numbers"
    )
    if foreign and function not in MOVES:
        own = given[:1] if function in INDEXES else given
        here = [each for each in own if not isinstance(each, Foreign) and each.dim()]
        if here or (function in INDEXES and not isinstance(given[0], Foreign)):
            raise RuntimeError(f"{function}: tensors on two devices, {[tuple(each.shape) for each in given]}")
    asked = kwargs.get("device")
    asked = None if asked is None else torch.device(asked)
    if asked == THERE:
        kwargs = {**kwargs, "device": HERE}
    there = (bool(foreign) and function is not aten.copy_.default) if asked is None else asked == THERE
    by_inner = {id(each.inner): each for each in foreign}
    plain_args, plain_kwargs = tree_map_only(Foreign, lambda each: each.inner, (args, kwargs))
    result = function(*plain_args, **plain_kwargs)

    def placed(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) in by_inner:
            return by_inner[id(tensor)]
        return Foreign(tensor) if there else tensor

    return tree_map_only(torch.Tensor, placed, result)


@contextmanager
def foreign_device(patch: Callable[[str, Any], None]) -> Iterator[torch.device]:
    """Inside, "auto" is that device. patch: `monkeypatch.setattr` by dotted name.

    Tensors of a class of ours know neither torch's inference mode nor autocast nor fused AdamW, which are left out.
    """
    for name in ("transduce.pipeline.pipeline.device_for", "transduce.training.initialization.resolve_device"):
        patch(name, lambda *asked: THERE)
    patch("torch.autograd.grad_mode.inference_mode.__enter__", _without_gradients)
    patch("torch.autograd.grad_mode.inference_mode.__exit__", _as_before)
    make, adam = torch.tensor, torch.optim.AdamW
    patch("torch.optim.AdamW", lambda groups, fused, **settings: adam(groups, **settings))
    patch("torch.tensor", lambda values, dtype=None, device=None: make(values, dtype=dtype).to(device or HERE))
    patch("torch.is_autocast_enabled", lambda *device: False)
    patch("torch.autocast", lambda *asked, **settings: nullcontext())
    with There():
        yield THERE


def _without_gradients(mode: Any) -> None:
    mode.before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)


def _as_before(mode: Any, *error: Any) -> None:
    torch.set_grad_enabled(mode.before)
