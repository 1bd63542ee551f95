"""What a model makes of one text."""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from transduce.core.errors import InputError, TransduceError
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.data.words import WORD
from transduce.inference.familiarity import Unfamiliar
from transduce.inference.memory_use import FuzzyMatch, TokenOrigin, origins_table
from transduce.inference.preparation import Edit, Prepared, mapped
from transduce.inference.repetition import Repetition
from transduce.search.hypothesis import Hypothesis
from transduce.search.lattice import Lattice
from transduce.search.phrases import Phrases, held, lacking

if TYPE_CHECKING:
    from transduce.data.columns.protocols import TextCut
    from transduce.inference.confidence import WordConfidence


class SpokenSegment(NamedTuple):
    """What is said from `start` to `end`, in seconds.

    ended: False when the output was cut off at its limit. repeated: what stands in it many times in a row, of which a
    model is caught in a loop; None = nothing does.
    """

    start: float
    end: float
    text: str
    ended: bool = True
    repeated: "Repetition | None" = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON: `ended` and `repeated` only where they tell of something wrong."""
        wrong: dict[str, Any] = {} if self.ended else {"ended": False}
        wrong |= {} if self.repeated is None else {"repeated": self.repeated._asdict()}
        return {"start": self.start, "end": self.end, "text": self.text, **wrong}

    @property
    def warnings(self) -> list[str]:
        """What is wrong with it, each as a sentence."""
        where, found = f"{self.start:.1f} to {self.end:.1f} s", []
        if not self.ended:
            found.append(f"{where}: the output was cut off at its limit; what is said behind it is missing.")
        if self.repeated is not None:
            text, times = self.repeated.text[:SHOWN], self.repeated.times
            found.append(f'{where}: "{text}" stands there {times:,} times in a row; the model may be caught in a loop.')
        return found


class SpokenWord(NamedTuple):
    """A word, with the marks around it, that is said from `start` to `end`, in seconds."""

    word: str
    start: float
    end: float


SHOWN = 40  # characters of what is repeated, in a message


@dataclass(frozen=True, repr=False)
class Prediction:
    """What a model makes of one input; printed, its text.

    source: the input as it came.
    text: the output, detokenised.
    tokens: the same as the model's own pieces, without the end token.
    score: what outputs were ranked by, as the recipe's search has it.
    log_probability: log p itself, in nats.
    token_log_probabilities: one for each token, and that of the end token if it ended.
    ended: False when the output was cut off at its limit.
    unmet: phrases that had to appear and do not, because the limit came first; alternatives stand side by side: a / b.
    lattice: everything that the beam weighed, where it was asked for.
    unseen: the share of the source's characters that no training source had, which the model cannot have learnt to
        read; None = its file does not say.
    segments: of a recording, what is said in each part that the model heard at once; () = it is text.
    spoken_words: of a recording, its words with times, if they were asked for and the model can align; else ().
    matches: with a datastore, the pairs of the memory whose sources are nearly this one, if they were asked for.
    origins: with a datastore, where each of `tokens` came from, if that was asked for.
    cut: what of the source was read, where it has more tokens than the model has positions; None = all of it.
    read: what the model read in place of the source; None = the source itself. Its `tokens` answer that.
    missing: of what has to stand in the output as it stands in the source (numbers, addresses, codes), and of a
        glossary's terms, what does not.
    forced: of what was missing first, what a second search put into the output, perhaps not where it belongs.
    repeated: what the output repeats over and over, as a model does that is caught in a loop; None = nothing.
    alternatives: the n-best list, best first, this prediction included; empty unless more than one was asked for.
    unfamiliar: what of the source no training source had, such as its words; see `unseen`.
    given: what the model was told to write: values of placeholders, terms of a glossary.
    edits: what was read in place of each part of the source, and what stands in the text in place of each part of what
        the model wrote; None = nothing else. It is not part of what was predicted.
    judge: says how sure the words are; whoever made the prediction fills it in.
    attend: computes `attention`; whoever made the prediction fills it in. It is not part of what was predicted.
    picture: HTML of the prediction for a notebook, filled in likewise; None = a notebook shows its text.
    """

    source: str
    text: str
    score: float
    log_probability: float
    tokens: tuple[str, ...]
    token_log_probabilities: tuple[float, ...]
    ended: bool = True
    unmet: tuple[str, ...] = ()
    unseen: float | None = None
    lattice: Lattice | None = None
    segments: tuple[SpokenSegment, ...] = ()
    spoken_words: tuple[SpokenWord, ...] = ()
    matches: tuple[FuzzyMatch, ...] = ()
    origins: tuple[TokenOrigin, ...] = ()
    cut: "TextCut | None" = None
    read: str | None = None
    missing: tuple[str, ...] = ()
    forced: tuple[str, ...] = ()
    repeated: Repetition | None = None
    alternatives: tuple["Prediction", ...] = ()
    unfamiliar: Unfamiliar = field(default=Unfamiliar(), repr=False, compare=False)
    given: tuple[str, ...] = field(default=(), repr=False, compare=False)
    edits: "tuple[Sequence[Edit], Sequence[Edit]] | None" = field(default=None, repr=False, compare=False)
    judge: "Callable[[Prediction], list[WordConfidence]] | None" = field(default=None, repr=False, compare=False)
    attend: Callable[["Prediction"], Any] | None = field(default=None, repr=False, compare=False)
    picture: Callable[["Prediction"], str] | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        more = f", {len(self.alternatives)} alternatives" if self.alternatives else ""
        return f"Prediction({self.text!r}, score={self.score:.4g}{'' if self.ended else ', ended=False'}{more})"

    def attention(self) -> Any:
        """What the model attended to: a `transduce.interpret.attention.Attention`, which a notebook draws.

        Raises:
            InputError: the text was empty, or read in several pieces, or by an ensemble; nobody knows the model.
        """
        if self.attend is None:
            raise InputError(
                "this prediction does not know the model that made it: ask a pipeline to predict it again."
            )
        return self.attend(self)

    def _repr_html_(self) -> str | None:
        return self.picture(self) if self.picture and self.source.strip() else None

    def shown_by(
        self,
        attend: Callable[["Prediction"], Any],
        picture: Callable[["Prediction"], str] | None = None,
        unfamiliar: Unfamiliar = Unfamiliar(),  # noqa: B008
        judge: "Callable[[Prediction], list[WordConfidence]] | None" = None,
    ) -> "Prediction":
        """The same, and its alternatives, which know how to compute what is asked of them later.

        Args:
            attend: computes their `attention`.
            picture: HTML of one, for a notebook.
            unfamiliar: what of the source no training source had.
            judge: says how sure their words are.
        """
        alternatives = tuple(each.shown_by(attend, picture, unfamiliar, judge) for each in self.alternatives)
        known = replace(self, unseen=unfamiliar.unseen, unfamiliar=unfamiliar)
        own = replace(known, attend=attend, picture=picture, judge=judge)
        return replace(own, alternatives=alternatives)

    @property
    def text_read(self) -> str:
        """What the model read."""
        return self.source if self.read is None else self.read

    def restored(self, source: str, prepared: Prepared) -> "Prediction":
        """As the prediction of `source`, in place of which the model read what was `prepared` of it."""
        if prepared.plain:
            return self
        restored, tags = prepared.restored(self.text), len(source) - len(prepared.text)
        edits = prepared.edits_behind(source[:tags]), restored.edits
        alternatives = tuple(each.restored(source, prepared) for each in self.alternatives)
        own = replace(self, source=source, text=restored.text, read=self.source)
        own = replace(own, given=(*prepared.values, *prepared.terms))
        return replace(own, edits=edits, alternatives=alternatives)

    def __getstate__(self) -> dict[str, Any]:
        """What is copied to other processes: no model."""
        return {**vars(self), "attend": None, "picture": None, "judge": None}

    @classmethod
    def from_hypotheses(
        cls,
        text: str,
        hypotheses: Sequence[Hypothesis],
        tokenizer: Tokenizer,
        phrases: Phrases | None = None,
        lattice: Lattice | None = None,
    ) -> "Prediction":
        """The best of `hypotheses` (best first) as text, with all of them as alternatives when there are several.

        Args:
            phrases: what the outputs were to hold and not to hold, which their texts are compared with.

        Raises:
            TransduceError: an output holds what it must not.
        """
        listed = tuple(cls._from_hypothesis(text, each, tokenizer, phrases) for each in hypotheses)
        best = listed[0] if len(listed) == 1 else replace(listed[0], alternatives=listed)
        return best if lattice is None else replace(best, lattice=lattice.spelled(tokenizer.tokens))

    @classmethod
    def _from_hypothesis(
        cls, text: str, hypothesis: Hypothesis, tokenizer: Tokenizer, phrases: Phrases | None
    ) -> "Prediction":
        ids = hypothesis.tokens[:-1] if hypothesis.ended else hypothesis.tokens
        output = tokenizer.decode(ids)
        if phrases and (wrong := held(phrases, output)):
            raise TransduceError(
                f'search: the output "{output}" holds {wrong}, which must not appear: please report it.'
            )
        return cls(
            source=text,
            text=output,
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            tokens=tuple(tokenizer.tokens(ids)),
            token_log_probabilities=hypothesis.token_log_probabilities,
            ended=hypothesis.ended,
            unmet=unmet(phrases, output),
        )

    def details(self) -> dict[str, Any]:
        """What a kind of prediction tells besides, for JSON: how much was read of a text that was cut; `warnings`."""
        cut = {} if self.cut is None else {"cut": {"tokens": self.cut.tokens, "read": self.cut.read}}
        words = [] if self.spoken_words else self.word_confidences
        sure: dict[str, Any] = {"confidence": _rounded(self.confidence)} if self.confidence is not None else {}
        sure |= {"word_confidences": [[self.text[a:b], _rounded(one)] for a, b, one in words]} if words else {}
        sure |= {"unknown_words": [*self.unfamiliar.unknown]} if self.unfamiliar.unknown else {}
        return cut | sure | ({"warnings": self.warnings} if self.warnings else {})

    @cached_property
    def word_confidences(self) -> "list[WordConfidence]":
        """How sure each word of the text is, but for those that were copied, or given by a glossary.

        None where the model was not calibrated, or read the text in pieces.
        """
        if self.judge is None or self.segments:
            return []
        judged = self.judge(self)
        if self.edits is None:
            return judged
        given = {word for text in self.given for word in WORD.findall(text.lower())}
        moved = [each._replace(start=a, end=b) for each in judged for a, b in [mapped(self.edits[1], *each[:2], False)]]
        return [each for each in moved if self.text[each.start : each.end].lower() not in given]

    @property
    def confidence(self) -> float | None:
        """The share of the words that are right, as it is expected; None where their confidences are not known."""
        words = self.word_confidences
        return sum(each.confidence for each in words) / len(words) if words else None

    def memory_details(self) -> dict[str, Any]:
        """What a translation memory has to do with it, for JSON: `matches`, and `origins` with the pairs they name."""
        matches = {"matches": [each._asdict() for each in self.matches]} if self.matches else {}
        return matches | (origins_table(self.origins) if self.origins else {})

    @property
    def warnings(self) -> list[str]:
        """What to look at, each as a sentence: what is missing or repeated; parts of a recording without an end."""
        told = [*self.unfamiliar.warnings, *(f'"{part}" is not in the output.' for part in self.missing)]
        told += [f'"{part}" was put in by a second search; see whether it stands right.' for part in self.forced]
        told += [f'the output repeats "{self.repeated.text}" {self.repeated.times} times.'] if self.repeated else []
        return told + [each for segment in self.segments for each in segment.warnings]

    def written_as(self, form: str) -> str:
        """The prediction as a further format of `transduce predict --format` has it.

        Raises:
            InputError: this kind of prediction has no such format.
        """
        raise InputError(f"--format {form} is for models that label words; this one does not. Use --json.")

    @property
    def seen(self) -> tuple[int, ...] | None:
        """The places of the source's tokens that the model read at once, end tokens included; None = all of them."""
        return None if self.cut is None else tuple(place for part in self.cut.seen for place in range(*part))

    @property
    def written(self) -> tuple[str, ...]:
        """The tokens of the output as they stand to what was `seen`."""
        return self.tokens

    def to_dict(self) -> dict[str, Any]:
        """For JSON; the alternatives as a list under `nbest`, without repeating the source; no empty lists."""
        values = {**vars(self), "nbest": [each.to_dict() for each in self.alternatives], "unmet": list(self.unmet)}
        values["segments"] = [each.to_dict() for each in self.segments if len(self.segments) > 1]
        if self.spoken_words:
            values["words"] = [each._asdict() for each in self.spoken_words]
        values["lattice"] = [] if self.lattice is None else self.lattice.to_dict()
        for each in values["nbest"]:
            del each["source"]
        left_out = (
            "edits",
            "given",
            "unfamiliar",
            "judge",
            "word_confidences",
            "alternatives",
            "spoken_words",
            "attend",
            "picture",
            "cut",
            "missing",
            "forced",
            "repeated",
            "matches",
            "origins",
            *(name for name in ("unseen", "read") if values[name] is None),
        )
        kept = {name: value for name, value in values.items() if name not in left_out and value != []}
        return {**kept, **self.details(), **self.memory_details()}


