"""The scripts of benchmarks/ and docs/, which are no package, as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


def loaded(path: str) -> ModuleType:
    """The script at `path` below the repository's root, such as benchmarks/publish.py; run anew each time.

    What lies beside it can be imported, as when it is called.
    """
    if (folder := str((ROOT / path).parent)) not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_of_results(monkeypatch: pytest.MonkeyPatch, folder: Path, **records: Path) -> ModuleType:
    """`docs/make_results.py`, which finds these records and no others, as in PLAIN=folder of records."""
    page = loaded("docs/make_results.py")
    for name in ("RECORDS", "COMPARISONS", "LANGUAGES", "NO_RECIPE", "DECISIONS", "PLAIN"):
        monkeypatch.setattr(page, name, records.get(name, folder / "none"))
    return page
