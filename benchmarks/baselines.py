"""Trains the simple baseline of a recorded recipe on its files, and puts the scores into the record.

    python benchmarks/baselines.py ptb-1 g2p-kor-1       # or, for all records without one: make baselines

A training scores its baseline itself (`transduce.tasks.base.Task.baseline`). This is for records of trainings that were
made before there was one. The recipe lies beside the record; no model is trained.
"""

import argparse
import json
import sys

from publish import RECORDS, of_baseline
from records import save_record
from rich.console import Console

from transduce.core.errors import TransduceError
from transduce.recipe.recipe import load_recipe
from transduce.training.display import Display
from transduce.training.report import score_baseline
from transduce.training.run import open_task


def main() -> None:
    """A line for each record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of the records; all that have no baseline if left out")
    asked = parser.parse_args().names
    for path in [RECORDS / f"{name}.json" for name in asked] or sorted(RECORDS.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if not asked and "baseline" in record:
            continue
        try:
            task, data = open_task(load_recipe(path.with_suffix(".toml")), Display(Console(stderr=True, quiet=True)))
        except TransduceError as error:
            print(f"{path.stem}: {error}", file=sys.stderr)
            continue
        if (found := score_baseline(task, data, print)) is None:
            print(f"{path.stem}: this task has no baseline")
            continue
        save_record(path, record | of_baseline(found))
        told = (
            f"{each['test']}, {each['name']} {each['value']:.2f}" for each in of_baseline(found)["baseline"]["scores"]
        )
        print(f"{path.stem}: {found['name']}: {'; '.join(told)}")


if __name__ == "__main__":
    main()
