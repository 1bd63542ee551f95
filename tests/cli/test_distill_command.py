"""`transduce distill` as a shell sees it: a trained teacher's data translated, and a student trained on it."""

import json
import sys
import tomllib
from pathlib import Path

import pytest

import transduce
from forked import Run
from tiny_recipe import TINY_RECIPE
from trained import lines_of, sha256

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")


@pytest.fixture
def student(tmp_path: Path, tiny_corpus: Path) -> Path:
    """A recipe for a model that writes all words at once."""
    path = tmp_path / "student.toml"
    text = TINY_RECIPE.replace("[data]", f'[data]\nroot = "{tiny_corpus}"')
    path.write_text(text.replace('"transformer"', '"non_autoregressive"'), encoding="utf-8")
    return path


def test_a_teacher_a_student_and_its_translations(
    run: Run, tiny_run: Path, tiny_corpus: Path, student: Path, tmp_path: Path
) -> None:
    out = tmp_path / "distilled"
    search = ("--beam", 2, "--alpha", 4)  # a teacher of a second of training would rather say nothing
    done = run("distill", tiny_run, "--output", out, *search, "--student", student, "--run", tmp_path / "student")
    assert done.code == 0, done.err
    sources = (tiny_corpus / "train.digits").read_text().splitlines()
    assert lines_of(out / "source.gz") == sources
    targets = lines_of(out / "target.gz")
    assert targets == [each.text for each in transduce.load(tiny_run).predict(sources, protect=False, beam=2, alpha=4)]
    said = tomllib.loads("\n".join(done.out.splitlines()[:3]))
    assert said["data"]["train"] == [{"source": f"{out}/source.gz", "target": f"{out}/target.gz"}]
    report = json.loads((tmp_path / "student" / "report.json").read_text())
    counted = report["data"]["train"][0]
    assert counted["examples"] + sum(counted["dropped"]["counts"].values()) == 300
    assert not Path(counted["source"]).is_absolute()
    assert report["tests"]["held_out"]["search"]["method"] == "mask_predict"
    assert report["tests"]["held_out"]["likelihood"]["context"] == "the source and the number of target tokens"
    assert "search:mask_predict" in report["validation_signatures"]["bleu"]
    pipeline = transduce.load(tmp_path / "student")
    [found] = pipeline.predict(["1 2 3"])
    assert found.ended
    done = run("predict", tmp_path / "student", "--iterations", 1, "--lengths", 2, "--json", given=b"1 2 3\n")
    assert json.loads(done.out)["text"] == pipeline.predict(["1 2 3"], iterations=1, lengths=2)[0].text
    done = run("predict", tmp_path / "student", "--method", "beam", given=b"1 2 3\n")
    assert done.code == 2
    assert 'use "mask_predict"' in done.err


def test_what_to_translate_can_be_named(run: Run, tiny_run: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "distilled"
    done = run("distill", tiny_run / "model.safetensors", "--source", tiny_corpus / "test.digits", "--output", out)
    assert done.code == 0, done.err
    assert "20 lines" in done.err
    assert len(lines_of(out / "target.gz")) == 20


def test_several_teach_as_an_ensemble(run: Run, tiny_run: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    out, source = tmp_path / "distilled", tiny_corpus / "test.digits"
    done = run("distill", tiny_run, tiny_run / "model.safetensors", "--source", source, "--output", out)
    assert done.code == 0, done.err
    taught = lines_of(out / "target.gz")
    together = transduce.load([tiny_run, tiny_run]).predict(source.read_text().splitlines())
    assert taught == [each.text for each in together]
    checksum, other = json.loads((out / "distillation.json").read_text())["teacher"]["sha256"].split("+")
    assert checksum == other == sha256(tiny_run)


def test_what_is_wrong_is_said_before_anything_is_written(
    run: Run, tiny_run: Path, tiny_recipe: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "model.safetensors"
    alone.write_bytes((tiny_run / "model.safetensors").read_bytes())
    drawn = tmp_path / "drawn.toml"
    drawing = TINY_RECIPE.replace("[data]", "[data]\nhold_out = 30").replace("validation = ", "# ")
    drawn.write_text(drawing, encoding="utf-8")
    for arguments, said in [
        ([alone], "there is no recipe.toml beside it"),
        ([tiny_run, "--recipe", drawn], "a teacher translates whole files"),
        ([tiny_run, "--student", drawn], "would draw held-out pairs from the teacher's translations"),
        ([tiny_run, "--source", tiny_recipe, "--recipe", tiny_recipe], "not both"),
        ([tiny_run, "--student", tmp_path / "nowhere.toml"], "there is no such recipe"),
        ([tiny_run, "--beam", 0], "beam"),
    ]:
        done = run("distill", *arguments, "--output", tmp_path / "out")
        assert done.code == 2, done.shown
        assert said in done.err
        assert not (tmp_path / "out").exists()
