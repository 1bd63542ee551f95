"""Frames: sound files and arrays are read, normalised, stored, padded; whatever cannot be read is named."""

import base64
import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from transduce.core.errors import InputError
from transduce.data.columns.frames import Frames
from transduce.data.columns.packed import pack, unpack
from transduce.data.speech.audio import members, read_samples
from transduce.data.speech.filterbank import filterbank, manageable, normalized
from transduce.data.speech.uploads import called, uploaded
from transduce.data.store import BLOCK, FloatRows, Store, write_store

FIELDS = {"source": FloatRows(3), "target": 10}


def wave(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.5, 0.5, count).astype(np.float32)


@pytest.fixture
def sounds(tmp_path: Path) -> Path:
    for name, seed in (("a.wav", 1), ("b.flac", 2)):
        soundfile.write(tmp_path / name, wave(4000, seed), 8000, subtype="PCM_16")
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "a.wav", "inner/a.wav")
    array = np.random.default_rng(3).normal(size=(50, 5)).astype(np.float16)
    np.save(tmp_path / "features.npy", array)
    (tmp_path / "features.npy.gz").write_bytes(gzip.compress((tmp_path / "features.npy").read_bytes()))
    return tmp_path


def test_sound_is_the_normalised_filterbank_of_its_samples(sounds: Path) -> None:
    found = Frames(40, 8000, sounds).encode(["a.wav", "b.flac", "all.tar.gz:inner/a.wav", "all.tar.gz:a.wav"])
    wanted = normalized(filterbank(torch.from_numpy(soundfile.read(sounds / "a.wav", dtype="float32")[0]), 8000, 40))
    assert torch.equal(torch.from_numpy(found[0]), wanted)
    assert not np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2]) and np.array_equal(found[0], found[3])
    assert members(sounds / "all.tar.gz") == ["inner/a.wav"]


def test_the_normalization_is_kept_in_the_model_file(sounds: Path) -> None:
    whole = Frames(40, 8000, sounds, normalization="utterance")
    wave_N = torch.from_numpy(soundfile.read(sounds / "a.wav", dtype="float32")[0])
    wanted = normalized(filterbank(wave_N, 8000, 40), "utterance")
    assert torch.equal(torch.from_numpy(whole.encode(["a.wav"])[0]), wanted)
    assert Frames.from_dict(whole.to_dict()) == whole != Frames(40, 8000)
    with pytest.raises(InputError, match="expected feature or utterance; got 'loud'"):
        Frames.from_dict({**whole.to_dict(), "normalization": "loud"})


def test_bytes_of_a_file_are_read_as_the_file(sounds: Path) -> None:
    url = "data:audio/wav;base64," + base64.b64encode((sounds / "a.wav").read_bytes()).decode()
    column = Frames(40, 8000, sounds)
    assert np.array_equal(*column.encode([url, "a.wav"]))


def test_recordings_are_joined_before_they_are_normalised(sounds: Path) -> None:
    joined = np.concatenate([soundfile.read(sounds / name, dtype="float32")[0] for name in ("a.wav", "b.flac")])
    wanted = normalized(filterbank(torch.from_numpy(joined), 8000, 40))
    assert torch.equal(torch.from_numpy(Frames(40, 8000, sounds).encode(["a.wav + b.flac"])[0]), wanted)


def test_channels_are_averaged_and_the_rate_is_the_models(tmp_path: Path) -> None:
    two = np.stack([wave(16000, 1), wave(16000, 2)], 1)
    soundfile.write(tmp_path / "two.wav", two, 16000, subtype="FLOAT")
    samples, rate = read_samples("two.wav", tmp_path)
    assert rate == 16000
    np.testing.assert_allclose(samples.numpy(), two.mean(1), atol=1e-6)
    [found] = Frames(40, 8000, tmp_path).encode(["two.wav"])
    assert len(found) == (8000 - 200) // 80 + 1


@pytest.mark.parametrize("channels", [1, 2, 6, 40])
def test_long_files_are_read_in_parts_that_change_nothing(tmp_path: Path, channels: int) -> None:
    many = np.random.default_rng(5).uniform(-1, 1, (70_001, channels))
    soundfile.write(tmp_path / "many.wav", many, 8000, subtype="PCM_16")
    whole = soundfile.read(tmp_path / "many.wav", dtype="float32", always_2d=True)[0]
    found, rate = read_samples("many.wav", tmp_path)
    assert rate == 8000 and torch.equal(found, torch.from_numpy(whole).mean(1))


