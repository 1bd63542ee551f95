"""Sound as the bytes of a WAV file.

Shapes: N samples.
"""

import io
import wave

from torch import Tensor

FULL = 32_768  # what 1 is in 16 bits


def wav(sound_N: Tensor, rate: int) -> bytes:
    """A WAV file of 16-bit samples, in one channel; what was read from such a file is written as it was.

    Args:
        sound_N: samples between -1 and 1.
        rate: samples a second.
    """
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((sound_N * FULL).round().clamp(-FULL, FULL - 1).numpy().astype("<i2").tobytes())
    return content.getvalue()
