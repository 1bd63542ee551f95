"""The recipes of real speech: the official splits, whole, with the features they promise. Skipped without the data."""

from pathlib import Path

import numpy as np
import pytest

from transduce.data.columns import Columns
from transduce.recipe.recipe import load_recipe
from transduce.tasks.protocols import TaskData
from transduce.tasks.speech_recognition import SpeechRecognition

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"


def opened(name: str, folder: str, cache: Path) -> tuple[TaskData, Columns]:
    if not (DATA / folder).is_dir():
        pytest.skip(f"no {DATA / folder}")
    recipe = load_recipe(ROOT / "recipes" / f"{name}.toml", [f"data.root={DATA / folder}", "data.speeds=[]"])
    columns = SpeechRecognition.learn_columns(recipe.tokenizer, recipe.data)
    task = SpeechRecognition(recipe.task, recipe.data, columns)
    return task.open(cache, lambda line: None), columns


def test_fsdd_is_the_official_split(tmp_path: Path) -> None:
    data, columns = opened("fsdd", "fsdd", tmp_path)
    [(train, _)] = data.corpora
    assert data.validation is not None
    assert (len(train), len(data.validation.store), len(data.tests["fsdd"].store)) == (2400, 300, 300)
    assert {text for _, text in data.tests["fsdd"].texts} == set("零一二三四五六七八九")
    assert columns["source"].spec.size == 40 and len(columns["target"].encode(["零一二三四五六七八九"])[0]) == 10
    lengths = train.lengths("source", 0)
    assert lengths.min() > 10 and lengths.max() < 250


def test_strings_of_digits_share_no_recording_between_sets(tmp_path: Path) -> None:
    data, _ = opened("fsdd-strings", "fsdd", tmp_path)
    assert data.validation is not None
    held_out = {part for name, _ in data.validation.texts for part in name.split(" + ")}
    tested = {part for name, _ in data.tests["fsdd"].texts for part in name.split(" + ")}
    assert not held_out & tested
    assert {len(text) for _, text in data.tests["fsdd"].texts} == set(range(3, 9))
    assert [len(store) for store, _ in data.corpora] == [4000]


def test_an4_is_the_official_split(tmp_path: Path) -> None:
    data, columns = opened("an4", "an4_mfcc", tmp_path)
    [(train, _)] = data.corpora
    assert data.validation is not None
    assert len(train) + len(data.validation.store) == 948 and len(data.tests["an4"].store) == 130
    assert sum(len(text.split()) for _, text in data.tests["an4"].texts) == 773
    assert columns["source"].spec.size == 13
    [row] = train.read("source", np.array([0]))
    assert np.allclose(row.mean(0), 0, atol=1e-4) and np.allclose(row.std(0), 1, atol=1e-3)


def test_syllables_of_the_test_set_are_in_no_other_tone_in_training(tmp_path: Path) -> None:
    data, _ = opened("mandarin-syllables", "mandarin_syllables", tmp_path)
    [(train, _)] = data.corpora
    assert data.validation is not None
    assert (len(train), len(data.validation.store), len(data.tests["syllables"].store)) == (1384, 154, 169)
    held_out, tested = ({text[:-1] for _, text in each.texts} for each in (data.validation, data.tests["syllables"]))
    assert not held_out & tested and {text[-1] for _, text in data.tests["syllables"].texts} == set("12345")


def test_hsk_words_are_the_official_split(tmp_path: Path) -> None:
    data, columns = opened("hsk-words", "mandarin_hsk_words", tmp_path)
    [(train, _)] = data.corpora
    assert data.validation is not None
    sizes = len(train), len(data.validation.store), len(data.tests["hsk"].store)
    assert sizes == (6936, 792, 868) and columns["source"].spec.size == 40
