"""Recordings with texts, as other people lay them out: how they are read, what is decided, and a training."""

import json
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from rich.console import Console

from forked import transduce as command
from transduce.core.errors import InputError
from transduce.data.pairs.inputs import Named
from transduce.data.speech.recordings import RecordingFile, read_recordings
from transduce.planning import plan
from transduce.planning.plan import TrainingPlan, make_plan
from transduce.planning.recognition import kind_of, names_examples, planner_of
from transduce.planning.speed import Speed
from transduce.training.display import Display

RATE = 8000
SAID = ["yes", "no", "left", "right"]
N = 100


def sounds(folder: Path, names: Iterable[str]) -> None:
    """A short tone each."""
    for n, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        tone = np.sin(np.arange(RATE // 4) * (0.1 + 0.1 * (n % 4))).astype(np.float32)
        soundfile.write(folder / name, tone, RATE, subtype="PCM_16")


def text_of(number: int) -> str:
    return SAID[number % 4]


def lines(path: Path, rows: Iterable[Iterable[str]], between: str = "\t") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{between.join(row)}\n" for row in rows), encoding="utf-8")


def audio_folder(root: Path) -> Path:
    sounds(root, (f"{n}.wav" for n in range(N)))
    rows = [["file_name", "transcription"], *([f"{n}.wav", text_of(n)] for n in range(N))]
    lines(root / "metadata.csv", rows, ",")
    return root


def common_voice(root: Path, speakers: int = 50) -> Path:
    sounds(root / "clips", (f"{n}.wav" for n in range(N)))
    rows = [[f"s{n % speakers}", f"{n}.wav", text_of(n), "2"] for n in range(N)]
    lines(root / "train.tsv", [["client_id", "path", "sentence", "up_votes"], *rows])
    return root


def lj_speech(root: Path) -> Path:
    sounds(root / "wavs", (f"LJ{n}.wav" for n in range(N)))
    lines(root / "metadata.csv", ([f"LJ{n}", "Dr.", text_of(n)] for n in range(N)), "|")
    return root


def libri_speech(root: Path) -> Path:
    sounds(root, (f"{n % 20}/7/{n % 20}-7-{n:04}.flac" for n in range(N)))
    for speaker in range(20):
        rows = [[f"{n % 20}-7-{n:04}", text_of(n).upper()] for n in range(N) if n % 20 == speaker]
        lines(root / f"{speaker}/7/{speaker}-7.trans.txt", rows, " ")
    return root


def beside(root: Path) -> Path:
    sounds(root, (f"{n}.wav" for n in range(N)))
    for n in range(N):
        (root / f"{n}.{'lab' if n % 2 else 'txt'}").write_text(f"{text_of(n)}\n")
    return root


def a_table(root: Path) -> Path:
    sounds(root / "audio", (f"{n}.wav" for n in range(N)))
    path = root / "data1.jsonl"
    rows = [{"id": f"x{n}", "snd": f"audio/{n}.wav", "said": text_of(n), "speaker": f"s{n % 40}"} for n in range(N)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


LAYOUTS = {"audio folder": audio_folder, "Common Voice": common_voice, "LJSpeech": lj_speech}
LAYOUTS |= {"LibriSpeech": libri_speech, "texts beside": beside, "objects": a_table}
BY = {
    "Common Voice": "client_id",
    "LibriSpeech": "speaker",
    "objects": "speaker",
    "LJSpeech": 0,
    "texts beside": "name",
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_are_recognised_and_read(tmp_path: Path, name: str) -> None:
    source = LAYOUTS[name](tmp_path / "my")
    assert names_examples(source)
    assert kind_of(Named(source)) == "speech_recognition"
    planner = planner_of(Named(source))
    read = list(read_recordings(RecordingFile.model_validate(planner.inputs.train), Path()))
    assert len(read) == N
    assert all(Path(sound).is_file() for _, sound, _ in read)
    assert sorted(text.lower() for *_, text in read) == sorted(map(text_of, range(N)))
    assert planner.to_lines()[0].startswith(
        "100 recordings, about 25 seconds, 0.2 seconds each, 8,000 samples a second"
    )


@pytest.mark.parametrize("name", LAYOUTS)
def test_parts_are_of_different_speakers_where_these_are_known(tmp_path: Path, name: str) -> None:
    planner = planner_of(Named(LAYOUTS[name](tmp_path / "my")))
    keys = planner.decide(False, False, planner.usual_size(), None)
    decided = {each.key: each.value for each in keys}
    entries = [*decided["data.train"], decided["data.validation"], decided["data.test"]["held_out"]]
    assert {each["parts"]["by"] for each in entries} == {BY.get(name, "file_name")}
    parts = [[*read_recordings(RecordingFile.model_validate(each), Path())] for each in entries]
    assert sum(map(len, parts)) == len({sound for part in parts for _, sound, _ in part}) == N
    assert min(map(len, parts)) > 0


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A plan for recordings, on a machine of a known speed, and what was told."""
    monkeypatch.setattr(plan, "measure", lambda *_: Speed(update=0.1, validation=1.0, tests=2.0, start=0.0))

    def make(path: Path, **given: Any) -> tuple[TrainingPlan, str]:
        told = StringIO()
        return make_plan(Named(path), given, None, Display(Console(file=told, width=500))), told.getvalue()

    return make


def test_a_recognizer_is_decided(tmp_path: Path, planned: Any) -> None:
    made, told = planned(audio_folder(tmp_path / "my"))
    assert 'as column "file_name" names sound files, and column "transcription" what is said.' in told
    assert "100 recordings are few" in told
    table = made.table
    assert table["task"] == {"kind": "speech_recognition", "metrics": ["cer", "exact_match"]}
    assert (table["data"]["rate"], table["data"]["mels"], table["data"]["normalization"]) == (8000, 40, "utterance")
    assert (table["model"]["kind"], table["model"]["hidden"], table["tokenizer"]["kind"]) == ("rnn", 64, "character")
    assert all(each.reason for each in made.decisions)


def test_sounds_of_few_kinds_may_be_labelled_texts(tmp_path: Path) -> None:
    """A table of file names with few labels without a header is for either."""
    sounds(tmp_path, (f"s{n}.wav" for n in range(N)))
    lines(tmp_path / "x.tsv", ([f"s{n}.wav", text_of(n)] for n in range(N)))
    with pytest.raises(InputError, match=r"texts with labels, as .* or recordings") as error:
        kind_of(Named(tmp_path / "x.tsv"))
    for kind in ("speech_recognition", "classification"):
        assert f"transduce train {tmp_path}/x.tsv --task {kind}" in str(error.value)


def test_held_out_tables_of_a_folder_are_taken(tmp_path: Path) -> None:
    root = common_voice(tmp_path)
    for name in ("dev", "test"):
        (root / f"{name}.tsv").write_text((root / "train.tsv").read_text())
    inputs = planner_of(Named(root)).inputs
    assert inputs.validation == {**inputs.train, "file": str(root / "dev.tsv")}
    assert inputs.tests == {"test": {**inputs.train, "file": str(root / "test.tsv")}}


def test_what_cannot_be_heard_is_named(tmp_path: Path, planned: Any) -> None:
    root = audio_folder(tmp_path / "my")
    for name in ("3.wav", "7.wav"):
        (root / name).unlink()
    with pytest.raises(InputError, match=r"2 of 100 sound files are not there \(line 5: .*3\.wav; line 9: .*7\.wav\)"):
        planned(root)
    few = tmp_path / "few.csv"
    few.write_text("".join((root / "metadata.csv").read_text().splitlines(keepends=True)[:4]))
    with pytest.raises(InputError, match="expected recordings and what is said in them"):
        planner_of(Named(few, task="speech_recognition"))


def test_a_folder_is_trained_from_end_to_end(tmp_path: Path) -> None:
    source, run = common_voice(tmp_path / "my"), tmp_path / "run"
    small = ("training.updates=2", "model.d_model=8", "model.hidden=8", "data.speeds=[]", "data.mels=8")
    done = command(tmp_path, "train", source, *small, "--run", run)
    assert done.code == 0, done.shown
    assert 'by = "client_id"' in (run / "recipe.toml").read_text()
    report = json.loads((run / "report.json").read_text())
    assert report["tests"]["held_out"]["scores"].keys() >= {"cer", "exact_match"}
