"""Kernels take NumPy's arrays as they take torch's tensors."""

import numpy as np
import pytest
import torch

from transduce.kernels.native import arrays
from transduce.kernels.native.linear import Packed


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 7, 64)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64])
def test_arrays_begin_at_a_whole_vector(shape: tuple[int, ...], dtype: type) -> None:
    for made in (arrays.empty(shape, dtype), arrays.zeros(shape, dtype)):
        assert (made.shape, made.dtype) == (shape, np.dtype(dtype))
        assert made.ctypes.data % arrays.ALIGNED == 0
        assert made.flags.c_contiguous
    assert not arrays.zeros(shape, dtype).any()


def test_a_view_is_told_as_torch_tells_it() -> None:
    tensor = torch.arange(60, dtype=torch.float32).view(3, 4, 5)
    array = tensor.numpy()
    for left, right in ((tensor, array), (tensor.transpose(0, 2), array.transpose(2, 1, 0)), (tensor[1:], array[1:])):
        assert arrays.strides(left) == arrays.strides(right)
        for make in (arrays.contiguous, arrays.copied):
            assert (np.asarray(make(left)) == make(right)).all()
            assert arrays.strides(make(left)) == arrays.strides(make(right))
    assert not np.shares_memory(arrays.copied(array), array)


@pytest.mark.usefixtures("kernels")
def test_a_product_is_the_same_of_both() -> None:
    torch.manual_seed(0)
    weight, bias, x = torch.randn(70, 13), torch.randn(70), torch.randn(2, 3, 13)
    of_tensors, of_arrays = Packed(weight, bias)(x), Packed(weight.numpy(), bias.numpy())(x.numpy())
    assert isinstance(of_arrays, np.ndarray)
    assert (of_tensors.numpy() == of_arrays).all()
