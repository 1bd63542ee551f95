"""Trains a recorded recipe again, in a fresh folder, and compares its scores with those on record.

    python benchmarks/figures.py cora-1                     # or: make figures NAME=cora-1
    python benchmarks/figures.py cora-1 --run runs/again    # where the training goes; it can be resumed there

The recipe lies beside the record, benchmarks/results/recipes/NAME.toml, with all that it inherits and the seed. A score
agrees if it lies in the record's interval, or within 1 % where there is none, or if its two decimals are the same. Exit
code 1 if one does not.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from intervals import over_examples
from markdown_table import markdown_table
from publish import RECORDS, of_test, recipe_hash

Score = Mapping[str, Any]


def main() -> None:
    """A table of both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the record, as cora-1")
    parser.add_argument("--run", type=Path, help="the run directory; by default a temporary one")
    asked = parser.parse_args()
    path = RECORDS / f"{asked.name}.json"
    if not path.exists():
        there = ", ".join(sorted(each.stem for each in RECORDS.glob("*.json")))
        sys.exit(f"{path}: there is no such record; there are {there}.")
    record = json.loads(path.read_text(encoding="utf-8"))
    recipe = path.with_suffix(".toml")
    if record.get("recipe_hash") != recipe_hash(recipe):
        sys.exit(f"{recipe} is not the recipe of the record: its hash is another.")
    with tempfile.TemporaryDirectory() as folder:
        run = asked.run or Path(folder) / "run"
        subprocess.run([sys.executable, "-m", "transduce", "train", str(recipe), "--run", str(run)], check=True)
        report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    found = [each for name, test in report["tests"].items() for each in of_test(name, test)]
    rows = [*compared(record["scores"], found)]
    print(markdown_table(["test set", "score", "search", "on record", "now", "agrees"], rows))
    sys.exit(not rows or any(row[-1] == "no" for row in rows))


def compared(recorded: Iterable[Score], found: Iterable[Score]) -> Iterable[list[str]]:
    """A row for each score of both."""
    now = {_key(each): each["value"] for each in found}
    for each in recorded:
        if (value := now.get(_key(each))) is not None:
            least, most = over_examples(each)
            before, after = f"{each['value']:.2f}", f"{value:.2f}"
            agrees = "yes" if least <= value <= most or before == after else "no"
            yield [each["test"], each["name"], each["search"], before, after, agrees]


def _key(score: Score) -> tuple[str, ...]:
    return score["test"], score["name"], score["search"], score["signature"]


if __name__ == "__main__":
    main()
