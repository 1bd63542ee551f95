"""What a model makes of one text."""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from transduce.core.errors import InputError, TransduceError
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.inference.memory_use import FuzzyMatch, TokenOrigin, origins_table
from transduce.inference.repetition import Repetition
from transduce.search.hypothesis import Hypothesis
from transduce.search.lattice import Lattice
from transduce.search.phrases import Phrases, held, lacking

if TYPE_CHECKING:
    from transduce.data.columns.protocols import TextCut


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
    alternatives: the n-best list, best first, this prediction included; empty unless more than one was asked for.
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
    alternatives: tuple["Prediction", ...] = ()
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
        unseen: float | None = None,
    ) -> "Prediction":
        """The same, and its alternatives; `attend` computes their `attention`, a notebook shows them as `picture`."""
        alternatives = tuple(each.shown_by(attend, picture, unseen) for each in self.alternatives)
        return replace(self, attend=attend, picture=picture, unseen=unseen, alternatives=alternatives)

    def __getstate__(self) -> dict[str, Any]:
        """What is copied to other processes: no model."""
        return {**vars(self), "attend": None, "picture": None}

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
        return cut | ({"warnings": self.warnings} if self.warnings else {})

    def memory_details(self) -> dict[str, Any]:
        """What a translation memory has to do with it, for JSON: `matches`, and `origins` with the pairs they name."""
        matches = {"matches": [each._asdict() for each in self.matches]} if self.matches else {}
        return matches | (origins_table(self.origins) if self.origins else {})

    @property
    def warnings(self) -> list[str]:
        """Of a recording: which parts have no end, and which repeat themselves, each as a sentence."""
        return [each for segment in self.segments for each in segment.warnings]

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
            "alternatives",
            "spoken_words",
            "attend",
            "picture",
            "cut",
            "matches",
            "origins",
            *(["unseen"] if self.unseen is None else []),
        )
        kept = {name: value for name, value in values.items() if name not in left_out and value != []}
        return {**kept, **self.details(), **self.memory_details()}


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
    """What to tell of predictions, a line each: texts that were cut, recordings whose outputs are doubtful."""
    line = doubtful_line(*doubtful(predictions), len(predictions))
    return [*cut_lines(predictions), *([line] if line else [])]


def unfinished_line(count: int) -> str:
    """What to tell about them."""
    outputs = "1 output was" if count == 1 else f"{count:,} outputs were"
    return f"{outputs} cut off: search.max_length_factor and search.max_length_offset limit their length."
