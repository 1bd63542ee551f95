"""Whisper's spectrograms against those of transformers, and the column that stores them."""

import math
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.data.columns.frames import Frames
from transduce.data.speech.filterbank import resampled
from transduce.data.speech.log_mel import FRAMES, log_mel
from transduce.tasks.speech_recognition import SpeechData


def chirp(seconds: float, rate: int, seed: int = 1) -> Tensor:
    time = torch.arange(int(seconds * rate)) / rate
    noise = torch.randn(len(time), generator=torch.Generator().manual_seed(seed))
    return 0.4 * torch.sin(2 * math.pi * (200 + 300 * time) * time) + 0.02 * noise


@pytest.mark.parametrize(("filters", "seconds"), [(80, 1.3), (128, 0.01)])
def test_it_is_that_of_transformers(filters: int, seconds: float) -> None:
    transformers = pytest.importorskip("transformers")
    wave = chirp(seconds, 16_000)
    extractor = transformers.WhisperFeatureExtractor(feature_size=filters)
    wanted = extractor(wave.numpy(), sampling_rate=16_000, return_tensors="np").input_features[0].T
    found = log_mel(wave, filters)
    assert found.shape == (FRAMES, filters)
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-6)


def test_longer_sound_has_more_frames() -> None:
    assert log_mel(torch.zeros(31 * 16_000), 80).shape == (3100, 80)


def test_sound_at_another_rate_is_resampled_first(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", chirp(0.5, 8000).numpy(), 8000, subtype="FLOAT")
    wave = torch.from_numpy(soundfile.read(tmp_path / "a.wav", dtype="float32")[0])
    column = Frames(80, 16_000, tmp_path, features="whisper")
    assert torch.equal(torch.from_numpy(column.encode(["a.wav"])[0]), log_mel(resampled(wave, 8000, 16_000), 80))
    assert Frames.from_dict(column.to_dict()) == column != Frames(80, 16_000)


def test_what_whisper_does_not_compute_is_refused() -> None:
    with pytest.raises(InputError, match=r"features of filterbank, or of whisper at 16000 .* got 'whisper' at 8000"):
        Frames.from_dict({"width": 80, "rate": 8000, "features": "whisper"})
    with pytest.raises(ValueError, match="computed at rate = 16_000; got 8_000"):
        SpeechData.model_validate({"train": [{"file": "a.tsv"}], "features": "whisper", "rate": 8000})


def test_an_empty_recording_has_no_frames(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", np.zeros(0, np.float32), 16_000)
    column = Frames(80, 16_000, tmp_path, features="whisper")
    with pytest.raises(InputError, match=r"a\.wav: shorter than one frame"):
        column.refuse_unheard(["a.wav"], column.encode_audio(["a.wav"]))


def test_long_sound_is_cut_where_it_is_quietest(tmp_path: Path) -> None:
    wave = chirp(65, 8000)
    for pause in (10, 23.5, 45):  # the first is too early
        wave[int(pause * 8000) : int((pause + 0.3) * 8000)] *= 0.001
    soundfile.write(tmp_path / "a.wav", wave.numpy(), 8000, subtype="FLOAT")
    column = Frames(20, 16_000, tmp_path, features="whisper")
    [parts] = column.encode_audio(["a.wav"])
    assert [part.features.shape for part in parts] == [(FRAMES, 20)] * 3
    assert [part.start for part in parts] == [0, *(part.end for part in parts[:-1])]
    assert [part.end for part in parts] == pytest.approx([23.65, 45.15, 65], abs=0.16)
    whole = resampled(torch.from_numpy(wave.numpy()), 8000, 16_000)
    first, last = (round(each * 16_000) for each in parts[1][1:])
    assert torch.equal(torch.from_numpy(parts[1].features), log_mel(whole[first:last], 20))


def test_sound_that_is_heard_at_once_is_not_cut(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", chirp(30, 16_000).numpy(), 16_000)
    for features, width in (("whisper", 20), ("filterbank", 40)):
        column = Frames(width, 16_000, tmp_path, features=features)
        [[part]] = column.encode_audio(["a.wav"])
        assert np.array_equal(part.features, column.encode(["a.wav"])[0])
        assert (part.start, part.end) == (0, pytest.approx(30, abs=0.03))
