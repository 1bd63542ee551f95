"""Arrays as kernels take them, with sizes and strides, whether they are torch's tensors or NumPy's arrays.

Whoever predicts without torch has NumPy alone (`transduce.without_torch`). So nothing here imports torch.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = Any  # a `torch.Tensor` on the CPU, or a NumPy array
ALIGNED = 64  # bytes: a vector of AVX-512, and a line of the cache


def contiguous(x: Array) -> Array:
    """The same, or a copy whose elements lie one behind the other."""
    return x.contiguous() if hasattr(x, "data_ptr") else np.ascontiguousarray(x)


def copied(x: Array) -> Array:
    """A copy whose elements lie one behind the other."""
    if hasattr(x, "data_ptr"):
        return x.clone().contiguous()
    copy = empty(x.shape, x.dtype)
    copy[...] = x
    return copy


def empty_like(x: Array, shape: Sequence[int]) -> Array:
    """An array of this shape and of the kind and dtype of x, to be written to."""
    return x.new_empty(shape) if hasattr(x, "data_ptr") else empty(shape, x.dtype)


def empty(shape: Sequence[int], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """An array to be written to, which begins at a whole vector, so that no vector crosses a line of the cache."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    room = np.empty(size + ALIGNED, np.uint8)
    first = -room.ctypes.data % ALIGNED
    return room[first : first + size].view(dtype).reshape(shape)


def zeros(shape: Sequence[int], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    found = empty(shape, dtype)
    found.fill(0)
    return found


def strides(x: Array) -> list[int]:
    """In elements."""
    return list(x.stride()) if hasattr(x, "data_ptr") else [stride // x.itemsize for stride in x.strides]
