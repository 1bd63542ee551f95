"""`transduce explore`: a page on loopback that ends with Ctrl-C, or one file."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from transduce.cli.app import main
from transduce.core.extras import installing
from transduce.explore import page_file

pytest.importorskip("fastapi", reason="the extra serve is not installed")

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
# A page of our own, so that this tests the command; and the "browser" tells what it is sent to.
SCRIPT = """
import sys, webbrowser
from pathlib import Path
from transduce.explore import page_file
from transduce.cli.app import main
whole, folder = page_file.page, Path(sys.argv.pop(1))
page_file.page = lambda data=None: whole(data, folder)
webbrowser.open = lambda address: bool(print(f"opened {address}", file=sys.stderr)) or True
main()
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """The least that is a page."""
    folder = tmp_path / "page"
    folder.mkdir()
    index = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>ours</title></head><body>'
    data = '{% if data is not none %}<script type="application/json" id="data">{{ data | tojson }}</script>{% endif %}'
    (folder / "index.html.jinja").write_text(index + data + '{{ script("main.js") }}</body></html>', encoding="utf-8")
    (folder / "main.js").write_text("start();", encoding="utf-8")
    return folder


def start(page: Path, *arguments: str | Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", SCRIPT, str(page), "explore", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


def test_it_opens_the_browser_serves_the_page_and_stops(page: Path, tiny_run: Path) -> None:
    process = start(page, tiny_run)
    assert process.stderr is not None
    told = process.stderr.readline()
    address = re.search(r"Exploring on (http://127\.0\.0\.1:\d+)/explore;", told)
    assert address, told
    assert process.stderr.readline() == f"opened {address[1]}/explore\n"
    shown = httpx.get(f"{address[1]}/explore", timeout=60)
    assert "start();" in shown.text
    assert "script-src 'sha256-" in shown.headers["content-security-policy"]
    models = httpx.get(f"{address[1]}/v1/explore/models").json()["models"]
    assert (models[0]["name"], models[0]["shows"]["training"]) == ("run", True)
    assert httpx.get(address[1], headers={"host": "rebound.example"}).status_code == 421
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 0


def test_it_writes_one_file_that_holds_everything(
    page: Path, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, whole = tmp_path / "out.html", page_file.page
    monkeypatch.setattr(page_file, "page", lambda data=None: whole(data, page))
    words = [f"tiny={tiny_run}", "--file", str(file), "--text", "1 2", "--text", "3"]
    monkeypatch.setattr(sys, "argv", ["transduce", "explore", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().err
    assert ended.value.code == 0, told
    html = file.read_text(encoding="utf-8")
    size = f"{len(html.encode()) / 1000:.1f} kB"
    first, second = told.splitlines()
    assert first == f"{file}: {size}, works offline."
    assert re.fullmatch(r"tiny runs in the page, in int8 \([\d.]+ kB of it\): it answers new texts, too\.", second)
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html)
    assert found
    data = json.loads(found[1])
    assert [each["text"] for each in data["explorations"]] == ["1 2", "3"]
    assert data["training"]["events"]
    assert set(tmp_path.iterdir()) == {page, file}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--file", "out.html"], "add --text"),
        (["--text", "1 2"], "--text goes with --file"),
        (["--run", "nowhere"], "no such directory"),
        (["--file", "nowhere/out.html", "--text", "1"], "no folder"),
        (["--file", "out.html", "--text", " "], "empty"),
    ],
)
def test_what_is_wrong_is_said(
    tiny_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: list[str],
    said: str,
) -> None:
    placed = [str(tmp_path / each) if each.endswith(("html", "nowhere")) else each for each in asked]
    monkeypatch.setattr(sys, "argv", ["transduce", "explore", str(tiny_run), *placed])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out.html").exists()


@pytest.mark.parametrize("other", [True, False])
def test_a_page_takes_no_place_of_a_runs_file(
    other: bool, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "run")
    before = (run / "log.jsonl").read_bytes()
    read = [str(tiny_run), "--run", str(run)] if other else [str(run)]
    words = ["explore", *read, "--file", str(run / "log.jsonl"), "--text", "1 2"]
    monkeypatch.setattr(sys, "argv", ["transduce", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "log.jsonl: this file belongs to the run" in capsys.readouterr().err
    assert (run / "log.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "library", ["fastapi", *(pytest.param(name, marks=pytest.mark.slow) for name in ("uvicorn", "prometheus_client"))]
)
def test_without_its_extra_it_says_what_installs_it(tiny_run: Path, library: str) -> None:
    hidden = f"import sys; sys.modules['{library}'] = None; from transduce.cli.app import main; main()"
    command = [sys.executable, "-c", hidden, "explore", str(tiny_run)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"transduce: exploring needs {library}, which is not installed: {installing('serve')}\n"


SLOW = """
import sys, time
from transduce.cli.app import main
from transduce.core import model_file
from transduce.pipeline import pipeline

def slowly(*given, **more):  # as from a disk that hardly answers
    print("it loads", flush=True)
    time.sleep(60)

model_file.load_model_file = pipeline.load_model_file = slowly
main()
"""


def test_ctrl_c_while_it_loads_is_an_interruption(tiny_run: Path) -> None:
    command = [sys.executable, "-c", SLOW, "explore", str(tiny_run)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        assert process.stdout is not None and process.stdout.readline() == "it loads\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