def _rounded(probability: float) -> float:
    return round(probability, 4)


def empty_prediction(text: str) -> Prediction:
    """What comes of a text without tokens."""
    return Prediction(text, "", 0.0, 0.0, (), ())


def unmet(phrases: Phrases | None, text: str) -> tuple[str, ...]:
    """What of `phrases` has to appear in `text` and does not, as people write it."""
    lack = lacking(phrases, text) if phrases else []
    return tuple(unicodedata.normalize("NFC", " / ".join(alternatives)) for alternatives in lack)


def count_unfinished(predictions: Iterable[Prediction]) -> int:
    """How many outputs were cut off at their limit."""
    return sum(not each.ended for each in predictions)


def refuse_cut(predictions: Sequence[Prediction], first: int = 0) -> None:
    """Raises InputError for texts that were cut, naming their lines, of which the first has this number from 0."""
    cuts = [(first + place, each.cut) for place, each in enumerate(predictions, 1) if each.cut]
    if cuts:
        raise InputError(
            f"line {line}: {cut.tokens} tokens, the model reads {cut.read} at most: shorten it." for line, cut in cuts
        )


def cut_lines(predictions: Sequence[Prediction]) -> list[str]:
    """What to tell of the texts that were cut, in a line; [] = of none."""
    found = [each.cut for each in predictions if each.cut is not None]
    return [cut_line(len(found), len(predictions), max(each.read for each in found))] if found else []


