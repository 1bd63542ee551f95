"""The tests here share one model file and one server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from served import Server, serving, write_model
from transduce.pipeline.pipeline import Pipeline, load


@pytest.fixture(scope="session")
def served_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random translator; nobody may change it."""
    return write_model(tmp_path_factory.mktemp("served") / "tiny.safetensors")


@pytest.fixture(scope="session")
def offline(served_file: Path) -> Pipeline:
    """The same model, asked without a server."""
    return load(served_file)


@pytest.fixture(scope="module")
def server(served_file: Path) -> Iterator[Server]:
    """A server with the defaults and a generous queue."""
    with serving([served_file], queue=4096) as running:
        yield running
