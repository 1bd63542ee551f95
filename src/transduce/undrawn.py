"""Models that are built to be filled from a file draw no random start.

It would be time for nothing, and would move on the random numbers of the program around them.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import init
from torch.overrides import TorchFunctionMode

DRAWN = {torch.rand, torch.randn}
DRAWN_IN_PLACE = {Tensor.normal_, Tensor.uniform_, init.normal_, init.uniform_, init.kaiming_uniform_}


class Undrawn(TorchFunctionMode):
    """While it is entered, what would be drawn uniformly or normally is zero, and torch's random state stays."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in DRAWN_IN_PLACE:
            with torch.no_grad():
                return (args[0] if args else kwargs["tensor"]).zero_()
        return (torch.zeros if func in DRAWN else func)(*args, **kwargs)
