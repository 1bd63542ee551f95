"""Blocks whose activations are computed again in the backward pass instead of being kept (Chen et al. 2016).

A block that recomputes keeps its inputs alone: memory for the activations of one block in the place of those of all,
for one more forward pass. Random numbers and autocast are those of the first pass, so gradients are the same to the
bit.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

P = ParamSpec("P")
Result = TypeVar("Result")


class Recomputable(nn.Module):
    """A module with methods under `recomputable`.

    recomputes: whether they recompute in training.
    """

    recomputes: bool = False


Owner = TypeVar("Owner", bound=Recomputable)


def recomputable(method: Callable[Concatenate[Owner, P], Result]) -> Callable[Concatenate[Owner, P], Result]:
    """A method that keeps nothing but its arguments where its module `recomputes`.

    It may draw from torch's generators. Whatever else it changes besides its result, it must leave alone while
    `recomputing`.
    """

    @wraps(method)
    def called(self: Owner, *args: P.args, **kwargs: P.kwargs) -> Result:
        if not (self.recomputes and self.training and torch.is_grad_enabled()):
            return method(self, *args, **kwargs)
        settings: dict[str, Any] = {**kwargs, "use_reentrant": False, "context_fn": _contexts}
        return checkpoint(method, self, *args, **settings)

    return called  # type: ignore[return-value]  # `wraps` forgets that self has no keyword


def recomputing() -> bool:
    """Whether this thread computes for the second time what it computed before."""
    return _again.get()


_again: ContextVar[bool] = ContextVar("transduce_recomputing", default=False)


def _contexts() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Of the first pass and of the second."""
    return nullcontext(), _second_pass()


@contextmanager
def _second_pass() -> Iterator[None]:
    token = _again.set(True)
    try:
        yield
    finally:
        _again.reset(token)
