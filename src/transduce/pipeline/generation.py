"""Texts out of a language model: samples, as they are written, and acrostics."""

from collections.abc import Callable, Sequence
from typing import Any

from transduce.core.errors import InputError
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.inference.decode import decode, reads
from transduce.inference.generates import generating
from transduce.inference.likelihood import Likelihood
from transduce.inference.line_marks import LineMarks
from transduce.inference.options import PredictionOptions
from transduce.inference.prediction import Prediction
from transduce.inference.splitting import Pieces
from transduce.pipeline.arguments import text_of
from transduce.pipeline.pipeline import Pipeline
from transduce.search.request import Step
from transduce.search.settings import Search, search_settings

ENDLESS = 10**9  # tokens, more than any text has
PARTIAL = "\ufffd"  # what bytes that are no whole character yet read as

OnText = Callable[[int, str], None]  # the number of a text, from 0, and what is added to it


def generate(
    pipeline: Pipeline,
    prompt: str = "",
    *,
    count: int = 1,
    acrostic: str = "",
    separator: str | None = None,
    batch_size: int = 64,
    on_text: OnText | None = None,
    tell: Callable[[str], None] | None = None,
    **search: Any,
) -> list[Prediction]:
    """Sample `count` texts that begin with `prompt`. Each is what `Pipeline.predict` gives for its line with this seed.

    Args:
        prompt: the beginning of every text, or of a model that writes from right to left, its end; may be empty.
        acrostic: the first characters of the lines of every text, one a line, in the place of a prompt. The text ends
            with the last of these lines.
        separator: what stands between lines; by default a line break for a model of running text, else "|", or "/"
            where the model has no "|".
        batch_size: texts sampled together: speed and memory, nothing else.
        on_text: told the texts as they grow, one after the other.
        tell: told when only a part of the prompt is seen, when the model has no token for a part of it, and when lines
            of an acrostic are cut short.
        search: any key of `transduce.search.settings.Search` in place of the recipe's; method is "sample" by default.

    Raises:
        InputError: it is no language model; a setting is wrong; the model cannot write the acrostic.
    """
    prompt = text_of(prompt, "prompt")
    settings = _settings(pipeline, count, prompt, acrostic, search)
    if acrostic:
        lines = _Acrostic(pipeline, settings, acrostic, separator, on_text)
        found = [lines.text(number) for number in range(count)]
        if lines.cut and tell:
            tell(
                f"{lines.cut} of {count * len(acrostic)} lines were cut short, by --max-new or by the model's limit of "
                f"a text, {lines.limit} tokens."
            )
        return found
    pieces = pipeline.pieces([prompt], "none")
    for place, known in pieces.long.items():
        if tell:
            tell(f"{known}; {pieces.done[place]}".removeprefix("line 1: "))
    if tell and (unknown := _unknown(pipeline, prompt)):
        tell(unknown)
    texts = [pieces.read[0]] * count
    together = 1 if on_text else batch_size
    predictions: list[Prediction] = []
    for first in range(0, count, together):
        stream = _TextStream(pipeline.task.tokenizers["target"], first, on_text) if on_text else None
        found = _decoded(pipeline, texts[first : first + together], settings, first, stream)
        if stream:
            stream.finish(found[0].text)
        predictions += found
    return [each.shown_by(pipeline.attention) for each in predictions]


def check(
    pipeline: Pipeline, prompt: str = "", *, acrostic: str = "", separator: str | None = None, **search: Any
) -> None:
    """Raises InputError for what `generate` would refuse, before anything is written. Arguments are those of it."""
    settings = _settings(pipeline, 1, prompt, acrostic, search)
    if acrostic:
        _Acrostic(pipeline, settings, acrostic, separator, None)


def judged(pipeline: Pipeline, source: str, text: str) -> Prediction:
    """A text of a language model as it stands, with what the model thinks of it; nothing is searched."""
    found: Likelihood = pipeline.score(text)
    total, ends = found.log_probability, found.token_log_probabilities
    return Prediction(source, text, total, total, found.pieces[:-1], ends)


def _settings(pipeline: Pipeline, count: int, prompt: str, acrostic: str, search: dict[str, Any]) -> Search:
    """Raises InputError with everything that cannot be."""
    if not pipeline.searches or "source" in pipeline.task.columns:
        raise InputError("generate is for language models; this model reads a source: use predict.")
    problems = []
    if count < 1:
        problems.append(f"count = {count}: expected at least 1.")
    if acrostic and prompt:
        problems.append("acrostic and prompt: both say how the text begins; give one.")
    if acrostic and pipeline.task.tokenizers["target"].right_to_left:
        problems.append("acrostic: this model writes from right to left, the first character of a line last.")
    settings = search_settings(pipeline.recipe.search, {"method": "sample", "nbest": 1, **search})
    if settings.nbest > 1:
        problems.append(f"nbest = {settings.nbest}: expected 1; count says how many texts are sampled.")
    if settings.method not in ("sample", "greedy"):
        problems.append(f'method = "{settings.method}": expected "sample" or "greedy"; predict searches.')
    if problems:
        raise InputError(problems)
    return settings


