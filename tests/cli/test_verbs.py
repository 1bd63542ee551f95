"""`python -m transduce` as a shell sees it: what comes out where, in which order, with which exit code."""

import json
import os
import platform
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

import forked
import transduce
from forked import Run
from random_models import model_file, translator
from transduce.core.model_file import save_model_file
from transduce.kernels import native
from transduce.kernels.cpu import bf16_is_faster, capabilities

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")


def test_one_line_in_one_line_out_in_order(run: Run, tiny_run: Path) -> None:
    lines = ["1 2", "", "3\r", "4\u20285", " ", "6 7 8 9", "nonsense", "1 2"]
    done = run("predict", tiny_run, "--method", "greedy", given="".join(f"{line}\n" for line in lines).encode())
    assert done.code == 0, done.err
    outputs = done.out.split("\n")
    assert outputs.pop() == ""
    expected = transduce.load(tiny_run).predict(lines, method="greedy")
    assert outputs == [each.text for each in expected]


def test_line_ends_of_windows_are_no_part_of_a_line(run: Run, tmp_path: Path) -> None:
    """A model of characters would read the carriage return as one more."""
    save_model_file(tmp_path / "a.safetensors", model_file(translator("character", seed=6)))
    (tmp_path / "lines").write_bytes(b"ba de\r\nfi go\r\n")
    expected = [each.text for each in transduce.load(tmp_path / "a.safetensors").predict(["ba de", "fi go"])]
    done = run("predict", tmp_path / "a.safetensors", "--source", tmp_path / "lines")
    piped = run("predict", tmp_path / "a.safetensors", given=(tmp_path / "lines").read_bytes())
    assert done.out.split("\n")[:-1] == piped.out.split("\n")[:-1] == expected, done.err


