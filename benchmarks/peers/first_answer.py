"""From the start of `transduce predict` to its first answer: python first_answer.py MODEL."""

import subprocess
import sys
import time

from work import report

if __name__ == "__main__":
    command = [sys.executable, "-m", "transduce", "predict", sys.argv[1]]
    begun = time.perf_counter()
    subprocess.run(
        command, input=b"A man is sleeping.\n", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    report(seconds=time.perf_counter() - begun)
