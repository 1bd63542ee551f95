"""The notebooks of examples/ run from the first cell to the last, and show what their text says."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def test_there_are_three_without_outputs() -> None:
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells), path.name


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: make test-all EXTRAS=ci")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: make test-all EXTRAS=ci")
    import nbformat

    monkeypatch.setenv("TRANSDUCE_FIGURES", "on")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("text/html" in output.get("data", {}) for output in shown), "a picture of attention"
    assert [*tmp_path.glob("runs/*/model.safetensors")]
    check(path.stem, shown)


def check(name: str, shown: list[Any]) -> None:
    """What the text beside a notebook's cells promises."""
    texts = "\n".join(output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in shown)
    if name == "own_translator":
        assert "of 200 are wrong" in texts
    elif name == "look_at_attention":
        assert "five one four one three" in texts
    else:
        assert "bad" in texts
