"""Answers as spans of a text: windows, "no answer" and scores against all spans of all windows, one by one."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from transduce.data.columns.question_context import Passage, QuestionContext
from transduce.data.structures.squad import joined
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.inference.spans import (
    Reading,
    ReadText,
    SeenWindow,
    SpanPrediction,
    SpanPredictor,
    best_span,
    character_span,
    read_windows,
    token_span,
    windows,
)

WORDS = ["ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ra", "su", "te"]
TOKENIZER = train_tokenizer(TokenizerConfig(kind="whitespace", min_frequency=1), [" ".join(WORDS)])
COLUMN = QuestionContext(TOKENIZER)
HOW = Reading(window=5, stride=3, question=2, answer=3, no_answer=None)
TEXTS = [
    joined("ba de fi", "go ku la me ni po ra su te go ku"),  # four windows; the question is cut off
    joined("ba", "de fi go"),
    joined("ku la", "  te  su ra po ni me la "),
    joined("me", "go ku la go ku la go ku"),  # both windows are the same, and so are words within them
    joined("ni", "   "),
]


class Pointer(nn.Module):
    """Points at each token with numbers of its own, which the question changes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.numbers = nn.Parameter(torch.randn(2, TOKENIZER.size, dtype=torch.float64))

    def point(self, passage: Passage) -> tuple[Tensor, Tensor]:
        outside = ~passage.context.mask()
        asked = (self.numbers[0][passage.question.values] * passage.question.mask()).sum(1, keepdim=True)
        start, end = (each[passage.context.values] * (1 + asked) for each in self.numbers)
        return start.masked_fill(outside, -torch.inf), end.masked_fill(outside, -torch.inf)


MODEL = Pointer()


def looked(text: str) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """The first token of each window of a text, and log p of its first and last tokens, the end token last."""
    question, context = (TOKENIZER.encode([side])[0] for side in text.split("\t"))
    found, first = [], 0
    while True:
        last = min(first + HOW.window, len(context))
        read = COLUMN.collate([np.array([*question[: HOW.question], COLUMN.end, *context[first:last]], np.int32)])
        with torch.no_grad():
            sides = [each[0].log_softmax(0).numpy() for each in MODEL.point(read)]
        found.append((first, *sides))
        if last == len(context):
            return found
        first += HOW.stride


def all_spans(text: str) -> list[tuple[float, int, int, int]]:
    """log p of each span of each window, its first and last token in the text, and the window's place."""
    return [
        (float(start_S[i] + end_S[j]), first + i, first + j, place)
        for place, (first, start_S, end_S) in enumerate(looked(text))
        for i, j in itertools.combinations_with_replacement(range(len(start_S) - 1), 2)
        if j - i < HOW.answer
    ]


def predict(*texts: str, batch_size: int = 64, how: Reading = HOW) -> list[SpanPrediction]:
    return SpanPredictor(COLUMN, how).predict(MODEL, texts, batch_size=batch_size)


@pytest.mark.parametrize("text", TEXTS[:4])
def test_the_answer_is_the_likeliest_span_less_no_answer(text: str) -> None:
    [found] = predict(text)
    value, first, last, place = max(all_spans(text), key=lambda each: (each[0], -each[1], -each[2]))
    nothing = [float(start_S[-1] + end_S[-1]) for _, start_S, end_S in looked(text)]
    none = min(nothing)
    assert found.tokens == (str(first), str(last))
    assert found.log_probability == pytest.approx(value)
    assert found.no_answer == pytest.approx(np.exp(none))
    assert found.score == pytest.approx(value - none)
    begun, start_S, end_S = looked(text)[place]
    assert found.token_log_probabilities == pytest.approx((start_S[first - begun], end_S[last - begun]))
    context, words = text.split("\t")[1], text.split("\t")[1].split()
    assert (found.start, found.end) != (None, None)
    assert context[found.start : found.end] == found.text
    assert found.text.split() == words[first : last + 1]
    assert found.text == found.text.strip()
    assert found.details() == {"start": found.start, "end": found.end, "no_answer": found.no_answer}
    assert found.to_dict() == {
        **{"question": text.split("\t", maxsplit=1)[0], "context": context, "text": found.text, **found.details()},
        **{"score": found.score, "log_probability": found.log_probability},
    }


@pytest.mark.parametrize("text", TEXTS[:4])
@pytest.mark.parametrize("margin", [-1e-6, 1e-6])
def test_no_answer_must_be_likelier_by_the_margin(text: str, margin: float) -> None:
    """At the very difference of both, a little more or less decides."""
    [usual] = predict(text)
    how = replace(HOW, no_answer=margin - usual.score)
    [found] = predict(text, how=how)
    if margin > 0:
        assert found == usual
        return
    places = looked(text)
    least = min(range(len(places)), key=lambda place: float(places[place][1][-1] + places[place][2][-1]))
    length = len(text.split("\t")[1].split())
    assert (found.text, found.start, found.end, found.tokens) == ("", None, None, (str(length), str(length)))
    assert (found.score, found.no_answer) == (0.0, usual.no_answer)
    assert found.log_probability == pytest.approx(np.log(usual.no_answer))
    assert found.token_log_probabilities == pytest.approx((places[least][1][-1], places[least][2][-1]))
    assert found.window is not None
    assert (found.window.first, found.window.number) == (places[least][0], least + 1)


