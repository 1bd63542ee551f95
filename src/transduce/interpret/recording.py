"""The recording that a model of speech heard: its sound and its features, for the explorer's page.

Shapes: N samples, S frames, F features, C columns of the picture.
"""

import base64
import io
import wave
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.data.columns.frames import Frames
from transduce.data.speech.filterbank import SHIFT
from transduce.interpret.model_inputs import Given, positions
from transduce.interpret.numbers import packed
from transduce.interpret.token_spans import frames_a_place
from transduce.tasks.base import Task

COLUMNS = 1000  # of the picture: more than a page is wide


def recording(model: nn.Module, task: Task, given: Given, text: str) -> dict[str, Any] | None:
    """What the model heard, for JSON; None if it reads text.

    Its keys are those of `transduce.serve.explorer_schemas.RecordingAnswer`.

    Args:
        given: holds the frames.
        text: the recording, as `transduce.data.speech.audio` names it.

    Raises:
        InputError: it cannot be read.
    """
    column = task.columns.get("source")
    if not isinstance(column, Frames):
        return None
    frames_SF, sound_N = torch.as_tensor(given.source), column.sound(text)
    merged = -(-len(frames_SF) // COLUMNS)
    return {
        "seconds": len(frames_SF) * SHIFT if sound_N is None else len(sound_N) / (column.rate or 1),
        "shift": SHIFT,
        "frames": len(frames_SF),
        "frames_a_position": frames_a_place(len(frames_SF), positions(model, given)),
        "frames_a_column": merged,
        "features": packed(averaged(frames_SF, merged)),
        "rate": column.rate,
        "sound": None if sound_N is None else base64.b64encode(wav(sound_N, column.rate or 1)).decode(),
    }


def averaged(frames_SF: Tensor, count: int) -> Tensor:
    """(C, F) the means of `count` frames each, of those that are left in the last one."""
    means_FC = F.avg_pool1d(frames_SF.T[None].float(), count, ceil_mode=True, count_include_pad=False)[0]
    return means_FC.T.contiguous()


def wav(sound_N: Tensor, rate: int) -> bytes:
    """A WAV file of 16-bit samples."""
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((sound_N.clamp(-1, 1).numpy() * 32767).round().astype("<i2").tobytes())
    return content.getvalue()
