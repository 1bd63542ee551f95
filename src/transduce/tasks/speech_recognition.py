"""Speech in, what is said out."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator
from torch import nn

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.columns import Columns
from transduce.data.columns.frames import Features, Frames
from transduce.data.columns.tokens import Tokens
from transduce.data.corpus import provenance
from transduce.data.encoding import open_examples
from transduce.data.filters import Dropped, FilterConfig
from transduce.data.input_file import InputFile
from transduce.data.kneser_ney import KneserNey
from transduce.data.remote import located
from transduce.data.speech.audio import ARRAY, read_features
from transduce.data.speech.filterbank import Normalization
from transduce.data.speech.inputs import read_recording_inputs
from transduce.data.speech.log_mel import FRAMES, RATE
from transduce.data.speech.recordings import RecordingFile, Recordings, read_recordings, recordings_digest
from transduce.data.store import Store
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.inference.prediction import Prediction
from transduce.objectives.protocols import Objective
from transduce.objectives.spec_augment import SpecAugment, SpecAugmentConfig
from transduce.objectives.text import LossConfig
from transduce.search.request import Request
from transduce.search.settings import Search
from transduce.tasks.base import TextTask, named_files
from transduce.tasks.protocols import Baseline, Dataset, TaskData, Tell

NO_LIMIT = 1_000_000  # frames, and frames for a token
MOST_TOKENS = 224  # that Whisper writes of 30 s; it has learned positions for twice as many
SILENCE = 5.0  # seconds of computing features before anything is told
FRAMES_A_TOKEN = 4  # nobody speaks a character in less than 40 ms; the limit of an output is counted in these


class SpeechRecognitionConfig(Config):
    """What a recognizer is judged by."""

    kind: Literal["speech_recognition"] = "speech_recognition"
    target: str = ""
    """Language code of what is said, such as en."""
    metrics: tuple[str, ...] = ("cer", "wer")
    """What validation, the final tests and `evaluate` report: cer, wer, exact_match."""
    baseline: bool = True
    """At the end, also test a baseline that answers with the text of the nearest training recording."""


class SpeechData(Config):
    """The recordings of a recognizer; paths are relative to `root`, `root` to the working directory."""

    root: str = "."
    """Where the files lie."""
    train: tuple[RecordingFile, ...]
    """One file or several, each with its weight."""
    validation: RecordingFile | None = None
    """Picks the best weights."""
    test: dict[str, RecordingFile] = Field(default_factory=dict)
    """By name; scored once, at the end."""
    words: dict[str, str] | None = None
    """What the files' texts are called: { 0 = "零", 1 = "一" }; recordings of any other are left out."""
    rate: int = Field(default=16_000, ge=1000)
    """Samples a second that sound is brought to."""
    mels: int = Field(default=80, ge=1, le=1000)
    """Mel filters of a frame, which are computed from sound; ready-made features have as many as they have."""
    features: Features = "filterbank"
    """What is computed from sound. filterbank: as Kaldi has it, with `normalization`. whisper: as Whisper has it, at
    16,000 samples a second; every utterance is 30 s long, 3,000 frames, and is not normalised."""
    normalization: Normalization = "feature"
    """What gets mean 0 and variance 1 over an utterance. feature: each feature by itself, which takes away microphone
    and room. utterance: all features together, which keeps what tells one short word from another."""
    max_frames: int = Field(default=3000, ge=1)
    """Training leaves out longer utterances; a frame begins every 10 ms."""
    speeds: tuple[float, ...] = ()
    """Training also hears each utterance so many times as fast, such as [0.9, 1.1]."""
    spec_augment: SpecAugmentConfig | None = None
    """What training hides of each utterance: {} for the defaults."""

    @field_validator("speeds")
    @classmethod
    def _are_speeds(cls, speeds: tuple[float, ...]) -> tuple[float, ...]:
        if wrong := [speed for speed in speeds if not 0.25 <= speed <= 4 or speed == 1]:
            raise ValueError(f"expected speeds between 0.25 and 4 other than 1, which is always there; got {wrong}")
        return speeds

    @model_validator(mode="after")
    def _whisper_hears_its_rate(self) -> Self:
        if self.features == "whisper" and self.rate != RATE:
            raise ValueError(f'features = "whisper" are computed at rate = {RATE:_}; got {self.rate:_}')
        return self

    @model_validator(mode="after")
    def _has_training_speech(self) -> Self:
        if not self.train:
            raise ValueError('name at least one training file: [[data.train]] file = "train.tsv"')
        return self


