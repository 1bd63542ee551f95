"""Recordings with known faults are found, with the lines where they are; sound ones are left alone."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from transduce.core.errors import InputError
from transduce.data.speech.recordings import RecordingFile, Strings
from transduce.doctor import Severity, examine_recordings

RATE = 8000


def tone(seconds: float, seed: int, loudness: float = 0.3) -> np.ndarray:
    count = round(seconds * RATE)
    noise = np.random.default_rng(seed).normal(size=count)
    return loudness * np.sin(2 * np.pi * 440 * np.arange(count) / RATE) + 0.01 * noise


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sounds = {
        "fine.wav": tone(0.5, 1),
        "other.wav": tone(0.75, 2),
        "held.wav": tone(0.25, 3),
        "silent.wav": np.zeros(4000),
        "clipped.wav": np.clip(tone(0.5, 4, loudness=1.4), -1, 1),
        "quiet.wav": np.concatenate([tone(0.2, 5), np.zeros(RATE // 2)]),
        "click.wav": tone(0.01, 6),
        "long.wav": tone(3.0, 7),
    }
    for name, wave in sounds.items():
        soundfile.write(tmp_path / name, wave, RATE, subtype="PCM_16")
    (tmp_path / "text.wav").write_text("no sound")
    (tmp_path / "again.wav").write_bytes((tmp_path / "fine.wav").read_bytes())
    return tmp_path


def table(folder: Path, name: str, rows: list[tuple[str, str]]) -> RecordingFile:
    (folder / name).write_text("".join(f"{sound}\t{text}\n" for sound, text in rows))
    return RecordingFile(file=name)


def test_each_fault_is_found_where_it_is(folder: Path) -> None:
    train = table(
        folder,
        "train.tsv",
        [
            ("fine.wav", "yes"),
            ("silent.wav", "no"),
            ("clipped.wav", "no"),
            ("text.wav", "no"),
            ("gone.wav", "no"),
            ("other.wav", " "),
            ("quiet.wav", "no"),
            ("click.wav", "n"),
            ("long.wav", "no"),
            ("other.wav", "much too much text for so few seconds"),
            ("again.wav", "no"),
        ],
    )
    test = table(folder, "test.tsv", [("held.wav", "yes"), ("again.wav", "yes")])
    report = examine_recordings({"train": train, "test a": test}, folder, rate=16_000, max_frames=200)
    found = {(finding.kind, finding.side): finding for finding in report.findings}
    lines = {key: finding.lines for key, finding in found.items()}
    assert lines[("silent", "train")] == [2]
    assert lines[("clipped", "train")] == [3]
    assert lines[("unreadable", "train")] == [4, 5]
    assert "not a sound file" in found[("unreadable", "train")].examples[0]
    assert "gone.wav" in found[("unreadable", "train")].examples[1]
    assert lines[("no_text", "train")] == [6]
    assert lines[("mostly_quiet", "train")] == [7]
    assert lines[("too_short", "train")] == [8]
    assert lines[("too_long", "train")] == [9]
    assert lines[("too_much_text", "train")] == [10]
    assert found[("upsampled", "train")].count == 9 and found[("upsampled", "test a")].count == 2
    assert lines[("leak", "test a")] == [2]
    assert lines[("contradiction", "train")] == [1, 6, 10, 11]
    durations = found[("durations", "train")].sentence
    assert "11 recordings, 0:07 minutes in all" in durations and "longest 3.00 s; 9 at 8,000 Hz" in durations
    assert report.has_errors and report.findings[0].severity is Severity.ERROR
    assert len(found) == len(report.findings) == 14


def test_nothing_is_wrong_with_sound_recordings(folder: Path) -> None:
    train = table(folder, "train.tsv", [("fine.wav", "yes"), ("other.wav", "no")])
    report = examine_recordings({"train": train}, folder, rate=RATE, max_frames=3000)
    assert [finding.kind for finding in report.findings] == ["durations"]
    assert not report.has_errors
    strings = train.model_copy(update={"strings": Strings(count=50, shortest=1, longest=2)})
    assert examine_recordings({"train": strings}, folder, rate=RATE).to_dict() == report.to_dict()


def test_features_are_examined_as_far_as_they_tell(folder: Path) -> None:
    array = np.random.default_rng(1).normal(size=(60, 4)).astype(np.float16)
    array[20:40], array[50, 2] = 1.5, np.nan
    np.save(folder / "all.npy", array)
    rows = [("all.npy:0:20", "yes"), ("all.npy:20:20", "no"), ("all.npy:40:20", "no"), ("all.npy:50:20", "no")]
    report = examine_recordings({"train": table(folder, "train.tsv", rows)}, folder)
    lines = {finding.kind: finding.lines for finding in report.findings}
    assert lines == {"unreadable": [4], "not_finite": [3], "silent": [2], "durations": []}


def test_a_table_that_cannot_be_read_is_an_error(folder: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.tsv"):
        examine_recordings({"train": RecordingFile(file="gone.tsv")}, folder)