@pytest.mark.parametrize(
    ("rate", "wanted", "near"),
    [(44_100, 16_000, 44_100), (48_000, 11_025, 48_000), (8000, 16_000, 8000), (44_101, 16_000, 44_100)],
)
def test_an_upload_of_an_odd_rate_is_heard_at_one_near_it(rate: int, wanted: int, near: int) -> None:
    assert manageable(rate, wanted) == near


def test_the_sound_of_an_utterance_is_what_its_features_come_from(sounds: Path) -> None:
    column = Frames(40, 8000, sounds)
    sound = column.sound("a.wav + b.flac")
    assert sound is not None and len(sound) == 8000
    wanted = normalized(filterbank(sound, 8000, 40))
    assert torch.equal(torch.from_numpy(column.encode(["a.wav + b.flac"])[0]), wanted)
    assert column.sound("features.npy") is column.sound(" ") is Frames(5, None, sounds).sound("a.wav") is None


def test_rows_of_an_array_are_an_utterance(sounds: Path) -> None:
    array = torch.from_numpy(np.load(sounds / "features.npy").astype(np.float32))
    column = Frames(5, None, sounds)
    found = column.encode(["features.npy:10:20", "features.npy.gz:10:20", "features.npy"])
    assert torch.equal(torch.from_numpy(found[0]), normalized(array[10:30]))
    assert np.array_equal(found[0], found[1]) and len(found[2]) == 50
    assert column.tokens(found[0])[:3] == ["0.00", "0.01", "0.02"]


