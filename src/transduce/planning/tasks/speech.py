"""Recordings and what is said in them: where they lie, what they are, and what follows from that.

The figures follow the recipes for FSDD, `recipes/fsdd.toml` and `recipes/fsdd-strings.toml`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.data.formats import Key
from transduce.data.pairs.inputs import HELD_OUT, Inputs, Named, of_several, part_of, stem_of, training_name
from transduce.data.speech.layouts import Layout, layout_of
from transduce.data.speech.recordings import RecordingFile, RecordingParts, check_there, read_recordings
from transduce.planning.decisions import Decision, Size
from transduce.planning.facts import SideFacts, side_facts
from transduce.planning.protocols import Recognised, Start
from transduce.planning.single_files import refuse_options
from transduce.planning.tasks.base import EncoderPlanner

FEWEST, USEFUL = 50, 1_000  # recordings: of fewer nothing is learnt; of fewer little
SIZES = ((0, 64), (600, 128), (36_000, 256))  # seconds of sound from which a model is so wide
ATTENTION = 3600  # seconds of sound from which a Transformer has enough to learn from
EPOCHS, EPOCHS_UP_TO = 35, 3600  # of so many seconds; of more, fewer in proportion to their root
FRAMES = 100  # a second
HEARD = 200  # recordings whose lengths are looked at
TELEPHONE = 8_000  # samples a second, up to which there are half as many features
RATE = 16_000
SHORT = 1.5  # seconds on average, below which what tells words apart is loudness and colour
PARTS = 10  # of speakers or recordings, of which one is for validation, and one the test
LEAST_TRAINING = 0.5  # of the recordings, which are left to train on
FEW_WORDS = 100  # different ones, of which an output is right or wrong


def recognise(named: Named) -> Recognised | None:
    """That the files are recordings with texts; None: they are something else, or cannot be read."""
    if named.target or named.languages or named.source_separator or named.separator or named.root:
        return None
    try:
        found = layout_of(named.source, named.columns, named.target_column)
    except (InputError, OSError):  # which the planner of pairs tells
        return None
    return Recognised(f"recordings with what is said in them, as {found.why}") if found else None


def recorded_inputs(named: Named) -> Inputs:
    """The recordings that are meant, as entries of [data] of a recognizer.

    Raises:
        InputError: there are none, options of pairs.
    """
    how = "Name a folder or a table, and its columns by --source-column (sounds) and --target-column (texts)."
    refuse_options(named, "speech_recognition", how, columns=True)
    found = layout_of(named.source, named.columns, named.target_column)
    if found is None:
        raise InputError(
            f"{named.source}: expected recordings and what is said in them: a folder of sounds with metadata.csv, "
            "train.tsv (Common Voice), *.trans.txt (LibriSpeech), or a .txt beside each sound; or a table that names "
            "sound files. Sounds lie beside a table, or in a folder there such as clips or wavs."
        )
    other = "" if named.task else " To train on pairs of texts instead: --task translation."
    notes = (f"{found.table}: trains a speech recognizer, as {found.why}.{other}",)
    inputs = Inputs(training_name(named.source, ("", "")), found.entry, notes=notes)
    return _with_named(_beside(inputs, named.source, found), named)


def _beside(inputs: Inputs, source: Path, found: Layout) -> Inputs:
    """With dev.tsv and test.tsv beside train.tsv in a folder."""
    if not source.is_dir() or found.table == source or part_of(found.table.name) != "train":
        return inputs
    alike = sorted(each for each in source.iterdir() if each.suffix == found.table.suffix and each.is_file())
    entries = {stem_of(each): {**found.entry, "file": str(each)} for each in alike}
    validation = [stem for stem in entries if part_of(stem) == "validation"]
    tests = {stem: entry for stem, entry in entries.items() if part_of(stem) == "test"}
    several = (of_several(source, *validation),) if len(validation) > 1 else ()
    first = entries[validation[0]] if validation else None
    return replace(inputs, validation=first, tests=tests, notes=(*inputs.notes, *several))


def _with_named(inputs: Inputs, named: Named) -> Inputs:
    """With the held-out recordings that were named."""
    for part in HELD_OUT:
        if getattr(named, f"{part}_target") is not None:
            raise InputError(f"--{part}-target: is for pairs of texts; name a folder or a table as --{part}.")
        path = getattr(named, part)
        if path is None:
            continue
        found = layout_of(path, named.columns, named.target_column)
        if found is None:
            raise InputError(f"{path}: expected recordings and what is said in them, as in {named.source}.")
        held_out: dict[str, Any] = {"tests": {part: found.entry}} if part == "test" else {"validation": found.entry}
        inputs = replace(inputs, named=(*inputs.named, part), **held_out)
    return inputs


@dataclass(frozen=True)
class SpeechFacts:
    """Recordings with their texts.

    seconds: of all. longest_seconds: of a recording that was looked at. rate: samples a second of most.
    text: of a text.
    split: the column by which parts are told apart, and what it holds; None: nothing tells them apart.
    """

    recordings: int
    seconds: float
    longest_seconds: float
    rate: int
    text: SideFacts
    split: tuple[Key, str] | None

    @property
    def examples(self) -> int:
        """The recordings."""
        return self.recordings

    @property
    def amount(self) -> int:
        """The seconds."""
        return max(1, round(self.seconds))

    @property
    def positions(self) -> int:
        """The frames."""
        return max(1, round(FRAMES * self.seconds))

    @property
    def longest(self) -> float:
        """Frames of the longest."""
        return FRAMES * self.longest_seconds

    @property
    def closed(self) -> bool:
        """Whether texts are of few different words."""
        return self.text.types <= FEW_WORDS

    def to_lines(self) -> list[str]:
        """Recordings, time and texts, in sentences."""
        minutes = f"{self.seconds / 60:,.0f} minutes" if self.seconds >= 600 else f"{self.seconds:,.0f} seconds"
        return [
            f"{self.recordings:,} recordings, about {minutes}, {self.seconds / self.recordings:.1f} seconds each, "
            f"{self.rate:,} samples a second; {self.text.characters:.0f} characters a text."
        ]


def speech_facts(entry: dict[str, Any], speaker: Key | None) -> SpeechFacts:
    """The facts of recordings; how long they are, of a sample where there are many.

    Args:
        speaker: the column that tells who speaks.

    Raises:
        InputError: what `read_recordings` refuses; sounds that are not there, or cannot be read; fewer than 50 with a
            text.
    """
    file = RecordingFile.model_validate(entry)
    found = list(read_recordings(file, Path()))
    check_there(file.file, [(line, name) for line, name, _ in found])
    texts = [text for _, _, text in found if text.strip()]
    if len(texts) < FEWEST:
        raise InputError(f"{file.file}: expected at least {FEWEST} recordings with a text; found {len(texts):,}.")
    heard = [_heard(name) for _, name, _ in found[:: max(1, len(found) // HEARD)]]
    rate = Counter(each for _, each in heard).most_common(1)[0][0]
    lengths = [seconds for seconds, _ in heard]
    seconds = fmean(lengths) * len(found)
    return SpeechFacts(len(found), seconds, max(lengths), rate, side_facts(texts), _split(file, speaker, len(found)))


def _heard(name: str) -> tuple[float, int]:
    """The seconds of a sound, and its samples a second. Raises InputError for what cannot be read."""
    soundfile = library("soundfile", "reading sound files", "speech")
    try:
        found = soundfile.info(name)
    except Exception as error:  # soundfile has many ways to fail
        raise InputError(f"{name}: not a sound file that can be read ({error}).") from None
    return found.frames / max(1, found.samplerate), int(found.samplerate)


def _split(file: RecordingFile, speaker: Key | None, count: int) -> tuple[Key, str] | None:
    """By what recordings are divided into parts: by speakers if these leave enough to train on, else one by one."""
    name: Key = "name" if file.layout else file.audio
    for by, what in ((speaker, "speakers"), (name, "recordings")):
        if by is None:
            continue
        parts = [_taken(file, by, [part]) for part in (0, 1)]
        if all(parts) and count - sum(parts) >= LEAST_TRAINING * count:
            return by, what
    return None


def _taken(file: RecordingFile, by: Key, take: Sequence[int]) -> int:
    """How many recordings these parts have."""
    parts = RecordingParts(by=by, of=PARTS, take=tuple(take))
    return sum(1 for _ in read_recordings(file.model_copy(update={"parts": parts}), Path()))


class SpeechPlanner(EncoderPlanner):
    """A `TaskPlanner` for recordings with what is said in them.

    Raises:
        InputError: as `recorded_inputs`.
    """

    kind, model, readers = "speech_recognition", "transformer", ("transformer", "rnn", "ctc")
    unit = "seconds of sound"
    sizes = SIZES
    epochs, epochs_up_to = EPOCHS, EPOCHS_UP_TO
    most = 8192
    files = staticmethod(recorded_inputs)

    @cached_property
    def facts(self) -> SpeechFacts:
        """Raises InputError as `speech_facts`."""
        found = layout_of(self.named.source, self.named.columns, self.named.target_column)
        return speech_facts(self.inputs.train, found.speaker if found else None)

    def warnings(self) -> list[str]:
        """That there are few recordings."""
        if self.facts.recordings >= USEFUL:
            return []
        few = f"{self.facts.recordings:,} recordings are few"
        return [f"{few}: you need at least {USEFUL:,}, preferably hours of them."]

    def _task(self) -> list[Decision]:
        facts, kind = self.facts, "chosen by you" if self.named.task else "recordings with texts"
        metrics = ["cer", "exact_match"] if facts.closed or facts.text.kind == "unspaced" else ["cer", "wer"]
        rate = min(RATE, facts.rate)
        mels = 40 if rate <= TELEPHONE else 80
        short = facts.seconds / facts.recordings < SHORT
        heard = "training hears each recording at other speeds, and with parts of it hidden"
        return [
            Decision("task.kind", self.kind, kind),
            Decision("task.metrics", metrics, "how many characters are wrong, and words or whole texts"),
            Decision("data.rate", rate, f"most recordings have {facts.rate:,} samples a second"),
            Decision("data.mels", mels, "80, of telephone sound 40"),
            *([Decision("data.normalization", "utterance", "single words: what tells them apart")] if short else []),
            Decision("data.speeds", [0.9, 1.1], heard),
            Decision("data.spec_augment", {"time_width": 10, "feature_width": 6}, heard),
            Decision("training.best", "cer", "the fewest wrong characters"),
            Decision("training.decode_sentences", 200, "enough to tell weights apart, and quickly written"),
        ]

    def _held_out(self, validation: bool, test: bool) -> list[Decision]:
        wanted = {"test": 0} if not test else {}
        wanted |= {"validation": 1} if not validation else {}
        if not wanted:
            return []
        if self.facts.split is None:
            raise InputError(
                f"{self.inputs.train['file']}: too few recordings to hold some out. Name files: "
                f"{' '.join(f'--{part} FILE' for part in wanted)}."
            )
        by, what = self.facts.split
        reason = f"a tenth of the {what} each, by a hash; the others are trained on"
        left = [part for part in range(PARTS) if part not in wanted.values()]
        found = [Decision("data.train", [self._part(by, left)], reason)]
        if "validation" in wanted:
            found.append(Decision("data.validation", self._part(by, [1]), reason))
        if "test" in wanted:
            found.append(Decision("data.test", {"held_out": self._part(by, [0])}, reason))
        return found

    def _part(self, by: Key, take: Sequence[int]) -> dict[str, Any]:
        return {**self.inputs.train, "parts": {"by": by, "of": PARTS, "take": [*take]}}

    def _filters(self) -> list[Decision]:
        """None: data.max_frames is half a minute."""
        return []

    def _tokenizer(self) -> list[Decision]:
        alphabet = self.facts.text.alphabet
        return [
            Decision("tokenizer.kind", "character", "what is said is spelt"),
            Decision("tokenizer.vocabulary", max(16, alphabet + 16), f"{alphabet:,} characters"),
            Decision("tokenizer.min_frequency", 1, "each is needed, however rare"),
        ]

    def _model(self, size: Size) -> list[Decision]:
        return self._transformer(size) if self.facts.seconds > ATTENTION else self._rnn(size)

    def _rnn(self, size: Size) -> list[Decision]:
        published = "as in the recipe for FSDD, see docs/results.md"
        return [
            Decision("model.kind", "rnn", published),
            Decision("model.d_model", 3 * size.width // 4, self._for_amount(size)),
            Decision("model.hidden", size.width, self._for_amount(size)),
            Decision("model.dropout", 0.3, published),
            Decision("training.learning_rate", 2e-3, published),
        ]

    def _transformer(self, size: Size) -> list[Decision]:
        published = "as in the recipe for strings of FSDD, see docs/results.md"
        searched = "search also weighs CTC and n-grams of the texts, see docs/speech.md"
        return [
            Decision("model.kind", "transformer", "more than an hour of sound is enough for self-attention"),
            Decision("model.d_model", size.width, self._for_amount(size)),
            Decision("model.heads", max(2, size.width // 32), "heads of 32 numbers"),
            Decision("model.feed_forward", 4 * size.width, published),
            Decision("model.encoder_layers", 4 if size.width < SIZES[-1][1] else 8, published),
            Decision("model.decoder_layers", 2, published),
            Decision("model.dropout", 0.1, published),
            Decision("model.ctc_weight", 0.3, published),
            Decision("training.learning_rate", 1e-3, published),
            Decision("search.ctc_weight", 0.5, searched),
            Decision("search.lm_weight", 0.2, searched),
        ]

    def decide(self, validation: bool, test: bool, size: Size, start: Start | None) -> list[Decision]:
        """As `TaskPlanner.decide`; a batch is counted in frames."""
        seen = f"about 60 updates hear all recordings, in frames; 512 at least, {self.most:,} at most"
        decided = super().decide(validation, test, size, start)
        return [each._replace(reason=seen) if each.key == "batch.tokens" else each for each in decided]
