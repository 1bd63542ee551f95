"""What trainings leave: models, told apart by their files, and translations; and a display that nobody looks at."""

import gzip
import hashlib
from io import StringIO
from pathlib import Path

from rich.console import Console

from transduce.training.display import Display


def shown() -> Display:
    return Display(Console(file=StringIO(), width=200))


def sha256(run: Path) -> str:
    """Of the model file."""
    return hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()


def lines_of(path: Path) -> list[str]:
    """Of a compressed file; only a line feed ends one."""
    text = gzip.decompress(path.read_bytes()).decode("utf-8")
    assert text.endswith("\n")
    return text[:-1].split("\n")
