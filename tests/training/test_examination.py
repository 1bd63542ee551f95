"""What a training is refused, what it is warned of, and what it is spared the second time."""

import json
import random
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import forked
from transduce.core.errors import InputError
from transduce.doctor import writing
from transduce.recipe.recipe import Recipe, load_recipe
from transduce.training import examination
from transduce.training.examination import examine_data

Sides = tuple[list[str], list[str]]


@pytest.fixture
def recipe(tmp_path: Path) -> Callable[..., Recipe]:
    """A recipe that trains on these sides."""

    def made(source: list[str], target: list[str], *overrides: str) -> Recipe:
        for name, lines in (("a", source), ("b", target)):
            (tmp_path / f"train.{name}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        file = tmp_path / "recipe.toml"
        file.write_text(f'[data]\nroot = "{tmp_path}"\ntrain = {{ source = "train.a", target = "train.b" }}\n')
        return load_recipe(file, overrides)

    return made


def corpus(lines: int, words: int = 300) -> Sides:
    """Sentences and what stands for each of their words, in reverse order."""
    dice = random.Random(lines)
    sentences = [[dice.randrange(words) for _ in range(dice.randint(4, 9))] for _ in range(lines)]
    return [" ".join(f"a{word}" for word in each) for each in sentences], [
        " ".join(f"b{word}" for word in reversed(each)) for each in sentences
    ]


def told(recipe: Recipe, cache: Path, force: bool = False) -> list[str]:
    lines: list[str] = []
    examine_data(recipe, cache, lines.append, force)
    return lines


def refused(recipe: Recipe, cache: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        told(recipe, cache)
    return caught.value.problems


def slipped(lines: int, at: int) -> Sides:
    source, target = corpus(lines + 1)
    return source[:-1], target[:at] + target[at + 1 :]


def place(sentence: str) -> int:
    """The source line from which on the sides are shifted by -1, as it was told."""
    found = re.search(r"the sides are shifted by -1: source line ([\d,]+) belongs to target line", sentence)
    assert found, sentence
    return int(found[1].replace(",", ""))


def test_a_sound_corpus_is_passed_in_silence(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    assert told(recipe(*corpus(400)), tmp_path / "cache") == []


def test_sides_that_slipped_are_refused_with_the_line(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    wrong = recipe(*slipped(400, 250))
    found, advice = refused(wrong, tmp_path / "cache")
    assert str(tmp_path / "train.a") in found
    assert place(found) == pytest.approx(252, abs=3)
    assert "--force" in advice
    assert told(wrong, tmp_path / "cache", force=True) == [found]


def test_other_certain_faults_are_refused(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    source, target = corpus(400)
    assert "with the same text on both sides" in refused(recipe(source, source), tmp_path / "cache")[0]
    assert "with one side empty" in refused(recipe(source, ["", ""] * 150 + target[300:]), tmp_path / "cache")[0]
    assert "400 lines, the target 399 lines" in refused(recipe(source, target[:-1]), tmp_path / "cache")[0]
    made = recipe(source, target)
    (tmp_path / "train.b").write_bytes(b"\xff\n" + "".join(f"{line}\n" for line in target[1:]).encode())
    assert "1 line of the target not in UTF-8" in refused(made, tmp_path / "cache")[0]


def test_missing_and_empty_files_are_all_named(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    held_out = [
        'data.validation={source="train.a", target="gone"}',
        'data.test.one={source="train.a", target="train.c"}',
    ]
    (tmp_path / "train.c").touch()
    problems = refused(recipe(corpus(60)[0], [], *held_out), tmp_path / "cache")
    assert [problem.removeprefix(f"{tmp_path}/") for problem in problems] == [
        "train.b: the file is empty; expected lines of text.",
        "gone: no such file.",
        "train.c: the file is empty; expected lines of text.",
    ]
    language_model = ["task.kind=language_modelling", "model.kind=transformer_decoder", 'data.train={text="train.c"}']
    assert "the file is empty" in refused(recipe([], [], *language_model), tmp_path / "cache")[0]


def test_exchanged_sides_and_a_constant_target_are_refused(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    source, target = corpus(400)
    halves = [*source[:200], *target[200:]], [*target[:200], *source[200:]]
    [problem, advice] = refused(recipe(*halves), tmp_path / "cache")
    assert "200 pairs with exchanged sides" in problem
    assert "--force trains anyway" in advice
    assert "400 pairs with one target" in refused(recipe(source, ["OK!"] * 400), tmp_path / "cache")[0]


def test_what_is_not_certain_is_told_in_a_line_each(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    source, target = corpus(400)
    target[3], target[9] = "", "all of this stands on both sides"
    source[9] = target[9]
    lines = told(recipe(source, target), tmp_path / "cache")
    assert [line.rpartition(": ")[2] for line in lines] == [
        "1 pair with one side empty.",
        "1 pair copied, not translated.",
    ]


def test_the_same_files_are_examined_once(
    recipe: Callable[..., Recipe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = slipped(400, 250)
    first = refused(recipe(source, target), tmp_path / "cache")
    with monkeypatch.context() as patch:
        patch.setattr(examination, "examine", lambda *sides: pytest.fail("it was examined again"))
        assert refused(recipe(source, target), tmp_path / "cache") == first
    assert told(recipe(*corpus(401)), tmp_path / "cache") == []  # other files under the same names


MIXED = [
    *[f"这是第{n}个句子，我们还没有读过。" for n in range(20)],
    *[f"這是第{n}個句子，我們還沒有讀過。" for n in range(5)],
]


def test_mixed_chinese_is_told_with_the_command_that_mends_it(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    pytest.importorskip("opencc")
    source = [f"This is sentence number {n}, which we have not read." for n in (*range(20), *range(5))]
    [said] = told(recipe(source, MIXED), tmp_path / "cache")
    assert "5 lines of the target in traditional characters, where 20 are in simplified ones" in said
    assert "opencc -c t2s -i FILE -o NEW" in said


def test_what_needs_a_library_is_told_until_it_is_there(
    recipe: Callable[..., Recipe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it would be said where OpenCC is not installed; later, what it finds."""
    pytest.importorskip("opencc")
    source = [f"This is sentence number {n}, which we have not read." for n in (*range(20), *range(5))]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "opencc", None)
        writing.extras.cache_clear()
        [said] = told(recipe(source, MIXED), tmp_path / "cache")
    assert "not looked for: mixed simplified and traditional Chinese, which needs OpenCC" in said
    assert "[doctor]" in said
    writing.extras.cache_clear()
    [said] = told(recipe(source, MIXED), tmp_path / "cache")
    assert "5 lines of the target in traditional characters" in said


def test_columns_are_examined_as_the_recipe_says(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    rows = "".join(f"x\t{b}\t{a}\n" for a, b in zip(*slipped(400, 250), strict=True))
    (tmp_path / "pairs.tsv").write_text(rows)
    columns = 'data.train={tsv="pairs.tsv", source_column=2, target_column=1}'
    assert place(refused(recipe(["x"], ["x"], columns), tmp_path / "cache")[0]) == pytest.approx(252, abs=3)


def test_a_large_corpus_is_sampled_and_its_slip_still_placed(
    recipe: Callable[..., Recipe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "SAMPLED", 1000)
    monkeypatch.setattr(examination, "STRETCH", 100)
    source, target = corpus(3000)
    assert told(recipe(source, target), tmp_path / "cache") == []
    source, target = slipped(3000, 2000)
    assert place(refused(recipe(source, target), tmp_path / "cache")[0]) == pytest.approx(2002, abs=3)
    assert told(recipe(source, ["", *corpus(3001)[1][1:-1]]), tmp_path / "cache") == [
        f"{tmp_path / 'train.a'} and {tmp_path / 'train.b'}: of 1,000 of the 3,000 pairs: 1 pair with one side empty."
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"source": "multi30k/raw/train.en.gz", "target": "multi30k/raw/train.de.gz"},
        {"source": "small_parallel_enja/train.en.gz", "target": "small_parallel_enja/train.ja.gz"},
        {"tsv": "tatoeba_eng_cmn/*.gz"},
        {"tsv": "cogs/train.tsv.gz"},
        {"tsv": "g2p_sigmorphon2020/*_train.tsv.gz"},
        {"tsv": "inflection_conll2017/*-train-high.tsv.gz"},
    ],
    ids=lambda files: next(iter(files.values())).split("/")[0],
)
@pytest.mark.slow
def test_real_data_of_many_tasks_is_not_refused(data_root: Path, tmp_path: Path, files: dict[str, str]) -> None:
    lists = [[str(path) for path in sorted(data_root.glob(pattern))] for pattern in files.values()]
    assert lists[0], files
    entries = [dict(zip(files, names, strict=True)) for names in zip(*lists, strict=True)]
    written = ", ".join("{" + ", ".join(f'{key} = "{name}"' for key, name in entry.items()) + "}" for entry in entries)
    (tmp_path / "recipe.toml").write_text(f"[data]\ntrain = [{written}]\n")
    told(load_recipe(tmp_path / "recipe.toml"), tmp_path / "cache")


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_train_refuses_before_it_writes_and_goes_on_with_force(
    tiny_recipe: Path, tiny_corpus: Path, tmp_path: Path
) -> None:
    folder, run = shutil.copytree(tiny_corpus, tmp_path / "slipped"), tmp_path / "run"
    lines = (folder / "train.words").read_text().splitlines(keepends=True)
    (folder / "train.words").write_text("".join([*lines[1:], lines[0]]))
    wrong = (tiny_recipe, f"data.root={folder}", "training.updates=2", "--run", run)
    done = forked.transduce(tmp_path, "train", *wrong)
    assert (done.code, "Traceback" in done.shown, run.exists()) == (2, False, False)
    assert "the sides are shifted by" in done.err
    shown = forked.transduce(tmp_path, "train", *wrong, "--dry-run")
    assert (shown.code, "shifted by" in shown.out) == (0, True)
    forced = forked.transduce(tmp_path, "train", *wrong, "--force")
    assert (forced.code, "shifted by" in forced.out) == (0, True), forced.shown
    assert (run / "model.safetensors").exists()


def test_texts_of_several_lines_are_examined_whole(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    """JSON strings may have line breaks."""
    source, target = corpus(300)
    source = [text.replace(" ", "\n", 2) for text in source]
    rows = [{"source": one, "target": other} for one, other in zip(source, target, strict=True)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = ['data.train=[{ jsonl = "train.jsonl" }]']
    assert told(recipe(source[:1], target[:1], *files), tmp_path / "cache") == []
    for row in rows[7:10]:
        row["target"] = "это по-русски"
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = told(recipe(source[:1], target[:1], *files), tmp_path / "cache")
    assert any("3 lines of the target" in line for line in lines), lines


@pytest.fixture
def held_out(recipe: Callable[..., Recipe], tmp_path: Path) -> Callable[[list[str], list[str]], Recipe]:
    """A recipe of English and Swahili by their letters, whose validation and test have these sides."""

    def made(source: list[str], target: list[str]) -> Recipe:
        for name, lines in (("a", source), ("b", target)):
            (tmp_path / f"held.{name}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        files = "{source='held.a', target='held.b'}"
        return recipe(*of_letters(400), f"data.validation={files}", f"data.test={{first={files}}}")

    return made


def of_letters(lines: int, seed: int = 1, sides: tuple[str, str] = ("etaoinshrdluwy", "aiuknwemblohsy")) -> Sides:
    """Words of the letters of each side, the first ones most often."""
    drawn = random.Random(seed)

    def text(letters: str) -> str:
        weights = [1 / (place + 2) for place in range(len(letters))]
        return " ".join("".join(drawn.choices(letters, weights, k=drawn.randint(2, 8))) for _ in range(6))

    return tuple([text(letters) for _ in range(lines)] for letters in sides)  # type: ignore[return-value]


def test_exchanged_sides_of_held_out_files_are_refused(
    held_out: Callable[[list[str], list[str]], Recipe], tmp_path: Path
) -> None:
    source, target = of_letters(50, seed=2)
    assert not told(held_out(source, target), tmp_path)
    exchanged = held_out(target, source)
    *problems, advice = refused(exchanged, tmp_path)
    assert [problem.partition(":")[0] for problem in problems] == ["data.validation", "data.test.first"]
    assert "its sources look like the targets of the training data" in problems[0]
    assert "--force" in advice
    assert told(exchanged, tmp_path, force=True) == problems  # noted in the cache


@pytest.mark.parametrize(
    ("letters", "certain", "wanted"),
    [
        ("абвгдежзиклмно", True, "100% of the characters of its targets are in no target of the training data"),
        ("aàiuknwemblohs", False, "of the characters of its targets are in no target of the training data"),
        ("yshloblmewnkuia", False, "its targets have other characters than those of the training data"),
    ],
)
def test_held_out_files_in_another_language_are_told(
    held_out: Callable[[list[str], list[str]], Recipe], tmp_path: Path, letters: str, certain: bool, wanted: str
) -> None:
    sides = of_letters(200, seed=3, sides=("etaoinshrdluwy", letters))
    found = refused(held_out(*sides), tmp_path) if certain else told(held_out(*sides), tmp_path)
    assert wanted in found[0]


def test_few_held_out_texts_are_not_judged(held_out: Callable[[list[str], list[str]], Recipe], tmp_path: Path) -> None:
    source, target = of_letters(5, seed=2)
    assert not told(held_out(target, source), tmp_path)


@pytest.mark.parametrize("damaged", ["{}", "[]", "null", '{"certain": 1, "doubtful": []}', "{", "[" * 100_000])
def test_a_note_of_the_cache_that_says_nothing_is_made_anew(
    recipe: Callable[..., Recipe], tmp_path: Path, damaged: str
) -> None:
    source, target = corpus(60)
    made, cache = recipe(source, target, 'data.validation={ source = "train.a", target = "train.b" }'), tmp_path / "c"
    first = told(made, cache)
    notes = sorted(cache.glob("*.json"))
    assert len(notes) == 3  # of pairs, of the sides of held-out files, and of copies
    before = [json.loads(note.read_text()) for note in notes]
    for note in notes:
        note.write_text(damaged)
    assert told(made, cache) == first
    assert [json.loads(note.read_text()) for note in notes] == before
