"""The command line in a process of its own."""

from functools import partial
from pathlib import Path

import pytest

import forked


@pytest.fixture
def run(tmp_path: Path) -> forked.Run:
    """Runs `transduce` with arguments."""
    return partial(forked.transduce, tmp_path)