def _unknown(pipeline: Pipeline, prompt: str) -> str:
    """Says how much of the prompt the model does not know; empty where it knows all of it."""
    tokenizer = pipeline.task.tokenizers["target"]
    ids = tokenizer.encode([prompt])[0]
    unknown = sum(each == tokenizer.unknown for each in ids) - prompt.count("<unk>")
    return f"{unknown} of {len(ids)} tokens of the prompt are unknown to the model: it reads <unk>." * (unknown > 0)


def _decoded(
    pipeline: Pipeline, texts: Sequence[str], settings: Search, first: int, on_step: Callable[[Step], None] | None
) -> list[Prediction]:
    """first: the number of the first of the samples."""
    pieces = Pieces.whole(texts, reads(generating(pipeline.task)).encode(texts), first)
    options = PredictionOptions(batch_size=max(1, len(texts)), on_step=on_step)
    return decode(pipeline.searched, pieces, settings, options, allow_empty=True)


class _TextStream:
    """Tells what each step adds to the one text of a search."""

    def __init__(self, tokenizer: Tokenizer, number: int, on_text: OnText, shown: str = "") -> None:
        self.tokenizer, self.number, self.on_text = tokenizer, number, on_text
        self.shown = shown

    def __call__(self, step: Step) -> None:
        if not self.tokenizer.right_to_left:  # whose text grows at its front: it is shown when it is whole
            self.show(self.tokenizer.decode(step.tokens[0].tolist()).rstrip(PARTIAL))

    def show(self, text: str) -> None:
        if text.startswith(self.shown) and text != self.shown:
            self.on_text(self.number, text[len(self.shown) :])
            self.shown = text

    def finish(self, text: str) -> None:
        """All of the text; one that does not go on as it began is told anew."""
        if not text.startswith(self.shown):
            self.on_text(self.number, "\n")
            self.shown = ""
        self.show(text)


class _LineEnded(Exception):
    """Ends a search."""

    def __init__(self, text: str) -> None:
        self.text = text


class _Acrostic:
    """Line by line: each is sampled behind the lines before it and its first character.

    The random numbers of a text belong to its positions, so that the lines together are one sample from the model in
    which nothing but the first characters is imposed.
    """

    def __init__(
        self, pipeline: Pipeline, settings: Search, acrostic: str, separator: str | None, on_text: OnText | None
    ) -> None:
        self.pipeline, self.settings, self.acrostic, self.on_text = pipeline, settings, acrostic, on_text
        self.tokenizer = pipeline.task.tokenizers["target"]
        self.cut = 0  # lines that a limit ended
        endless = settings.model_copy(update={"max_length_offset": ENDLESS})
        self.limit = generating(pipeline.task).request((), endless).limit
        marks = LineMarks(self.tokenizer, pipeline.recipe.data, separator)
        missing = list(dict.fromkeys(character for character in acrostic if not marks.writes(character)))
        problems = [f'acrostic: the model has no token for "{character}".' for character in missing]
        if marks.first is not None and marks.first in acrostic:
            problems.append(f"acrostic: {marks.first!r} stands between the lines, so that no line can begin with it.")
        if marks.first is None:
            named = " or ".join(repr(each) for each in marks.asked)
            problems.append(f"separator: the model cannot write {named}, which stands between lines; give another.")
        if not problems:
            problems = self._too_long(str(marks.first))
        if problems:
            raise InputError(problems)
        self.separator = str(marks.first)

    def _too_long(self, separator: str) -> list[str]:
        """Whether the first characters alone would fill a text."""
        shortest = len(self.tokenizer.encode([separator.join(self.acrostic)])[0])
        if shortest < self.limit:
            return []
        return [
            f"acrostic: its {len(self.acrostic)} lines have {shortest} tokens or more, and a text of this model has at "
            f"most {self.limit}: give fewer characters."
        ]

    def text(self, number: int) -> Prediction:
        """Number `number` of the samples."""
        lines: list[str] = []
        stream = _TextStream(self.tokenizer, number, self.on_text) if self.on_text else None
        for character in self.acrostic:
            lines.append(self._line([*lines, character], number))
            if stream:
                stream.show(self.separator.join(lines))
        return judged(self.pipeline, self.acrostic, self.separator.join(lines))

    def _line(self, lines: list[str], number: int) -> str:
        """The line that the last of `lines` begins."""
        place, before = len(lines) - 1, self.separator.join(lines)

        def look(step: Step) -> None:
            found = self.tokenizer.decode(step.tokens[0].tolist()).split(self.separator)
            if len(found) > place + 1:
                raise _LineEnded(found[place])

        try:
            [prediction] = _decoded(self.pipeline, [before], self.settings, number, look)
        except _LineEnded as ended:
            return ended.text
        self.cut += not prediction.ended
        return prediction.text.split(self.separator)[place]
