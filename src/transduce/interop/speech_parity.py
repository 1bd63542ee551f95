"""Whether a converted Whisper writes down the same as transformers, or CTranslate2, does from the same folder.

Shapes: N samples, S frames, F features, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.data.columns.frames import Frames
from transduce.data.columns.tokens import Tokens
from transduce.inference.prediction import Prediction
from transduce.interop.import_whisper import is_whisper_ctranslate2
from transduce.interop.parity import PLAIN, FirstDifference, Text

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

Listen = Callable[[str], list[int]]  # the tokens of a recording, without those that an output begins with, and the end


@dataclass(frozen=True)
class SpeechParity:
    """What a comparison found. equal: recordings of the same tokens. first: the first that is not equal."""

    engine: str
    text: str
    recordings: int
    left_out: int
    equal: int
    first: FirstDifference | None

    @property
    def holds(self) -> bool:
        """Whether all outputs are equal."""
        return self.equal == self.recordings

    @property
    def failure(self) -> str:
        """What to tell where it does not hold."""
        return f"{self.recordings - self.equal:,} of {self.recordings:,} outputs differ."

    def report(self) -> list[str]:
        left_out = f"; {self.left_out:,} empty, or longer than 30 s, and left out" if self.left_out else ""
        told = [
            f"{self.engine} and Transduce on {self.recordings:,} recordings of {self.text}, greedy, fp32{left_out}:",
            f"  equal tokens     {self.equal:,} of {self.recordings:,}",
        ]
        if self.first:
            told += [
                f"  first difference line {self.first.line}: {self.first.source}",
                f"    Transduce      {self.first.ours}",
                f"    {self.engine:<14} {self.first.theirs}",
            ]
        return told


def engine_of(folder: Path) -> str:
    """The library that runs the original."""
    return "ctranslate2" if is_whisper_ctranslate2(folder) else "transformers"


def compare_speech(pipeline: "Pipeline", folder: Path, text: Text) -> SpeechParity:
    """Ours and theirs on recordings, one a line.

    Raises:
        InputError: the library is missing; a recording cannot be read; none can be compared.
    """
    engine = engine_of(folder)
    listen = (_ctranslate2 if engine == "ctranslate2" else _transformers)(pipeline, folder)
    column, target = pipeline.task.columns["source"], pipeline.task.columns["target"]
    assert isinstance(target, Tokens)
    parts = column.encode_audio(text.lines) or []
    kept = [place for place, each in enumerate(parts) if len(each) == 1 and text.lines[place].strip()]
    if not kept:
        raise InputError(f"{text.name}: none of its {len(text.lines):,} recordings can be compared.")
    names = [text.lines[place] for place in kept]
    found = pipeline.predict(names, batch_size=4, **PLAIN)
    theirs = [listen(name) for name in names]
    ours = [_written(target, *both) for both in zip(found, theirs, strict=True)]
    apart = [row for row, both in enumerate(zip(ours, theirs, strict=True)) if both[0] != both[1]]
    first = None
    if apart:
        row, shown = apart[0], [target.decode(each[apart[0]]).strip() for each in (ours, theirs)]
        first = FirstDifference(kept[row] + 1, names[row], *shown)
    left_out = len(text.lines) - len(kept)
    return SpeechParity(engine, text.name, len(kept), left_out, len(kept) - len(apart), first)


def _written(target: Tokens, prediction: Prediction, theirs: Sequence[int]) -> list[int]:
    """The tokens behind what an output begins with; of one that was cut off, as many as theirs, which is too."""
    ids = target.ids(prediction.tokens)[len(target.opening) :]
    return ids if prediction.ended else ids[: len(theirs)]


def _ctranslate2(pipeline: "Pipeline", folder: Path) -> Listen:
    ctranslate2 = library("ctranslate2", "comparing with ctranslate2", "ctranslate2")
    model = ctranslate2.models.Whisper(
        str(folder), device="cpu", compute_type="float32", intra_threads=torch.get_num_threads()
    )
    most = pipeline.recipe.model.max_length  # type: ignore[attr-defined]
    column, target = pipeline.task.columns["source"], pipeline.task.columns["target"]
    assert isinstance(target, Tokens)

    def listen(name: str) -> list[int]:
        [mel_SF] = column.encode([name])
        features = ctranslate2.StorageView.from_array(torch.as_tensor(mel_SF).T[None].contiguous().numpy())
        how = {"beam_size": 1, "max_length": most, "suppress_tokens": target.unwritten}
        [found] = model.generate(features, [[*target.before]], **how)
        return [*found.sequences_ids[0]]

    return listen


def _transformers(pipeline: "Pipeline", folder: Path) -> Listen:
    """With the feature extractor of transformers, on sound that we have resampled."""
    transformers = library("transformers", "comparing with transformers", "huggingface")
    model = transformers.WhisperForConditionalGeneration.from_pretrained(str(folder), dtype=torch.float32).eval()
    column, target = pipeline.task.columns["source"], pipeline.task.columns["target"]
    assert isinstance(column, Frames) and isinstance(target, Tokens)
    extractor = transformers.WhisperFeatureExtractor(feature_size=column.width)
    prompt = [target.start, *target.opening]
    most = pipeline.recipe.search.limit(0) - len(target.opening)

    @torch.inference_mode()
    def listen(name: str) -> list[int]:
        sound_N = column.sound(name)
        assert sound_N is not None
        mel_1FS = extractor(sound_N.numpy(), sampling_rate=column.rate, return_tensors="pt").input_features
        return _greedy(model, mel_1FS, prompt, most, target)

    return listen


def _greedy(model: Any, mel_1FS: Any, prompt: Sequence[int], most: int, target: Tokens) -> list[int]:
    encoded, found = model.get_encoder()(mel_1FS), list[int]()
    while len(found) < most:
        read = torch.tensor([[*prompt, *found]])
        logits_V = model(encoder_outputs=encoded, decoder_input_ids=read).logits[0, -1]
        logits_V[[*target.unwritten, *([] if found else target.unwritten_first)]] = -torch.inf
        likeliest = int(logits_V.argmax())
        if likeliest == target.end:
            break
        found.append(likeliest)
    return found