@pytest.mark.parametrize("triton", [True, False])
def test_what_looks_for_leaks_at_the_end_finds_none(triton: bool) -> None:
    script = (
        "import atexit, gc, sys, types; atexit.register(lambda: print(gc.get_freeze_count() > 0)); "
        f"{'sys.modules.update(triton=types.ModuleType(chr(116))); ' if triton else ''}"
        "from transduce.cli.app import main; sys.argv[1:] = ['--help']; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == str(not triton)


def test_the_version_says_what_runs_here(run: Run) -> None:
    done = run("--version")
    lines = done.out.splitlines()
    assert done.code == 0, done.err
    assert lines[0] == f"transduce {transduce.__version__}"
    assert lines[1] == f"Python {platform.python_version()}, torch {version('torch')}"
    found = native.kernels()
    variant = found.__name__.rpartition(".")[2] if found else "none"
    assert lines[2].startswith(f"kernels: {variant}")
    assert ("bf16" if bf16_is_faster(capabilities()) else "fp32") in lines[2]
    assert "1 thread," in lines[2]  # which is what these processes have


def test_at_a_terminal_it_asks_and_answers_line_by_line(tiny_run: Path) -> None:
    master, terminal = os.openpty()
    command = [sys.executable, "-m", "transduce", "predict", str(tiny_run), "--long", "refuse"]
    process = subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(terminal)
    assert process.stdout is not None
    assert process.stderr is not None
    expected = transduce.load(tiny_run)
    for line in ("1 2", "3"):  # the second is typed when the first is answered
        os.write(master, f"{line}\n".encode())
        assert process.stdout.readline().decode() == expected.predict([line])[0].text + "\n"
    os.write(master, b"\n" + b"1 " * 300 + b"\n4\n")
    assert process.stdout.readline().decode() == expected.predict(["4"])[0].text + "\n"
    os.write(master, b"\x04")
    assert process.wait(60) == 0
    said = process.stderr.read().decode()
    os.close(master)
    assert said.count("> ") == 6
    assert "300 tokens, the model reads 256 at most" in said
    assert "Traceback" not in said


def test_a_byte_order_mark_on_standard_input_is_no_text(run: Run, tiny_run: Path) -> None:
    plain, marked = (run("predict", tiny_run, "--json", given=mark + b"x y z\n") for mark in (b"", b"\xef\xbb\xbf"))
    assert (marked.code, marked.out) == (0, plain.out)


def test_json_lines_hold_the_nbest_list(run: Run, tiny_run: Path) -> None:
    done = run("predict", tiny_run, "--json", "--nbest", 2, "--beam", 3, given=b"1 2\n\n4")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [each["source"] for each in found] == ["1 2", "", "4"]
    assert [len(each.get("nbest", [])) for each in found] == [2, 0, 2]
    assert found[0]["nbest"][0]["text"] == found[0]["text"]
    assert found[1]["text"] == ""


@pytest.mark.parametrize(
    ("arguments", "given", "said"),
    [
        ([], b"good\n\xff\xfe\nfine\n\xe4\n", "standard input, line 2: not UTF-8"),
        ([], b"good\n\xff\xfe\nfine\n\xe4\n", "standard input, line 4: not UTF-8"),
        (["--beam", "2", "--nbest", "5"], b"1\n", "nbest = 5 is more than beam = 2"),
        (["--temperature", "0.5"], b"1\n", 'only method "sample" uses this'),
        (["--source", "no/such/file"], b"", "no such file"),
        (["--long", "refuse"], b"1 " * 300 + b"\n", "line 1: 300 tokens, the model reads 256 at most"),
    ],
)
def test_wrong_input_exits_2_and_says_where(
    run: Run, tiny_run: Path, arguments: list[str], given: bytes, said: str
) -> None:
    done = run("predict", tiny_run, *arguments, given=given)
    assert done.code == 2
    assert done.out == ""
    assert said in done.err
    assert "Traceback" not in done.err


def test_score_lists_every_target_and_their_perplexity(run: Run, tiny_run: Path, tiny_corpus: Path) -> None:
    files = ("--source", tiny_corpus / "test.digits", "--target", tiny_corpus / "test.words")
    done = run("score", tiny_run, *files, "--json")
    *each, last = [json.loads(line) for line in done.out.splitlines()]
    targets = (tiny_corpus / "test.words").read_text().splitlines()
    assert [line["target"] for line in each] == targets
    assert last["total"]["log_probability"] == pytest.approx(sum(line["log_probability"] for line in each))
    report = json.loads((tiny_run / "report.json").read_text())
    assert last["total"]["loss"] == pytest.approx(report["tests"]["held_out"]["likelihood"]["loss"], rel=1e-5)
    plain = run("score", tiny_run, *files)
    first, text = plain.out.splitlines()[0].split("\t")
    assert (float(first), text) == (pytest.approx(each[0]["log_probability"], abs=1e-4), targets[0])
    assert f"perplexity {last['total']['perplexity']:.3f} a token" in plain.err
    assert "each line alone" in plain.err


def test_unequal_files_exit_2_with_both_counts(run: Run, tiny_run: Path, tiny_corpus: Path) -> None:
    files = {"score": "--target", "evaluate": "--reference"}
    for verb, option in files.items():
        other = (option, tiny_corpus / "valid.words")
        done = run(verb, tiny_run, "--source", tiny_corpus / "test.digits", *other)
        assert done.code == 2, verb
        assert "test.digits has 20 lines" in done.err
        assert "valid.words has 30" in done.err


def test_a_translator_needs_sources(run: Run, tiny_run: Path, tiny_corpus: Path) -> None:
    done = run("score", tiny_run, "--target", tiny_corpus / "test.words")
    assert done.code == 2
    assert "needs --source" in done.err
    done = run("score", tiny_run, "--source", tiny_corpus / "test.digits")
    assert (done.code, "test.digits: holds no targets; name their file with --target" in done.err) == (2, True)


def test_columns_that_nobody_named_are_told(run: Run, tiny_run: Path, tmp_path: Path) -> None:
    path, told = tmp_path / "a.tsv", "the first column was read as the source"
    path.write_text("1 2\tone two\n", encoding="utf-8")
    for verb in ("predict", "score"):
        done = run(verb, tiny_run, "--source", path)
        assert (done.code, told in done.err) == (0, True), done.err
        assert done.out.count("\n") == 1
    done = run("evaluate", tiny_run, "--source", path)
    assert (done.code, told in " ".join(done.out.split())) == (0, True), done.err
    report = json.loads(run("evaluate", tiny_run, "--source", path, "--json").out)
    assert told in report["note"]


def test_a_table_of_sources_goes_with_a_file_of_targets(run: Run, tiny_run: Path, tiny_corpus: Path) -> None:
    digits, words = tiny_corpus / "test.digits", tiny_corpus / "test.words"
    table, both = tiny_corpus / "sources.csv", tiny_corpus / "both.csv"
    sides = [path.read_text(encoding="utf-8").splitlines() for path in (digits, words)]
    table.write_text("number,source\n" + "".join(f"1,{each}\n" for each in sides[0]), encoding="utf-8")
    pairs = "".join(f"{one},{other}\n" for one, other in zip(*sides, strict=True))
    both.write_text("source,target\n" + pairs, encoding="utf-8")
    for verb, option in (("score", "--target"), ("evaluate", "--reference")):
        lines, found = (run(verb, tiny_run, "--source", each, option, words) for each in (digits, table))
        assert lines.code == found.code == 0, found.err
        assert lines.out == found.out == run(verb, tiny_run, "--source", both).out
        refused = run(verb, tiny_run, "--source", both, option, words)
        assert (refused.code, f"leave out {option}" in refused.err) == (2, True), refused.err
    alone = run("evaluate", tiny_run, "--source", table)
    assert (alone.code, "expected the target in column target; it has number, source" in alone.err) == (2, True)
    texts = transduce.evaluate(tiny_run, source=table, reference=sides[1], metrics="chrf")
    assert texts.scores == transduce.evaluate(tiny_run, both, metrics="chrf").scores


def test_evaluate_reports_figures_with_signature_and_interval(run: Run, tiny_run: Path, tiny_corpus: Path) -> None:
    files = ("--source", tiny_corpus / "test.digits", "--reference", tiny_corpus / "test.words")
    report = json.loads(run("evaluate", tiny_run, *files, "--json", "--metric", "chrf").out)
    figure = report["scores"]["chrf"]
    assert "version:" in figure["signature"]
    assert figure["interval"][0] <= figure["value"] <= figure["interval"][1]
    told = {"scores", "sentences", "seconds", "search", "unfinished", "unfamiliar", "precision", "likelihood", "data"}
    assert set(report) == {*told, "environment"}
    plain = run("evaluate", tiny_run, *files, "--metric", "chrf").out
    assert f"{figure['value']:.2f} [" in plain
    assert figure["signature"] in plain
    wrong = run("evaluate", tiny_run, *files, "--metric", "chrff")
    assert wrong.code == 2
    assert 'Did you mean "chrf"?' in wrong.err


def test_score_and_evaluate_read_columns_as_a_recipe_does(
    run: Run, tiny_run: Path, tiny_corpus: Path, tmp_path: Path
) -> None:
    sides = [(tiny_corpus / name).read_text().splitlines() for name in ("test.digits", "test.words")]
    tsv = tmp_path / "test.tsv"
    tsv.write_text("".join(f"{words}\tx\t{digits}\n" for digits, words in zip(*sides, strict=True)))
    two = ("--source", tiny_corpus / "test.digits")
    columns = ("--tsv", tsv, "--source-column", 2, "--target-column", 0)
    assert (
        run("score", tiny_run, *columns, "--json").out
        == run("score", tiny_run, *two, "--target", tiny_corpus / "test.words", "--json").out
    )
    metric = ("--metric", "chrf")
    assert (
        run("evaluate", tiny_run, *columns, *metric).out
        == run("evaluate", tiny_run, *two, "--reference", tiny_corpus / "test.words", *metric).out
    )
    report = json.loads(run("evaluate", tiny_run, *columns, *metric, "--json").out)
    assert list(report["data"]) == [str(tsv)]
    tsv.write_text("one\tx\t1\ntwo\n")
    for verb in ("score", "evaluate"):
        done = run(verb, tiny_run, *columns)
        assert (done.code, "expected 3 tab-separated columns" in done.err, "line 2" in done.err) == (2, True, True)
        assert run(verb, tiny_run, *two, "--target-column", 1).code == 2
        both = run(verb, tiny_run, *columns, *two)
        assert (both.code, "--tsv" in both.err) == (2, True)


def test_columns_are_named_as_for_training(run: Run, tiny_run: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    sides = [(tiny_corpus / name).read_text().splitlines() for name in ("test.digits", "test.words")]
    table = tmp_path / "test.csv"
    table.write_text("n,out,in\n" + "".join(f"1,{words},{digits}\n" for digits, words in zip(*sides, strict=True)))
    two, reference = ("--source", tiny_corpus / "test.digits"), tiny_corpus / "test.words"
    columns = ("--source", table, "--source-column", "in", "--target-column", "out")
    scores = [
        json.loads(run("evaluate", tiny_run, *each, "--json").out)["scores"]
        for each in (columns, (*two, "--reference", reference))
    ]
    assert scores[0] == scores[1]
    assert run("predict", tiny_run, *columns[:4]).out == run("predict", tiny_run, *two).out
    assert run("score", tiny_run, *columns).out == run("score", tiny_run, *two, "--target", reference).out
    done = run("predict", tiny_run, *two, "--source-column", "in")
    assert (done.code, "expected a file with columns" in done.err) == (2, True)


def test_what_a_model_cannot_read_is_told(run: Run, tiny_run: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    """It writes something for any input, without a doubt."""
    words = tiny_corpus / "test.words"
    for more in ((), ("--engine", "torch")):
        done = run("predict", tiny_run, "--source", words, *more)
        assert (done.code, done.err.count("\n")) == (0, 1)
        assert "The input looks like what this model writes, not like what it reads" in done.err
        done = run("predict", tiny_run, "--text", "日本 1", "--json", *more)
        assert "67 % of the characters of the input were never seen in training." in done.err
        assert json.loads(done.out)["unseen"] == pytest.approx(2 / 3)
    done = run("predict", tiny_run, "--source", tiny_corpus / "test.digits", "--json")
    assert (done.err, {json.loads(line)["unseen"] for line in done.out.splitlines()}) == ("", {0})
    report = run("evaluate", tiny_run, "--source", words, "--reference", tiny_corpus / "test.digits")
    assert "The input looks like what this model writes" in report.out
    found = json.loads(run("evaluate", tiny_run, "--source", words, "--reference", words, "--json").out)["unfamiliar"]
    assert (found["unseen"], found["texts"], found["unread"], found["exchanged"]) == (1, 20, 20, True)


def test_references_are_no_file_of_pairs(run: Run, tiny_run: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    """Whole lines of it were compared with the outputs, and scored near 0."""
    sides = [(tiny_corpus / name).read_text().splitlines() for name in ("test.digits", "test.words")]
    table = tmp_path / "test.tsv"
    table.write_text("".join("\t".join(pair) + "\n" for pair in zip(*sides, strict=True)))
    done = run("evaluate", tiny_run, "--source", tiny_corpus / "test.digits", "--reference", table)
    assert (done.code, "expected a text a line; this is a file with columns" in done.err) == (2, True)


def test_evaluate_says_whether_the_second_is_better(
    run: Run, tiny_run: Path, tiny_corpus: Path, tmp_path: Path
) -> None:
    right, references = tiny_corpus / "test.words", ("--reference", tiny_corpus / "test.words")
    files = ("--source", tiny_corpus / "test.digits", *references)
    done = run("evaluate", tiny_run, "--outputs", right, *files, "--metric", "chrf", "--metric", "exact_match")
    assert done.code == 0, done.err
    assert f"{right} is better than {tiny_run}: chrF +" in done.out
    assert "p = 0.001" in done.out
    assert "nrefs:1|case:mixed|eff:yes|nc:6" in done.out
    assert f"  {right}" in done.out
    report = json.loads(run("evaluate", tiny_run, "--outputs", right, *files, "--metric", "chrf", "--json").out)
    assert set(report) == {"sentences", "systems", "comparisons", "data", "environment"}
    assert report["systems"][str(right)]["scores"]["chrf"]["value"] == 100
    alone = run("evaluate", "--outputs", right, *references, "--reference", tiny_corpus / "test.digits")
    assert "BLEU 100.00" in alone.out
    assert "nrefs:2" in alone.out
    twice = run("evaluate", tiny_run, tiny_run, *files)
    assert twice.code == 2
    assert "named twice" in twice.err


def test_a_dry_run_shows_figures_and_leaves_nothing(run: Run, tiny_recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    done = run("train", tiny_recipe, "model.d_model=32", "--run", folder, "--dry-run")
    assert done.code == 0, done.err
    shown = done.out
    for said in ("d_model = 32", "parameters", "weights, gradients, optimizer, average", "activations", "padding"):
        assert said in shown
    assert not folder.exists()


def test_a_wrong_recipe_exits_2(run: Run, tiny_recipe: Path, tmp_path: Path) -> None:
    done = run("train", tiny_recipe, "training.update=3", "--run", tmp_path / "run")
    assert done.code == 2
    assert 'unknown key training.update. Did you mean "updates"?' in done.err
    assert not (tmp_path / "run").exists()


def test_a_diverged_training_exits_1(run: Run, tiny_recipe: Path, tmp_path: Path) -> None:
    huge = ("training.learning_rate=1e30", "training.clip=0", "training.warmup=0", "training.optimizer=adamw")
    done = run("train", tiny_recipe, *huge, "--run", tmp_path / "run")
    assert done.code == 1
    assert "A lower training.learning_rate" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for another process")
def test_an_interrupted_training_exits_130(tiny_recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = forked.start(tmp_path, "train", tiny_recipe, "training.updates=100000", "--run", folder)
    log = folder / "log.jsonl"
    while process.is_alive() and not (log.exists() and log.stat().st_size):
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    done = forked.ended(process, tmp_path)
    assert (done.code, "The same command goes on from here." in done.err) == (130, True), done.shown


def test_a_reader_that_leaves_early_is_no_crash(tiny_run: Path) -> None:
    command = (
        f"printf '1 2\\n%.0s' $(seq 3000) | {sys.executable} -m transduce predict {tiny_run} --method greedy | head -1"
    )
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert done.stdout.count(b"\n") == 1
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_outside_training_exits_130_too(tiny_run: Path, number: signal.Signals) -> None:
    code = f"""
import io, os, sys
from transduce.cli.app import main
class Awaited(io.RawIOBase):
    def readable(self):
        return True
    def readinto(self, room):
        os.kill(os.getpid(), {int(number)})  # now that it waits for its input
        return os.readv(0, [room])
sys.stdin = io.TextIOWrapper(io.BufferedReader(Awaited()))
sys.argv = ["transduce", "predict", {str(tiny_run)!r}]
main()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
        assert waiting.stderr
        assert number.name in waiting.stderr.read().decode()
        assert waiting.wait() == 130
