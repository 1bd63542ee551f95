"""Back-translation from one recipe: a reverse model, its sources, and the model that learns from them, exactly."""

import json
import shutil
import signal
import sys
import tomllib
from pathlib import Path

import pytest

import forked
import transduce
from trained import lines_of, sha256, shown
from transduce.core.atomic import write_json
from transduce.core.errors import InputError
from transduce.data.corpus import TextFile, read_pairs
from transduce.data.hold_out import TRAIN
from transduce.data.pairs.pair_data import PairData
from transduce.data.tags import tags_of
from transduce.distillation import translations
from transduce.distillation.backtranslation import reverse_of
from transduce.distillation.pipeline import train_recipe
from transduce.distillation.translations import BACKTRANSLATION, distil
from transduce.planning.planned_run import value_in_toml
from transduce.recipe.recipe import load_recipe
from transduce.search.settings import search_settings
from transduce.training.run import run_training

TALK = "backtranslation.search={beam=2, min_length=1}"  # hardly trained models may say nothing
BACK = ["backtranslation.text=['test.words', 'valid.words']", "backtranslation.training={updates=12}", TALK]


def test_the_model_learns_from_texts_with_the_sources_of_a_reverse_model(
    tiny_recipe: Path, tiny_corpus: Path, tmp_path: Path
) -> None:
    briefly = [*BACK, "training.updates=16", "backtranslation.weight=0.5"]
    run, recipe = tmp_path / "run", load_recipe(tiny_recipe, briefly)
    report = train_recipe(recipe, run, shown())
    reverse = reverse_of(recipe)
    assert [(each.source, each.target) for each in reverse.data.train] == [("train.words", "train.digits")]  # type: ignore[attr-defined]
    run_training(reverse, tmp_path / "by_hand", shown())
    assert sha256(tmp_path / "by_hand") == sha256(run / "reverse") == report["reverse"]["sha256"]
    texts = [line for name in ("test", "valid") for line in (tiny_corpus / f"{name}.words").read_text().splitlines()]
    found = transduce.load(run / "reverse").predict(texts, beam=2, min_length=1)
    assert lines_of(run / "backtranslated" / "target.gz") == texts
    assert lines_of(run / "backtranslated" / "source.gz") == [each.text for each in found]
    assert report["backtranslations"]["lines"] == len(texts)
    resolved = tomllib.loads((run / "recipe.toml").read_text())
    real, made = resolved["data"]["train"]
    assert "backtranslation" not in resolved and "tag" not in real
    assert (Path(made["source"]).name, Path(made["target"]).name) == ("source.gz", "target.gz")
    assert (made["tag"], made["weight"]) == ("<BT>", 0.5)
    assert tags_of(transduce.load(run).task.tokenizers["source"]) == ["<BT>"]
    run_training(load_recipe(run / "recipe.toml"), tmp_path / "again", shown())  # it is an ordinary recipe
    assert sha256(tmp_path / "again") == sha256(run)
    given = load_recipe(tiny_recipe, [*briefly, f"backtranslation.model={run / 'reverse'}", "backtranslation.tag="])
    report = train_recipe(given, tmp_path / "given", shown())
    assert report["reverse"]["sha256"] == sha256(run / "reverse") and not (tmp_path / "given" / "reverse").exists()
    assert "tag" not in tomllib.loads((tmp_path / "given" / "recipe.toml").read_text())["data"]["train"][1]
    before = (run / "model.safetensors").stat().st_mtime_ns
    train_recipe(recipe, run, shown())
    assert (run / "model.safetensors").stat().st_mtime_ns == before  # a finished run stays
    whole = json.loads((run / "report.json").read_text())
    alone = {key: each for key, each in whole.items() if key not in ("reverse", "backtranslations")}
    write_json(run / "report.json", alone)  # as a training leaves it that is killed right after its model is tested
    assert train_recipe(recipe, run, shown()) == whole == json.loads((run / "report.json").read_text())
    assert (run / "model.safetensors").stat().st_mtime_ns == before
    other = load_recipe(tiny_recipe, [*briefly, "backtranslation.text=['test.words']"])
    with pytest.raises(InputError, match="different: lines, sources"):
        train_recipe(other, run, shown())


