"""Log-mel filterbanks of speech, as Kaldi computes them, and normalisation, resampling and change of speed.

    frame of 25 ms every 10 ms -> less its mean -> x_n - 0.97 x_{n-1} -> Povey window -> |FFT|^2 -> mel filters -> log

The mel scale is 1127 ln(1 + f / 700). Filters are triangles from 20 Hz to half the sampling rate.
Shapes: N samples, S frames, W samples of a frame, P samples of the padded frame, F filters or features, K bins.
"""

import math
from functools import lru_cache
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

WINDOW, SHIFT = 0.025, 0.010  # seconds
PREEMPHASIS, LOWEST = 0.97, 20.0
FULL_SCALE = 32768.0  # Kaldi reads 16-bit integers
MOST_COEFFICIENTS, ROUND = 16_000_000, 100  # of a resampling filter; the rates that need no more, in samples a second
Normalization = Literal["feature", "utterance"]
ZEROS, ROLLOFF = 16, 0.95  # of the resampling filter: zero crossings on either side, cutoff as a share of the limit


def filterbank(wave_N: Tensor, rate: int, filters: int) -> Tensor:
    """(S, F) log-mel energies of samples between -1 and 1; S is 0 where not even one frame is full."""
    width, shift = int(rate * WINDOW), int(rate * SHIFT)
    if len(wave_N) < width:
        return wave_N.new_zeros(0, filters)
    frames_SW = (wave_N.float() * FULL_SCALE).unfold(0, width, shift)
    frames_SW = frames_SW - frames_SW.mean(1, keepdim=True)
    before_SW = torch.cat((frames_SW[:, :1], frames_SW[:, :-1]), 1)
    frames_SW = (frames_SW - PREEMPHASIS * before_SW) * povey_window(width)
    padded = 1 << (width - 1).bit_length()
    power_SK = torch.fft.rfft(frames_SW, n=padded).abs().square()
    energies_SF = power_SK @ mel_filters(filters, padded, rate).T
    return energies_SF.clamp(min=torch.finfo(torch.float32).eps).log()


@lru_cache(maxsize=8)
def povey_window(width: int) -> Tensor:
    """(W,) a Hann window to the power of 0.85."""
    return torch.hann_window(width, periodic=False, dtype=torch.float64).pow(0.85).float()


@lru_cache(maxsize=8)
def mel_filters(filters: int, padded: int, rate: int) -> Tensor:
    """(F, K) the triangles, evenly spaced and as wide as each other on the mel scale."""
    edges = torch.linspace(_mel(LOWEST), _mel(rate / 2), filters + 2, dtype=torch.float64)
    left_F1, centre_F1, right_F1 = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    bins_K = torch.arange(padded // 2 + 1, dtype=torch.float64) * rate / padded
    mel_K = 1127.0 * torch.log1p(bins_K / 700.0)
    rising_FK = (mel_K - left_F1) / (centre_F1 - left_F1)
    falling_FK = (right_F1 - mel_K) / (right_F1 - centre_F1)
    filters_FK = torch.minimum(rising_FK, falling_FK).clamp(min=0)
    filters_FK[:, -1] = 0  # Kaldi leaves out the bin at half the sampling rate
    return filters_FK.float()


def normalized(features_SF: Tensor, by: Normalization = "feature") -> Tensor:
    """(S, F) with mean 0 and variance 1 over the utterance; what never changes is 0.

    by: "feature", each by itself; "utterance", all together, which keeps how they differ from each other.
    """
    if by == "utterance":
        return normalized(features_SF.reshape(-1, 1)).reshape(features_SF.shape)
    centred_SF = features_SF - features_SF.mean(0)
    return centred_SF / centred_SF.square().mean(0).sqrt().clamp(min=1e-5)


def manageable(rate: int, target_rate: int) -> int:
    """The rate, or one near it where the filter to `target_rate` would fill the memory: 44,100 for 44,101."""
    common = math.gcd(rate, target_rate)
    if (rate // common) * (target_rate // common) <= MOST_COEFFICIENTS:
        return rate
    return max(ROUND, round(rate / ROUND) * ROUND)


def resampled(wave_N: Tensor, rate: int, target_rate: int) -> Tensor:
    """The samples at another rate, by a polyphase filter: a sinc under a Hann window, one filter for each phase."""
    if rate == target_rate or not len(wave_N):
        return wave_N
    common = math.gcd(rate, target_rate)
    rate, target_rate = rate // common, target_rate // common
    cutoff = min(rate, target_rate) * ROLLOFF  # in units of half of 1 / period, where a period has `rate` samples
    reach = math.ceil(ZEROS * rate / cutoff)
    tap = torch.arange(-reach, rate + reach, dtype=torch.float64) / rate
    phase = torch.arange(target_rate, dtype=torch.float64)[:, None] / target_rate
    time = (tap - phase) * cutoff
    window = torch.cos(time.clamp(-ZEROS, ZEROS) * math.pi / ZEROS / 2).square()
    kernels = (torch.sinc(time) * window * cutoff / rate).float()
    count = math.ceil(len(wave_N) * target_rate / rate)
    padded_N = F.pad(wave_N.float(), (reach, reach + rate))
    phases = F.conv1d(padded_N[None, None], kernels[:, None], stride=rate)[0]
    return phases.T.flatten()[:count]


def stretched(features_SF: Tensor, speed: float) -> Tensor:
    """Features of the utterance spoken `speed` times as fast, by linear interpolation over time."""
    count = max(1, round(len(features_SF) / speed))
    if count == len(features_SF):
        return features_SF
    return F.interpolate(features_SF.T[None], size=count, mode="linear", align_corners=False)[0].T.contiguous()


def _mel(frequency: float) -> float:
    return 1127.0 * math.log1p(frequency / 700.0)
