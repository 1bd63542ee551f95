"""Restarts: trains a recipe once with each of several seeds, and keeps the training of the lowest training loss.

    python benchmarks/restarts.py recipes/babi.toml --seeds 10 --runs /tmp/babi [--record] [KEY=VALUE ..]

Sukhbaatar et al. 2015 choose in this way, as some initializations end in bad optima. Test sets choose nothing: their
scores are printed for all seeds, with mean and spread, and by task for the chosen one. The training loss is the mean
of the last epoch.

What is trained already is not trained again, so that the same command goes on after an interruption; a run may also be
trained by `transduce train RECIPE --run RUNS/seed-N training.seed=N`. `--record` puts the chosen training on record,
with the scores of all, as `benchmarks/publish.py` does.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from transduce.interpret.score_tables import groups_table
from transduce.recipe.recipe import load_recipe
from transduce.runtime.event_log import read_log
from transduce.training.display import Display
from transduce.training.run import run_training

sys.path.insert(0, str(Path(__file__).parent))
from publish import of_test, recorded, write_record


def main() -> None:
    """Prints the scores of all trainings and which one is chosen, and writes them to restarts.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--seeds", type=int, default=10, help="how many: 1, 2, .. (default 10)")
    parser.add_argument("--runs", type=Path, required=True, help="the folder of the runs: seed-1, seed-2, ..")
    parser.add_argument("--record", action="store_true", help="put the chosen one on record for docs/results.md")
    parser.add_argument("--change", default="", help="with --record: what was set on the command line")
    parser.add_argument("--commit", help="with --record: the code they were trained by, where reports do not say")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_intermixed_args()
    if options.seeds < 2:
        parser.error(f"--seeds: expected 2 or more; got {options.seeds}")
    reports, found = {}, {}
    for seed in range(1, options.seeds + 1):
        run = options.runs / f"seed-{seed}"
        recipe = load_recipe(options.recipe, [*options.overrides, f"training.seed={seed}"])
        reports[seed] = run_training(recipe, run, Display(Console(stderr=True)))
        found[seed] = {"training_loss": training_loss(run), "scores": scores_of(reports[seed])}
        figures = (f"{each['test']}, {each['name']} {each['value']:.2f}" for each in found[seed]["scores"])
        print(f"seed {seed}: training loss {found[seed]['training_loss']:.4f}; {'; '.join(figures)}")
    chosen = chosen_seed(found)
    print(f"chosen: seed {chosen}, of the lowest training loss")
    for number, score in enumerate(found[chosen]["scores"]):
        values = [each["scores"][number]["value"] for each in found.values()]
        spread = f"mean {statistics.fmean(values):.2f}, standard deviation {statistics.stdev(values):.2f}"
        print(f"{score['test']}, {score['name']}: {score['value']:.2f}; of all {len(values)}: {spread}")
    for name, test in reports[chosen]["tests"].items():
        if "groups" in test:
            Console().print(groups_table(test["groups"], f"{name}, by task, seed {chosen}:"))
    (options.runs / "restarts.json").write_text(json.dumps(found, indent=1))
    if options.record:
        commit = options.commit or reports[chosen]["environment"].get("commit")
        if not commit:
            sys.exit(f"{options.runs}/seed-{chosen}/report.json does not say which commit trained it: --commit")
        record = recorded(reports[chosen], commit, options.change)
        print(write_record({**record, "restarts": found}, f"{reports[chosen]['name']}-{chosen}"))


def training_loss(run: Path) -> float:
    """The mean loss of the last epoch, or of what was logged last if that was longer ago."""
    events = [each for each in read_log(run / "log.jsonl") if each["event"] == "train"]
    last = [each for each in events if each["epoch"] > events[-1]["epoch"] - 1]
    return statistics.fmean(each["loss"] for each in last)


def scores_of(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of its test sets."""
    return [score for name, test in report["tests"].items() for score in of_test(name, test)]


def chosen_seed(found: dict[int, Any]) -> int:
    """That of the lowest training loss."""
    return min(found, key=lambda seed: (found[seed]["training_loss"], seed))


if __name__ == "__main__":
    main()
