"""Comparisons whose trainings run in this process, and a tiny one of language models."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from transduce.compare import growth, worker
from transduce.compare import run as comparing
from transduce.compare.config import load_comparison
from transduce.compare.run import run_comparison
from transduce.training.display import Display


def work(job: dict[str, Any], path: Path, lock: int | None) -> int:
    """What a process of its own would do."""
    {"train": worker.train, "costs": worker.costs}[job["kind"]](job)
    return 0


def compared_letters(folder: Path, name: str, variants: str) -> Path:
    """The finished comparison of recurrent language models of letters, with two seeds and without validation.

    variants: and what else its file says after [compare].
    """
    for part, lines in (("train", 40), ("test", 7)):
        (folder / f"{part}.txt").write_text("".join(f"the {word} is {word} .\n" for word in "abcdefghij" * lines))
    path = folder / f"{name}.toml"
    path.write_text(
        '[task]\nkind = "language_modelling"\ncontext = 16\n'
        f'[data]\nroot = "{folder}"\ntrain = [{{ text = "train.txt" }}]\n'
        'test = { letters = { text = "test.txt" } }\n'
        '[tokenizer]\nkind = "whitespace"\n[batch]\ntokens = 64\n[model]\nkind = "rnn_decoder"\nlayers = 1\n'
        '[training]\nthreads = 1\nprecision = "fp32"\n'
        f'[compare]\nbudget = "1ktok"\nseeds = [1, 2]\nlengths = [4, 8]\n{variants}'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "_work", work)
        patch.setattr(growth, "ENOUGH_SECONDS", 0.0)
        patch.setenv("TRANSDUCE_CACHE", str(folder / "cache"))
        run_comparison(load_comparison(path), folder / "run", Display(Console(quiet=True)))
    return folder / "run"
