"""Texts, or pairs of texts, with labels: which files are, what they hold, and what follows from that.

The figures follow the recipe for SST-2, `recipes/sst2.toml`; docs/planning.md says which are measured.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.printable import NAMED
from transduce.data.files import lasting_file, suffix_of
from transduce.data.formats import format_of
from transduce.data.formats.base import named_lines
from transduce.data.labelled import SEPARATOR, LabelledFile, read_labelled
from transduce.data.labelled_columns import LabelledColumns, Looked
from transduce.data.pairs.inputs import (
    HELD_OUT,
    Inputs,
    Named,
    by_language,
    by_name,
    of_several,
    part_of,
    stem_of,
    training_name,
    training_tables,
    usual_validation,
)
from transduce.planning import decisions
from transduce.planning.decisions import Decision, Size, rounded
from transduce.planning.facts import SAMPLED, SideFacts, side_facts
from transduce.planning.protocols import Start
from transduce.recipe.recipe import Table, parse_recipe, with_model_to_start_from

FEWEST, USEFUL = 20, 500  # examples: of fewer nothing is learnt; of fewer little
RARE = 5  # examples of a label, of fewer it is hardly learnt
HELD_OUT_SHARE = (0.1, 1000)  # of the examples in validation, and in the test; at most so many
SIZES = ((0, 128), (2_000, 200), (10_000, 300))  # examples from which a recurrent network is so wide
SMALL = 100_000  # examples, below which there is much dropout
EPOCHS, EPOCHS_UP_TO = 10, 20_000  # of so many examples; of more, fewer in proportion to their root
STARTED_EPOCHS = 3  # from a pretrained model
LEAST_UPDATES = 300
SKEWED = 0.9  # share of the commonest label, from which accuracy says little
TOLD = 5  # labels
MANY = 300_000  # texts without spaces between words, from which there is enough to learn words from
PIECES_A_SIGN = 0.7  # of BPE, for a character of a script without spaces between words
RATES = ((0, 1e-4), (385, 7e-5), (768, 5e-5))  # widths of a pretrained model from which it learns at this rate


def recognise(named: Named) -> LabelledColumns | None:
    """The columns of labelled texts in the files; None: they hold something else, or cannot be read as tables."""
    of_pairs = named.target or named.languages or named.source_separator or named.separator or named.root
    path = _training_file(named.source)
    if of_pairs or path is None:
        return None
    try:
        return Looked(path, format_of(path), named.columns, named.target_column).recognised()
    except InputError:  # which the planner of pairs tells
        return None


def _training_file(source: Path) -> Path | None:
    """The table that is trained on: the file itself, or train.csv and its like in a folder."""
    if source.is_dir():
        files = [each for each in sorted(source.iterdir()) if each.is_file()]
        tables = [] if by_language(files) else training_tables(files)
        return tables[0] if len(tables) == 1 else None
    return source if source.is_file() and suffix_of(source) not in (".zip", ".tmx") else None


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
    path = _training_file(named.source)
    if named.target or named.source_separator or named.separator or named.languages:
        raise InputError(
            "--task classification: --target, --source-separator, --separator and --languages are for pairs of texts. "
            "Name one file, and its columns by --source-column (texts) and --target-column (labels)."
        )
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
    return _with_named(_beside(inputs, named.source, path), named)


def _told(named: Named, path: Path, found: LabelledColumns) -> str:
    texts = " and ".join(f'"{each}"' for each in found.text)
    why = f", as {found.why}" if found.why else ""
    other = "" if named.task else " To train on pairs of texts instead: --task translation."
    return f"{path}: trains a classifier{why}; the texts are in {texts}.{other}"


def _beside(inputs: Inputs, folder: Path, train: Path) -> Inputs:
    """With the validation and the tests that lie in a folder beside the training file."""
    if not folder.is_dir():
        return inputs
    alike = [each for each in sorted(folder.iterdir()) if each != train and suffix_of(each) == suffix_of(train)]
    files = {stem_of(each): {**inputs.train, "file": str(each)} for each in alike if each.is_file()}
    validation = sorted((stem for stem in files if part_of(stem) == "validation"), key=usual_validation)
    tests = by_name(stem for stem in files if part_of(stem) == "test")
    several = (of_several(folder, *validation),) if len(validation) > 1 else ()
    return replace(
        inputs,
        validation=files[validation[0]] if validation else None,
        tests={name: files[stem] for name, stem in tests.items()},
        notes=(*inputs.notes, *several),
    )


def _with_named(inputs: Inputs, named: Named) -> Inputs:
    """With the held-out files that were named, which have the columns of the training file."""
    for part in HELD_OUT:
        if getattr(named, f"{part}_target") is not None:
            raise InputError(f"--{part}-target: is for pairs of texts; the labels are a column of --{part}.")
        path = getattr(named, part)
        if path is None:
            continue
        lasting_file(path)
        entry = {**inputs.train, "file": str(path)}
        held_out: dict[str, Any] = {"validation": entry} if part == "validation" else {"tests": {part: entry}}
        inputs = replace(inputs, named=(*inputs.named, part), **held_out)
    return inputs


class LabelsPlanner:
    """A `TaskPlanner` for texts with labels.

    Raises:
        InputError: as `labelled_inputs`.
    """

    def __init__(self, named: Named) -> None:
        self.named, self.inputs = named, labelled_inputs(named)

    @cached_property
    def facts(self) -> LabelFacts:
        """Raises InputError as `label_facts`."""
        return label_facts(LabelledFile.model_validate(self.inputs.train))

    def to_lines(self) -> list[str]:
        """As `TaskPlanner.to_lines`."""
        return self.facts.to_lines()

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

    def usual_size(self) -> Size:
        """By the number of examples."""
        return Size([width for least, width in SIZES if self.facts.examples >= least][-1], 1)

    def smaller(self, size: Size) -> Size | None:
        """As `TaskPlanner.smaller`."""
        found = [Size(width, 1) for _, width in SIZES]
        return found[found.index(size) - 1] if size in found[1:] else None

    def deserved_updates(self, start: Start | None) -> int:
        """Ten epochs of 20,000 examples and fewer, of more in proportion to their root; three from another model."""
        epoch = self.facts.positions / self._batch()
        if start:
            return max(1, rounded(STARTED_EPOCHS * epoch))
        epochs = EPOCHS * min(1.0, math.sqrt(EPOCHS_UP_TO / self.facts.examples))
        return rounded(max(LEAST_UPDATES, epochs * epoch))

    def why_deserved(self, start: Start | None) -> str:
        """As `TaskPlanner.why_deserved`."""
        if start:
            return f"{STARTED_EPOCHS} epochs, as a pretrained model learns quickly"
        epochs = self.deserved_updates(None) * self._batch() / self.facts.positions
        return f"about {rounded(epochs)} epochs; {EPOCHS} of up to {EPOCHS_UP_TO:,} examples, of more fewer"

    def decide(self, validation: bool, test: bool, size: Size, start: Start | None) -> list[Decision]:
        """As `TaskPlanner.decide`."""
        return [
            *self._task(),
            *self._held_out(validation, test),
            *self._filters(),
            *(self._tokenizer() if start is None or not start.keeps else ()),
            Decision("batch.tokens", self._batch(), "about 60 updates see all examples; 512 at least, 2,048 at most"),
            *(_started(start) if start else self._model(size)),
        ]

    def schedule(self, updates: int, reason: str, expected: int, start: Start | None) -> list[Decision]:
        """As for pairs; from another model, the learning rate rises over a tenth of the updates."""
        planned = decisions.schedule(updates, reason, expected)
        if start is None:
            return planned
        warmup = Decision("training.warmup", max(1, expected // 10), "a tenth of the updates, for a pretrained model")
        return [warmup if each.key == warmup.key else each for each in planned]

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

    def _held_out(self, validation: bool, test: bool) -> list[Decision]:
        share, most = HELD_OUT_SHARE
        count = max(1, min(most, round(share * self.facts.examples)))
        reason = "a tenth of the examples, at most 1,000; of each label in proportion, the same text on one side"
        missing = [part for part, there in (("validation", validation), ("test", test)) if not there]
        return [Decision(f"data.hold_out.{part}", count, reason) for part in missing]

    def _filters(self) -> list[Decision]:
        most = 2 ** math.ceil(math.log2(max(256.0, min(1024.0, self.facts.longest))))
        reason = (
            f"the longest texts have about {rounded(self.facts.longest):,} tokens; longer ones are dropped and told"
        )
        return [Decision("data.filters.max_tokens", most, reason)] if most != 256 else []

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

    def _batch(self) -> int:
        wanted = max(self.facts.positions / 60, 2 * min(1024.0, self.facts.longest), 512.0)
        return int(2 ** round(math.log2(min(2048.0, wanted))))

    def _model(self, size: Size) -> list[Decision]:
        usual = self.usual_size()
        reason = f"for {self.facts.examples:,} examples" + (
            "; smaller than usual, as the time is short" if size != usual else ""
        )
        recurrent = "as in the recipe for SST-2, see docs/results.md"
        dropout = 0.5 if self.facts.examples < SMALL else 0.3
        return [
            Decision("model.kind", "classifier", recurrent),
            Decision("model.encoder", "recurrent", recurrent),
            Decision("model.cell", "lstm", recurrent),
            Decision("model.pooling", "attention", "its weights show which words decide"),
            Decision("model.d_model", size.width, reason),
            Decision("model.hidden", size.width, reason),
            Decision("model.dropout", dropout, "the fewer examples, the more dropout"),
            Decision("model.word_dropout", 0.1, "no single word is to decide alone"),
            Decision("training.learning_rate", 1e-3, recurrent),
        ]


def _started(start: Start) -> list[Decision]:
    """The model and the optimizer of a training from another model."""
    table: Table = {"task": {"kind": "classification"}, "training": {"start": start.path}}
    model = with_model_to_start_from(table).get("model", {})
    return [*_sizes(model), *_fine_tuning(start)]


def _sizes(model: Table) -> Iterator[Decision]:
    """The keys of the model that are not as usual."""
    kind = model.get("kind", "classifier")
    table = {"name": "start", "task": {"kind": "classification"}, "data": {"train": [{"file": "a.tsv"}]}}
    usual = parse_recipe({**table, "model": {"kind": kind}}, "start").to_table()["model"] | {"kind": None}
    for key, value in {"kind": kind, **model}.items():
        if usual.get(key) != value and key != "dropout":
            yield Decision(f"model.{key}", value, "as in the model that training starts from")


def _fine_tuning(start: Start) -> list[Decision]:
    width = start.model.get("d_model", RATES[-1][0])
    rate = [rate for least, rate in RATES if width >= least][-1]
    return [
        Decision("model.dropout", 0.1, "usual where a pretrained model is fine-tuned"),
        Decision("training.optimizer", "adamw", "usual where a pretrained model is fine-tuned"),
        Decision("training.learning_rate", rate, f"for a pretrained model {width} wide"),
    ]
