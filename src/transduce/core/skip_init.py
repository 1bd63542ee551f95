"""Building models whose weights will be loaded from a file: without random initialization, and no larger than the file.

Random initialization would waste time and advance the program's random state. A malicious file's settings may describe
a model that is much larger than its tensors, so sizes are compared while the model is built.
"""

import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import init
from torch.nn.modules import module as registering
from torch.overrides import TorchFunctionMode

from transduce.core.errors import InputError

SCRATCH = 2**22  # numbers that a model may hold besides its weights at once: tables of positions, masks

DRAWS = {Tensor.normal_, Tensor.uniform_, init.normal_, init.uniform_, init.kaiming_uniform_}


@contextmanager
def undrawn() -> Iterator[None]:
    """Inside the block, parameters are initialized with zeros instead of random numbers. Restores torch's random state.

    Random buffers are still drawn, because a file may not contain them.
    """
    with torch.random.fork_rng(devices=[]), _Undrawn():
        yield


class _Undrawn(TorchFunctionMode):
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in DRAWS and isinstance(drawn := args[0] if args else kwargs["tensor"], nn.Parameter):
            with torch.no_grad():
                return drawn.zero_()
        return func(*args, **kwargs)


@contextmanager
def no_larger_than(shapes: Collection[Sequence[int]]) -> Iterator[None]:
    """Inside the block, a model can have only about as many parameters and elements as tensors of these shapes.

    Raises:
        InputError: the model is larger; nothing was allocated for the part that is too large.
    """
    thread = threading.get_ident()  # others may build models of their own
    counts = dict.fromkeys(("weights", "modules"), 0)
    limits = {"weights": 2 * len(shapes) + 20, "modules": 40 * len(shapes) + 200}

    def count(kind: str) -> None:
        if threading.get_ident() != thread:
            return
        counts[kind] += 1
        if counts[kind] > limits[kind]:
            most = f"{limits[kind]:,} {kind}"
            raise InputError(f"the settings ask for a model of more than {most}; the file has {len(shapes):,} weights.")

    handles = [
        registering.register_module_parameter_registration_hook(lambda *given: count("weights")),
        registering.register_module_module_registration_hook(lambda *given: count("modules")),
    ]
    try:
        with _NoLarger([math.prod(shape) for shape in shapes]):
            yield
    finally:
        for handle in handles:
            handle.remove()


MAKERS = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.eye}


class _NoLarger(TorchFunctionMode):
    """Looks at the shape of what torch is about to make."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self._greatest = max([SCRATCH, *sizes])
        self._left = 4 * sum(sizes) + 4 * SCRATCH

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in MAKERS:
            self._take(_numbers(args, kwargs))
        elif func is torch.arange:
            start, end, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
            self._take((end - start) / step)
        else:
            shapes = [each.shape for each in args if isinstance(each, Tensor)]
            if len(shapes) > 1 and len(set(shapes)) > 1 and all(map(len, shapes)):
                self._check(_broadcast_size(shapes))
        return func(*args, **kwargs)

    def _take(self, numbers: float) -> None:
        self._check(numbers)
        self._left -= int(numbers)
        if self._left < 0:
            raise InputError("the settings ask for a model with many times as many numbers as the file holds.")

    def _check(self, numbers: float) -> None:
        if numbers > self._greatest:
            raise InputError(
                f"the settings ask for {numbers:.3g} numbers in one piece; the largest weight that the file "
                f"allows for has {self._greatest:,}."
            )


def _numbers(args: Sequence[Any], kwargs: dict[str, Any]) -> int:
    """How many numbers a maker makes."""
    shape = args[0] if args and isinstance(args[0], Sequence) else args or kwargs.get("size", ())
    return math.prod(abs(each) for each in shape if isinstance(each, int))


def _broadcast_size(shapes: Sequence[Sequence[int]]) -> int:
    """At most how many numbers an operator makes of tensors of these shapes, each standing for the others' axes."""
    axes = max(map(len, shapes))
    whole = [[1] * (axes - len(shape)) + list(shape) for shape in shapes]
    return math.prod(max(sizes) for sizes in zip(*whole, strict=True))