def cut_line(count: int, texts: int, room: int) -> str:
    """What to tell of `count` of so many texts, of which the model has room for so many tokens."""
    were = "was" if count == 1 else "were"
    return f"{count:,} of {texts:,} texts {were} cut to {room:,} tokens, the most that this model reads."


def doubtful(predictions: Iterable[Prediction]) -> tuple[int, int]:
    """How many recordings have an output that was cut off at its limit; and how many one that repeats itself."""
    heard = [each.segments for each in predictions]
    cut_off = sum(not all(part.ended for part in parts) for parts in heard)
    return cut_off, sum(any(part.repeated for part in parts) for parts in heard)


def doubtful_line(cut_off: int, repeating: int, recordings: int) -> str:
    """What to tell of so many; "" = nothing."""
    told = [f"{cut_off:,} reached the limit of an output without an end"] if cut_off else []
    told += [f"{repeating:,} {'repeats itself' if repeating == 1 else 'repeat themselves'}"] if repeating else []
    of = "1 recording" if recordings == 1 else f"{recordings:,} recordings"
    return f"of {of}, {' and '.join(told)}: look at their warnings with --json." if told else ""


def told_lines(predictions: Sequence[Prediction]) -> list[str]:
    """What to tell of predictions, a line each: texts that were cut, outputs that are doubtful or lack something."""
    line = doubtful_line(*doubtful(predictions), len(predictions))
    faults = OutputFaults.of(predictions).lines(len(predictions))
    return [*cut_lines(predictions), *([line] if line else []), *faults]


