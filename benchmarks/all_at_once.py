"""What does it buy and cost to write all words at once, beside the teacher's beam and greedy search?

    python benchmarks/all_at_once.py STUDENT TEACHER --source FILE --reference FILE [--timed 100] [--threads 1]

Of a `ctc` student by the width of its beam, of a `non_autoregressive` one by iterations and lengths. Prints for each
way of searching the recipe's scores of the whole file and milliseconds a sentence at batch 1: the ways take turns on
each sentence, four rounds, and the fastest of each counts, so that other work on the machine hits all alike.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import torch

import transduce
from transduce.data.files import read_lines
from transduce.pipeline.pipeline import Pipeline

ROUNDS = 4
BEAM, GREEDY = "teacher, beam 5", "teacher, greedy"
Way = tuple[Pipeline, dict[str, Any]]


def main() -> None:
    """A table, one row a way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("student", type=Path)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--timed", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    student, teacher = transduce.load(asked.student), transduce.load(asked.teacher)
    ways: dict[str, Way] = {BEAM: (teacher, {"beam": 5}), GREEDY: (teacher, {"method": "greedy"})}
    ways |= of_ctc(student) if student.recipe.search.method == "ctc" else of_mask_predict(student)
    sources, references = list(read_lines(asked.source)), list(read_lines(asked.reference))
    seconds = timed(ways, sources[: asked.timed])
    for name, (pipeline, search) in ways.items():
        outputs = [each.text for each in pipeline.predict(sources, **search)]
        scores = "  ".join(
            f"{key} {each.value:.2f}" for key, each in pipeline.task.evaluate(outputs, references).items()
        )
        faster = f"x{seconds[BEAM] / seconds[name]:.2f} beam, x{seconds[GREEDY] / seconds[name]:.2f} greedy"
        print(f"{name:26} {scores}  {1000 * seconds[name]:.2f} ms  {faster}", flush=True)


def of_mask_predict(student: Pipeline) -> dict[str, Way]:
    """Iterations and lengths."""
    return {
        f"{iterations} iterations, {lengths} lengths": (student, {"iterations": iterations, "lengths": lengths})
        for iterations in (1, 2, 3, 4, 6, 10)
        for lengths in (1, 2, 3, 5)
    }


def of_ctc(student: Pipeline) -> dict[str, Way]:
    """Widths of the beam; 1 is the best path."""
    return {f"beam {beam}": (student, {"beam": beam}) for beam in (1, 2, 3, 5, 10)}


def timed(ways: dict[str, Way], sources: list[str]) -> dict[str, float]:
    """Mean seconds a sentence, of the fastest of some rounds."""
    total = dict.fromkeys(ways, 0.0)
    for pipeline, search in ways.values():
        pipeline.predict(sources[:2], **search)
    for source in sources:
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(ROUNDS):
            for name, (pipeline, search) in ways.items():
                start = time.perf_counter()
                pipeline.predict([source], **search)
                best[name] = min(best[name], time.perf_counter() - start)
        total = {name: total[name] + best[name] for name in ways}
    return {name: seconds / len(sources) for name, seconds in total.items()}


if __name__ == "__main__":
    main()
