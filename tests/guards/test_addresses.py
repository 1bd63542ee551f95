"""Addresses for C++ are made in one place, which holds the arrays until the call ends."""

import ast
import ctypes
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import transduce
from transduce.kernels.native.call import Struct, call

PACKAGE = Path(transduce.__file__).parent
ADDRESSES = {"data_ptr", "ctypes", "buffer_info", "__array_interface__", "unsafe_buffer_pointer"}
MAY = {
    "kernels/native/call.py": "hands them to C++",
    "kernels/native/arrays.py": "asks where memory begins, to begin at a whole vector",
    "kernels/matmul.py": "compares them, to know one tensor from another",
    "core/model_file.py": "likewise",
    "training/memory.py": "likewise",
}


def taken(source: str) -> Iterator[int]:
    """The lines that take an address, or call a compiled function without `kernel`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in ADDRESSES:
            yield node.lineno
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
            called = node.value.func
            if isinstance(called, ast.Name) and called.id == "kernels" and not node.attr.startswith("__"):
                yield node.lineno


@pytest.mark.parametrize(
    "source",
    [
        "kernel('norm')(x.contiguous().data_ptr(), 3)",
        "addresses = (each.data_ptr() for each in map(Tensor.contiguous, tensors))",
        "place = np.ascontiguousarray(x).ctypes.data",
        "kernels().memory_unroll(x, 3)",
        "array('q', [1]).buffer_info()[0]",
    ],
)
def test_an_address_is_found(source: str) -> None:
    assert list(taken(source)) == [1]


def test_addresses_are_taken_by_whoever_holds_the_arrays() -> None:
    files = {str(file.relative_to(PACKAGE)): file for file in PACKAGE.rglob("*.py")}
    where = {name: list(taken(file.read_text(encoding="utf-8"))) for name, file in files.items() if name not in MAY}
    assert not {name: lines for name, lines in where.items() if lines}, "pass the array to `kernel(..)`, or a Struct"
    assert MAY.keys() <= files.keys()


def test_arrays_live_until_a_kernel_returns() -> None:
    made = [torch.arange(6.0).view(2, 3).T.contiguous(), np.arange(4.0), None, 7, 2.5]
    watched = [weakref.ref(each) for each in made[:2]]
    found = []

    def kernel(tensor: int, array: int, nothing: int, whole: int, real: float) -> None:
        assert all(each() is not None for each in watched)
        found.append((nothing, whole, real, *(ctypes.c_float * 6).from_address(tensor)))
        found.append(tuple((ctypes.c_double * 4).from_address(array)))

    call(kernel, *(made.pop(0) for _ in range(5)))
    assert found == [(0, 7, 2.5, 0, 3, 1, 4, 2, 5), (0, 1, 2, 3)]
    assert all(each() is None for each in watched)


def test_a_struct_holds_what_it_points_to() -> None:
    tensor = torch.tensor([1.5, 2.5])
    watched = weakref.ref(tensor)
    inner = Struct(tensor, 3, None)
    outer = Struct(inner, *inner.fields, -1)
    del tensor, inner
    found = []

    def kernel(place: int) -> None:
        words = (ctypes.c_int64 * 5).from_address(place)
        pointed = (ctypes.c_int64 * 3).from_address(words[0])
        found.extend([list(words[2:]), list(pointed[1:]), pointed[0] == words[1]])
        found.append(list((ctypes.c_float * 2).from_address(words[1])))

    call(kernel, outer)
    assert found == [[3, 0, -1], [3, 0], True, [1.5, 2.5]]
    assert watched() is not None
    assert len(outer) == 5


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_tensor_of_another_device_is_refused(wrapped: bool) -> None:
    elsewhere = torch.empty(2, device="meta")
    with pytest.raises(ValueError, match="this tensor is on meta"):
        call(print, 1, Struct(3, elsewhere) if wrapped else elsewhere)
