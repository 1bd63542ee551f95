"""The pairs that a run drew lie in its directory, and `transduce evaluate` scores them as its report does."""

import io
import json
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

import forked
import transduce
from trained import sha256, shown
from transduce.core.errors import InputError
from transduce.data.corpus import read_pairs
from transduce.data.hold_out import TEST, VALIDATION
from transduce.data.pairs.pair_data import PairData
from transduce.evaluation.evaluate import Settings, evaluate_files
from transduce.evaluation.texts import Files
from transduce.recipe.recipe import load_recipe
from transduce.training.display import Display
from transduce.training.run import run_training
from transduce.training.summary import tell_summary

DRAWN = ["data.validation=none", "data.test={}", "data.hold_out={validation=20, test=30}"]
SHORT = [*DRAWN, "training.updates=6"]


def lines(path: Path) -> list[str]:
    text = path.read_bytes().decode()
    assert text.endswith("\n")
    return text[:-1].split("\n")


def suggested(recipe: Path, changes: Sequence[str], run: Path) -> list[str]:
    """The command that the end of a training names for the scores."""
    said = io.StringIO()
    report = json.loads((run / "report.json").read_text())
    tell_summary(load_recipe(recipe, changes), run, report, Display(Console(file=said, width=400)))
    [command] = [line for line in said.getvalue().splitlines() if "transduce evaluate" in line]
    return shlex.split(command)


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_evaluate_on_them_gives_the_scores_of_the_report(tiny_recipe: Path, tmp_path: Path) -> None:
    run, recipe = tmp_path / "run", load_recipe(tiny_recipe, SHORT)
    report = run_training(recipe, run, shown())
    assert isinstance(recipe.data, PairData)
    split = recipe.data.split()
    assert split is not None
    every = list(read_pairs(recipe.data.train[0], Path(recipe.data.root)))
    for name, part in (("validation", VALIDATION), ("test", TEST)):
        held = [pair for (_, *pair), at in zip(every, split.parts[0].tolist(), strict=True) if at == part]
        both = zip(*(lines(run / "held_out" / f"{name}.{side}") for side in ("source", "target")), strict=True)
        assert [*map(list, both)] == held
    assert {path.name for path in (run / "held_out").iterdir()} == {
        f"{part}.{side}" for part in ("validation", "test") for side in ("source", "target")
    }
    command = suggested(tiny_recipe, SHORT, run)
    source, target = (str(run / "held_out" / f"test.{side}") for side in ("source", "target"))
    assert command[1:] == ["evaluate", str(run), "--source", source, "--reference", target]
    done = forked.transduce(tmp_path, *command[1:], "--json")
    assert done.code == 0, done.err
    found, told = json.loads(done.out), report["tests"]["held_out"]
    assert found["scores"].items() >= told["scores"].items()
    assert found["likelihood"]["loss"] == pytest.approx(told["likelihood"]["loss"], rel=1e-5)


def test_of_several_languages_each_has_its_own_without_its_tag(
    tiny_recipe: Path, tiny_corpus: Path, tmp_path: Path
) -> None:
    entry = "{{source='{}.digits', target='{}.words', to='{}'}}"
    train = [entry.format("train", "train", "sw"), "{source='train.words', target='train.digits', to='en'}"]
    changes = [*SHORT, f"data.train=[{', '.join(train)}]"]
    run = tmp_path / "run"
    report = run_training(load_recipe(tiny_recipe, changes), run, shown())
    names = {path.name for path in (run / "held_out").iterdir()}
    assert names >= {"test.sw.source", "test.sw.target", "test.en.source", "test.en.target", "validation.source"}
    assert {line[:7] for line in lines(run / "held_out" / "validation.source")} == {">>sw<< ", ">>en<< "}
    model = transduce.load(run)
    for to in ("sw", "en"):
        source, target = (run / "held_out" / f"test.{to}.{side}" for side in ("source", "target"))
        assert not any(line.startswith(">>") for line in lines(source))
        found = evaluate_files({"run": model}, Files(source, [target], to=to), Settings(), lambda count: None)
        assert found["scores"].items() >= report["tests"][f"held_out.{to}"]["scores"].items()
    assert suggested(tiny_recipe, changes, run)[-2:] == ["--to", "sw"]


