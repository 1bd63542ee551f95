"""Text alone, for a language model, masked or not: where it lies, what it is, and what follows from that.

The figures follow the recipes for Penn Treebank, Tatoeba and Tiny Shakespeare, `recipes/ptb.toml`,
`recipes/tatoeba-english.toml` and `recipes/tinyshakespeare.toml`.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from transduce.core.errors import InputError
from transduce.data.corpus import TextFile, TsvColumn
from transduce.data.files import lasting_file, suffix_of, text_lines
from transduce.data.pairs.inputs import Inputs, Named, training_name
from transduce.planning.decisions import Decision, Size
from transduce.planning.facts import SAMPLED, SideFacts, side_facts
from transduce.planning.protocols import Recognised, Start
from transduce.planning.single_files import entry_as, refuse_options, training_file, with_held_out
from transduce.planning.tasks.base import EncoderPlanner

FEWEST = 5_000  # characters, of which fewer teach nothing
USEFUL = 500_000  # characters, of which fewer teach little
SIZES = ((0, 64), (100_000, 128), (500_000, 192), (5_000_000, 256), (50_000_000, 512))  # tokens from which so wide
EPOCHS, EPOCHS_UP_TO = 10, 1_000_000  # of so many tokens; of more, fewer in proportion to their root
EMPTY = 0.05  # share of empty lines from which lines are not sentences, but running text with paragraphs
SMALL = 2_000_000  # characters of running text, below which it is read by characters
SELF_ATTENTION = 5_000_000  # tokens from which a Transformer learns hidden words
PIECES_A_WORD = 1.3  # of BPE
PART = 0.05  # of the characters in validation, and in the test
LONG = 256  # characters of a row, as in the recipe for Tiny Shakespeare
ROW = 128  # pieces of a row


def recognise(named: Named) -> Recognised | None:
    """Never: text alone may be one side of pairs."""
    return None


def text_inputs(named: Named) -> Inputs:
    """The text that is meant, as an entry of [data] of a language model, masked or not.

    Raises:
        InputError: files that are missing, options of pairs.
    """
    how = "Name one text, and its column by --source-column, a number, where it is a table."
    kind = named.task or RunningTextPlanner.kind
    refuse_options(named, kind, how, columns=True)
    path = training_file(named.source, lambda _: True)
    if path is None:
        lasting_file(named.source)
        raise InputError(f"{named.source}: expected one text, or a folder with train.txt or such.")
    lasting_file(path)
    entry: dict[str, Any] = {"text": str(path)}
    entry |= {"column": named.columns[0]} if named.columns else {}
    entry_as(TextFile, entry)
    inputs = Inputs(
        training_name(named.source, ("", "")),
        entry,
        notes=(f"{path}: trains a {kind.replace('_modelling', ' model').replace('_', ' ')}.",),
    )
    return with_held_out(inputs, named, path, key="text")


@dataclass(frozen=True)
class TextFacts:
    """A text.

    lines: those that hold something. total: characters. words: of all. running: whether lines are no sentences.
    text: of a line.
    """

    lines: int
    total: int
    words: int
    running: bool
    text: SideFacts

    @property
    def examples(self) -> int:
        """The lines."""
        return self.lines

    @property
    def by_character(self) -> bool:
        """Whether it is read by characters."""
        return self.text.kind == "unspaced" or (self.running and self.total < SMALL)

    @property
    def amount(self) -> int:
        """The tokens, about."""
        return self.positions

    @property
    def positions(self) -> int:
        """As `ReadFacts.positions`."""
        return max(1, self.total if self.by_character else round(PIECES_A_WORD * self.words + self.lines))

    @property
    def longest(self) -> float:
        """Tokens of a row."""
        return float(LONG if self.by_character else ROW)

    def to_lines(self) -> list[str]:
        """Lines, words and characters, in sentences."""
        what = "Running text, with empty lines between paragraphs" if self.running else "A text a line"
        return [
            f"{self.lines:,} lines of {self.words:,} words, {self.total:,} characters, {self.text.alphabet:,} of them "
            f"different. {what}."
        ]


def text_facts(file: TextFile) -> TextFacts:
    """The facts of a text. Raises InputError where it cannot be read, or has fewer than 5,000 characters."""
    path = Path(file.text)
    read = text_lines(path) if file.column is None else TsvColumn(path, file.column).lines()
    lines = list(read)
    filled = [line for line in lines if line.strip()]
    total = sum(map(len, lines))
    if total < FEWEST:
        raise InputError(f"{file.text}: expected at least {FEWEST:,} characters; found {total:,}.")
    running = len(lines) - len(filled) >= EMPTY * len(lines)
    words = sum(len(line.split()) for line in filled)
    sample = filled[:: max(1, len(filled) // SAMPLED)]
    return TextFacts(len(filled), total + len(lines), words, running, side_facts(sample))


class RunningTextPlanner(EncoderPlanner):
    """A `TaskPlanner` for text alone.

    Raises:
        InputError: as `text_inputs`.
    """

    kind, model = "language_modelling", "transformer_decoder"
    readers: ClassVar[tuple[str, ...]] = ("transformer_decoder", "linear_transformer_decoder", "rnn_decoder")
    unit = "tokens"
    sizes = SIZES
    epochs, epochs_up_to = EPOCHS, EPOCHS_UP_TO
    most = 4096
    files = staticmethod(text_inputs)

    @cached_property
    def facts(self) -> TextFacts:
        """Raises InputError as `text_facts`."""
        return text_facts(TextFile.model_validate(self.inputs.train))

    def warnings(self) -> list[str]:
        """That there is little text."""
        if self.facts.total >= USEFUL:
            return []
        return [f"{self.facts.total:,} characters are few: you need at least {USEFUL:,}, preferably millions."]

    def _task(self) -> list[Decision]:
        row = "characters in a row of training text" if self.facts.by_character else "pieces in a row of training text"
        return [
            Decision("task.kind", self.kind, "chosen by you"),
            Decision("task.context", int(self.facts.longest), row),
        ]

    def decide(self, validation: bool, test: bool, size: Size, start: Start | None) -> list[Decision]:
        """As `TaskPlanner.decide`; rows are no longer than a model to start from has positions."""
        decided = super().decide(validation, test, size, start)
        most = start.model.get("max_length", 0) if start and start.model.get("positions") == "learned" else 0
        if not 0 < most < int(self.facts.longest):
            return decided
        row = Decision("task.context", most, "the positions of the model that training starts from")
        return [row if each.key == row.key else each for each in decided]

    def _held_out(self, validation: bool, test: bool) -> list[Decision]:
        """The last parts of the text; the entry of training says how its lines are read in any case."""
        entry = {**self.inputs.train, **({"unit": "stream"} if self.facts.running else {})}
        wanted = [part for part, there in (("validation", validation), ("test", test)) if not there]
        ends = [round(1 - PART * (len(wanted) - n), 2) for n in range(len(wanted) + 1)]
        reason = "the last twentieths of the text pick the best weights, and are the test" if wanted else "your data"
        parts = {
            name: {**entry, "part": [start, end]} for name, start, end in zip(wanted, ends, ends[1:], strict=False)
        }
        train = {**entry, "part": [0.0, ends[0]]} if wanted else entry
        found = [Decision("data.train", [train], reason)]
        found += [Decision("data.validation", parts["validation"], reason)] if "validation" in parts else []
        return [*found, *([Decision("data.test", {"held_out": parts["test"]}, reason)] if "test" in parts else [])]

    def _filters(self) -> list[Decision]:
        """None: text is cut into rows."""
        return []

    def _tokenizer(self) -> list[Decision]:
        alphabet = self.facts.text.alphabet
        if self.facts.by_character:
            why = "no spaces between words" if self.facts.text.kind == "unspaced" else "as in Tiny Shakespeare's recipe"
            return [
                Decision("tokenizer.kind", "character", why),
                Decision("tokenizer.vocabulary", max(16, alphabet + 32), f"{alphabet:,} characters and line breaks"),
                Decision("tokenizer.min_frequency", 1, "each is needed, however rare"),
            ]
        size = 500 * round(8_000 * math.sqrt(self.facts.positions / 500_000) / 500)
        return [
            Decision("tokenizer.kind", "bpe", "words are cut into pieces"),
            Decision("tokenizer.vocabulary", max(500, 2 * alphabet + 100, min(32_000, size)), "grows with the text"),
        ]

    def _model(self, size: Size) -> list[Decision]:
        published, amount = "as in the recipe for Penn Treebank", self._for_amount(size)
        layers = 2 if size.width < 128 else 4 if size.width < SIZES[-1][1] else 6
        return [
            Decision("model.kind", "transformer_decoder", published),
            Decision("model.d_model", size.width, amount),
            Decision("model.heads", max(2, size.width // 32), "heads of 32 numbers"),
            Decision("model.layers", layers, amount),
            Decision("model.feed_forward", 4 * size.width, "four times the width"),
            Decision("model.positions", "rotary", published),
            Decision("model.dropout", 0.2, published),
            Decision("training.optimizer", "muon", published),
            Decision("training.learning_rate", 3e-3 if size.width < 256 else 2e-3, "0.003, less for wider models"),
            Decision("training.label_smoothing", 0.0, "perplexity counts the probability of the very next token"),
        ]


class MaskedTextPlanner(RunningTextPlanner):
    """A `TaskPlanner` for text of which a model predicts hidden words, and from which other trainings start.

    Raises:
        InputError: as `text_inputs`.
    """

    kind, model = "masked_language_modelling", "masked_language_model"
    readers: ClassVar[tuple[str, ...]] = ("masked_language_model",)

    @cached_property
    def facts(self) -> TextFacts:
        """Of lines that are read by themselves, whatever they are."""
        return replace(super().facts, running=False)

    def _model(self, size: Size) -> list[Decision]:
        amount = self._for_amount(size)
        sizes = [
            Decision("model.kind", self.model, "predicts hidden words from those on both sides"),
            Decision("model.d_model", size.width, amount),
            Decision("training.learning_rate", 2e-3 if size.width < SIZES[-1][1] else 1e-3, "less for wider models"),
        ]
        if self.facts.amount < SELF_ATTENTION:
            few = f"of fewer than {SELF_ATTENTION:,} tokens an LSTM learns faster than self-attention"
            return [
                *sizes,
                Decision("model.encoder", "recurrent", few),
                Decision("model.hidden", 2 * size.width, amount),
            ]
        return [
            *sizes,
            Decision("model.heads", max(2, size.width // 32), "heads of 32 numbers"),
            Decision("model.layers", 4 if size.width < SIZES[-1][1] else 6, amount),
            Decision("model.feed_forward", 4 * size.width, "four times the width"),
        ]


def is_plain_text(named: Named) -> bool:
    """Whether what is named is text in lines, without a second side."""
    return named.target is None and named.separator is None and named.source.is_file() and _is_text(named.source)


def _is_text(path: Path) -> bool:
    first = next(text_lines(path), "")
    return suffix_of(path) in (".txt", "") and "\t" not in first and " ||| " not in first
