"""The recipes of real speech: the official splits, whole, with the features they promise. Skipped without the data.

Features of sound take long to compute: where a recipe has sound, each set's recordings are listed, and the features of
one small set are looked at.
"""

from pathlib import Path

import numpy as np
import pytest

from transduce.data.columns import Columns
from transduce.data.speech.recordings import read_recordings
from transduce.data.store import Store
from transduce.recipe.recipe import load_recipe
from transduce.tasks.protocols import TaskData
from transduce.tasks.speech_recognition import SpeechData, SpeechRecognition

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"


def prepared(name: str, folder: str) -> tuple[SpeechRecognition, Columns]:
    if not (DATA / folder).is_dir():
        pytest.skip(f"no {DATA / folder}")
    recipe = load_recipe(ROOT / "recipes" / f"{name}.toml", [f"data.root={DATA / folder}", "data.speeds=[]"])
    assert isinstance(recipe.data, SpeechData)
    columns = SpeechRecognition.learn_columns(recipe.tokenizer, recipe.data)
    return SpeechRecognition(recipe.task, recipe.data, columns), columns  # type: ignore[arg-type]


def opened(name: str, folder: str, cache: Path) -> tuple[TaskData, Columns]:
    task, columns = prepared(name, folder)
    return task.open(cache, lambda line: None), columns


def listed(task: SpeechRecognition) -> dict[str, list[tuple[str, str]]]:
    """(recording, text) of each set, training among them; nothing is heard."""
    [train] = task.data.train
    files = {"train": train, **task.held_out}
    return {
        name: [(said, text) for _, said, text in read_recordings(file, task.root, task.data.words)]
        for name, file in files.items()
    }


def features(task: SpeechRecognition, of: str, cache: Path) -> Store:
    """Of one held-out set, opened as if it were what is trained on."""
    alone = task.data.model_copy(update={"train": (task.held_out[of],), "validation": None, "test": {}})
    [(store, _)] = SpeechRecognition(task.config, alone, task.columns).open(cache, lambda line: None).corpora
    return store


def test_fsdd_is_the_official_split(tmp_path: Path) -> None:
    task, columns = prepared("fsdd", "fsdd")
    sets = listed(task)
    assert {name: len(pairs) for name, pairs in sets.items()} == {"train": 2400, "validation": 300, "fsdd": 300}
    assert {text for _, text in sets["fsdd"]} == set("零一二三四五六七八九")
    assert columns["source"].spec.size == 40 and len(columns["target"].encode(["零一二三四五六七八九"])[0]) == 10
    store = features(task, "fsdd", tmp_path)
    lengths = store.lengths("source", 0)
    assert len(store) == 300 and lengths.min() > 10 and lengths.max() < 250


@pytest.mark.slow
def test_all_of_fsdd_has_features(tmp_path: Path) -> None:
    data, _ = opened("fsdd", "fsdd", tmp_path)
    [(train, _)] = data.corpora
    assert data.validation is not None
    assert (len(train), len(data.validation.store), len(data.tests["fsdd"].store)) == (2400, 300, 300)
    lengths = train.lengths("source", 0)
    assert lengths.min() > 10 and lengths.max() < 250


def test_strings_of_digits_share_no_recording_between_sets() -> None:
    task, _ = prepared("fsdd-strings", "fsdd")
    sets = listed(task)
    trained, held_out, tested = (
        {part for name, _ in sets[which] for part in name.split(" + ")} for which in ("train", "validation", "fsdd")
    )
    assert not held_out & tested and not trained & (held_out | tested)
    assert {len(text) for _, text in sets["fsdd"]} == set(range(3, 9))
    assert len(sets["train"]) == 4000


def test_the_features_of_a_string_of_digits_are_those_of_its_digits_in_a_row(tmp_path: Path) -> None:
    task, _ = prepared("fsdd-strings", "fsdd")
    few = task.held_out["fsdd"].strings.model_copy(update={"count": 20})
    task.data.test["fsdd"] = task.held_out["fsdd"].model_copy(update={"strings": few})
    pairs, store = listed(task)["fsdd"], features(task, "fsdd", tmp_path)
    assert len(pairs) == len(store) == 20
    samples = [sum(len(task.frames.sound(part)) for part in name.split(" + ")) for name, _ in pairs]
    assert store.lengths("source", 0).tolist() == [1 + (each - 200) // 80 for each in samples]  # 25 ms, every 10 ms


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
    task, _ = prepared("mandarin-syllables", "mandarin_syllables")
    sets = listed(task)
    assert {name: len(pairs) for name, pairs in sets.items()} == {"train": 1384, "validation": 154, "syllables": 169}
    trained, held_out, tested = ({text[:-1] for _, text in pairs} for pairs in sets.values())
    assert not held_out & tested and not trained & (held_out | tested)
    assert {text[-1] for _, text in sets["syllables"]} == set("12345")
    assert len(features(task, "syllables", tmp_path)) == 169


def test_hsk_words_are_the_official_split(tmp_path: Path) -> None:
    data, columns = opened("hsk-words", "mandarin_hsk_words", tmp_path)
    [(train, _)] = data.corpora
    assert data.validation is not None
    sizes = len(train), len(data.validation.store), len(data.tests["hsk"].store)
    assert sizes == (6936, 792, 868) and columns["source"].spec.size == 40
