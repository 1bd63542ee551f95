"""Command lines that nobody means well with: each ends in words and an exit code, none in a traceback."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import forked
from transduce.cli.app import main

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shells and devices of POSIX")

HUGE = "1000000000"
TEXTS = ["--source", "DATA/test.digits"]
PAIRS = [*TEXTS, "--target", "DATA/test.words"]
SCORED = [*TEXTS, "--reference", "DATA/test.words"]
COMPARISON = Path(__file__).parents[2] / "recipes" / "compare" / "multi30k.toml"

HOSTILE = [  # arguments, what is said; RUN, DATA, TMP and RECIPE are put in
    (["predict", "RUN", *TEXTS, "--alpha", "1e308"], "search.alpha"),
    (["predict", "RUN", *TEXTS, "--alpha", "nan"], "search.alpha"),
    (["predict", "RUN", *TEXTS, "--max-new", HUGE], "search.max_length_offset"),
    (["predict", "RUN", *TEXTS, "--max-new", "9" * 20], "search.max_length_offset"),
    (["predict", "RUN", *TEXTS, "--beam", HUGE], "search.beam"),
    (["predict", "RUN", *TEXTS, "--method", "sample", "--nbest", HUGE], "search.nbest"),
    (["predict", "RUN", *TEXTS, "--coverage", "1e308"], "search.coverage"),
    (["predict", "RUN", *TEXTS, "--beam", "4", "--groups", "2", "--diversity", "1e308"], "search.diversity"),
    (["predict", "RUN", *TEXTS, "--min-length", HUGE], "expected a number of at most 100000"),
    (["predict", "RUN", *TEXTS, "--batch-size", "0"], "--batch-size"),
    (["predict", "RUN", *TEXTS, "--batch-size", "-3"], "--batch-size"),
    (["predict", "RUN", "--source", "TMP"], "this is a folder"),
    (["predict", "RUN", "--source", "/dev/null"], "no such file"),
    (["predict", "/dev/null", *TEXTS], "not a regular file"),
    (
        ["predict", "https://example.org/model.safetensors", *TEXTS],
        "https://example.org/model.safetensors: this is a URL",
    ),
    (["convert", "s3://bucket/model", "TMP/new.safetensors"], "s3://bucket/model: this is a URL"),
    (["score", "RUN", *PAIRS, "--batch-size", "0"], "--batch-size"),
    (["score", "RUN", "--target", "TMP"], "this is a folder"),
    (["predict", "RUN", "--source", "TMP/file", "--output", "TMP/../folder/file"], "this is an input"),
    (["score", "RUN", *TEXTS, "--target", "TMP/file", "--output", "TMP/file"], "this is an input"),
    (["predict", "RUN", *TEXTS, "--output", "RUN/model.safetensors"], "this is an input"),
    (["score", "RUN", *PAIRS, "--output", "RUN/checkpoints/../model.safetensors"], "this is an input"),
    (["explore", "RUN", "--text", "1 2", "--file", "RUN/model.safetensors"], "this is an input"),
    (["shortlist", "RUN", "--output", "DATA/train.digits"], "this is an input"),
    (["doctor", *PAIRS, "--clean-source", "DATA/test.words", "--clean-target", "TMP/y"], "this is an input"),
    (
        ["doctor", *PAIRS, "--test-source", "TMP/file", "--clean-source", "TMP/file", "--clean-target", "TMP/y"],
        "this is an input",
    ),
    (["predict", "RUN", *TEXTS, "--output", "TMP"], "this is a folder"),
    (["predict", "RUN", *TEXTS, "--output", "TMP/file/below"], "there is no folder"),
    (["score", "RUN", "--source", "/dev/null", "--target", "/dev/null"], "no such file"),
    (["evaluate", "RUN", *SCORED, "--alpha", "1e308"], "search.alpha"),
    (["evaluate", "RUN", *SCORED, "--batch-size", "0"], "--batch-size"),
    (["evaluate", "RUN", *SCORED, "--metric", ""], 'there is no ""'),
    (["doctor", *PAIRS, "--clean-source", "TMP/no/x", "--clean-target", "TMP/no/y"], "there is no folder"),
    (["doctor", *PAIRS, "--clean-source", "TMP", "--clean-target", "TMP/y"], "this is a folder"),
    (["doctor", "--text", "TMP"], "this is a folder"),
    (["distill", "RUN", "--output", "TMP/file"], "Not a directory"),
    (["distill", "RUN", "--output", "TMP/file/below"], "Not a directory"),
    (["distill", "RUN", "--output", "TMP/out", "--batch-size", "0"], "--batch-size"),
    (["distill", "RUN", "--output", "TMP/out", "--alpha", "1e308"], "search.alpha"),
    (["compare", "COMPARISON", "--run", "TMP/file", "data.root=TMP"], "File exists"),
    (["compare", "COMPARISON", "--budget", "1e999m"], "budget"),
    (["compare", "RUN", "RUN"], "Trained models are compared by: transduce evaluate /"),
    (["compare", "RUN/model.safetensors", "model.layers=2"], "/model.safetensors --source TEST --reference TEST"),
    (["runs", "TMP/file"], "there is no such folder"),
    (["info", "/dev/null"], "not a regular file"),
    (["info", "TMP/file/below"], "there is no such file"),
    (["info", "TMP/" + "x" * 300], "File name too long"),
    (["explore", "RUN", "--port", HUGE, "--no-browser"], "from 0 to 65535"),
    (["explore", "RUN", "--file", "TMP/file/below", "--text", "1 2"], "there is no folder"),
    (["explore", "RUN", "--file", "TMP", "--text", "1 2"], "this is a folder"),
    (["serve", "RUN", "--port", "-1"], "from 0 to 65535"),
    (["serve", "RUN", "--batch-size", "0"], "serve.batch_size"),
    (["serve", "RUN", "--timeout", "nan"], "serve.timeout"),
    (["shortlist", "RUN", "--candidates", HUGE], "--candidates"),
    (["shortlist", "RUN", "--output", "TMP"], "this is a folder"),
    (["demo", "--run", "TMP/file"], "Choose another one with --run"),
    (["demo", "--run", "TMP/demo", "search.alpha=1e308"], "search.alpha"),
    (["train", "RECIPE", "--run", "TMP/file"], "Choose another one with --run"),
    (["train", "RECIPE", "--run", "TMP/file/below"], "Choose another one with --run"),
    (["train", "RECIPE", "--run", "TMP/" + "x" * 300], "Choose another one with --run"),
    (["train", "RECIPE", "--run", "/proc/run"], "Choose another one with --run"),
    (["train", "RECIPE", "--run", "TMP/out", "training.learning_rate=1e308"], "training.learning_rate"),
    (["train", "TMP"], "holds no recipe.toml"),
    (["train", "--finish", "TMP"], "holds no recipe.toml"),
    (["train", "--finish", "RECIPE", "--run", "TMP/out"], "there is no checkpoint yet"),
    (["train", "--source", "PIPE", "--target", "DATA/test.words"], "is a pipe"),
    (["train", "--source", "PIPE"], "is a pipe"),
]


@pytest.fixture
def as_before() -> Iterator[None]:
    """What the command changes in its process."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize(("arguments", "said"), HOSTILE, ids=[" ".join(each)[:60] for each, _ in HOSTILE])
