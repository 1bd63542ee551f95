"""Ours: `transduce train benchmarks/quality_small.toml` (or quality_narrow.toml) as anyone runs it; arguments in
`quality`, and --data MULTI30K.

How long it took is read beside its log.jsonl: the process is asked when the line of a validation's update appears, and
again when that of the validation does.
"""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from quality import Curve, arguments

from transduce.runtime.event_log import read_from

RECIPES = Path(__file__).parent.parent
LOOK_EVERY = 0.2  # seconds


def main() -> None:
    """Train to the end, from the last checkpoint if there is one."""
    asked = arguments(("--data", None))
    run = asked.folder / "run"
    saved = [int(path.stem.partition("-")[2]) for path in run.glob("checkpoints/update-*.safetensors")]
    start = max(saved, default=0)
    settings = {
        "training.threads": asked.threads,
        "training.updates": asked.updates,
        "training.validate_every": asked.every,
        "training.checkpoint_every": asked.every,
        "training.log_every": math.gcd(50, asked.every),
        "data.root": asked.data,
    }
    recipe = RECIPES / f"quality_{asked.sizes}.toml"
    command = [sys.executable, "-m", "transduce", "train", str(recipe), "--run", str(run)]
    command += [f"{key}={value}" for key, value in settings.items()]
    with subprocess.Popen(command, start_new_session=True) as process:
        signal.signal(signal.SIGTERM, lambda *_: process.kill())  # what came after the last checkpoint is done again
        curve = Curve(asked.folder / "curve.jsonl", start, process.pid)
        follow(run / "log.jsonl", curve, start, asked.every, lambda: runs(process.pid))
    raise SystemExit(process.returncode)


def runs(child: int) -> bool:
    """Whether it has not ended; one that has is left to be asked for its time."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def follow(log: Path, curve: Curve, start: int, every: int, alive: Callable[[], bool]) -> None:
    """Write a point of the curve for each validation after update `start` that is logged while `alive`."""
    for event in events(log, alive):
        if event["update"] <= start or event["update"] % every:
            continue
        if event["event"] == "train":
            curve.begin()
        elif event["event"] == "validation":
            curve.end(event["update"], event["tokens"], event["bleu"])


def events(log: Path, alive: Callable[[], bool]) -> Iterator[dict[str, Any]]:
    """The events that are logged from now on; a resumed training may first give those that it keeps."""
    offset, running = log.stat().st_size if log.is_file() else 0, True
    while running:
        running = alive()
        found, offset = read_from(log, offset)
        yield from found
        time.sleep(LOOK_EVERY)


if __name__ == "__main__":
    main()
