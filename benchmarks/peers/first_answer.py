"""From the start of `transduce predict` to its first answer: python first_answer.py MODEL.

Without MODEL: what a process takes that imports torch and ends, the floor of every tool that is made on it.
"""

import subprocess
import sys
import time

from work import report

if __name__ == "__main__":
    asked = ["-m", "transduce", "predict", *sys.argv[1:]] if sys.argv[1:] else ["-c", "import torch"]
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, *asked],
        input=b"A man is sleeping.\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    report(seconds=time.perf_counter() - begun)