class SpeechRecognition(TextTask):
    """Frames -> text, through an encoder-decoder or a model that aligns."""

    Config = SpeechRecognitionConfig
    Data = SpeechData
    kinds: ClassVar[dict[str, str]] = {"source": "frames", "target": "tokens"}
    fingerprints = staticmethod(named_files)
    exposure_bias: ClassVar[bool] = True

    def __init__(self, config: SpeechRecognitionConfig, data: SpeechData, columns: Columns) -> None:
        super().__init__(config, data, columns)
        frames = columns["source"]
        assert isinstance(frames, Frames)
        self.frames = replace(frames, root=self.root)
        self.columns = {**columns, "source": self.frames}

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: SpeechData) -> Columns:
        """A tokenizer of what is said, and what a frame is.

        Raises:
            InputError: some recordings are sound and others ready-made features, or features of several widths.
        """
        root = Path(data.root)
        texts = (text for file in data.train for _, _, text in read_recordings(file, root, data.words))
        tokens = Tokens(train_tokenizer(config, texts, root), starts=True, ends=True)
        return {"source": _frames(data, root), "target": tokens}

    @staticmethod
    def recordings(data: SpeechData) -> Recordings:
        """Of all files."""
        files = {"train": data.train[0]}
        files |= {f"train {number}": file for number, file in enumerate(data.train[1:], 2)}
        files |= {"validation": data.validation} if data.validation else {}
        files |= {f"test {name}": file for name, file in data.test.items()}
        return Recordings(files, Path(data.root), data.words, data.rate, data.max_frames)

    def objective(self, model: nn.Module, config: LossConfig | None = None) -> Objective:
        """By how the model writes; training hides something of each utterance where the recipe says so."""
        inner, hiding = super().objective(model, config), self.data.spec_augment
        return inner if config is None or hiding is None else SpecAugment(inner, hiding)

    @property
    def max_source_length(self) -> int:
        """The longest utterance that training heard."""
        return self.data.max_frames

    @property
    def context(self) -> str:
        """The whole utterance and the text so far."""
        return "the speech and all target tokens before"

    @property
    def _longest(self) -> int:
        """The frames that a model can hear at once."""
        return FRAMES if self.frames.features == "whisper" else NO_LIMIT

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Compute the features of the recipe's recordings, or find them in the cache; dropped ones are told."""
        data = self.data
        corpora = [each for file in data.train for each in self._speeds(file, cache, tell)]
        found = {name: self._held_out(name, file, cache, tell) for name, file in self.held_out.items()}
        made_from = provenance(data.train, self.held_out, self.root)
        return TaskData(corpora, found.pop("validation", None), found, made_from)

    def read_inputs(self, path: Path) -> InputFile | None:
        """The recordings of a table or a folder, perhaps with their texts; None: the file has a name a line."""
        return read_recording_inputs(path, self.data.words)

    def baseline(self, data: TaskData, tell: Tell) -> Baseline | None:
        """What is said in the nearest recording of the training files."""
        from transduce.inference.nearest_examples import MOST_FRAMES, NearestRecordings

        if not self.config.baseline:
            return None
        recordings, targets = self._at_one_speed(data).examples(MOST_FRAMES)
        model = NearestRecordings.of(recordings)

        def answers(names: Sequence[str]) -> list[str]:
            nearest = model.nearest(self.frames.encode(names))
            return [self._written.decode(targets[each].tolist()).strip() for each in nearest]

        return Baseline("nearest recording", answers, {"frames": model.frames, "examples": len(recordings)})

    def count_ngrams(self, data: TaskData, tell: Tell) -> KneserNey:
        """Of what is said, once at whatever speeds."""
        return super().count_ngrams(self._at_one_speed(data), tell)

    def _at_one_speed(self, data: TaskData) -> TaskData:
        return replace(data, corpora=data.corpora[:: 1 + len(self.data.speeds)])

    def request(self, ids: Any, search: Search) -> Request:
        """The frames; the output may grow with them."""
        opening = self._written.opening
        limit = max(search.limit(-(-len(ids) // FRAMES_A_TOKEN)), len(opening) + 1)
        if self.frames.features == "whisper":
            limit = min(limit, len(opening) + MOST_TOKENS)
        least = search.min_length + len(opening) if search.min_length else 0
        return Request(limit, ids, opening, least)

    def postprocess(self, prediction: Prediction) -> Prediction:
        """Without a space before the first word, which some tokenizers write."""
        alternatives = tuple(self.postprocess(each) for each in prediction.alternatives)
        return replace(prediction, text=prediction.text.strip(), alternatives=alternatives)

    def _speeds(self, file: RecordingFile, cache: Path, tell: Tell) -> list[tuple[Store, float]]:
        """As it was spoken, and at other speeds, which share its weight."""
        speeds = (1.0, *self.data.speeds)
        longest = min(self.data.max_frames, self._longest)
        stores = [self._store(file, longest, cache, tell, speed) for speed in speeds]
        dropped = Dropped.from_dict(stores[0].metadata["dropped"])
        at = f" At speeds {', '.join(map(str, speeds))}." if self.data.speeds else ""
        tell(f"{located(self.root, file.file)}: {dropped.report('recordings')}{at}")
        return [(store, file.weight / len(speeds)) for store in stores]

    def _store(self, file: RecordingFile, max_frames: int, cache: Path, tell: Tell, speed: float = 1.0) -> Store:
        read = partial(read_recordings, file, self.root, self.data.words)
        recordings = list(read())
        digest = recordings_digest([name for _, name, _ in recordings], self.root)
        last = recordings[-1][0] if recordings else 0
        settings = {
            **file.model_dump(exclude={"file", "weight", "features"}),
            "words": self.data.words,
            "speed": speed,
            "recordings": digest,
        }
        filters = FilterConfig(max_tokens=max_frames, max_ratio=NO_LIMIT)
        columns = {**self.columns, "source": replace(self.frames, speed=speed)}
        pace = _pace(tell, f"{located(self.root, file.file)}{'' if speed == 1 else f', at speed {speed}'}", last)
        return open_examples(file.paths(self.root), read, columns, filters, cache, settings, pace)

    def _held_out(self, name: str, file: RecordingFile, cache: Path, tell: Tell) -> Dataset:
        store = self._store(file, self._longest, cache, tell)
        dropped = Dropped.from_dict(store.metadata["dropped"])
        if dropped.total:
            long = ", or is longer than 30 s" if self._longest == FRAMES else ""
            tell(f"{name}: the loss leaves out what has an empty side{long}. {dropped.report('recordings')}")
        return Dataset(store, [(said, text) for _, said, text in read_recordings(file, self.root, self.data.words)])


def _frames(data: SpeechData, root: Path) -> Frames:
    """What a frame of the training data is, by the first recording of each file."""
    firsts = [next(read_recordings(file, root, data.words), None) for file in data.train]
    names = [first[1] for first in firsts if first]
    arrays = [name for name in names if ARRAY.fullmatch(name)]
    if not arrays:
        return Frames(data.mels, data.rate, normalization=data.normalization, features=data.features)
    widths = {read_features(name, root).shape[1] for name in arrays}
    if len(arrays) < len(names) or len(widths) > 1:
        told = " and ".join(f"{width} features a frame" for width in sorted(widths))
        raise InputError(
            f"data.train: expected recordings of one kind; got {told}{' and sound' * (len(arrays) < len(names))}."
        )
    return Frames(widths.pop(), None, normalization=data.normalization)


def _pace(tell: Tell, named: str, last: int) -> Callable[[int], None]:
    """To be told the line up to which features are computed; tells now and then how long the rest will take."""
    begun = told = time.monotonic()

    def progress(line: int) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= SILENCE and line < last:
            told = now
            left = round((now - begun) * (last - line) / line)
            tell(f"{named}: features of {line / last:.0%} of the recordings are computed, {left} s left.")

    return progress
