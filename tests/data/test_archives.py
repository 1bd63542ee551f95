"""Sound and features in packed files: read where they lie, within limits, and refused in words where they cannot be."""

import gzip
import io
import os
import tarfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from transduce.core.errors import InputError
from transduce.data import limits
from transduce.data.speech.archives import tar_archive
from transduce.data.speech.audio import members, read_features, read_samples
from transduce.data.structures.stories import story_sources

soundfile = pytest.importorskip("soundfile", reason="soundfile is not installed (extra speech)")
TONE = (np.sin(np.arange(3200) / 5) / 2).astype(np.float32)


def written(path: Path, **options: str) -> Path:
    soundfile.write(path, TONE, 8000, **options)
    return path


def archive(path: Path, files: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as packed:  # type: ignore[call-overload]
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    return path


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_members_of_an_archive_are_found_however_it_is_packed(mode: str, tmp_path: Path) -> None:
    files = {f"said/{each}.wav": os.urandom(1000 + each) for each in range(3)}
    path = archive(tmp_path / "a.tar", files, mode)  # whatever it is called
    opened = tar_archive(path)
    assert {name: opened.read(name) for name in opened.names} == files


def test_a_packed_archive_takes_no_memory(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", {str(each): os.urandom(1_000_000) for each in range(12)}, "w")
    path.write_bytes(gzip.compress(path.read_bytes(), 1))
    tracemalloc.start()
    try:
        assert len(members(path)) == 12 and len(tar_archive(path).read("7")) == 1_000_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6_000_000


def test_an_archive_or_array_that_unpacks_to_far_more_than_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REPETITIVE", 1_000_000)
    path = archive(tmp_path / "a.tar.gz", {"a.wav": bytes(5_000_000)})
    with pytest.raises(InputError, match=r"a\.tar\.gz: unpacks to more than 200 times"):
        members(path)
    with pytest.raises(InputError, match=r"a\.tar\.gz: unpacks to more than 200 times"):
        story_sources(tmp_path, "a.tar.gz:*")
    content = io.BytesIO()
    np.save(content, np.zeros((100_000, 20), np.float32))
    (tmp_path / "a.npy.gz").write_bytes(gzip.compress(content.getvalue()))
    with pytest.raises(InputError, match=r"a\.npy\.gz: unpacks to more than 200 times"):
        read_features("a.npy.gz", tmp_path)


def test_an_archive_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar", {"a.wav": os.urandom(5000)}, "w")
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(InputError, match=r"a\.tar: not a tar archive"):
        members(path)


@pytest.mark.parametrize("order", ["C", "F"])
def test_packed_features_are_those_of_the_plain_file(order: str, tmp_path: Path) -> None:
    rows = np.asarray(np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32), order=order)
    np.save(tmp_path / "a.npy", rows)
    (tmp_path / "b.npy.gz").write_bytes(gzip.compress((tmp_path / "a.npy").read_bytes()))
    for name in ("a.npy", "b.npy.gz"):
        assert np.array_equal(read_features(f"{name}:10:20", tmp_path), rows[10:30])


def test_an_array_that_claims_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((4, 4), np.float32))
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole.replace(b"(4, 4), ", b"(9999999, 99999), ")[:128] + bytes(64))
    with pytest.raises(InputError, match=r"a\.npy: not a numpy array that can be read"):
        read_features("a.npy", tmp_path)
    np.save(tmp_path / "b.npy", np.array([[{}]], object))
    with pytest.raises(InputError, match=r"b\.npy: expected numbers"):
        read_features("b.npy", tmp_path)


@pytest.mark.parametrize("subtype", ["GSM610", "G721_32", "PCM_16", "ULAW", "IMA_ADPCM"])
def test_sound_is_read_whether_it_can_be_sought_or_not(subtype: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.wav" if subtype != "G721_32" else tmp_path / "a.au", subtype=subtype)
    samples, rate = read_samples(str(path), Path())
    assert rate == 8000 and len(samples) >= 3200
    assert np.corrcoef(samples[:3200].numpy(), TONE)[0, 1] > 0.8


def test_bare_samples_are_not_taken_for_mp3(tmp_path: Path) -> None:
    bare = np.concatenate([[-1, -100], (TONE * 3000)]).astype("<i2").tobytes()  # begins as frames of MP3 do
    assert bare[:2] == b"\xff\xff"
    bare = b"\xff\xfe\x10\x04" + bare
    for name in ("a.raw", "a.wav"):
        (tmp_path / name).write_bytes(bare)
        with pytest.raises(InputError, match=rf"{name}: not a sound file that can be read.*sox -t raw"):
            read_samples(name, tmp_path)


@pytest.mark.parametrize("rate", [8000, 22_050, 44_100])
def test_mp3_is_read(rate: int, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.mp3", np.tile(TONE, 5), rate)
    assert len(read_samples("a.mp3", tmp_path)[0]) >= 16_000
    tagged = b"ID3\x04\x00\x00\x00\x00\x01\x00" + bytes(128) + (tmp_path / "a.mp3").read_bytes()
    (tmp_path / "b.mp3").write_bytes(tagged)
    assert len(read_samples("b.mp3", tmp_path)[0]) >= 16_000
