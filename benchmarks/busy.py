"""How much a busy process slows training, with OpenMP's threads spinning as ever and watched over.

    python benchmarks/busy.py [--rounds 6] [--seconds 2]

Passes of four feed-forward layers of 256 and 1,024, forward and backward over 512 rows, by two threads: spinning (as
GNU's OpenMP does by itself), watched (`transduce.runtime.spinning`), and asleep as soon as they wait. The three take
turns, first on the machine as it is, then beside one process that never rests. Prints the median passes a second.
"""

import argparse
import statistics
import subprocess
import sys
import time

from transduce.runtime import spinning

WAYS = ("spinning", "watched", "asleep")


def main() -> None:
    """Two lines of three figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    asked = parser.parse_args()
    if not spinning.prepare():
        sys.exit("The environment already says how threads wait, or the system does not say what processes use.")
    print("as it is:", measured(asked.rounds, asked.seconds))
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            print("beside a busy process:", measured(asked.rounds, asked.seconds))
        finally:
            busy.kill()


def measured(rounds: int, seconds: float) -> str:
    """The medians, and what they are of the first."""
    import torch

    torch.set_num_threads(2)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256)]
    model, x = torch.nn.Sequential(*layers * 4), torch.randn(512, 256)

    def passes() -> float:
        count, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < seconds:
            model(x).square().mean().backward()
            count += 1
        return count / (time.perf_counter() - begun)

    passes()
    place = spinning.place_of_spins()
    if place is None:
        sys.exit("OpenMP is not GNU's, or keeps its number elsewhere.")
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            place.value = 0 if way == "asleep" else spinning.SPINS
            with spinning.watched(place if way == "watched" else None):
                found[way].append(passes())
    place.value = spinning.SPINS
    first = statistics.median(found[WAYS[0]])
    told = ((way, statistics.median(values)) for way, values in found.items())
    return ", ".join(f"{way} {value:.1f} ({value / first:.2f})" for way, value in told)


if __name__ == "__main__":
    main()
