"""Questions on texts that hold the answers: which files are, what they hold, and what follows from that.

The figures follow the recipes for CMRC 2018, `recipes/cmrc2018.toml` and `recipes/cmrc2018-qanet.toml`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from transduce.core.errors import InputError
from transduce.data.files import lasting_file, read_lines, read_whole, suffix_of
from transduce.data.hold_out import TEST, TRAIN, VALIDATION
from transduce.data.labelled_columns import LOOKED_AT
from transduce.data.pairs.inputs import Inputs, Named, training_name
from transduce.data.structures.squad import ANSWERS, OBJECTS, Question, as_answers, placed, read_squad
from transduce.planning.decisions import Decision, Size
from transduce.planning.facts import SAMPLED, SideFacts, side_facts
from transduce.planning.protocols import Recognised
from transduce.planning.single_files import refuse_options, training_file, with_held_out
from transduce.planning.tasks.base import HELD_OUT_SHARE, EncoderPlanner
from transduce.tasks.extractive_qa import HeldOutTexts

FEWEST, USEFUL = 50, 2_000  # questions: of fewer nothing is learnt; of fewer little
SIZES = ((0, 64), (2_000, 128), (50_000, 200))  # questions from which a recurrent network is so wide
CONVOLUTIONS = 8_000  # questions from which QANet has enough to learn from
EPOCHS, EPOCHS_UP_TO = 10, 30_000  # of so many questions; of more, fewer in proportion to their root
PIECES_A_WORD = 1.3  # of BPE
SHARES = (0.1, 0.15, 0.2, 0.3)  # of the texts in validation, and in the test: the first that draws enough
ENOUGH = 2  # texts of a part
UNANSWERED = 0.01  # share of questions from which texts without an answer are part of the task
MOST = 0.9  # of the objects of a file have questions, from which the others are mistakes
STANDING = 0.5  # of the answers stand in their texts, from which they are looked for there
LONGEST_ANSWER = (30, 200)  # tokens of a predicted answer: at least, at most
LARGE = 500_000  # words from which there is room for more pieces


def recognise(named: Named) -> Recognised | None:
    """That the files hold questions on texts; None: they hold something else, or cannot be read."""
    of_pairs = named.target or named.languages or named.source_separator or named.separator or named.root
    path = None if of_pairs or named.columns or named.target_column else training_file(named.source, _may_ask)
    try:
        found = _looked_at(path) if path else ""
    except (InputError, ValueError, RecursionError):  # which the planner of pairs tells
        return None
    return Recognised(f"questions on texts that hold the answers, as {found}") if found else None


def _may_ask(path: Path) -> bool:
    return suffix_of(path) in (".json", *OBJECTS)


def _looked_at(path: Path) -> str:
    """What says that a file holds questions on texts; "" = nothing does. Raises ValueError for what is no JSON."""
    if suffix_of(path) == ".json":
        table = json.loads(read_whole(path).decode("utf-8-sig"))
        listed = table.get("data") if isinstance(table, dict) else None
        first = listed[0] if isinstance(listed, list) and listed else None
        return "it has the paragraphs of SQuAD" if isinstance(first, dict) and "paragraphs" in first else ""
    rows = [json.loads(line) for line in islice(read_lines(path), LOOKED_AT) if line.strip()]
    asked = [row for row in rows if isinstance(row, dict) and _asks(row)]
    answered = [row for row in asked if (answer := _answer(row)) is None or answer in row["context"]]
    if not asked or len(asked) < MOST * len(rows) or len(answered) < STANDING * len(asked):
        return ""
    return "its objects have a question, a context and answers"


def _asks(row: dict[str, Any]) -> bool:
    texts = all(isinstance(row.get(key), str) for key in ("question", "context"))
    return texts and any(isinstance(row.get(key), str | list | dict) for key in ANSWERS)


def _answer(row: dict[str, Any]) -> str | None:
    """The first answer; None where there is none."""
    found = as_answers(next(row[key] for key in ANSWERS if key in row))
    first = found[0] if found else None
    return str(first.get("text")) if isinstance(first, dict) else None


def question_inputs(named: Named) -> Inputs:
    """The files that are meant, as entries of [data] of `extractive_qa`.

    Raises:
        InputError: files that are missing, options of pairs.
    """
    refuse_options(named, "extractive_qa", "Name one file, in SQuAD's format or with an object a line.")
    path = training_file(named.source, _may_ask)
    if path is None:
        lasting_file(named.source)
        raise InputError(
            f"{named.source}: expected questions on texts: a .json of SQuAD, or a .jsonl with question, context and "
            "answers; or a folder with train.json or such."
        )
    lasting_file(path)
    other = "" if named.task else " To train on pairs of texts instead: --task translation."
    found = _looked_at(path) if suffix_of(path) == ".json" or not named.task else ""
    told = f"{path}: trains a reader that finds answers in texts{f', as {found}' if found else ''}.{other}"
    inputs = Inputs(training_name(named.source, ("", "")), {"file": str(path)}, notes=(told,))
    return with_held_out(inputs, named, path)


@dataclass(frozen=True)
class QuestionFacts:
    """A corpus of questions on texts.

    texts: different ones, of which `share` draws enough for a part; 0 = none does. unanswered: questions without an
    answer. read: of a question with its text, together. answer: characters that 99 in 100 answers stay below. words: of
    all texts.
    """

    questions: int
    texts: int
    unanswered: int
    read: SideFacts
    answer: float
    words: int
    share: float

    @property
    def examples(self) -> int:
        """The questions."""
        return self.questions

    @property
    def amount(self) -> int:
        """The questions."""
        return self.questions

    @property
    def by_character(self) -> bool:
        """Whether texts are read by characters, as there are no spaces between words."""
        return self.read.kind == "unspaced"

    @property
    def tokens_of_character(self) -> float:
        """Tokens for a character."""
        return 1.0 if self.by_character else PIECES_A_WORD * self.read.words / self.read.characters

    @property
    def positions(self) -> int:
        """As `ReadFacts.positions`."""
        return max(1, round(self.questions * self.tokens_of_character * self.read.characters))

    @property
    def longest(self) -> float:
        """As `ReadFacts.longest`."""
        return self.tokens_of_character * self.read.longest

    @property
    def no_answer(self) -> bool:
        """Whether it is a part of the task to say that a text holds none."""
        return self.unanswered > UNANSWERED * self.questions and not self.by_character

    def to_lines(self) -> list[str]:
        """Questions, texts and their lengths, in sentences."""
        none = f" {self.unanswered:,} questions have no answer." if self.unanswered else ""
        return [
            f"{self.questions:,} questions on {self.texts:,} texts; a question with its text has "
            f"{self.read.words:.0f} words, {self.read.characters:.0f} characters.{none}"
        ]


def question_facts(path: Path) -> QuestionFacts:
    """The facts of a file, from a sample of its questions where there are many.

    Raises:
        InputError: what `read_squad` refuses; fewer than 50 questions, or none whose answer stands in its text.
    """
    questions = read_squad(path)
    sample = questions[:: max(1, len(questions) // SAMPLED)]
    answers = [len(answer) for each in sample for answer, _ in placed(each)[:1]]
    texts = list(dict.fromkeys(each.context for each in questions))
    if len(questions) < FEWEST or not answers:
        raise InputError(
            f"{path}: expected at least {FEWEST} questions, and answers that stand in their texts; found "
            f"{len(questions):,} questions, and {len(answers):,} such answers."
        )
    read = side_facts([f"{each.question} {each.context}" for each in sample])
    unanswered = sum(not each.answers for each in questions)
    words = sum(len(text.split()) for text in texts)
    answer = float(np.quantile(answers, 0.99))
    return QuestionFacts(len(questions), len(texts), unanswered, read, answer, words, _share(questions))


def _share(questions: Sequence[Question]) -> float:
    """The first share that draws enough texts for each part; 0 where there is none."""
    texts = {each.context for each in questions}
    for share in SHARES:
        drawn = HeldOutTexts(validation=share, test=share)
        parts = [drawn.part_of(text) for text in texts]
        if min(map(parts.count, (TRAIN, VALIDATION, TEST))) >= ENOUGH:
            return share
    return 0.0


class SpansPlanner(EncoderPlanner):
    """A `TaskPlanner` for questions on texts.

    Raises:
        InputError: as `question_inputs`.
    """

    kind, model, readers = "extractive_qa", "span_reader", ("span_reader", "bidaf", "qanet")
    unit = "questions"
    sizes = SIZES
    epochs, epochs_up_to = EPOCHS, EPOCHS_UP_TO
    most = 8192
    held_out_how = "all questions on a text on one side"
    files = staticmethod(question_inputs)

    @cached_property
    def facts(self) -> QuestionFacts:
        """Raises InputError as `question_facts`."""
        return question_facts(Path(self.inputs.train["file"]))

    def warnings(self) -> list[str]:
        """That there are few questions."""
        if self.facts.questions >= USEFUL:
            return []
        return [
            f"{self.facts.questions:,} questions are few: you need at least {USEFUL:,}, better tens of thousands. To "
            "start from a pretrained encoder: --start."
        ]

    def _task(self) -> list[Decision]:
        facts, kind = self.facts, "chosen by you" if self.named.task else "questions on texts"
        names = "squad2" if facts.no_answer else "cmrc" if facts.by_character else "squad"
        metrics = [f"{names}_em", f"{names}_f1"]
        least, most = LONGEST_ANSWER
        longest = round(max(least, min(most, 1.2 * facts.tokens_of_character * facts.answer)))
        window = 1000 if facts.by_character else 400
        none = Decision("task.no_answer", True, "some questions have no answer")
        return [
            Decision("task.kind", self.kind, kind),
            Decision("task.metrics", metrics, "the share of right answers, and of their words or characters"),
            *([none] if facts.no_answer else []),
            Decision("task.window", window, "tokens of a text that are read at once"),
            Decision("task.stride", window // 2, "windows of longer texts overlap by half"),
            Decision("task.longest_answer", longest, "99 in 100 answers are shorter"),
            Decision("training.best", metrics[1], "an answer that is nearly right counts, too"),
            Decision("training.decode_sentences", HELD_OUT_SHARE[1], "enough to tell weights apart"),
        ]

    def _held_out(self, validation: bool, test: bool) -> list[Decision]:
        share = self.facts.share
        reason = f"{share:.0%} of the texts; {self.held_out_how}"
        missing = [part for part, there in (("validation", validation), ("test", test)) if not there]
        if missing and not share:
            raise InputError(
                f"{self.inputs.train['file']}: {self.facts.texts:,} different texts are too few to hold some out for "
                f"validation and test. Name files: {' '.join(f'--{part} FILE' for part in missing)}."
            )
        return [Decision(f"data.hold_out.{part}", share, reason) for part in missing]

    def _filters(self) -> list[Decision]:
        """None: longer texts are read in windows."""
        return []

    def _tokenizer(self) -> list[Decision]:
        if self.facts.by_character:
            size = max(16, self.facts.read.alphabet + 16)
            return [
                Decision("tokenizer.kind", "character", "no spaces between words"),
                Decision("tokenizer.vocabulary", size, f"{self.facts.read.alphabet:,} characters"),
            ]
        size = 8_000 if self.facts.words < LARGE else 16_000
        return [
            Decision("tokenizer.kind", "bpe", "words are cut into pieces"),
            Decision("tokenizer.vocabulary", size, "more for half a million words of texts"),
            Decision("tokenizer.lowercase", True, "a question writes a name as the text does, but for its case"),
        ]

    def _model(self, size: Size) -> list[Decision]:
        return self._qanet(size) if self.facts.questions >= CONVOLUTIONS else self._bidaf(size)

    def _bidaf(self, size: Size) -> list[Decision]:
        published = "as in the recipe for CMRC 2018, see docs/results.md"
        return [
            Decision("model.kind", "bidaf", published),
            Decision("model.d_model", 100, published),
            *self._characters(),
            Decision("model.shared_ngrams", 3, "what question and text share is near the answer"),
            Decision("model.hidden", size.width, self._for_amount(size)),
            Decision("model.dropout", 0.3, published),
            Decision("training.learning_rate", 2e-3, published),
            Decision("training.weight_decay", 0.01, published),
        ]

    def _qanet(self, size: Size) -> list[Decision]:
        published = "as in the recipe for CMRC 2018 by QANet"
        return [
            Decision("model.kind", "qanet", f"{CONVOLUTIONS:,} questions and more are enough for self-attention"),
            Decision("model.d_model", 96 if size.width < SIZES[-1][1] else 128, self._for_amount(size)),
            *self._characters(),
            Decision("model.shared_ngrams", 3, "what question and text share is near the answer"),
            Decision("model.heads", 2, published),
            Decision("model.blocks", 2, published),
            Decision("model.dropout", 0.1, published),
            Decision("training.learning_rate", 1e-3, published),
            Decision("training.weight_decay", 0.01, published),
        ]

    def _characters(self) -> list[Decision]:
        reason = "tokens are characters"
        return [Decision("model.character_filters", 0, reason)] if self.facts.by_character else []