def test_a_line_break_in_a_text_is_a_space_and_told(tiny_recipe: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    pairs = zip(
        *((tiny_corpus / f"train.{side}").read_text().splitlines() for side in ("digits", "words")), strict=True
    )
    rows = [{"source": source.replace(" ", "\n", 1) + "\r", "target": target} for source, target in pairs]
    (tmp_path / "pairs.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    said = Display(Console(file=io.StringIO(), width=400))
    run, train = tmp_path / "run", f"data.train=[{{jsonl='{tmp_path / 'pairs.jsonl'}'}}]"
    run_training(load_recipe(tiny_recipe, [*SHORT, train]), run, said)
    found = [lines(run / "held_out" / f"{part}.source") for part in ("validation", "test")]
    counts = [len(lines(run / "held_out" / f"{part}.target")) for part in ("validation", "test")]
    assert [*map(len, found)] == counts
    assert all(line.endswith(" ") for each in found for line in each)
    told = said.console.file.getvalue()  # type: ignore[attr-defined]
    assert f"the line breaks in {sum(counts)} held-out texts are written as spaces" in told


def test_files_that_a_recipe_names_are_not_copied(tiny_run: Path) -> None:
    assert not (tiny_run / "held_out").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with POSIX signals")
def test_killed_while_they_are_written_and_later(tiny_recipe: Path, tmp_path: Path) -> None:
    command = ("train", tiny_recipe, *DRAWN, "--run")
    assert forked.transduce(tmp_path, *command, tmp_path / "whole").code == 0
    run, whole = tmp_path / "run", tmp_path / "whole" / "held_out"
    for reached in (
        run / "held_out",
        run / "held_out" / "validation.target",
        run / "checkpoints" / "update-00000008.safetensors",
    ):
        ended = forked.transduce(tmp_path, *command, run, fate=forked.Fate(dies_once_there=reached))
        assert ended.code == -signal.SIGKILL, ended.shown
        for path in (run / "held_out").glob("[!.]*"):
            assert path.read_bytes() == (whole / path.name).read_bytes()
    assert forked.transduce(tmp_path, *command, run).code == 0
    assert sha256(run) == sha256(tmp_path / "whole")
    found = {path.name: path.read_bytes() for path in (run / "held_out").iterdir()}
    assert found == {path.name: path.read_bytes() for path in whole.iterdir()}


def test_a_run_that_began_with_other_held_out_pairs_does_not_go_on(tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run_training(load_recipe(tiny_recipe, SHORT), run, shown())
    further = load_recipe(tiny_recipe, [*DRAWN, "training.updates=8"])
    target = run / "held_out" / "test.target"
    text = target.read_text()
    target.write_text(f"another\n{text}")
    with pytest.raises(InputError, match=r"test\.target: this run was begun with other held-out pairs"):
        run_training(further, run, shown())
    for path in (run / "held_out").iterdir():
        path.unlink()
    said = Display(Console(file=io.StringIO(), width=400))
    run_training(further, run, said)
    assert "begun without files of its held-out pairs" in said.console.file.getvalue()  # type: ignore[attr-defined]
    assert target.read_text() == text


def test_a_run_goes_on_with_the_version_of_its_draw(tiny_recipe: Path, tmp_path: Path) -> None:
    """The first runs noted no version, and had no files of their held-out pairs."""
    run, further = tmp_path / "run", [*DRAWN, "training.updates=8"]
    first = ["data.hold_out={validation=20, test=30, version=1}", "training.updates=6"]
    report = run_training(load_recipe(tiny_recipe, [*DRAWN, *first]), run, shown())
    assert report["hold_out"] == {"validation": 20, "test": 30, "version": 1}
    drawn = {path.name: path.read_text() for path in (run / "held_out").iterdir()}
    noted = (run / "recipe.toml").read_text()
    (run / "recipe.toml").write_text(noted.replace("version = 1\n", ""))
    shutil.rmtree(run / "held_out")
    report = run_training(load_recipe(tiny_recipe, further), run, shown())
    assert (report["hold_out"]["version"], report["training"]["updates"]) == (1, 8)
    assert {path.name: path.read_text() for path in (run / "held_out").iterdir()} == drawn
    with pytest.raises(InputError, match=r"these keys differ: data\.hold_out\.version"):
        run_training(load_recipe(tiny_recipe, [*further, "data.hold_out.version=2"]), run, shown())
    (run / "recipe.toml").write_text(noted.replace("version = 1\n", "version = 3\n"))
    with pytest.raises(InputError, match=r"drawn by version 3 of the draw; this Transduce knows 1 and 2"):
        run_training(load_recipe(tiny_recipe, further), run, shown())