def test_it_is_refused_in_words(
    arguments: list[str],
    said: str,
    tiny_run: Path,
    tiny_corpus: Path,
    tiny_recipe: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("mine")
    puts = {"RUN": tiny_run, "DATA": tiny_corpus, "TMP": folder, "RECIPE": tiny_recipe, "COMPARISON": COMPARISON}
    puts["PIPE"] = tmp_path / "pipe"
    os.mkfifo(puts["PIPE"])
    words = list(arguments)
    for name, path in puts.items():
        words = [word.replace(name, str(path)) for word in words]
    monkeypatch.setattr(sys, "argv", ["transduce", *words])
    before = {path: path.stat().st_mtime_ns for path in tiny_run.rglob("*")}
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert ended.value.code == 2, shown
    assert said in shown.err
    assert "Traceback" not in shown.err
    left = {path.relative_to(folder).parts[0] for path in folder.rglob("*")}
    assert left <= {"file", "demo"}
    assert (folder / "file").read_text() == "mine"
    assert {path: path.stat().st_mtime_ns for path in tiny_run.rglob("*")} == before


def shell(command: str, run: Path, corpus: Path) -> subprocess.CompletedProcess[bytes]:
    """TRANSDUCE, RUN and DATA are put in."""
    puts = {"TRANSDUCE": f"{sys.executable} -m transduce", "RUN": str(run), "DATA": str(corpus)}
    for name, value in puts.items():
        command = command.replace(name, value)
    return subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, check=False)


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("echo 1 2 | TRANSDUCE predict RUN > /dev/full", 2, "standard output: No space left on device"),
        ("TRANSDUCE info RUN --json > /dev/full", 2, "standard output: No space left on device"),
        pytest.param(
            "TRANSDUCE train --source <(cat DATA/test.words)",
            2,
            "is a pipe",
            marks=pytest.mark.slow,  # see HOSTILE
        ),
        ("echo 1 2 | TRANSDUCE predict RUN >&-", 2, "standard output is closed"),
        ("TRANSDUCE predict RUN <&-", 2, "standard input is closed"),
        ("echo 1 2 | TRANSDUCE predict RUN --max-new 3 2>&-", 0, ""),
        ("TRANSDUCE info RUN --json | (exec <&-; true)", 1, ""),
    ],
)
def test_streams_that_are_full_or_closed(command: str, code: int, said: str, tiny_run: Path, tiny_corpus: Path) -> None:
    if "/dev/full" in command and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = shell(command, tiny_run, tiny_corpus)
    assert done.returncode == code, done.stderr
    assert said in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    if not said:
        assert not done.stderr


@pytest.mark.parametrize("words", ["info RUN", "doctor --text DATA/test.words --json"])
def test_a_full_disk_is_told(words: str, tiny_run: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    (tmp_path / "stdout").symlink_to("/dev/full")
    process = forked.start(tmp_path, *words.replace("RUN", str(tiny_run)).replace("DATA", str(tiny_corpus)).split())
    process.join(120)
    told = (tmp_path / "stderr").read_text()
    assert (process.exitcode, "standard output: No space left on device" in told) == (2, True), told
    assert "Traceback" not in told and "Exception ignored" not in told


def test_too_little_memory_is_told(tiny_run: Path, tiny_corpus: Path) -> None:
    asked = "--beam 10000 --max-new 100000 --source DATA/test.digits"
    done = shell(f"ulimit -v {16 * 2**20}; TRANSDUCE predict RUN {asked}", tiny_run, tiny_corpus)
    assert done.returncode == 1
    assert b"out of memory: a smaller --batch-size" in done.stderr
    assert b"Traceback" not in done.stderr
