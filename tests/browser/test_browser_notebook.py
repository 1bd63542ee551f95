"""The explorer in a notebook's cell: the frame that the cell shows is the page, and the model answers in it."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

import transduce
from headless import headless
from random_models import model_file, translator
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.explore.exploration import explore

RNN = {"kind": "rnn", "d_model": 16, "hidden": 16, "tied": "none"}
STORED, NEW = "ba de fi go ku", "du ba ti ne"
CELL = "import transduce\ntransduce.explorer(transduce.load('{path}'), '{text}')"


def shown_by(browser: Browser, html: str, path: Path) -> dict[str, Any]:
    """What the page in the frame shows of a new text that is typed into it."""
    path.write_text(f"<!doctype html><title>notebook</title>{html}", encoding="utf-8")
    page = browser.new_page()
    problems = list[str]()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(path.as_uri())
    frame = page.frames[1]
    frame.wait_for_selector('#view[aria-busy="false"]')
    assert frame.evaluate("Transduce.shown.text") == STORED
    frame.fill("#sentence", NEW)
    frame.press("#sentence", "Enter")
    frame.wait_for_function("(text) => Transduce.shown?.text === text", arg=NEW)
    frame.evaluate("Transduce.go({view: 'probabilities'}, true)")
    frame.wait_for_selector("#view table, #view svg")
    assert frame.evaluate("Transduce.state().view") == "probabilities"
    found: dict[str, Any] = frame.evaluate("Transduce.shown")
    assert not problems
    page.close()
    return found


def test_a_cell_shows_a_page_that_answers(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: make test-all EXTRAS=ci")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: make test-all EXTRAS=ci")
    from nbformat.v4 import new_code_cell, new_notebook

    pipeline = translator(model=RNN, seed=1)
    save_model_file(tmp_path / "m.safetensors", model_file(pipeline))
    cell = new_code_cell(CELL.format(path=tmp_path / "m.safetensors", text=STORED))
    notebook = new_notebook(cells=[cell])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    [output] = notebook.cells[0].outputs
    assert "ExplorerPage" in output["data"]["text/plain"]
    with headless() as browser:
        found = shown_by(browser, output["data"]["text/html"], tmp_path / "notebook.html")
    assert found["nbest"][0]["text"] == explore(pipeline, NEW)["nbest"][0]["text"]


def test_a_page_is_saved_as_it_is_shown(tmp_path: Path) -> None:
    page = transduce.explorer({"one": translator(model=RNN)}, [STORED], height=500)
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    assert "height: 500px" in page._repr_html_()


def test_what_cannot_be_shown_is_refused() -> None:
    still = translator(model={"kind": "convolution", "d_model": 16, "kernel": 3})
    assert STORED in transduce.explorer(still, STORED).html
    with pytest.raises(InputError, match="does not run in the page"):
        transduce.explorer(still)
    for wrong in ({}, {"it": "runs/demo"}):
        with pytest.raises(InputError, match="expected loaded models"):
            transduce.explorer(wrong)  # type: ignore[arg-type]
