"""Texts, or pairs of texts, with labels: which files are, what they hold, and what follows from that.

The figures follow the recipe for SST-2, `recipes/sst2.toml`; docs/planning.md says which are measured.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from transduce.core.errors import InputError
from transduce.core.printable import NAMED
from transduce.data.files import lasting_file, suffix_of
from transduce.data.formats import format_of, is_table
from transduce.data.formats.base import named_lines
from transduce.data.labelled import SEPARATOR, LabelledFile, read_labelled
from transduce.data.labelled_columns import LabelledColumns, Looked
from transduce.data.pairs.inputs import Inputs, Named, training_name
from transduce.data.tagged import SUFFIXES
from transduce.planning.decisions import Decision, Size
from transduce.planning.facts import SAMPLED, SideFacts, side_facts
from transduce.planning.protocols import Recognised
from transduce.planning.single_files import refuse_options, training_file, with_held_out
from transduce.planning.tasks.base import HELD_OUT_SHARE, EncoderPlanner

FEWEST, USEFUL = 20, 500  # examples: of fewer nothing is learnt; of fewer little
RARE = 5  # examples of a label, of fewer it is hardly learnt
SIZES = ((0, 128), (2_000, 200), (10_000, 300))  # examples from which a recurrent network is so wide
SMALL = 100_000  # examples, below which there is much dropout
EPOCHS, EPOCHS_UP_TO = 10, 20_000  # of so many examples; of more, fewer in proportion to their root
SKEWED = 0.9  # share of the commonest label, from which accuracy says little
TOLD = 5  # labels
MANY = 300_000  # texts without spaces between words, from which there is enough to learn words from
PIECES_A_SIGN = 0.7  # of BPE, for a character of a script without spaces between words


def recognise(named: Named) -> Recognised | None:
    """That the files are tables of labelled texts; None: they hold something else, or cannot be read as tables."""
    of_pairs = named.target or named.languages or named.source_separator or named.separator or named.root
    path = _training_table(named.source)
    if of_pairs or path is None:
        return None
    try:
        found = Looked(path, format_of(path), named.columns, named.target_column).recognised()
    except InputError:  # which the planner of pairs tells
        return None
    return Recognised(f"texts with labels, as {found.why}", found.doubt) if found else None


def _training_table(source: Path) -> Path | None:
    """The table that is trained on: the file itself, or train.csv and its like in a folder."""
    if source.is_dir():
        return training_file(source, is_table)
    return training_file(source, lambda path: suffix_of(path) not in (".zip", ".tmx", *SUFFIXES))


@dataclass(frozen=True)
class LabelFacts:
    """A corpus of labelled texts.

    labels: how many examples each has, the commonest first. text: of both texts together, where they are pairs.
    """

    examples: int
    labels: Mapping[str, int]
    text: SideFacts
    pair: bool = False

    def to_lines(self) -> list[str]:
        """Examples, labels and the length of texts, in sentences."""
        shown = [f"{label} {count:,}" for label, count in list(self.labels.items())[:TOLD]]
        more = f" and {len(self.labels) - TOLD:,} more" if len(self.labels) > TOLD else ""
        what = "a pair of texts" if self.pair else "a text"
        length = f"{self.text.words:.1f} words, {self.text.characters:.0f} characters {what}"
        return [f"{self.examples:,} examples with {len(self.labels):,} labels: {', '.join(shown)}{more}. {length}."]

    @property
    def amount(self) -> int:
        """The examples."""
        return self.examples

    @property
    def skew(self) -> float:
        """The share of the commonest label."""
        return max(self.labels.values()) / self.examples

    @property
    def unit(self) -> str:
        """The kind of tokenizer."""
        if self.text.kind != "unspaced":
            return "whitespace"
        return "character" if self.examples < MANY else "bpe"

    @property
    def tokens_of_character(self) -> float:
        """Tokens for a character of a text."""
        each = {"character": 1.0, "bpe": PIECES_A_SIGN}.get(self.unit)
        return self.text.words / self.text.characters if each is None else each

    @property
    def positions(self) -> int:
        """Tokens of an epoch, about, with the end of each text."""
        return max(1, round(self.examples * (self.tokens_of_character * self.text.characters + 1)))

    @property
    def longest(self) -> float:
        """Tokens that all but one text in a thousand stay below."""
        return self.tokens_of_character * self.text.longest


def label_facts(file: LabelledFile) -> LabelFacts:
    """The facts of a file, from a sample of its texts where there are many.

    Raises:
        InputError: what `read_labelled` refuses; labels that are missing; fewer than 2 labels or 20 examples.
    """
    rows = list(read_labelled(file, Path()))
    if missing := [line for line, _, label in rows if not label.strip()]:
        raise InputError(
            f"{file.file}, {named_lines(missing)}: the label is missing. Write it there, or delete "
            f"{'this line' if len(missing) == 1 else f'these {len(missing):,} lines'}."
        )
    labels = dict(sorted(Counter(label for *_, label in rows).items(), key=lambda each: (-each[1], each[0])))
    texts = [text.replace(SEPARATOR, " ") for _, text, _ in rows if text.strip()]
    if len(labels) < 2 or len(texts) < FEWEST:
        counts = ", ".join(f"{label} {count:,}" for label, count in list(labels.items())[:NAMED])
        raise InputError(
            f"{file.file}: expected at least {FEWEST} examples with text, and at least 2 labels; found {len(texts):,} "
            f"with {len(labels):,} labels ({counts or 'none'})."
        )
    sample = texts[:: max(1, len(texts) // SAMPLED)]
    return LabelFacts(len(rows), labels, side_facts(sample), file.pair)


def labelled_inputs(named: Named) -> Inputs:
    """The files that are meant, as entries of [data] of a classifier.

    Raises:
        InputError: files that are missing, or whose columns of texts and labels are not known.
    """
    path = _training_table(named.source)
    how = "Name one file, and its columns by --source-column (texts) and --target-column (labels)."
    refuse_options(named, "classification", how, columns=True)
    if path is None:
        lasting_file(named.source)
        raise InputError(f"{named.source}: expected one table of texts and labels, or a folder with train.csv or such.")
    lasting_file(path)
    found = Looked(path, format_of(path), named.columns, named.target_column).chosen()
    if found is None:
        raise InputError(
            f"{path}: the columns of texts and labels are not known. Name them: --source-column TEXT --target-column "
            "LABEL, by name or by number from 0."
        )
    entry = {"file": str(path), "text": found.text[0] if len(found.text) == 1 else [*found.text], "label": found.label}
    inputs = Inputs(training_name(named.source, ("", "")), entry, notes=(_told(named, path, found),))
    return with_held_out(inputs, named, path)


def _told(named: Named, path: Path, found: LabelledColumns) -> str:
    texts = " and ".join(f'"{each}"' for each in found.text)
    why = f", as {found.why}" if found.why else ""
    other = "" if named.task else " To train on pairs of texts instead: --task translation."
    return f"{path}: trains a classifier{why}; the texts are in {texts}.{other}"


class LabelsPlanner(EncoderPlanner):
    """A `TaskPlanner` for texts with labels.

    Raises:
        InputError: as `labelled_inputs`.
    """

    kind, model, readers = "classification", "classifier", ("classifier",)
    sizes = SIZES
    epochs, epochs_up_to = EPOCHS, EPOCHS_UP_TO
    held_out_how = "of each label in proportion, the same text on one side"
    files = staticmethod(labelled_inputs)

    @cached_property
    def facts(self) -> LabelFacts:
        """Raises InputError as `label_facts`."""
        return label_facts(LabelledFile.model_validate(self.inputs.train))

    def warnings(self) -> list[str]:
        """That there are few examples, or few of a label."""
        found, rare = list[str](), [label for label, count in self.facts.labels.items() if count < RARE]
        if self.facts.examples < USEFUL:
            found.append(
                f"{self.facts.examples:,} examples are few: you need at least {USEFUL}, preferably thousands. Scores "
                "on so few held-out examples mean little."
            )
        if rare:
            have = "1 label has" if len(rare) == 1 else f"{len(rare):,} labels have"
            found.append(f"{have} fewer than {RARE} examples ({', '.join(rare[:NAMED])}), and will hardly be learnt.")
        return found

    def _task(self) -> list[Decision]:
        kind = "chosen by you" if self.named.task else "a column holds labels"
        skewed = self.facts.skew >= SKEWED
        best, reason = "accuracy", "the share of right labels"
        if skewed:
            best = "macro_f1"
            reason = f"{self.facts.skew:.0%} of the examples have one label, so accuracy says little"
        metrics = "the share of right labels, and a mean over labels, in which rare ones count as much as common ones"
        return [
            Decision("task.kind", "classification", kind),
            Decision("task.metrics", ["accuracy", "macro_f1"], metrics),
            *([Decision("task.class_weights", "balanced", f"{reason}; rare labels count more")] if skewed else ()),
            Decision("training.best", best, reason),
            Decision("training.decode_sentences", 2 * HELD_OUT_SHARE[1], "all, as labels are quickly found"),
        ]

    def _tokenizer(self) -> list[Decision]:
        kind, text = self.facts.unit, self.facts.text
        if kind == "whitespace":
            least = 1 if self.facts.examples < SIZES[-1][0] else 2
            often = "each word counts, however rare" if least == 1 else "a word that occurs once teaches nothing"
            return [
                Decision("tokenizer.kind", kind, "words decide which label a text has"),
                Decision("tokenizer.vocabulary", 20_000, "the commonest words"),
                Decision("tokenizer.min_frequency", least, often),
                Decision("tokenizer.lowercase", True, "a word at the beginning of a sentence is the same word"),
            ]
        reason = "no spaces between words"
        size = max(16, text.alphabet + 16) if kind == "character" else 16_000
        return [
            Decision("tokenizer.kind", kind, reason),
            Decision("tokenizer.vocabulary", size, f"{text.alphabet:,} characters"),
        ]

    def _model(self, size: Size) -> list[Decision]:
        reason = self._for_amount(size)
        recurrent = "as in the recipe for SST-2, see docs/results.md"
        dropout = 0.5 if self.facts.examples < SMALL else 0.3
        return [
            Decision("model.kind", "classifier", recurrent),
            Decision("model.encoder", "recurrent", recurrent),
            Decision("model.cell", "lstm", recurrent),
            Decision("model.pooling", "attention", "its weights show which words decide"),
            *([Decision("model.shared_ngrams", 3, "two texts are compared")] if self.facts.pair else ()),
            Decision("model.d_model", size.width, reason),
            Decision("model.hidden", size.width, reason),
            Decision("model.dropout", dropout, "the fewer examples, the more dropout"),
            Decision("model.word_dropout", 0.1, "no single word is to decide alone"),
            Decision("training.learning_rate", 1e-3, recurrent),
        ]
