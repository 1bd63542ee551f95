"""Filterbanks against Kaldi's own, resampling against sines and slow sums."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from transduce.data.speech.filterbank import filterbank, normalized, resampled, stretched


def noisy_tone(count: int, rate: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    time = torch.arange(count) / rate
    tone = 0.4 * torch.sin(2 * math.pi * 440 * time) + 0.1 * torch.sin(2 * math.pi * 1900 * time)
    return tone + 0.05 * torch.randn(count, generator=generator)


@pytest.mark.parametrize(("rate", "filters"), [(8000, 40), (16000, 80), (16000, 23), (22050, 40)])
def test_it_is_that_of_kaldi(rate: int, filters: int) -> None:
    kaldi = pytest.importorskip("kaldi_native_fbank")
    wave = noisy_tone(rate // 2 + 37, rate, filters)
    options = kaldi.FbankOptions()
    options.frame_opts.samp_freq, options.frame_opts.dither = rate, 0.0
    options.mel_opts.num_bins = filters
    computed = kaldi.OnlineFbank(options)
    computed.accept_waveform(rate, (wave * 32768).tolist())
    computed.input_finished()
    wanted = np.stack([computed.get_frame(frame) for frame in range(computed.num_frames_ready)])
    found = filterbank(wave, rate, filters)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-3)


def test_silence_and_less_than_a_frame() -> None:
    assert filterbank(torch.zeros(199), 8000, 40).shape == (0, 40)
    silence = filterbank(torch.zeros(200), 8000, 40)
    assert silence.shape == (1, 40)
    assert torch.equal(normalized(silence), torch.zeros(1, 40))


def test_normalized_features_have_mean_0_and_variance_1() -> None:
    features = filterbank(noisy_tone(8000, 8000, 1), 8000, 40)
    found = normalized(features)
    assert torch.allclose(found.mean(0), torch.zeros(40), atol=1e-4)
    assert torch.allclose(found.var(0, unbiased=False), torch.ones(40), atol=1e-3)
    assert torch.allclose(normalized(features * 3 + 2), found, atol=1e-3), "loudness and offset change nothing"


def test_an_utterance_normalised_as_a_whole_keeps_its_spectrum() -> None:
    features = filterbank(noisy_tone(8000, 8000, 1), 8000, 40)
    found = normalized(features, "utterance")
    whole = features.double()
    wanted = (whole - whole.mean()) / whole.std(correction=0)
    assert torch.allclose(found.double(), wanted, atol=1e-4)
    assert torch.equal(normalized(torch.full((3, 4), 7.0), "utterance"), torch.zeros(3, 4))


@pytest.mark.parametrize(("rate", "wanted"), [(16000, 8000), (8000, 16000), (44100, 16000), (7200, 8000), (8800, 8000)])
def test_a_resampled_tone_is_the_same_tone(rate: int, wanted: int) -> None:
    def tone(each: int) -> Tensor:
        return torch.sin(2 * math.pi * 500 * torch.arange(each, dtype=torch.float64) / each).float()

    found = resampled(tone(rate), rate, wanted)
    assert len(found) == wanted
    middle = slice(wanted // 8, -wanted // 8)  # at the ends the filter reaches beyond the samples
    assert torch.allclose(found[middle], tone(wanted)[middle], atol=2e-3)


def test_resampling_removes_what_the_new_rate_cannot_hold() -> None:
    high = torch.sin(2 * math.pi * 6000 * torch.arange(16000) / 16000)
    assert resampled(high, 16000, 8000)[500:-500].abs().max() < 1e-2


def test_each_new_sample_is_the_windowed_sum_around_it() -> None:
    wave, rate, wanted = torch.randn(40, generator=torch.Generator().manual_seed(1)), 3, 2
    found = resampled(wave, rate, wanted)
    cutoff = 2 * 0.95
    slow = []
    for place in range(math.ceil(len(wave) * wanted / rate)):
        total = 0.0
        for sample, value in enumerate(wave.tolist()):
            time = (sample / rate - place / wanted) * cutoff
            if abs(time) < 16:
                total += value * np.sinc(time) * math.cos(time * math.pi / 32) ** 2 * cutoff / rate
        slow.append(total)
    np.testing.assert_allclose(found.numpy(), slow, atol=1e-5)


def test_stretched_features_last_as_long_as_the_speed_says() -> None:
    ramp = torch.arange(90.0)[:, None].repeat(1, 2)
    assert torch.equal(stretched(ramp, 1.0), ramp)
    slow = stretched(ramp, 0.9)
    assert slow.shape == (100, 2)
    assert torch.allclose(slow[10:90, 0], (torch.arange(10.0, 90) + 0.5) * 0.9 - 0.5, atol=1e-4)
