"""Speech as frames of features: filterbanks or log-mel spectrograms of sound files, or features that somebody else
computed.

Shapes: B utterances, S frames, F features.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.core.errors import InputError, every
from transduce.core.padded import Padded
from transduce.core.printable import PROBLEMS
from transduce.data.collate import padded_frames
from transduce.data.columns.protocols import Column, ColumnSpec, random_vectors
from transduce.data.speech.audio import ARRAY, JOIN, read_features, read_samples
from transduce.data.speech.cutting import HeardPart, parts_of
from transduce.data.speech.filterbank import (
    SHIFT,
    WINDOW,
    Normalization,
    filterbank,
    manageable,
    normalized,
    resampled,
    stretched,
)
from transduce.data.speech.log_mel import RATE, SECONDS, log_mel
from transduce.data.speech.uploads import DATA, called
from transduce.data.store import FloatRows, Ids

PROBED = 24  # frames of a probe
Features = Literal["filterbank", "whisper"]


@dataclass(frozen=True)
class Frames(Column):
    """An utterance a row: (S, F) floats; of filterbanks with mean 0 and variance 1 over the utterance.

    width: F. rate: samples a second that sound is brought to; None = features are read, not computed.
    root: where relative names begin; not part of a model file.
    seconds: the longest sound that may come as a data: URL; None = any.
    files: whether names of files are read; a server that others can reach reads none.
    normalization: of what the mean and variance are (`transduce.data.speech.filterbank.normalized`).
    speed: utterances are spoken so many times as fast (speed perturbation, Ko et al. 2015); of training data alone.
    features: what is computed from sound: `transduce.data.speech.filterbank`, or Whisper's spectrograms of 30 s
        (`transduce.data.speech.log_mel`), which are not normalised any further.
    """

    kind: ClassVar[str] = "frames"
    length_unit: ClassVar[str] = "frame"
    positions_a_token: ClassVar[int] = 10
    encoded_at_once: ClassVar[int] = 256  # they take a thousand times the memory of texts
    is_sound: ClassVar[bool] = True
    without_tokens: ClassVar[str] = 'reads tokens, and the task gives it frames; expected "transformer", "rnn" or "ctc"'
    width: int
    rate: int | None
    root: Path = field(default=Path(), compare=False)
    seconds: float | None = field(default=None, compare=False)
    files: bool = field(default=True, compare=False)
    normalization: Normalization = "feature"
    speed: float = 1.0
    features: Features = "filterbank"

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], tokenizer: object = None) -> Self:
        """What `to_dict` gave. Raises InputError for anything else."""
        width, rate, by = table.get("width"), table.get("rate"), table.get("normalization", "feature")
        if type(width) is not int or width < 1 or not (rate is None or (type(rate) is int and rate >= 1000)):
            raise InputError("the model file's column of frames: expected a width and a sampling rate.")
        if by not in get_args(Normalization):
            raise InputError(f"the model file's column of frames: expected feature or utterance; got {by!r}.")
        features = table.get("features", "filterbank")
        if features not in get_args(Features) or (features == "whisper" and rate != RATE):
            raise InputError(
                f"the model file's column of frames: expected features of filterbank, or of whisper at {RATE} samples "
                f"a second; got {features!r} at {rate}."
            )
        return cls(width, rate, normalization=by, features=features)

    @property
    def spec(self) -> ColumnSpec:
        """How many features a frame has."""
        return ColumnSpec(self.kind, self.width)

    @property
    def stored(self) -> FloatRows:
        """Rows of F floats."""
        return FloatRows(self.width)

    @property
    def probe(self) -> NDArray[np.float32]:
        """(S, F) silence."""
        return np.zeros((PROBED, self.width), np.float32)

    @classmethod
    def drawn(cls, length: int, size: int, generator: torch.Generator) -> Padded:
        """(1, S, F) random numbers."""
        return random_vectors(length, size, generator)

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """(S, F) of each utterance, by the name of its file or files; see `transduce.data.speech.audio`.

        Raises:
            InputError: files that cannot be read; all of them are named.
        """
        return every(self._features, texts, max_problems=PROBLEMS)

    def encode_audio(self, texts: Sequence[str]) -> list[list[HeardPart]]:
        """The same, of Whisper's features in parts of 30 s at most; others are heard as a whole.

        Raises:
            InputError: likewise.
        """
        return every(self._parts, texts, max_problems=PROBLEMS)

    def refuse_unheard(self, texts: Sequence[str], parts: Sequence[Sequence[HeardPart]]) -> None:
        """Raises InputError for named recordings that are shorter than a frame. All of them are named."""
        frames = [sum(len(part.features) for part in each) for each in parts]
        short = [text for text, count in zip(texts, frames, strict=True) if text.strip() and not count]
        if short:
            told = f"shorter than one frame ({1000 * WINDOW:g} ms): the file is empty, or was cut off"
            raise InputError(f"{called(text)}: {told}." for text in short[:PROBLEMS])

    def served(self, seconds: float | None, files: bool) -> Self:
        """With these limits."""
        return replace(self, seconds=seconds, files=files)

    def decode(self, ids: Sequence[int]) -> str:
        return ""

    def tokens(self, ids: Any) -> list[str]:
        """The time at which each frame begins, in seconds."""
        return [f"{place * SHIFT:.2f}" for place in range(len(ids))]

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """Raises InputError: no text is a frame."""
        raise InputError("frames cannot be given as text.")

    def collate(self, rows: Sequence[Ids]) -> Padded:
        """(B, S, F) float32, padded with 0."""
        return padded_frames(rows)

    collate_texts = collate

    def to_dict(self) -> dict[str, Any]:
        computed = {} if self.features == "filterbank" else {"features": self.features}
        return {"width": self.width, "rate": self.rate, "normalization": self.normalization, **computed}

    def sound(self, text: str) -> Tensor | None:
        """(N,) the samples that the features of an utterance are computed from; None where features are read.

        Raises:
            InputError: files that cannot be read.
        """
        names = self._names(text)
        return None if self.rate is None or not names or _is_array(names[0]) else self._wave(names, self.rate)

    def _names(self, text: str) -> list[str]:
        names = [name.strip() for name in text.split(JOIN)] if text.strip() else []
        if not self.files and (wrong := [name for name in names if not name.startswith(DATA)]):
            raise InputError(
                f"{called(wrong[0])}: expected sound as data:audio/wav;base64,..; this server reads no files."
            )
        return names

    def _parts(self, text: str) -> list[HeardPart]:
        names = self._names(text)
        if self.features != "whisper" or self.rate is None or not names or _is_array(names[0]):
            features_SF = self._features(text)
            return [HeardPart(features_SF, 0.0, len(features_SF) * SHIFT)]
        wave_N, rate = self._wave(names, self.rate), self.rate
        bounds = parts_of(wave_N, rate, SECONDS)
        return [HeardPart(self._of_wave(wave_N[a:b]).numpy(), a / rate, b / rate) for a, b in bounds]

    def _features(self, text: str) -> NDArray[np.float32]:
        names = self._names(text)
        if not names:
            return np.empty((0, self.width), np.float32)
        features_SF = self._of_arrays(names) if _is_array(names[0]) else self._of_sound(names)
        if features_SF.shape[1] != self.width:
            raise InputError(
                f"{called(text)}: expected {self.width} features a frame; got {features_SF.shape[1]}. The model reads "
                "features of the kind that it was trained on."
            )
        if not torch.isfinite(features_SF).all():
            raise InputError(f"{called(text)}: expected finite numbers; got NaN or infinity.")
        if self.features == "whisper" or not len(features_SF):
            return features_SF.numpy()
        return normalized(features_SF, self.normalization).numpy()

    def _of_arrays(self, names: Sequence[str]) -> Tensor:
        features_SF = torch.from_numpy(np.concatenate([read_features(name, self.root) for name in names]))
        return stretched(features_SF, self.speed) if len(features_SF) else features_SF

    def _of_sound(self, names: Sequence[str]) -> Tensor:
        if self.rate is None:
            raise InputError(
                f"{called(names[0])}: expected an array of features, FILE.npy:START:FRAMES; this model was trained on "
                "features that were computed elsewhere, and cannot compute them from sound."
            )
        return self._of_wave(self._wave(names, self.rate))

    def _of_wave(self, wave_N: Tensor) -> Tensor:
        if self.features == "filterbank" and self.rate:
            return filterbank(wave_N, self.rate, self.width)
        return log_mel(wave_N, self.width) if len(wave_N) else torch.zeros(0, self.width)

    def _wave(self, names: Sequence[str], target_rate: int) -> Tensor:
        waves: list[Tensor] = []
        uploaded = 0.0
        for name in names:
            limit = self.seconds if name.startswith(DATA) else None
            wave_N, rate = read_samples(name, self.root, limit)
            uploaded += len(wave_N) / rate
            if limit is not None and uploaded > limit:
                raise InputError(f"{called(name)}: longer than the {limit:g} seconds that this server hears, together.")
            rate = round(rate * self.speed)
            waves.append(resampled(wave_N, rate if limit is None else manageable(rate, target_rate), target_rate))
        return torch.cat(waves)


def _is_array(name: str) -> bool:
    """Whether it names features, not sound."""
    return ARRAY.fullmatch(name) is not None and not name.startswith(DATA)