def test_a_speed_makes_speech_shorter(sounds: Path) -> None:
    fast, slow = (Frames(40, 8000, sounds, speed=speed).encode(["a.wav"])[0] for speed in (1.25, 0.8))
    assert (len(fast), len(slow)) == ((3200 - 200) // 80 + 1, (5000 - 200) // 80 + 1)
    assert len(Frames(5, None, sounds, speed=0.5).encode(["features.npy:0:20"])[0]) == 40


def test_all_that_cannot_be_read_is_named_at_once(sounds: Path) -> None:
    (sounds / "text.wav").write_text("no sound")
    np.save(sounds / "words.npy", np.array([["a"]]))
    with pytest.raises(InputError) as caught:
        Frames(40, 8000, sounds).encode(["gone.wav", "text.wav", "a.wav", "all.tar.gz:b.wav", "data:,x"])
    problems = caught.value.problems
    assert len(problems) == 4
    assert "gone.wav: no such file" in problems[0] and "text.wav: not a sound file" in problems[1]
    assert "no files of this name" in problems[2] and "base64" in problems[3]
    with pytest.raises(InputError, match="has 50 rows; expected at least 60"):
        Frames(5, None, sounds).encode(["features.npy:40:20"])
    with pytest.raises(InputError, match="expected 6 features a frame; got 5"):
        Frames(6, None, sounds).encode(["features.npy:0:20"])
    with pytest.raises(InputError, match="computed elsewhere"):
        Frames(5, None, sounds).encode(["a.wav"])
    with pytest.raises(InputError, match="expected numbers"):
        Frames(5, None, sounds).encode(["words.npy"])


def test_an_empty_name_and_less_than_a_frame_have_no_frames(sounds: Path) -> None:
    soundfile.write(sounds / "short.wav", wave(100, 1), 8000)
    assert [each.shape for each in Frames(40, 8000, sounds).encode(["", "short.wav"])] == [(0, 40), (0, 40)]


def test_what_is_to_be_transcribed_must_hold_sound(sounds: Path) -> None:
    """A file that is empty or was cut off would be an empty transcript."""
    whole = (sounds / "a.wav").read_bytes()
    for name, content in {
        "none.wav": whole[:44],
        "cut.wav": whole[:100],
        "empty.wav": b"",
        "text.wav": b"hi\n",
    }.items():
        (sounds / name).write_bytes(content)
    column, names = Frames(40, 8000, sounds), ["a.wav", "none.wav", "", "cut.wav"]
    with pytest.raises(InputError) as caught:
        column.refuse_unheard(names, column.encode_audio(names))
    assert [each.partition(":")[0] for each in caught.value.problems] == ["none.wav", "cut.wav"]
    assert "shorter than one frame (25 ms)" in caught.value.problems[0]
    with pytest.raises(InputError) as caught:
        column.encode_audio(["empty.wav", "text.wav"])
    assert caught.value.problems[0] == "empty.wav: not a sound file: it is empty."
    assert "text.wav: not a sound file, but text" in caught.value.problems[1]


def test_an_upload_is_called_by_its_file_and_never_by_its_bytes(sounds: Path) -> None:
    assert called("7.raw") == called(uploaded(b"bytes", "7.raw")) == "7.raw"
    assert called(uploaded(b"bytes", "a + b, c.wav")) == "a + b, c.wav"
    assert called(uploaded(b"bytes")) == called("data:audio/wav;base64,UklGR") == "the recording"
    content = (sounds / "a.wav").read_bytes()
    column = Frames(40, 8000, sounds)
    assert np.array_equal(*column.encode([uploaded(content, "a + b, c.wav"), "a.wav"]))


def test_rows_are_padded_with_zeros() -> None:
    rows = [np.ones((2, 3), np.float32), np.full((4, 3), 2, np.float32)]
    values, lengths = Frames(3, None).collate(rows)
    assert lengths.tolist() == [2, 4] and values.dtype == torch.float32
    assert torch.equal(values[0, 2:], torch.zeros(2, 3)) and torch.equal(values[1], torch.full((4, 3), 2.0))


def test_a_model_file_keeps_the_column() -> None:
    columns = {"source": Frames(40, 8000, Path("somewhere"))}
    texts, tables = pack(columns)
    assert "somewhere" not in str(tables)
    assert unpack(texts, tables) == columns
    for wrong in ({"width": 0}, {"width": "40"}, {"width": 40, "rate": "8000"}, {"width": 40, "rate": 1}):
        with pytest.raises(InputError, match="column of frames"):
            Frames.from_dict(wrong)


def test_a_store_holds_floats_bit_for_bit(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    examples = [
        {"source": random.normal(size=(place % 4, 3)).astype(np.float32), "target": [place % 10]}
        for place in range(BLOCK + 7)
    ]
    write_store(tmp_path / "s.arrow", examples, FIELDS, {})
    store = Store(tmp_path / "s.arrow")
    store.verify()
    rows = np.array([3, 0, BLOCK + 6])
    for row, found in zip(rows, store.read("source", rows), strict=True):
        assert found.shape == examples[row]["source"].shape and np.array_equal(found, examples[row]["source"])
        assert not found.flags.owndata, "a view of the map"
    assert store.lengths("source", 1).tolist() == [len(each["source"]) for each in examples[BLOCK:]]
    assert [ids.tolist() for ids in store.read("target", rows)] == [examples[row]["target"] for row in rows]


def test_a_changed_float_is_found(tmp_path: Path) -> None:
    path = tmp_path / "s.arrow"
    write_store(path, [{"source": np.full((5, 3), 1.5, np.float32), "target": [1]}], FIELDS, {})
    content = path.read_bytes()
    place = content.index(np.full(15, 1.5, np.float32).tobytes())
    path.write_bytes(content[:place] + np.float32(1.25).tobytes() + content[place + 4 :])
    with pytest.raises(InputError, match="damaged"):
        Store(path).verify()


def test_soundfile_missing_names_the_extra(sounds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "soundfile", None)
    with pytest.raises(InputError, match=r"soundfile.*\[speech\]"):
        Frames(40, 8000, sounds).encode(["a.wav"])


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(io.BytesIO(b"no archive").getvalue()))
    with pytest.raises(InputError, match="not a tar archive"):
        members(tmp_path / "x.tar.gz")


@pytest.mark.parametrize("subtype", ["GSM610", "G721_32", "IMA_ADPCM", "ULAW"])
def test_wav_files_of_telephones_are_read(subtype: str, tmp_path: Path) -> None:
    """Some of these codecs cannot be sought in."""
    wave = np.sin(np.arange(2_892) / 9).astype(np.float32) / 2
    soundfile.write(tmp_path / "a.wav", wave, 8_000, subtype=subtype)
    samples, rate = read_samples("a.wav", tmp_path)
    with soundfile.SoundFile(tmp_path / "a.wav") as sound:
        expected = sound.read(4_000, dtype="float32")
    assert (rate, samples.tolist()) == (8_000, expected.tolist())
    assert len(samples) >= len(wave) and 0.2 < samples.abs().max() < 0.9
