"""ROUGE against worked examples, rouge-score itself, and text that its own tokenizer cannot read."""

import random
import re
import sys
from importlib.metadata import version

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import DefaultTokenizer

from scores import notes_rouge, rouge
from transduce.core.errors import InputError
from transduce.core.extras import installing
from transduce.metrics.bleu_formula import words
from transduce.metrics.rouge import RougeWords, notes_rouge_tally

HYPOTHESIS, REFERENCE, SHORT = "A B B C D", "A B C D E F", "A B B"

# ---- the worked example ABCDEF / ABBCD


@pytest.mark.parametrize(("order", "recall"), [(1, 4 / 6), (2, 3 / 5), (3, 1 / 4)])
def test_recall_by_the_formula(order: int, recall: float) -> None:
    assert notes_rouge([HYPOTHESIS.split()], [[REFERENCE.split()]], order) == pytest.approx(recall, rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "precision", "recall", "f1"),
    [("1", 0.8, 0.6667, 0.7273), ("2", 0.75, 0.6, 0.6667), ("3", 0.3333, 0.25, 0.2857), ("L", None, None, 0.7273)],
)
def test_f1_by_rouge_score(kind: str, precision: float | None, recall: float | None, f1: float) -> None:
    assert rouge([HYPOTHESIS], [REFERENCE], kind).value == pytest.approx(100 * f1, abs=5e-3)
    theirs = RougeScorer([f"rouge{kind}"], tokenizer=RougeWords()).score(REFERENCE, HYPOTHESIS)[f"rouge{kind}"]
    if precision is not None:
        assert theirs.precision == pytest.approx(precision, abs=5e-5)
        assert theirs.recall == pytest.approx(recall, abs=5e-5)


@pytest.mark.parametrize(("order", "pooled", "best_f1"), [(1, 7 / 9, 0.75), (2, 5 / 7, 0.6667)])
def test_two_references_are_pooled_by_the_formula_and_chosen_from_by_rouge_score(
    order: int, pooled: float, best_f1: float
) -> None:
    both = [[REFERENCE, SHORT]]
    assert notes_rouge([HYPOTHESIS.split()], [[REFERENCE.split(), SHORT.split()]], order) == pytest.approx(pooled)
    assert notes_rouge_tally([HYPOTHESIS], both, order).value == pytest.approx(pooled)
    assert rouge([HYPOTHESIS], both, str(order)).value == pytest.approx(100 * best_f1, abs=5e-3)
    chosen = RougeScorer([f"rouge{order}"]).score_multi(both[0], HYPOTHESIS)[f"rouge{order}"]
    assert chosen.recall == 1.0


# ---- against rouge-score

texts = st.lists(st.sampled_from("abc"), max_size=8).map(" ".join)


@settings(max_examples=30)
@given(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=4))
def test_the_corpus_figure_is_the_mean_of_rouge_scores_own(rows: list[tuple[str, str, str]]) -> None:
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"])
    hypotheses, references = [row[0] for row in rows], [list(row[1:]) for row in rows]
    for kind in ("1", "2", "L"):
        each = [scorer.score_multi(list(row[1:]), row[0])[f"rouge{kind}"].fmeasure for row in rows]
        assert rouge(hypotheses, references, kind).value == pytest.approx(100 * sum(each) / len(each), abs=1e-9)


@given(st.text(st.characters(max_codepoint=127)))
def test_on_ascii_the_words_are_rouge_scores_own(text: str) -> None:
    assert words(text) == DefaultTokenizer().tokenize(text)


# ---- other scripts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Straße Übung, café!", ["straße", "übung", "café"]),
        ("机器学习2024很难。", ["机", "器", "学", "习", "2024", "很", "难"]),
        ("GPT很好用", ["gpt", "很", "好", "用"]),
        ("カメラ です", ["カ", "メ", "ラ", "で", "す"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("cafe\u0301", ["caf\u00e9"]),
        ("x ́y", ["x", "y"]),
        ("", []),
    ],
)
def test_words_of_any_script(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize("text", ["机器学习很难。", "Straße Übung café", "Добрый день"])
def test_equal_texts_score_full_in_any_script(text: str) -> None:
    assert rouge([text], [text], "1").value == 100
    assert rouge([text], [text], "L").value == 100
    if not text.isascii() and "Straße" not in text:
        assert RougeScorer(["rouge1"]).score(text, text)["rouge1"].fmeasure == 0  # why the words are ours


def test_umlauts_are_part_of_words() -> None:
    assert rouge(["die Übung"], ["die Bung"], "1").value == 50  # rouge-score's own tokenizer finds these equal


# ---- what is said


def test_the_signature_tells_the_two_apart() -> None:
    assert rouge([HYPOTHESIS], [REFERENCE]).signature == (
        f"nrefs:1|type:L|case:lc|tok:words|stem:no|figure:F1|refs:best|version:{version('rouge-score')}"
    )
    assert (
        "figure:recall|refs:pooled|scale:0-1|formula:notes" in notes_rouge_tally([HYPOTHESIS], [REFERENCE], 1).signature
    )
    kinds = [rouge([HYPOTHESIS], [REFERENCE], kind).signature for kind in ("1", "2", "L")]
    formulas = [notes_rouge_tally([HYPOTHESIS], [REFERENCE], order).signature for order in (1, 2)]
    assert len({*kinds, *formulas}) == 5  # tables have a column for each signature


def test_intervals_hold_the_value() -> None:
    draw = random.Random(3)
    hypotheses = [" ".join(draw.choices("abcdef", k=8)) for _ in range(40)]
    references = [" ".join(draw.choices("abcdef", k=8)) for _ in range(40)]
    for score in (rouge(hypotheses, references, "2"), notes_rouge_tally(hypotheses, references, 2).score()):
        assert score.interval is not None
        assert score.interval[0] < score.value < score.interval[1]


def test_wrong_input_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match='got "W"'):
        rouge(["a"], ["a"], "W")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
        with pytest.raises(InputError, match=re.escape(installing("rouge"))):
            rouge(["a"], ["a"])
