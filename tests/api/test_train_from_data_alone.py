"""`transduce.train` without a recipe: what the command decides, whatever holds the data."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

import transduce
from shared_folders import made_once
from tiny_recipe import DIGITS
from transduce.cli.app import app
from transduce.core.model_file import load_model_file
from transduce.recipe.recipe import load_recipe

pytestmark = pytest.mark.usefixtures("briefly_measured")

Pairs = list[tuple[str, str]]
SMALL = {"model.d_model": 16, "model.heads": 2, "model.feed_forward": 24, "model.encoder_layers": 1}
FEW = {**SMALL, "training.updates": 4, "training.validate_every": 4}
PAIRS: Pairs = [(" ".join(f"{n:03}"), " ".join(DIGITS[int(d)] for d in f"{n:03}")) for n in range(0, 1000, 3)]
TABLE = pyarrow.table({"en": ["a"], "id": [1], "sw": ["b"]})


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "train.en").write_text("".join(f"{source}\n" for source, _ in PAIRS), encoding="utf-8")
    (folder / "train.sw").write_text("".join(f"{target}\n" for _, target in PAIRS), encoding="utf-8")
    (folder / "pairs.tsv").write_text("".join(f"{one}\t{two}\n" for one, two in PAIRS), encoding="utf-8")
    return folder


def decided(run: Path) -> dict[str, Any]:
    """All keys but the places of the data."""
    found = json.loads((run / "plan.json").read_text(encoding="utf-8"))["table"]
    return {name: section for name, section in found.items() if name != "data"}


def test_two_files_as_the_command_takes_them(files: Path, tmp_path: Path) -> None:
    source, target = files / "train.en", files / "train.sw"
    trained = transduce.train(source=source, target=str(target), run=tmp_path / "one", overrides=FEW, quiet=True)
    command = ["train", "--source", str(source), "--target", str(target), "--run", str(tmp_path / "two")]
    found = CliRunner().invoke(app, [*command, *(f"{key}={value}" for key, value in FEW.items())])
    assert found.exit_code == 0, found.output
    assert decided(tmp_path / "one") == decided(tmp_path / "two")
    assert trained.report["plan"].keys() == {"promised_seconds", "took_seconds"}
    assert json.loads((tmp_path / "one" / "report.json").read_text(encoding="utf-8"))["plan"] == trained.report["plan"]
    weights, others = (load_model_file(tmp_path / run).weights for run in ("one", "two"))
    assert weights.keys() == others.keys()
    assert all(torch.equal(weights[name], others[name]) for name in weights)
    assert decided(tmp_path / "one")["task"]["target"] == "sw"


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a file of pairs, with which whatever else holds them is compared."""

    def train(folder: Path) -> None:
        (folder / "pairs.tsv").write_text("".join(f"{one}\t{two}\n" for one, two in PAIRS), encoding="utf-8")
        transduce.train(source=folder / "pairs.tsv", run=folder / "run", overrides=FEW, quiet=True)

    return made_once(tmp_path_factory, "from-pairs", train) / "run"


@pytest.mark.parametrize(
    "call",
    [
        lambda files, **more: transduce.train(PAIRS, **more),
        lambda files, **more: transduce.train(pyarrow.table([*zip(*PAIRS, strict=True)], ["numbers", "words"]), **more),
        lambda files, **more: transduce.train(
            source=[one for one, _ in PAIRS], target=[two for _, two in PAIRS], **more
        ),
        lambda files, **more: transduce.train(str(files / "pairs.tsv"), **more),
        lambda files, **more: transduce.train(data=files / "pairs.tsv", **more),
        lambda files, **more: transduce.train(source=files / "pairs.tsv", columns=(0, 1), **more),
    ],
    ids=["pairs", "table of two columns", "two lists", "file in a recipe's place", "file as data", "file as source"],
)
def test_the_same_is_decided_whatever_holds_the_pairs(
    call: Callable[..., transduce.TrainedRun], files: Path, usual: Path, tmp_path: Path
) -> None:
    told = StringIO()
    trained = call(files, run=tmp_path / "run", overrides=FEW, console=Console(file=told, width=200))
    assert decided(trained.run) == decided(usual)
    expected = json.loads((usual / "report.json").read_text(encoding="utf-8"))["tests"]["held_out"]["scores"]
    assert trained.report["tests"]["held_out"]["scores"] == expected
    for wanted in ("This will take about", "4 ", "chosen by you", "were promised"):
        assert wanted in told.getvalue()


