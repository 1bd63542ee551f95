"""What a benchmark measured, kept as JSON in benchmarks/results/, from where docs/make_*.py make pages."""

import json
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

from transduce.runtime.environment import library_versions, machine, source_commit

RESULTS = Path(__file__).with_name("results")


def write_record(name: str, seconds: float, libraries: Sequence[str] = (), **found: object) -> Path:
    """`found`, with date, machine, versions and commit, as results/NAME.json.

    Args:
        name: with the folder, such as "distributed/kills".
        seconds: that it took.
        libraries: whose versions matter besides those that every record has.
    """
    about = {"date": date.today().isoformat(), "commit": source_commit(), "machine": machine()}
    versions = {**library_versions(), **{library: version(library) for library in libraries}}
    path = RESULTS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {**about, "versions": versions, "seconds": round(seconds), **found}
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
