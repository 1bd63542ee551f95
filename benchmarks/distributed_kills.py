"""Kill -9 one of several processes that train together, or all, at random moments: are the bytes those of no kill?

    python benchmarks/distributed_kills.py --cases 50

World sizes 2 and 4, training.parallel ddp and fsdp in turn. Each case kills one process at random, or all, one to three
times over, at moments drawn uniformly from what an uninterrupted training takes; the others end as torchrun ends them.
Then the same command goes on to its end. Prints a table, writes results/distributed/kills.json, exits 1 if any model
file differs. `kill_resume.py` does the same with torchrun itself. POSIX.
"""

import argparse
import itertools
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from trainers import Trainers, record, sha256, trained, warm, write_work

SHORT = (
    "training.updates=20",
    "training.validate_every=10",
    "training.decode_sentences=8",
    "training.checkpoint_every=3",
)
GRACE = 1.0  # seconds that the others have to end by themselves
KINDS = tuple(itertools.product((2, 4), ("ddp", "fsdp")))


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began, drawn, rows = time.monotonic(), random.Random(asked.seed), []
    warm()
    with tempfile.TemporaryDirectory() as name:
        os.environ["TRANSDUCE_CACHE"] = f"{name}/cache"
        recipe = write_work(Path(name))
        wanted = {kind: uninterrupted(recipe, Path(name), *kind) for kind in KINDS}
        print("case  processes  parallel  killed (after update)                     same")
        for case in range(1, asked.cases + 1):
            kind = KINDS[case % len(KINDS)]
            rows.append(one_case(case, recipe, Path(name), kind, wanted[kind], drawn))
            same = sum(row["same"] for row in rows)
            record("kills", time.monotonic() - began, rows=rows, same=same, cases=len(rows), seed=asked.seed)
    print(f"{same} of {len(rows)} the same.")
    sys.exit(0 if same == len(rows) else 1)


def uninterrupted(recipe: Path, folder: Path, world: int, parallel: str) -> tuple[str, float]:
    """The hash of the model file, and the seconds that it takes."""
    run, began = folder / f"whole-{world}-{parallel}", time.monotonic()
    return sha256(trained(world, recipe, run, *SHORT, f"training.parallel={parallel}")), time.monotonic() - began


def one_case(
    case: int, recipe: Path, folder: Path, kind: tuple[int, str], wanted: tuple[str, float], drawn: random.Random
) -> dict[str, Any]:
    """One row of the table, printed."""
    (world, parallel), (expected, seconds) = kind, wanted
    run, setting = folder / str(case), f"training.parallel={parallel}"
    kills = []
    for _ in range(drawn.randint(1, 3)):
        victims = [drawn.randrange(world)] if drawn.random() < 0.7 else list(range(world))
        kills.append(killed(recipe, run, world, setting, drawn.uniform(0, seconds), victims))
    same = sha256(trained(world, recipe, run, *SHORT, setting)) == expected
    told = ", ".join(f"{each['who']} ({each['update']})" for each in kills)
    print(f"{case:4}  {world:9}  {parallel:8}  {told:40}  {'yes' if same else 'NO'}", flush=True)
    return {"processes": world, "parallel": parallel, "kills": kills, "same": same}


def killed(recipe: Path, run: Path, world: int, setting: str, after: float, victims: list[int]) -> dict[str, Any]:
    """Who was killed, and the update of the newest checkpoint then; `done` where training was faster."""
    arguments = ["train", str(recipe), *SHORT, setting, "--run", str(run)]
    trainers = Trainers(world, arguments, run.with_suffix(".killed")).start()
    who = "all" if len(victims) == world else f"process {victims[0]}"
    if trainers.wait(after):
        if trainers.failed:
            raise RuntimeError(f"{run}: {trainers.ended}\n{trainers.told()}")
        return {"who": who, "update": "done"}
    trainers.signal(signal.SIGKILL, victims)
    trainers.wait(grace=GRACE)
    checkpoints = sorted((run / "checkpoints").glob("update-*.safetensors"))
    return {"who": who, "update": int(checkpoints[-1].stem[-8:]) if checkpoints else "-"}


if __name__ == "__main__":
    main()
