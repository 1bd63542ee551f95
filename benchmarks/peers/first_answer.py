"""From the start of `transduce predict` to its first answer: python first_answer.py MODEL.

Without MODEL: what a process takes that imports torch and ends, the floor of every tool that is made on it.

The second of two runs counts, and both may write bytecode: an installed package has it, a checkout where
PYTHONDONTWRITEBYTECODE is set compiles each file at every start.
"""

import os
import subprocess
import sys
import time

from work import report


def seconds(asked: list[str]) -> float:
    """Of one process, from its start to its end."""
    may_write = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, *asked],
        input=b"A man is sleeping.\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=may_write,
        check=True,
    )
    return time.perf_counter() - begun


if __name__ == "__main__":
    asked = ["-m", "transduce", "predict", *sys.argv[1:]] if sys.argv[1:] else ["-c", "import torch"]
    seconds(asked)
    report(seconds=seconds(asked))
