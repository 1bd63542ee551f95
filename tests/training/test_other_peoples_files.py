"""A folder that holds files of others is refused by all that would write into it, and stays as it is."""

import gc
import json
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import transduce
from transduce.api.data import adopt
from transduce.cli.app import main
from transduce.core.errors import InputError
from transduce.core.folders import check_folder
from transduce.recipe.recipe import Recipe, load_recipe
from transduce.training.run_directory import check_directory, claim, default_run, is_run

COMPARISON = Path(__file__).parents[2] / "recipes" / "compare" / "multi30k.toml"
PAIRS = [("1 2", "two one"), ("3", "three")]
COMMANDS = [
    ["train", "RECIPE", "--run", "THEIRS"],
    ["train", "--source", "DATA/train.digits", "--target", "DATA/train.words", "--run", "THEIRS"],
    ["demo", "--run", "THEIRS"],
    ["compare", str(COMPARISON), "data.root=DATA", "--run", "THEIRS"],
    ["distill", "RUN", "--source", "DATA/test.digits", "--output", "THEIRS"],
    ["translate-back", "RUN", "--text", "DATA/test.words", "--output", "THEIRS"],
    ["export", "RUN", "--to", "onnx", "--output", "THEIRS"],
    ["convert", "RUN", "THEIRS/model.safetensors"],
    ["new", "THEIRS/mine.toml", "--source", "DATA/train.digits", "--target", "DATA/train.words"],
]


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder that looks like what training leaves, and is somebody's own."""
    folder = tmp_path / "theirs"
    (folder / "held_out").mkdir(parents=True)
    (folder / "data").mkdir()
    for name in ("model.safetensors", "report.json", "log.jsonl", "held_out/test.source", "data/train.jsonl"):
        (folder / name).write_text(f"their {name}")
    (folder / "mine.toml").write_text("# my own\n")
    return folder


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


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("command", COMMANDS, ids=[command[0] for command in COMMANDS])
def test_no_command_writes_into_it(
    command: list[str],
    theirs: Path,
    tiny_run: Path,
    tiny_recipe: Path,
    tiny_corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    puts = {"RECIPE": tiny_recipe, "THEIRS": theirs, "DATA": tiny_corpus, "RUN": tiny_run}
    words = list(command)
    for name, path in puts.items():
        words = [word.replace(name, str(path)) for word in words]
    monkeypatch.setattr(sys, "argv", ["transduce", *words])
    before = contents(theirs)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert contents(theirs) == before
    said = capsys.readouterr().err
    assert str(theirs) in said
    assert "other files (data, held_out, log.jsonl, " in said or "there" in said


def test_python_does_not_either(theirs: Path, tiny_recipe: Path) -> None:
    before, table = contents(theirs), Recipe.load(tiny_recipe).to_table()
    for given in (
        {"recipe": tiny_recipe},
        {"recipe": table},
        {"recipe": table, "data": PAIRS},
        {"data": PAIRS},
    ):
        with pytest.raises(InputError, match="holds other files"):
            transduce.train(run=theirs, quiet=True, **given)  # type: ignore[arg-type]
        assert contents(theirs) == before


def test_data_of_others_in_a_folder_called_data_stays(theirs: Path, tmp_path: Path) -> None:
    new, run = tmp_path / "new", tmp_path / "run"
    (run / "data").mkdir(parents=True)
    new.mkdir()
    (new / "train.jsonl").write_text("mine")
    (run / "data" / "train.jsonl").write_text("theirs")
    with pytest.raises(InputError, match=r"data/train\.jsonl: this file is not of a run"):
        adopt(run, new)
    assert (run / "data" / "train.jsonl").read_text() == "theirs"
    (run / "data" / "train.jsonl").unlink()
    adopt(run, new)
    (new / "train.jsonl").write_text("mine, mended")  # the training did not begin
    adopt(run, new)
    assert (run / "data" / "train.jsonl").read_text() == "mine, mended"


def test_a_recipe_of_ones_own_is_no_run(tiny_recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    own = folder / "recipe.toml"
    own.write_text(f'# my notes\nname = "recipe"\n{tiny_recipe.read_text()}')
    with pytest.raises(InputError, match=r"other files \(recipe\.toml\)"):
        claim(folder, load_recipe(own))
    assert own.read_text().startswith("# my notes")


def test_what_training_began_goes_on(tiny_recipe: Path, tmp_path: Path) -> None:
    run, recipe = tmp_path / "run", load_recipe(tiny_recipe)
    check_directory(run)
    run.mkdir()
    for name in (".lock", ".recipe.toml.01234567.tmp", ".DS_Store"):
        (run / name).touch()
    assert not is_run(run)
    claim(run, recipe)
    assert is_run(run)
    claim(run, recipe)
    (run / "recipe.toml").write_text("# looked into by hand\n" + (run / "recipe.toml").read_text())
    assert not is_run(run)
    (run / "data.json").touch()
    assert is_run(run)


def test_the_data_of_a_recipe_may_lie_in_its_run(tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "corpus").mkdir(parents=True)
    (run / "corpus" / "train.digits").touch()
    recipe = load_recipe(tiny_recipe, [f"data.root={json.dumps(str(run / 'corpus'))}"])
    claim(run, recipe)
    assert is_run(run)


def test_a_run_with_a_link_to_a_file_elsewhere_is_refused(tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    claim(run, load_recipe(tiny_recipe))
    (tmp_path / "theirs").write_text("theirs")
    (run / "log.jsonl").symlink_to("../theirs")
    with pytest.raises(InputError, match=r"log\.jsonl: this is a link to .*theirs, which would be overwritten"):
        check_directory(run)
    (run / "log.jsonl").unlink()
    (run / "log.jsonl").symlink_to("recipe.toml")
    check_directory(run)
    (run / "held_out").mkdir()
    (run / "held_out" / "test.source").symlink_to("../../theirs")
    with pytest.raises(InputError, match=r"test\.source: this is a link to .*theirs"):
        check_directory(run)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of somebody's own."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "attention.png").write_text("a picture")
    return folder


@pytest.mark.parametrize("link", ["figures", "checkpoints", "teachers/1", "translations", ".lock"])
@pytest.mark.parametrize("end", ["", "absent"])
def test_a_link_out_of_the_run_is_refused_whatever_it_leads_to(
    link: str, end: str, tiny_recipe: Path, tmp_path: Path, elsewhere: Path
) -> None:
    run = tmp_path / "run"
    claim(run, load_recipe(tiny_recipe))
    (run / link).parent.mkdir(exist_ok=True)
    (run / link).symlink_to(elsewhere / end)
    before = contents(elsewhere)
    with pytest.raises(InputError, match=rf"{link}: this is a link to {elsewhere / end}, .*--run"):
        transduce.train(tiny_recipe, run, quiet=True)
    assert contents(elsewhere) == before


def test_data_in_a_run_may_be_links(tmp_path: Path, elsewhere: Path) -> None:
    run = tmp_path / "run"
    (run / "corpus").mkdir(parents=True)
    (run / "corpus" / "train.en").symlink_to(elsewhere / "attention.png")
    check_directory(run, data=["corpus"])
    with pytest.raises(InputError, match=r"train\.en: this is a link"):
        check_directory(run, own=["corpus"])


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("command", ["train", "finish", "compare", "distill", "translate-back", "demo", "new"])
def test_no_command_follows_a_link_out_of_a_run(
    command: str,
    tiny_run: Path,
    tiny_recipe: Path,
    tiny_corpus: Path,
    tmp_path: Path,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run, text = tmp_path / "run", str(tiny_corpus / "test.digits")
    shutil.copytree(tiny_run, run)
    (run / "compare.json").touch()
    (run / "report.json").unlink()
    shutil.rmtree(run / "figures", ignore_errors=True)
    (run / "figures").symlink_to(elsewhere)
    (run / "mine.toml").symlink_to(elsewhere / "mine.toml")
    words = {
        "train": ["train", str(tiny_recipe), "--run", str(run)],
        "finish": ["train", "--finish", str(run)],
        "compare": ["compare", str(COMPARISON), f"data.root={tiny_corpus}", "--run", str(run)],
        "distill": ["distill", str(tiny_run), "--source", text, "--output", str(run)],
        "translate-back": ["translate-back", str(tiny_run), "--text", text, "--output", str(run)],
        "demo": ["demo", "--run", str(run)],
        "new": ["new", str(run / "mine.toml"), "--source", text, "--target", text],
    }
    monkeypatch.setattr(sys, "argv", ["transduce", *words[command]])
    before = contents(elsewhere)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert contents(elsewhere) == before
    said = capsys.readouterr().err
    assert "this is a link to" in said or "there is such a file already" in said


def test_a_name_is_no_path() -> None:
    assert default_run("my model, 2") == Path("runs/my model, 2")
    for name in ("../victim", "a/b", "/etc", "..", ".", "", " ", "a\\b", "a\nb", "a\x1b]0;b\x07", "é" * 101):
        with pytest.raises(InputError, match="name: expected a name, such as my-model"):
            default_run(name)


def test_a_recipe_whose_name_is_a_path_is_refused(tiny_recipe: Path) -> None:
    tiny_recipe.write_text('name = "../victim"\n' + tiny_recipe.read_text())
    with pytest.raises(InputError, match=r"tiny\.toml: name: expected a name, .*victim', which is a path"):
        load_recipe(tiny_recipe)
    with pytest.raises(InputError, match="which is a path"):
        transduce.train(tiny_recipe, quiet=True)


def test_folders_are_named_with_what_they_hold(theirs: Path, tmp_path: Path) -> None:
    check_folder(tmp_path / "new")
    check_folder(theirs, ["model.safetensors", "report.json", "log.jsonl", "held_out", "data", "mine.toml"])
    with pytest.raises(InputError, match=r"other files \(mine\.toml\).*--output"):
        check_folder(theirs, ["model.safetensors", "report.json", "log.jsonl", "held_out", "data"], option="--output")