def test_given_parts_are_those_of_validation_and_test(tmp_path: Path) -> None:
    parts = {"train": PAIRS[:280], "validation": PAIRS[280:300], "test": PAIRS[300:]}
    trained = transduce.train(data=parts, run=tmp_path / "run", overrides=FEW, quiet=True)
    (test,) = trained.report["tests"].values()
    assert test["likelihood"]["tokens"] == 4 * len(PAIRS[300:])  # three words and the end
    assert not (tmp_path / "run" / "held_out").exists()


def test_a_stopped_training_goes_on_as_it_was_decided(tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop(now: transduce.TrainingUpdate) -> None:
        if now.update == 7:
            raise Stop

    seen = list[int]()
    settings = {**SMALL, "training.updates": 10, "training.validate_every": 5, "training.checkpoint_every": 5}
    with pytest.raises(Stop):
        transduce.train(data=PAIRS, run=tmp_path / "run", overrides=settings, callbacks=[stop], quiet=True)
    before = (tmp_path / "run" / "plan.json").read_bytes()
    with pytest.raises(transduce.InputError, match=r"other data; these differ: train\.jsonl"):
        transduce.train(data=PAIRS[:200], run=tmp_path / "run", overrides=settings, quiet=True)
    with pytest.raises(transduce.InputError, match="asked for with other options: --time"):
        transduce.train(data=PAIRS, run=tmp_path / "run", overrides=settings, time="20m", quiet=True)
    (tmp_path / "run").rename(tmp_path / "moved")
    transduce.train(
        data=PAIRS,
        run=tmp_path / "moved",
        overrides=settings,
        callbacks=[lambda now: seen.append(now.update)],
        quiet=True,
    )
    assert seen == [6, 7, 8, 9, 10]
    assert (tmp_path / "moved" / "plan.json").read_bytes() == before
    assert load_recipe(tmp_path / "moved" / "recipe.toml").data.root == str(tmp_path / "moved" / "data")  # type: ignore[attr-defined]
    config = load_model_file(tmp_path / "moved").config
    assert config["data"]["train"][0]["file"] == "train.jsonl"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({}, "expected a recipe or data"),
        ({"data": PAIRS, "source": "a"}, "either data, or source and target"),
        ({"source": ["a"], "target": ["b", "c"]}, "a text for each of the 1 in source; got 2"),
        ({"source": ["a"]}, "target: expected a list of texts"),
        ({"source": ["a"], "target": "b.txt"}, "target: expected a list of texts"),
        ({"source": "none.tsv"}, "none.tsv"),
        ({"recipe": "none.tsv"}, "none.tsv: no such file"),
        ({"recipe": "none.tsv", "source": "a"}, "expected either it or source"),
        ({"recipe": "my.toml", "time": "2h", "target": "b"}, "target, time: only without a recipe"),
        ({"recipe": PAIRS, "data": PAIRS}, "list beside other data"),
        ({"recipe": 5}, "expected the path of a TOML file"),
        (
            {"recipe": TABLE},
            "the columns en, id, sw; say which are the input and the answer: columns=('en', ",
        ),
        (
            {"recipe": TABLE, "columns": ("en", "fr")},
            "expected the columns en and fr; got a table with the columns",
        ),
        (
            {"recipe": TABLE.select(["en"])},
            "the columns en; say which are the input and the answer: it needs two",
        ),
        ({"recipe": [{"en": "a", "sw": "b"}]}, "got en, sw. Say which are meant: columns=('en', 'sw'), for example."),
        ({"data": [("a", 1.5)]}, "data.train[0]: target: expected a text; got float: 1.5."),
        ({"data": PAIRS, "time": "soon"}, "expected a time such as 2h"),
        ({"data": PAIRS, "time": 20}, "expected a time such as 2h"),
        ({"data": PAIRS, "languages": "English"}, "expected the codes of source and target"),
        ({"data": PAIRS, "languages": ("en", "English")}, "expected the codes of source and target"),
        ({"data": PAIRS, "overrides": {"model.kind": "transfomer"}}, "transformer"),
    ],
)
def test_wrong_calls_leave_nothing(
    arguments: dict[str, Any], wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(transduce.InputError) as refused:
        transduce.train(**{"run": tmp_path / "run", "quiet": True, **arguments})
    assert wanted in str(refused.value)
    assert not (tmp_path / "run").exists()
