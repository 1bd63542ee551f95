"""How Python calls a kernel (`call.h`): with arrays, which live until the call ends.

C++ takes addresses. An address keeps nothing alive: `x.contiguous().data_ptr()` is that of memory which is free again
before the kernel reads it. So only this file turns arrays into addresses, while it holds them.
"""

from array import array
from collections.abc import Callable
from typing import Any


class Struct:
    """A struct of `layout.py` as C++ reads it, in words of 64 bits. What it points to lives as long as it does.

    Args:
        fields: whole numbers; arrays and structs, whose addresses are written; None for the null pointer. A struct that
            is part of another one is given as its `*fields`.
    """

    __slots__ = ("_words", "fields")

    def __init__(self, *fields: Any) -> None:
        self.fields = fields
        self._words = array("q", map(_word, fields))

    def __len__(self) -> int:
        """How many words."""
        return len(self._words)


def call(function: Callable[..., None], *arguments: Any) -> None:
    """Call a kernel with numbers, arrays, structs and None, all of which are held until it returns.

    Raises:
        ValueError: a tensor is not in the processor's memory.
    """
    function(*map(_word, arguments))


def _word(x: Any) -> Any:
    """A number as it is; of anything else its address, 0 for None."""
    if isinstance(x, int | float):
        return x
    if x is None:
        return 0
    words = x._words if isinstance(x, Struct) else x
    if isinstance(words, array):
        return words.buffer_info()[0]
    if not hasattr(words, "data_ptr"):
        return words.ctypes.data
    if not words.is_cpu:
        raise ValueError(f"a kernel reads the processor's memory, and this tensor is on {words.device}.")
    return words.data_ptr()