def test_both_models_hold_out_the_same_pairs_and_no_translation_repeats_one(tiny_recipe: Path, tmp_path: Path) -> None:
    drawn = ["data.validation=none", "data.test={}", "data.hold_out={validation=20, test=20}"]
    back = ["backtranslation.text=['train.words', 'test.words']", "backtranslation.training={updates=4}"]
    run, console = tmp_path / "run", shown()
    recipe = load_recipe(tiny_recipe, [*drawn, *back, TALK, "training.updates=6"])
    report = train_recipe(recipe, run, console)
    for part in ("validation", "test"):
        for side, other in (("source", "target"), ("target", "source")):
            held = (run / "held_out" / f"{part}.{side}").read_text()
            assert held.count("\n") >= 20
            assert held == (run / "reverse" / "held_out" / f"{part}.{other}").read_text()
    texts = "".join((run / "held_out" / f"{part}.target").read_text() for part in ("validation", "test"))
    resolved = load_recipe(run / "recipe.toml").data
    assert isinstance(resolved, PairData)
    split = resolved.split()
    assert split is not None
    made = [target for _, _, target in read_pairs(resolved.train[1], Path(resolved.root))]
    kept = [target for target, part in zip(made, split.parts[1].tolist(), strict=True) if part == TRAIN]
    assert 200 < len(kept) < len(made) - 39 and not {*texts.splitlines()} & {*kept}
    assert report["tests"].keys() == {"held_out"}
    told = console.console.file.getvalue()  # type: ignore[attr-defined]
    assert f"{len(made) - len(kept)} of them are too much like a held-out pair, and are left out of training" in told


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"tsv": "pairs"}, "a b\t1 2\nc\t3\n"),
        ({"tsv": "pairs", "source_column": 1, "target_column": 2}, "x\ta b\t1 2\ny\tc\t3\n"),
        ({"csv": "pairs"}, "en,sw\na b,1 2\nc,3\n"),
        ({"csv": "pairs", "source_column": "en", "target_column": "sw"}, "sw,en\n1 2,a b\n3,c\n"),
        ({"jsonl": "pairs"}, '{"source": "a b", "target": "1 2"}\n{"target": "3", "source": "c"}\n'),
        ({"jsonl": "pairs", "source_column": "en"}, '{"en": "a b", "target": "1 2"}\n{"target": "3", "en": "c"}\n'),
    ],
)
def test_the_reverse_model_reads_the_sides_exchanged(
    tiny_recipe: Path, tiny_corpus: Path, entry: dict[str, object], text: str
) -> None:
    (tiny_corpus / "pairs").write_text(text, encoding="utf-8")
    given = value_in_toml(entry)
    recipe = load_recipe(tiny_recipe, [*BACK, f"data.train=[{given}]", f"data.validation={given}"])
    data, turned = recipe.data, reverse_of(recipe).data
    assert isinstance(data, PairData) and isinstance(turned, PairData)
    assert data.validation and turned.validation
    for files, exchanged in ((data.train[0], turned.train[0]), (data.validation, turned.validation)):
        assert [pair[1:] for pair in read_pairs(files, tiny_corpus)] == [("a b", "1 2"), ("c", "3")]
        assert [pair[1:] for pair in read_pairs(exchanged, tiny_corpus)] == [("1 2", "a b"), ("3", "c")]


def test_the_reverse_model_has_each_tokenizer_on_its_side(tiny_recipe: Path) -> None:
    sides = ["tokenizer.source={kind='character', vocabulary=50}", "tokenizer.target={kind='whitespace'}"]
    recipe = load_recipe(tiny_recipe, [*BACK, "tokenizer.joint=false", *sides])
    turned = reverse_of(recipe).tokenizer
    assert (turned.of_side("source"), turned.of_side("target")) == (recipe.tokenizer.target, recipe.tokenizer.source)
    assert (turned.of_side("source").kind, turned.of_side("target").vocabulary) == ("whitespace", 50)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with POSIX signals")