@dataclass(frozen=True)
class OutputFaults:
    """What is wrong with some outputs: how many lack something of their sources, how many repeat themselves.

    first_missing, first_repeated: the number of the first such text, and what it is.
    """

    missing: int = 0
    repeated: int = 0
    first_missing: Sequence[Any] = (0, "")
    first_repeated: Sequence[Any] = (0, "")

    @classmethod
    def of(cls, predictions: Iterable[Prediction], first: int = 0) -> "OutputFaults":
        """first: the number of the first text, from 0."""
        numbered = [*enumerate(predictions, first + 1)]
        lack = [(number, each.missing[0]) for number, each in numbered if each.missing]
        loops = [(number, each.repeated.text) for number, each in numbered if each.repeated]
        return cls(len(lack), len(loops), *(found[0] if found else (0, "") for found in (lack, loops)))

    def values(self) -> list[Any]:
        """Those of its fields, for JSON."""
        return [self.missing, self.repeated, [*self.first_missing], [*self.first_repeated]]

    def plus(self, more: "OutputFaults") -> "OutputFaults":
        """With those of texts behind these."""
        firsts = (
            self.first_missing if self.missing else more.first_missing,
            (self.first_repeated if self.repeated else more.first_repeated),
        )
        return OutputFaults(self.missing + more.missing, self.repeated + more.repeated, *firsts)

    def lines(self, outputs: int) -> list[str]:
        """What to tell of so many outputs, a line for each fault."""
        told = []
        if self.missing:
            number, part = self.first_missing
            what = f'something of the source, such as "{part}"'
            told.append(_faulty(self.missing, outputs, number, what, "lacks", "lack"))
        if self.repeated:
            number, part = self.first_repeated
            told.append(_faulty(self.repeated, outputs, number, f'"{part}"', "repeats", "repeat"))
        return told


def _faulty(count: int, outputs: int, number: int, what: str, one: str, several: str) -> str:
    if outputs == 1:
        return f"The output {one} {what}."
    who = f"1 of {outputs:,} outputs {one}" if count == 1 else f"{count:,} of {outputs:,} outputs {several}"
    return f"{who} {what} in line {number:,}: --json has the warnings of each."


def unfinished_line(count: int) -> str:
    """What to tell about them."""
    outputs = "1 output was" if count == 1 else f"{count:,} outputs were"
    return f"{outputs} cut off: search.max_length_factor and search.max_length_offset limit their length."
