"""`transduce doctor` as a user meets it: exit codes, clean standard output, wrong arguments."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile
import typer
from typer.testing import CliRunner, Result

from transduce.cli.doctor import doctor
from transduce.core.errors import InputError

PROGRAM = typer.Typer()
PROGRAM.command()(doctor)


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(PROGRAM, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """300 pairs with nothing wrong."""
    dice, paths = random.Random(5), (tmp_path / "train.a", tmp_path / "train.b")
    sentences = [[dice.randrange(10, 90) for _ in range(9)] for _ in range(300)]
    for path, letter in zip(paths, "ab", strict=True):
        text = "".join(" ".join(f"{letter}{word}" for word in sentence) + "\n" for sentence in sentences)
        path.write_text(text, encoding="utf-8")
    return paths


def spoil(path: Path) -> None:
    """Take out line 200."""
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:199] + lines[200:]))


def test_nothing_found(sides: tuple[Path, Path]) -> None:
    result = run("--source", sides[0], "--target", sides[1])
    assert result.exit_code == 0
    assert "Nothing found." in result.stdout
    assert "300 lines" in result.stdout


def test_errors_are_shown_and_exit_with_1(sides: tuple[Path, Path]) -> None:
    spoil(sides[1])
    result = run("--source", sides[0], "--target", sides[1])
    assert result.exit_code == 1
    said = " ".join(result.stdout.replace("│", " ").split())
    assert "300 lines" in said
    assert "shifted by -1" in said


def test_json_is_all_there_is_on_standard_output(sides: tuple[Path, Path], tmp_path: Path) -> None:
    spoil(sides[0])
    outputs = tmp_path / "clean.a.gz", tmp_path / "clean.b.gz"
    arguments = ["--clean-source", outputs[0], "--clean-target", outputs[1], "--json"]
    result = run("--source", sides[0], "--target", sides[1], *arguments)
    answer = json.loads(result.stdout)
    assert result.exit_code == 1
    assert {finding["kind"] for finding in answer["findings"]} == {"unequal_counts", "shift"}
    assert answer["cleaned"]["written"] >= 290
    assert all(path.exists() for path in outputs)


def test_tab_separated_and_single_text(sides: tuple[Path, Path], tmp_path: Path) -> None:
    rows = zip(*(path.read_text().splitlines() for path in sides), strict=True)
    tsv = tmp_path / "pairs.tsv"
    tsv.write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    assert run("--tsv", tsv).exit_code == 0
    assert run(tsv).output == run("--tsv", tsv).output
    with pytest.raises(InputError, match="For files of text give --source and --target"):
        run(sides[0])
    assert run("--text", sides[0], "--test-source", sides[1]).exit_code == 0


def test_columns_are_named_as_in_a_recipe(sides: tuple[Path, Path], tmp_path: Path) -> None:
    rows = zip(*(path.read_text().splitlines() for path in sides), strict=True)
    tsv, test = tmp_path / "pairs.tsv", tmp_path / "test.tsv"
    lines = [f"{number}\t{b}\t{a}\n" for number, (a, b) in enumerate(rows)]
    tsv.write_text("".join(lines))
    test.write_text("".join(lines[:20]))
    places = ("--source-column", 2, "--target-column", 1)
    result = run("--tsv", tsv, *places)
    assert (result.exit_code, "Nothing found." in result.stdout) == (0, True)
    leaked = json.loads(run("--tsv", tsv, *places, "--test-tsv", test, "--json").stdout)
    assert {each["kind"]: each["count"] for each in leaked["findings"]}["test_pair_in_train"] == 20
    assert run("--text", tsv, "--column", 1).exit_code == 0
    for wrong, said in (
        (("--source", sides[0], "--target", sides[1], "--source-column", 1), "name it with --tsv"),
        (("--tsv", tsv, "--column", 1), "--column goes with --text"),
        (("--source", sides[0], "--target", sides[1], "--test-tsv", test), "--test-tsv goes with --tsv"),
        (("--tsv", tsv, "--test-tsv", test, "--test-source", test), "not as both"),
        (("--tsv", tsv, "--source-column", 7), "expected 8 tab-separated columns in every line"),
    ):
        with pytest.raises(InputError, match=said):
            run(*wrong)


@pytest.fixture
def rows(sides: tuple[Path, Path]) -> list[tuple[str, str]]:
    return [*zip(*(path.read_text().splitlines() for path in sides), strict=True)]


@pytest.fixture
def inputs(sides: tuple[Path, Path], rows: list[tuple[str, str]], tmp_path: Path) -> Path:
    """The same pairs in every kind of file that `transduce train` takes, with the first 20 as a test set."""
    (tmp_path / "x.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    (tmp_path / "two.csv").write_text("en,sw\n" + "".join(f"{a},{b}\n" for a, b in rows))
    (tmp_path / "three.csv").write_text("id,en,sw\n" + "".join(f"{n},{a},{b}\n" for n, (a, b) in enumerate(rows)))
    objects = (json.dumps({"source": a, "target": b}) for a, b in rows)
    (tmp_path / "x.jsonl").write_text("".join(f"{each}\n" for each in objects))
    for stem, some in (("train", rows), ("test", rows[:20]), ("test_new", [("a11 a12", "b11 b12")] * 3)):
        (tmp_path / "folder").mkdir(exist_ok=True)
        for side, language in enumerate(("en", "sw")):
            (tmp_path / "folder" / f"{stem}.{language}").write_text("".join(f"{pair[side]}\n" for pair in some))
    (tmp_path / "r.toml").write_text(
        f'[data]\nroot = "{tmp_path}"\ntrain = {{ tsv = "x.tsv" }}\n'
        '[data.test.first]\nsource = "folder/test.en"\ntarget = "folder/test.sw"\n'
        '[data.test.new]\nsource = "folder/test_new.en"\ntarget = "folder/test_new.sw"\n'
    )
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.toml").write_text((tmp_path / "r.toml").read_text())
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("--source", "x.tsv"),
        ("two.csv",),
        ("--source", "two.csv"),
        ("three.csv", "--source-column", "en", "--target-column", "sw"),
        ("--source", "three.csv", "--source-column", "1", "--target-column", "2"),
        ("x.jsonl",),
    ],
)
def test_what_trains_is_examined(inputs: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(inputs)
    found = json.loads(run(*arguments, "--json").stdout)
    assert (found["lines"], found["findings"]) == ({"source": 300, "target": 300}, [])


@pytest.mark.parametrize("examinee", ["folder", "r.toml", "run"])
def test_test_sets_that_are_known_are_looked_for(inputs: Path, examinee: str) -> None:
    done = run(inputs / examinee, "--json")
    found = json.loads(done.stdout)
    name = "test" if examinee == "folder" else "first"
    leaked = {(each["kind"], each["side"]): each["count"] for each in found["findings"]}
    assert leaked[("test_pair_in_train", f"test {name} source")] == 20
    assert [kind for kind, _ in leaked if "train" in kind] == ["test_pair_in_train", "test_source_in_train"]
    assert (done.exit_code, found["would_drop"]["in_test_set"]) == (1, 20)
    new = "test_new" if examinee == "folder" else "new"
    assert found["lines"][f"test {new} target"] == 3


@pytest.mark.parametrize("corpus", ["x.tsv", "two.csv", "x.jsonl", "folder"])
@pytest.mark.parametrize("test", ["x.tsv", "two.csv", "x.jsonl"])
def test_a_test_set_in_one_file_is_read_as_pairs(inputs: Path, corpus: str, test: str) -> None:
    done = run("--source", inputs / corpus, "--test-source", inputs / test, "--json")
    found = json.loads(done.stdout)
    leaked = {each["side"]: each["count"] for each in found["findings"] if each["kind"] == "test_pair_in_train"}
    assert (leaked["test source"], done.exit_code, found["would_drop"]["in_test_set"]) == (300, 1, 300)


def test_a_test_set_has_the_columns_and_the_separator_of_the_corpus(inputs: Path) -> None:
    columns = ("--source-column", "en", "--target-column", "sw")
    done = run("--source", inputs / "three.csv", *columns, "--test-source", inputs / "three.csv", "--json")
    assert json.loads(done.stdout)["would_drop"]["in_test_set"] == 300
    bars = inputs / "bars.txt"
    bars.write_text((inputs / "x.tsv").read_text().replace("\t", " ; "))
    done = run("--source", bars, "--separator", " ; ", "--test-source", bars, "--json")
    assert json.loads(done.stdout)["would_drop"]["in_test_set"] == 300


def test_the_validation_is_looked_for_in_the_training_data_too(inputs: Path) -> None:
    recipe = inputs / "validated.toml"
    recipe.write_text(f'[data]\nroot = "{inputs}"\ntrain = {{ tsv = "x.tsv" }}\nvalidation = {{ tsv = "x.tsv" }}\n')
    (inputs / "folder" / "test.en").rename(inputs / "folder" / "dev.en")
    (inputs / "folder" / "test.sw").rename(inputs / "folder" / "dev.sw")
    for examinee, count in ((recipe, 300), (inputs / "folder", 20)):
        found = json.loads(run(examinee, "--json").stdout)
        leaked = {each["side"]: each["count"] for each in found["findings"] if each["kind"] == "test_pair_in_train"}
        assert leaked == {"validation source": count}


def test_a_test_set_of_a_text_has_its_column(inputs: Path) -> None:
    done = run("--text", inputs / "x.tsv", "--column", "1", "--test-source", inputs / "x.tsv", "--json")
    assert [each["count"] for each in json.loads(done.stdout)["findings"]] == [300]


def test_a_test_set_that_cannot_be_compared_is_no_all_clear(inputs: Path) -> None:
    done = run("--text", inputs / "folder" / "train.en", "--test-source", inputs / "x.tsv")
    assert "Nothing found." not in done.stdout
    assert "Not looked for: lines of" in done.stdout


def test_of_several_files_each_is_examined(inputs: Path) -> None:
    recipe = inputs / "two.toml"
    text = (inputs / "r.toml").read_text().replace("{ tsv", '[{ source = "train.a", target = "train.b" }, { tsv')
    recipe.write_text(text.replace('"x.tsv" }', '"x.tsv" }]'))
    assert [each["lines"]["source"] for each in json.loads(run(recipe, "--json").stdout)] == [300, 300]
    with pytest.raises(InputError, match="are for one corpus"):
        run(recipe, "--clean-source", inputs / "c.a", "--clean-target", inputs / "c.b")
    cleaned = run(inputs / "r.toml", "--clean-source", inputs / "c.a", "--clean-target", inputs / "c.b", "--json")
    assert json.loads(cleaned.stdout)["cleaned"]["written"] == 280


def test_what_is_neither_pairs_nor_a_recipe_of_pairs(sides: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "empty.tsv").touch()
    (tmp_path / "nothing").mkdir()
    for wrong, said in (
        (("--source", sides[0]), r"(?s)target is missing.*single text: --text"),
        ((tmp_path / "empty.tsv",), r"empty\.tsv.*: the file is empty"),
        ((tmp_path / "nothing",), "holds neither a recipe.toml nor files such as train.en"),
        ((tmp_path / "gone.csv",), "gone.csv: no such file"),
    ):
        with pytest.raises(InputError, match=said):
            run(*wrong)


def test_all_wrong_arguments_at_once() -> None:
    with pytest.raises(InputError) as caught:
        run("--text", "a", "--source", "b", "--clean-source", "c", "--test-target", "d")
    assert len(caught.value.problems) == 5
    with pytest.raises(InputError, match="a: no such file"):
        run("--source", "a")
    with pytest.raises(InputError, match="--target needs --source"):
        run("--target", "a")
    with pytest.raises(InputError, match="Give one of"):
        run()


def test_help_imports_nothing_heavy() -> None:
    code = "import sys, transduce.cli.doctor; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "torch", "pyarrow"} & set(loaded)
    assert "Exit code 0" in " ".join(run("--help").stdout.split())


def test_recordings_of_a_recipe_are_examined(tmp_path: Path) -> None:
    for name in ("a", "b"):
        soundfile.write(tmp_path / f"{name}.wav", [0.3, -0.3] * 2000, 8000, subtype="PCM_16")
    (tmp_path / "train.tsv").write_text("a.wav\tyes\n")
    (tmp_path / "test.tsv").write_text("b.wav\tno\ngone.wav\tno\n")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f"""
[task]
kind = "speech_recognition"
[data]
root = "{tmp_path}"
rate = 8000
train = [{{ file = "train.tsv" }}]
test = {{ a = {{ file = "test.tsv" }} }}
[model]
kind = "rnn"
""")
    result = run(recipe, "--json")
    assert result.exit_code == 1
    found = {(each["kind"], each["side"]): each for each in json.loads(result.stdout)["findings"]}
    assert found["leak", "test a"]["lines"] == [1] and found["unreadable", "test a"]["lines"] == [2]
    assert "train: 1 recording, 0:00 minutes" in found["durations", "train"]["sentence"]
    shown = run(recipe)
    assert shown.exit_code == 1 and "test.tsv, 2 recordings" in shown.stdout.replace("\n", "")


def test_a_recipe_stands_alone_and_is_of_pairs_or_speech(sides: tuple[Path, Path]) -> None:
    recipe = Path(__file__).parents[2] / "recipes" / "poems-tang.toml"
    with pytest.raises(InputError, match="expected a recipe of translation, classification or speech_recognition"):
        run(recipe)
    with pytest.raises(InputError, match="give no other files beside it"):
        run(recipe, "--source", sides[0])
