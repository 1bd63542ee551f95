"""Log-mel spectrograms as Whisper computes them (Radford et al. 2022, section 2.2; `audio.py` of its code).

    30 s at 16 kHz -> Hann windows of 25 ms every 10 ms -> |FFT|^2 -> Slaney's mel filters -> log10
    x = max(x, max of all x - 8);   (x + 4) / 4

Sound is padded with silence to 30 s, which are 3,000 frames, always: the model never saw fewer.
Shapes: N samples, S frames, F filters, K bins.
"""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

RATE = 16_000  # samples a second
WINDOW, SHIFT = 400, 160  # samples
SECONDS = 30
FRAMES = SECONDS * RATE // SHIFT
LEAST, DEPTH = 1e-10, 8.0  # of a power; decades below the loudest
LINEAR, KNEE, STEPS = 200 / 3, 1000.0, 27 / math.log(6.4)  # Slaney's scale: Hz a mel, up to here; mels an e-fold above


def log_mel(wave_N: Tensor, filters: int) -> Tensor:
    """(S, F) of samples between -1 and 1, at 16 kHz; S is 3,000, or more for sound of more than 30 s."""
    padded_N = F.pad(wave_N.float(), (0, max(0, SECONDS * RATE - len(wave_N))))
    spectrum_KS = torch.stft(padded_N, WINDOW, SHIFT, window=torch.hann_window(WINDOW), return_complex=True)
    power_KS = spectrum_KS[:, :-1].abs().square()
    log_FS = (slaney_filters(filters) @ power_KS).clamp(min=LEAST).log10()
    return ((torch.maximum(log_FS, log_FS.max() - DEPTH) + 4.0) / 4.0).T.contiguous()


@lru_cache(maxsize=4)
def slaney_filters(filters: int) -> Tensor:
    """(F, K) triangles of equal area, evenly spaced on Slaney's mel scale from 0 Hz to half the sampling rate."""
    top = 15 + math.log(RATE / 2 / KNEE) * STEPS
    mel = torch.linspace(0, top, filters + 2, dtype=torch.float64)
    edge = torch.where(mel < 15, mel * LINEAR, KNEE * ((mel - 15) / STEPS).exp())
    left_F1, centre_F1, right_F1 = edge[:-2, None], edge[1:-1, None], edge[2:, None]
    bins_K = torch.linspace(0, RATE / 2, WINDOW // 2 + 1, dtype=torch.float64)
    rising_FK = (bins_K - left_F1) / (centre_F1 - left_F1)
    falling_FK = (right_F1 - bins_K) / (right_F1 - centre_F1)
    area_F1 = (right_F1 - left_F1) / 2
    return (torch.minimum(rising_FK, falling_FK).clamp(min=0) / area_F1).float()
