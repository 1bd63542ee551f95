"""Models that are built to be filled from a file draw no random start.

It would be time for nothing, and would move on the random numbers of the program around them.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import init
from torch.overrides import TorchFunctionMode

DRAWS = {Tensor.normal_, Tensor.uniform_, init.normal_, init.uniform_, init.kaiming_uniform_}


@contextmanager
def undrawn() -> Iterator[None]:
    """Parameters, all of which a file holds, are zero where they would be drawn; torch's random state is put back.

    What else a model draws, as a buffer that it keeps to itself, it draws.
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
