"""Texts whose words have labels: which files are, what they hold, and what follows from that.

The figures follow the recipes for WNUT-17 and UD English LinES, `recipes/wnut17.toml` and
`recipes/ud-english-lines-upos.toml`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.printable import NAMED, quoted
from transduce.data.files import lasting_file, suffix_of
from transduce.data.formats.jsonl import Jsonl
from transduce.data.pairs.inputs import Inputs, Named, training_name
from transduce.data.structures.label_schemes import OUTSIDE, Scheme, parts_of, spans_of
from transduce.data.structures.word_units import Unit
from transduce.data.tagged import SUFFIXES, TaggedFile, TaggedTexts, check_labels, one_scheme, read_tagged
from transduce.data.tagged_columns import OBJECTS, TABLES, TEXTS, TaggedShape, looked_at
from transduce.planning.decisions import Decision, Size
from transduce.planning.facts import SAMPLED, SideFacts, side_facts
from transduce.planning.protocols import Recognised
from transduce.planning.single_files import entry_as, refuse_options, training_file, with_held_out
from transduce.planning.tasks.base import HELD_OUT_SHARE, EncoderPlanner

FEWEST, USEFUL = 20, 500  # texts: of fewer nothing is learnt; of fewer little
RARE = 5  # spans or words of a label, of fewer it is hardly learnt
SIZES = ((0, 64), (10_000, 128), (500_000, 256))  # words from which a recurrent network is so wide
EPOCHS, EPOCHS_UP_TO = 12, 100_000  # of so many words; of more, fewer in proportion to their root
PIECES_A_WORD = 1.3  # of BPE
LARGE = 1_000_000  # words from which there is room for more pieces
TOLD = 5  # labels
MARKS, GLUED = set('.,!?;:"()'), set(',!?;:")')  # words of their own, and what ends no word then
APART, GLUED_SHARE = 0.03, 0.01  # of the words
A_CHARACTER = 1.5  # characters of a word on average, below which words are characters


def recognise(named: Named) -> Recognised | None:
    """That the files hold words with labels; None: they hold something else, or cannot be read."""
    of_pairs = named.target or named.languages or named.source_separator or named.separator or named.root
    path = None if of_pairs else training_file(named.source, _may_be_tagged)
    try:
        found = looked_at(path) if path else None
    except InputError:  # which the planner of pairs tells
        return None
    return Recognised(f"words with labels, as {found.why}", sure=found.named) if found else None


def _may_be_tagged(path: Path) -> bool:
    return suffix_of(path) in (*SUFFIXES, *OBJECTS, *TABLES, *TEXTS)


def tagged_inputs(named: Named) -> Inputs:
    """The files that are meant, as entries of [data] of a tagger.

    Raises:
        InputError: files that are missing, options of pairs.
    """
    how = "Name one file, and its columns by --source-column (words) and --target-column (labels)."
    refuse_options(named, "tagging", how, columns=True)
    path = training_file(named.source, _may_be_tagged)
    if path is None:
        lasting_file(named.source)
        raise InputError(
            f"{named.source}: expected words with labels: .conll, .bio, .iob, .conllu, .jsonl, .csv with columns such "
            "as sentence, word and tag, or .txt and .tsv with a word and its label a line; or a folder with "
            "train.conll or such."
        )
    lasting_file(path)
    shape = looked_at(path)
    entry: dict[str, Any] = {"file": str(path)}
    entry |= {"format": shape.format} if shape and shape.format else {}
    entry |= {"word": named.columns[0]} if named.columns else {}
    entry |= {"label": named.target_column} if named.target_column is not None else {}
    entry_as(TaggedFile, entry)
    inputs = Inputs(training_name(_plain(named.source), ("", "")), entry, notes=(_told(named, path, shape),))
    return with_held_out(inputs, named, path)


def _plain(path: Path) -> Path:
    """Without the suffix that only such files have."""
    suffix = suffix_of(path)
    return path.with_name(path.name[: path.name.lower().rindex(suffix)]) if suffix in SUFFIXES else path


def _told(named: Named, path: Path, found: TaggedShape | None) -> str:
    why = f", as {found.why}" if found else ""
    other = "" if named.task else " To train on pairs of texts instead: --task translation."
    return f"{path}: trains a tagger{why}.{other}"


@dataclass(frozen=True)
class TagFacts:
    """A corpus of texts whose words have labels.

    labels: how many words each has, the commonest first. kinds: how many spans each kind has; none without a scheme.
    text: of its texts, a space between words.
    """

    texts: int
    labels: Mapping[str, int]
    kinds: Mapping[str, int]
    scheme: Scheme
    text: SideFacts

    @property
    def examples(self) -> int:
        """The texts."""
        return self.texts

    @property
    def amount(self) -> int:
        """The words."""
        return sum(self.labels.values())

    @property
    def unit(self) -> str:
        """The kind of tokenizer."""
        return "character" if self.text.word_length < A_CHARACTER else "bpe"

    @property
    def positions(self) -> int:
        """As `ReadFacts.positions`."""
        each = PIECES_A_WORD if self.unit == "bpe" else 1.0
        return max(1, round(each * self.amount))

    @property
    def longest(self) -> float:
        """As `ReadFacts.longest`."""
        return self.text.longest / self.text.characters * self.positions / self.texts

    def to_lines(self) -> list[str]:
        """Texts, words, labels or kinds of spans, in sentences."""
        counted, what = (self.kinds, "kinds of spans") if self.kinds else (self.labels, "labels")
        shown = [f"{label} {count:,}" for label, count in list(counted.items())[:TOLD]]
        more = f" and {len(counted) - TOLD:,} more" if len(counted) > TOLD else ""
        scheme = f" Labels follow {self.scheme.upper()}." if self.kinds else ""
        return [
            f"{self.texts:,} texts of {self.amount:,} words with {len(counted):,} {what}: {', '.join(shown)}{more}."
            + scheme
        ]


def tag_facts(file: TaggedFile, read: TaggedTexts) -> TagFacts:
    """The facts of what was read of a file.

    Raises:
        InputError: fewer than 2 labels or 20 texts.
    """
    if len(read.examples) < FEWEST:
        raise InputError(
            f"{file.file}: expected at least {FEWEST} texts, with an empty line between; found {len(read.examples):,}."
        )
    check_labels(Path(file.file), read.labels)
    scheme = one_scheme([read])
    texts = [words for _, words, _ in read.examples]
    sample = texts[:: max(1, len(texts) // SAMPLED)]
    return TagFacts(len(texts), _by_count(read.labels), _kinds(read, scheme), scheme, side_facts(sample))


def _kinds(read: TaggedTexts, scheme: Scheme) -> dict[str, int]:
    """How many spans each kind has."""
    if scheme == "none" or all(not parts_of(label).kind for label in read.labels):
        return {}
    return _by_count(Counter(span.kind for *_, labels in read.examples for span in spans_of(labels.split(" "))))


def _by_count(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


class TagsPlanner(EncoderPlanner):
    """A `TaskPlanner` for texts whose words have labels.

    Raises:
        InputError: as `tagged_inputs`.
    """

    kind, model, readers = "tagging", "tagger", ("tagger",)
    unit = "words"
    sizes = SIZES
    epochs, epochs_up_to = EPOCHS, EPOCHS_UP_TO
    held_out_how = "whole documents where the file marks them, else the same text on one side"
    files = staticmethod(tagged_inputs)

    @cached_property
    def facts(self) -> TagFacts:
        """Raises InputError as `read_tagged` and `tag_facts`."""
        file = TaggedFile.model_validate(self.inputs.train)
        split = self._unit == "split"
        return tag_facts(file, read_tagged(file, Path(), "split") if split else self._read_as_words)

    @cached_property
    def _read_as_words(self) -> TaggedTexts:
        return read_tagged(TaggedFile.model_validate(self.inputs.train), Path(), "word")

    @cached_property
    def _unit(self) -> Unit:
        """What labels are of: words as they stand; of raw text words without their punctuation."""
        path = Path(self.inputs.train["file"])
        if suffix_of(path) not in OBJECTS:
            return "split" if self._punctuation_is_apart else "word"
        first = next((each.value for each in Jsonl().objects(path)), None)
        return "split" if isinstance(first, dict) and not {"tokens", "words"} & first.keys() else "word"

    @cached_property
    def _punctuation_is_apart(self) -> bool:
        """Whether marks such as commas are words of their own in the file, as they are not in raw text."""
        words = Counter(
            word for _, text, _ in islice(self._read_as_words.examples, SAMPLED) for word in text.split(" ")
        )
        apart = sum(count for word, count in words.items() if word in MARKS)
        glued = sum(count for word, count in words.items() if len(word) > 1 and word[-1] in GLUED)
        return apart >= APART * words.total() and glued < GLUED_SHARE * words.total()

    def warnings(self) -> list[str]:
        """That there are few texts, or few of a label."""
        found, facts = list[str](), self.facts
        counted, what = (facts.kinds, "kinds") if facts.kinds else (facts.labels, "labels")
        rare = [label for label, count in counted.items() if count < RARE and label != OUTSIDE]
        if facts.texts < USEFUL:
            found.append(
                f"{facts.texts:,} texts are few: you need at least {USEFUL}, preferably thousands. Scores on so few "
                "held-out texts mean little."
            )
        if rare:
            named = quoted(rare, NAMED)
            found.append(f"{len(rare):,} {what} occur fewer than {RARE} times ({named}), and will hardly be learnt.")
        return found

    def _task(self) -> list[Decision]:
        kind = "chosen by you" if self.named.task else "words have labels"
        spans = self.facts.scheme != "none"
        metrics = ["entity_f1", "accuracy"] if spans else ["accuracy", "macro_f1"]
        why = "spans whose words and kind are right" if spans else "the share of words with the right label"
        raw = "punctuation stands apart, so that raw text can be labelled, too"
        return [
            Decision("task.kind", "tagging", kind),
            Decision("task.metrics", metrics, why),
            *([Decision("data.unit", "split", raw)] if self._unit == "split" else ()),
            Decision("training.best", metrics[0], why),
            Decision("training.decode_sentences", 2 * HELD_OUT_SHARE[1], "all, as labels are quickly found"),
        ]

    def _tokenizer(self) -> list[Decision]:
        if self.facts.unit == "character":
            size = max(16, self.facts.text.alphabet + 16)
            return [
                Decision("tokenizer.kind", "character", "each character has a label"),
                Decision("tokenizer.vocabulary", size, f"{self.facts.text.alphabet:,} characters"),
            ]
        size = 8_000 if self.facts.amount < LARGE else 16_000
        reason = "words are read from their pieces, and from their characters"
        return [
            Decision("tokenizer.kind", "bpe", reason),
            Decision("tokenizer.vocabulary", size, "as in the recipe for WNUT-17; more for a million words"),
        ]

    def _model(self, size: Size) -> list[Decision]:
        published, reason = "as in the recipe for WNUT-17, see docs/tagging.md", self._for_amount(size)
        crf = "labels of a scheme depend on the one before" if self.facts.scheme != "none" else ""
        return [
            Decision("model.kind", "tagger", published),
            Decision("model.encoder", "recurrent", published),
            Decision("model.cell", "lstm", published),
            *([Decision("model.crf", True, crf)] if crf else ()),
            Decision("model.d_model", size.width, reason),
            Decision("model.hidden", 2 * size.width, "both directions, each as wide as an embedding"),
            Decision("training.learning_rate", 3e-3, published),
        ]
