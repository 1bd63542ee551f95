"""The quick tests as other processors run them: each variant of the kernels and none, bf16 or not, 1 and 2 threads.

    make test-variants
    python tests/variants.py [PYTEST'S ARGUMENTS]     # `-k native`, or folders in the place of those below

Each run prints one line, and what failed in it. The settings are combined, so that few runs have all of them.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from transduce.core.errors import InputError

FOLDERS = (
    *("attention", "core", "guards", "inference", "kernels", "layers", "models", "objectives", "pipeline", "runtime"),
    *("search", "tasks", "training"),
)


def variant(native: str, oned: str, aten: str, threads: int) -> dict[str, str]:
    """Kernels; the instructions that oneDNN and torch's own operators may use ("" = all); threads."""
    told = {"TRANSDUCE_NATIVE": native, "ONEDNN_MAX_CPU_ISA": oned, "ATEN_CPU_CAPABILITY": aten}
    return {name: value for name, value in told.items() if value} | {"OMP_NUM_THREADS": str(threads)}


VARIANTS = [
    variant("off", "", "", 2),
    variant("plain", "SSE41", "default", 1),
    variant("avx2", "AVX2", "avx2", 2),
    variant("avx512", "AVX512_CORE", "", 1),  # no bf16
    variant("avx512", "", "avx512", 2),  # bf16 where the processor has it
    variant("amx", "", "", 1),
]


def can_run(environment: dict[str, str]) -> str:
    """Why this processor cannot; "" if it can."""
    from transduce.kernels import native

    os.environ["TRANSDUCE_NATIVE"] = environment["TRANSDUCE_NATIVE"]
    native._found.cache_clear()
    try:
        native.kernels()
    except InputError as error:
        return str(error)
    return ""


def run(environment: dict[str, str], arguments: list[str]) -> int:
    """One line, and pytest's summary of what failed; pytest's exit code."""
    workers = max(1, (os.cpu_count() or 1) // int(environment["OMP_NUM_THREADS"]))
    command = [sys.executable, "-m", "pytest", "-n", str(min(8, workers)), "--dist", "loadfile", "-rfE", *arguments]
    command += [] if "-m" in arguments else ["-m", "not slow"]
    begun = time.monotonic()
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines() or done.stderr.splitlines() or ["nothing was said"]
    name = " ".join(f"{key}={value}" for key, value in environment.items())
    print(f"{name}: {lines[-1].strip('= ')} ({time.monotonic() - begun:.0f} s)", flush=True)
    for line in lines if done.returncode else []:
        if line.startswith(("FAILED", "ERROR")):
            print(f"  {line}", flush=True)
    return done.returncode


def main() -> None:
    """Every variant in turn; exit code 1 if a test failed in any."""
    arguments = sys.argv[1:]
    if not any(Path(each.partition("::")[0]).exists() for each in arguments):
        here = Path(__file__).parent
        arguments += [str(path) for path in [*(here / folder for folder in FOLDERS), *sorted(here.glob("test_*.py"))]]
    codes = []
    for environment in VARIANTS:
        if problem := can_run(environment):
            print(f"left out: {problem}", flush=True)
        else:
            codes.append(run(environment, arguments))
    sys.exit(any(codes))


if __name__ == "__main__":
    main()
