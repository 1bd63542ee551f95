"""The stores of many files, encoded by several processes at a time: one file each, in the same bytes as one by one.

A store gets its name when it is complete. So an encoding that was stopped goes on with the files that have none.
"""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from transduce.core.errors import InputError
from transduce.data.store import Store
from transduce.runtime.processors import processors
from transduce.runtime.workers import parallel_map
from transduce.tasks.protocols import Tell


class Encoding(NamedTuple):
    """One store. exists: whether it was encoded before. open: encodes it if not, and opens it."""

    exists: Callable[[], bool]
    open: Callable[[], Store]


def opened(encodings: Sequence[Encoding], processes: int | None, tell: Tell) -> list[Store]:
    """All stores, in order.

    Args:
        processes: how many encode; None = one for each processor.

    Raises:
        InputError: what encoding refuses, of all files at once.
    """
    missing = [encoding for encoding in encodings if not encoding.exists()] if len(encodings) > 1 else []
    workers = min(len(missing), processes or processors())
    if workers > 1 and "fork" in multiprocessing.get_all_start_methods() and not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        tell(f"Encoding {len(missing):,} of {len(encodings):,} files, {workers} at a time.")
        found = parallel_map(lambda number: _problems(missing[number]), len(missing), workers)
        if problems := [problem for problems in found for problem in problems]:
            raise InputError(problems)
    return [encoding.open() for encoding in encodings]


def _problems(encoding: Encoding) -> list[str]:
    """In a process of its own: encode; what is refused."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the library's threads do not survive a fork
    try:
        encoding.open()
    except InputError as error:
        return error.problems
    return []
