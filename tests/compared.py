"""Comparisons whose trainings run in this process, and a tiny one of language models."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from transduce.compare import growth, operations, page, worker
from transduce.compare import run as comparing
from transduce.compare.config import load_comparison
from transduce.compare.run import run_comparison
from transduce.core.errors import InputError
from transduce.metrics.paired import mean_interval, paired_bootstrap
from transduce.training.display import Display


def work(job: dict[str, Any], path: Path, lock: int | None) -> int:
    """What a process of its own would do."""
    {"train": worker.train, "costs": worker.costs}[job["kind"]](job)
    return 0


def measured_briefly(patch: pytest.MonkeyPatch) -> None:
    """Trainings run in this process, and what is measured and resampled is so a few times only."""
    patch.setattr(comparing, "_run_worker", work)
    patch.setattr(growth, "ENOUGH_SECONDS", 0.0)
    patch.setattr(growth, "REPEATS", 1)
    patch.setattr(operations, "SAMPLED", 2)
    few_resamples(patch)


def few_resamples(patch: pytest.MonkeyPatch) -> None:
    """Intervals and p-values are of a twentieth of the resamples, wherever nobody says how many."""
    for estimate in (mean_interval, paired_bootstrap):
        patch.setitem(estimate.__kwdefaults__, "resamples", 50)


def without_curves(patch: pytest.MonkeyPatch) -> None:
    """Pages have no learning curves, nor growth with length: most of the time of a tiny comparison."""

    def refuse(*of: object, **how: object) -> None:
        raise InputError("not drawn in this test.")

    patch.setattr(page, "line_chart", refuse)


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
        measured_briefly(patch)
        without_curves(patch)
        patch.setenv("TRANSDUCE_CACHE", str(folder / "cache"))
        run_comparison(load_comparison(path), folder / "run", Display(Console(quiet=True)))
    return folder / "run"