def test_killed_at_every_stage(tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = ("train", tiny_recipe, *BACK, "backtranslation.search.method=sample", "--run", run)
    assert (done := forked.transduce(tmp_path, *command)).code == 0, done.shown
    expected = sha256(run)
    shutil.rmtree(run)
    stages = [
        run / "reverse" / "checkpoints" / "update-00000004.safetensors",
        run / "backtranslated" / "parts" / "plan.json",
        run / "checkpoints" / "update-00000008.safetensors",
    ]
    for reached in stages:
        ended = forked.transduce(tmp_path, *command, fate=forked.Fate(dies_once_there=reached))
        assert ended.code == -signal.SIGKILL, ended.shown
        assert not (run / "model.safetensors").exists()
    assert forked.transduce(tmp_path, *command).code == 0
    assert sha256(run) == expected


def test_sampled_sources_differ_from_part_to_part(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translations, "PART", 4)
    (tmp_path / "texts").write_text("1 2 3 4 5 6\n" * 12)
    model = transduce.load(tiny_run)
    search = search_settings(model.recipe.search, {"method": "sample", "temperature": 3.0})
    distil(model, "", [TextFile(text="texts")], tmp_path, tmp_path / "out", search, method=BACKTRANSLATION)
    found = lines_of(tmp_path / "out" / "source.gz")
    assert len({tuple(found[first : first + 4]) for first in (0, 4, 8)}) == 3
    expected = model.predict(["1 2 3 4 5 6"] * 4, method="sample", temperature=3.0, seed=search.seed + 1)
    assert found[4:8] == [each.text for each in expected]


def test_the_command_writes_what_a_recipe_can_name(tiny_run: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "back"
    command = ("translate-back", tiny_run, "--text", tiny_corpus / "test.digits", "--output", out, "--beam", 2)
    done = forked.transduce(tmp_path, *command)
    assert done.code == 0, done.err
    entry = tomllib.loads(f"train = [{done.out}]")["train"]
    assert entry == [{"source": f"{out}/source.gz", "target": f"{out}/target.gz", "tag": "<BT>"}]
    texts = (tiny_corpus / "test.digits").read_text().splitlines()
    assert lines_of(out / "target.gz") == texts
    assert lines_of(out / "source.gz") == [each.text for each in transduce.load(tiny_run).predict(texts, beam=2)]
    assert forked.transduce(tmp_path, *command).out == done.out
    for wrong in ("a b", "back", "<B T>"):
        assert "expected one word that begins and ends with a symbol" in (
            forked.transduce(tmp_path, *command, "--tag", wrong).err
        )


def test_what_is_wrong_is_said_before_anything_is_trained(tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    for wrong, said in [
        ("backtranslation.text=[]", "at least 1"),
        ("backtranslation.txt=['a']", 'Did you mean "text"'),
    ]:
        with pytest.raises(InputError, match=said):
            load_recipe(tiny_recipe, [wrong])
    for wrong, said in [
        ("backtranslation.training.updtes=3", r"\[backtranslation\]: unknown key training.updtes"),
        ("backtranslation.search.bem=3", r"\[backtranslation\]: unknown key search.bem"),
        ("backtranslation.text=['test.wrds']", r'test.wrds: no such file. Did you mean "test.words"'),
        ("teachers.seeds=[1]", r"both make training pairs"),
        ("data.train=[{tsv='pairs', source_column=[0, 1], target_column=2}]", r"cannot be cut into several columns"),
    ]:
        with pytest.raises(InputError, match=said):
            train_recipe(load_recipe(tiny_recipe, [*BACK, wrong]), run, shown())
    with pytest.raises(InputError, match=r"\[backtranslation\] comes first"):
        run_training(load_recipe(tiny_recipe, BACK), run, shown())
    assert not run.exists()