def test_a_margin_of_nothing_is_one() -> None:
    """Where "no answer" is likelier by itself, it is given with a margin of 0, and not without any."""
    texts = [joined("ba", word) for word in WORDS]
    always, margin = predict(*texts), predict(*texts, how=replace(HOW, no_answer=0.0))
    assert {each.score < 0 for each in always} == {True, False}
    assert [each.text for each in margin] == ["" if each.score < 0 else each.text for each in always]


def test_a_text_without_words_has_no_answer() -> None:
    [found] = predict(TEXTS[4])
    assert (found.text, found.tokens, found.score) == ("", ("0", "0"), 0.0)
    assert found.no_answer == pytest.approx(1.0)  # the end token is all there is


def test_the_window_is_told_where_the_answer_was_found() -> None:
    [found] = predict(TEXTS[0])
    *_, first, _, place = max(all_spans(TEXTS[0]))
    begun = looked(TEXTS[0])[place][0]
    assert found.window == SeenWindow(3, 2, 11, begun, min(5, 11 - begun), place + 1, 3)
    assert found.written == tuple(str(int(each) - begun) for each in found.tokens)
    assert first >= begun
    end_of_question, text = 3, 4
    assert found.seen == (0, 1, end_of_question, *range(text + begun, text + min(begun + 5, 11)), text + 11)
    assert predict(TEXTS[1])[0].seen == (0, 1, 2, 3, 4, 5)  # all of it
    assert SpanPrediction("", "", 0.0, 0.0, ("1", "2"), (0.0, 0.0)).written == ("1", "2")


def test_batches_change_nothing_and_each_text_is_told_once() -> None:
    together = predict(*TEXTS)
    for size in (1, 2, 3):
        told: list[int] = []
        found = SpanPredictor(COLUMN, HOW).predict(MODEL, TEXTS, batch_size=size, advance=told.append)
        assert [each.tokens for each in found] == [each.tokens for each in together]
        assert [each.score for each in found] == pytest.approx([each.score for each in together])
        assert sum(told) == len(TEXTS)
    assert predict() == []


def test_the_likelihood_is_that_of_the_likeliest_place() -> None:
    pairs = [(text, answer) for text in TEXTS for answer in ("", "go ku", "la me ni", "fi", "te", "nowhere", "ku go")]
    found = SpanPredictor(COLUMN, HOW).score(MODEL, pairs, batch_size=3)
    for (text, answer), each in zip(pairs, found, strict=True):
        places, words = looked(text), text.split("\t")[1].split()
        if answer:
            wanted = answer.split()
            spans = [
                float(start_S[at - first] + end_S[at + len(wanted) - 1 - first])
                for first, start_S, end_S in places
                for at in range(first, first + len(start_S) - len(wanted))
                if words[at : at + len(wanted)] == wanted
            ]
            expected = [max(spans)] if spans else []
        else:
            expected = [min(float(start_S[-1] + end_S[-1]) for _, start_S, end_S in places)]
        assert each.token_log_probabilities == pytest.approx(expected)
        assert each.log_probability == pytest.approx(sum(expected))
        assert (each.tokens, each.unit, each.pieces) == (len(expected), "span", (answer,) * len(expected))


def test_windows_begin_again_after_a_stride() -> None:
    assert list(windows(0, 4, 2)) == [(0, 0)]
    assert list(windows(4, 4, 2)) == [(0, 4)]
    assert list(windows(9, 4, 3)) == [(0, 4), (3, 7), (6, 9)]
    reads, found = read_windows(COLUMN, TEXTS[:2], HOW)
    assert [(each.text, each.first, each.tokens) for each in found] == [(0, 0, 5), (0, 3, 5), (0, 6, 5), (1, 0, 3)]
    assert [read.asked for read in reads] == [3, 1]
    asked, text = TOKENIZER.encode(["ba de", "me ni po ra su"])
    assert found[1].row.tolist() == [*asked, COLUMN.end, *text]


def test_of_equal_spans_the_first_is_taken() -> None:
    nothing = np.zeros(3)
    found: Any = best_span(nothing, nothing, 2)
    assert (found.first, found.last) == (0, 0)
    assert best_span(np.zeros(0), np.zeros(0), 2) is None
    [same] = predict(TEXTS[3])
    assert int(same.tokens[0]) < 3
    assert same.window is not None
    assert same.window.number == 1


def test_spans_of_characters_and_of_tokens() -> None:
    offsets = [(0, 2), (2, 5), (5, 8)]
    assert token_span(offsets, 2, 3) == (1, 1)
    assert token_span(offsets, 1, 6) == (0, 2)
    assert token_span(offsets, 1, 2) == (0, 0)
    assert token_span(offsets, 8, 9) is None
    read: Any = read_windows(COLUMN, [joined("ba", "  de   fi ")], HOW)[0][0]
    assert [character_span(read, *each) for each in ((0, 0), (0, 1), (1, 1))] == [(2, 4), (2, 9), (7, 9)]
    spaced = ReadText(" de  fi    ", [(0, 5), (5, 9), (9, 11)])  # tokens that hold the space around words
    assert [character_span(spaced, *each) for each in ((0, 0), (0, 1), (1, 2))] == [(1, 3), (1, 7), (5, 7)]
    assert character_span(spaced, 2, 2) == (9, 11)  # nothing but space
