"""Where the numbers of a tensor file stand."""

import os
from pathlib import Path

import pytest
import safetensors.torch
import torch

from transduce.core.errors import InputError
from transduce.core.tensor_file import read_header, read_tensors, write_tensors


def test_numbers_begin_at_a_multiple_of_8_however_long_the_header_is(tmp_path: Path) -> None:
    """As the format asks of whoever writes, so that others may map the file and read numbers where they stand."""
    x = torch.arange(3.0, dtype=torch.float64)
    for extra in range(8):
        path = tmp_path / "x"
        write_tensors(path, {"x": x}, {"note": "n" * extra})
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        assert length % 8 == 0
        assert content[8 + length :] == x.numpy().tobytes()
        assert content[8 : 8 + length].rstrip(b" ").endswith(b"}")
        assert torch.equal(read_tensors(path)[0]["x"], x)
        assert torch.equal(safetensors.torch.load_file(path)["x"], x)


def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        read_header(tmp_path / "pipe")
