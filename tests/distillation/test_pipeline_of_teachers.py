"""Teachers and their student from one recipe, whenever they are stopped."""

import shutil
import signal
import sys
import tomllib
from pathlib import Path

import pytest

import forked
import transduce
from trained import lines_of, sha256, shown
from transduce.core.errors import InputError
from transduce.distillation.pipeline import train_recipe
from transduce.distillation.teachers import student, teachers_of
from transduce.recipe.recipe import load_recipe
from transduce.training.run import run_training

TALK = "teachers.search={beam=2, min_length=1}"  # hardly trained models may find that nothing is the likeliest to say
TEACHERS = ["teachers.seeds=[3, 4]", "teachers.training={updates=12, learning_rate=1e-2}", TALK]


@pytest.fixture
def few_pairs(tmp_path: Path, tiny_corpus: Path) -> list[str]:
    """What a recipe is told to train on a quarter of the tiny corpus."""
    for side in ("digits", "words"):
        lines = (tiny_corpus / f"train.{side}").read_text().splitlines(keepends=True)
        (tmp_path / f"train.{side}").write_text("".join(lines[:75]))
    train = f"{{source='{tmp_path / 'train.digits'}', target='{tmp_path / 'train.words'}'}}"
    return [f"data.train=[{train}]", "training.updates=16"]


def test_teachers_translate_and_the_student_learns_from_it(
    tiny_recipe: Path, few_pairs: list[str], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    counted = "training.embeddings=cooccurrence"  # of the teachers: the student begins as one of them
    report = train_recipe(
        load_recipe(tiny_recipe, [*few_pairs, *TEACHERS, counted, "teachers.precision=int8"]), run, shown()
    )
    teachers = [run / "teachers" / "3", run / "teachers" / "4"]
    assert [each["sha256"] for each in report["teachers"]] == [sha256(folder) for folder in teachers]
    assert len({*map(sha256, [*teachers, run])}) == 3
    alone = load_recipe(  # by hand: the recipe with what differs
        tiny_recipe,
        [*few_pairs, counted, "training.seed=4", "training.updates=12", "training.learning_rate=1e-2", "search.beam=5"],
    )
    search = load_recipe(teachers[1] / "recipe.toml").search
    run_training(alone.model_copy(update={"name": "tiny-teacher-4", "search": search}), tmp_path / "4", shown())
    assert sha256(tmp_path / "4") == sha256(teachers[1])
    sources = (tmp_path / "train.digits").read_text().splitlines()
    together = transduce.load(teachers, precision="int8").predict(sources, beam=2, min_length=1)
    assert lines_of(run / "taught" / "source.gz") == sources
    assert lines_of(run / "taught" / "target.gz") == [each.text for each in together]
    assert all(each.text for each in together)
    resolved = tomllib.loads((run / "recipe.toml").read_text())
    assert "teachers" not in resolved
    assert resolved["training"]["start"] == str(teachers[0])
    assert [Path(each["source"]).name for each in resolved["data"]["train"]] == ["train.digits", "source.gz"]
    run_training(load_recipe(run / "recipe.toml"), tmp_path / "again", shown())  # it is an ordinary recipe
    assert sha256(tmp_path / "again") == sha256(run)


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with POSIX signals")
def test_killed_at_every_stage(tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = ("train", tiny_recipe, *TEACHERS, "--run", run)
    assert forked.transduce(tmp_path, *command).code == 0
    expected = sha256(run)
    shutil.rmtree(run)  # a model file names what it learnt from, and so the folder
    stages = [
        run / "teachers" / "3" / "checkpoints" / "update-00000004.safetensors",
        run / "teachers" / "4" / "log.jsonl",
        run / "taught" / "parts" / "plan.json",
        run / "checkpoints" / "update-00000008.safetensors",
    ]
    for reached in stages:
        ended = forked.transduce(tmp_path, *command, fate=forked.Fate(dies_once_there=reached))
        assert ended.code == -signal.SIGKILL, ended.shown
        assert reached.exists()
        assert not (run / "model.safetensors").exists()
    first = run / "teachers" / "3" / "model.safetensors"
    before = first.stat().st_mtime_ns
    assert forked.transduce(tmp_path, *command).code == 0
    assert first.stat().st_mtime_ns == before  # a finished teacher is not trained again
    assert sha256(run) == expected


def test_a_student_of_another_architecture(tiny_recipe: Path, few_pairs: list[str], tmp_path: Path) -> None:
    sizes = "d_model=16, heads=2, encoder_layers=1, decoder_layers=1, feed_forward=16"
    kinds = [f"model={{kind='non_autoregressive', {sizes}}}", "search={method='mask_predict', iterations=2}"]
    other = ["teachers.model={kind='rnn', d_model=16, hidden=16}", "teachers.references=false", TALK]
    recipe = load_recipe(tiny_recipe, [*few_pairs, *kinds, *other, "training.updates=6", "training.start=nowhere"])
    [teacher] = teachers_of(recipe)
    assert (teacher.model.kind, teacher.search.method) == ("rnn", "beam")  # type: ignore[attr-defined]
    learner = student(recipe, tmp_path / "run")
    assert learner.model.kind == "non_autoregressive"  # type: ignore[attr-defined]
    assert [Path(each.source).name for each in learner.data.train] == ["source.gz"]  # type: ignore[attr-defined]
    recipe = load_recipe(tiny_recipe, [*few_pairs, *kinds, *other, "training.updates=6"])
    report = train_recipe(recipe, tmp_path / "run", shown())
    assert report["tests"]["held_out"]["search"]["method"] == "mask_predict"
    assert report["translations"]["lines"] == 75


def test_what_is_wrong_is_said_before_anything_is_trained(tiny_recipe: Path, tmp_path: Path) -> None:
    for wrong, said in [
        ("teachers.seeds=[1, 1]", "equal seeds make equal teachers"),
        ("teachers.seeds=[]", "expected a list of length at least 1"),
        ("teachers.sedes=[1]", 'Did you mean "seeds"'),
    ]:
        with pytest.raises(InputError, match=said):
            load_recipe(tiny_recipe, [wrong])
    with pytest.raises(InputError, match=r"\[teachers\]: unknown key training.updtes. Did you mean .updates"):
        train_recipe(load_recipe(tiny_recipe, ["teachers.training.updtes=3"]), tmp_path / "run", shown())
    with pytest.raises(InputError, match=r"\[teachers\] comes first"):
        run_training(load_recipe(tiny_recipe, TEACHERS), tmp_path / "run", shown())
    assert not (tmp_path / "run").exists()


def test_a_directory_of_another_recipe_is_refused_at_once(tiny_recipe: Path, tiny_run: Path) -> None:
    before = sorted(tiny_run.rglob("*"))
    with pytest.raises(InputError, match="holds a training of another recipe"):
        train_recipe(load_recipe(tiny_recipe, TEACHERS), tiny_run, shown())
    assert sorted(tiny_run.rglob("*")) == before
