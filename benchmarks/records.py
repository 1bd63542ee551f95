"""What a benchmark measured, kept as JSON in benchmarks/results/, from where docs/make_*.py make pages."""

import json
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from transduce.runtime.environment import library_versions, machine, source_commit

RESULTS = Path(__file__).with_name("results")


def save_record(path: Path, record: dict[str, Any]) -> Path:
    """Writes it; the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read_record(path: Path) -> dict[str, Any] | None:
    """What was measured; None where nothing is on record."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def save_measurement(name: str, seconds: float, libraries: Sequence[str] = (), **found: object) -> Path:
    """`found`, with date, machine, versions and commit, as results/NAME.json.

    Args:
        name: with the folder, such as "distributed/kills".
        seconds: that it took.
        libraries: whose versions matter besides those that every record has.
    """
    about = {"date": date.today().isoformat(), "commit": source_commit(), "machine": machine()}
    versions = {**library_versions(), **{library: version(library) for library in libraries}}
    return save_record(RESULTS / f"{name}.json", {**about, "versions": versions, "seconds": round(seconds), **found})
