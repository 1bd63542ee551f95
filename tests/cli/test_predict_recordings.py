"""Recordings by their tables, in `transduce predict` and `transduce evaluate`; doubtful outputs are told."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from forked import transduce as command
from random_models import listener, model_file
from transduce.core.model_file import save_model_file
from transduce.pipeline.pipeline import Pipeline, load

RATE = 8000
TEXTS = ["零一", "二", "三四五"]


@pytest.fixture(scope="module")
def ears(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ears") / "ears.safetensors"
    save_model_file(path, model_file(listener("ctc", search={"max_length_factor": 3.0})))
    return path


@pytest.fixture(scope="module")
def model(ears: Path) -> Pipeline:
    return load(ears)


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, random_ = tmp_path_factory.mktemp("sounds"), np.random.default_rng(3)
    (folder / "clips").mkdir()
    for number in range(3):
        wave = 0.1 * random_.normal(size=RATE // (2 + number))
        soundfile.write(folder / "clips" / f"{number}.wav", wave, RATE, subtype="PCM_16")
    rows = [(f"{number}.wav", text, "ann") for number, text in enumerate(TEXTS)]
    table = [("path", "text", "speaker"), *rows]
    for name, between in (("a.tsv", "\t"), ("a.csv", ",")):
        (folder / name).write_text("".join(f"{between.join(row)}\n" for row in table), encoding="utf-8")
    objects = [dict(zip(table[0], row, strict=True)) for row in rows]
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in objects), encoding="utf-8")
    (folder / "bare.csv").write_text("path\n" + "".join(f"{name}\n" for name, _, _ in rows), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "bare.csv"])
def test_the_sounds_of_a_table_are_heard_from_any_folder(
    ears: Path, model: Pipeline, sounds: Path, tmp_path: Path, name: str
) -> None:
    names = [str(sounds / "clips" / f"{number}.wav") for number in range(3)]
    expected = model.predict(names, word_times=True)
    found = command(tmp_path, "predict", ears, "--source", sounds / name, "--json")
    assert found.code == 0, found.shown
    read = [json.loads(line) for line in found.out.splitlines()]
    assert [each["source"] for each in read] == names
    assert [each["text"] for each in read] == [each.text for each in expected]
    assert [each["words"] for each in read] == [[word._asdict() for word in each.spoken_words] for each in expected]


def test_a_folder_is_heard_too(
    ears: Path, model: Pipeline, sounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, text in enumerate(TEXTS):
        (tmp_path / "mine").mkdir(exist_ok=True)
        (tmp_path / "mine" / f"{number}.wav").write_bytes((sounds / "clips" / f"{number}.wav").read_bytes())
        (tmp_path / "mine" / f"{number}.txt").write_text(text, encoding="utf-8")
    found = command(tmp_path, "predict", ears, "--source", tmp_path / "mine")
    names = [str(tmp_path / "mine" / f"{number}.wav") for number in range(3)]
    assert found.out.splitlines() == [each.text.replace("\n", " ") for each in model.predict(names)]
    monkeypatch.chdir(tmp_path)
    read = model.task.read_inputs(Path("mine"))
    assert read is not None and read.texts == names and read.references == [[each] for each in TEXTS]


@pytest.mark.parametrize("more", [(), ("--source-column", "path", "--target-column", "text")])
def test_outputs_are_compared_with_the_texts_of_a_table(
    ears: Path, model: Pipeline, sounds: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    found = command(tmp_path, "evaluate", ears, "--source", sounds / "a.csv", "--metric", "cer", "--json", *more)
    assert found.code == 0, found.shown
    outputs = [each.text for each in model.predict([str(sounds / "clips" / f"{n}.wav") for n in range(3)])]
    errors, total = sum(map(distance, outputs, TEXTS)), sum(map(len, TEXTS))
    assert json.loads(found.out)["scores"]["cer"]["value"] == pytest.approx(100 * errors / total)


def distance(one: str, other: str) -> int:
    """Of Levenshtein, by its definition."""
    if not one or not other:
        return len(one) + len(other)
    rows = [[*range(len(other) + 1)]]
    for place, letter in enumerate(one, 1):
        row = [place]
        for column, wanted in enumerate(other, 1):
            row.append(min(rows[-1][column] + 1, row[-1] + 1, rows[-1][column - 1] + (letter != wanted)))
        rows.append(row)
    return rows[-1][-1]


def test_a_sound_that_is_not_there_is_named_with_its_line(ears: Path, sounds: Path, tmp_path: Path) -> None:
    table = sounds / "gone.tsv"
    table.write_text((sounds / "a.tsv").read_text(encoding="utf-8") + "none.wav\t一\tbob\n", encoding="utf-8")
    (tmp_path / "gone.csv").write_text("path,text\na.wav,b\n", encoding="utf-8")
    for verb in ("predict", "evaluate"):
        found = command(tmp_path, verb, ears, "--source", table)
        assert found.code == 2 and f"1 of 4 sound files are not there (line 5: {sounds}/clips/none.wav)" in found.shown
        alone = command(tmp_path, verb, ears, "--source", tmp_path / "gone.csv")
        assert (
            alone.code == 2 and f"gone.csv: 1 of 1 sound files are not there (line 2: {tmp_path}/a.wav)" in alone.shown
        )


def test_a_table_without_texts_has_nothing_to_compare_with(ears: Path, sounds: Path, tmp_path: Path) -> None:
    found = command(tmp_path, "evaluate", ears, "--source", sounds / "bare.csv")
    assert found.code == 2 and "no column of texts" in found.shown
    other = command(tmp_path, "predict", ears, "--source", sounds / "a.csv", "--source-column", "sound")
    assert other.code == 2 and "sound" in other.shown


def test_outputs_without_an_end_are_counted_in_one_line(ears: Path, sounds: Path, tmp_path: Path) -> None:
    asked = ("predict", ears, "--source", sounds / "a.csv", "search.max_length_factor=0", "search.max_length_offset=1")
    found = command(tmp_path, *asked, "--json")
    read = [json.loads(line) for line in found.out.splitlines()]
    cut = [each for each in read if not each["ended"]]
    assert cut and all("cut off at its limit" in each["warnings"][0] for each in cut)
    line = f"of 3 recordings, {len(cut)} reached the limit of an output without an end: look at their warnings"
    assert found.err.count(line) == 1, found.shown
