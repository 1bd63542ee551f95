"""Measuring: what the page counts is what sacrebleu, rouge-score and the model itself say."""

import random

import pytest
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU

from transduce.explore.live import in_int8
from transduce.pipeline.pipeline import load

SOURCE = "The animal didn't cross the street because it was too tired."
REFERENCE = "L'animal n'a pas traversé la rue parce qu'il était trop fatigué."


class Spaces:
    """A tokenizer of rouge-score for texts whose words stand between spaces."""

    def tokenize(self, text):
        return text.split()


def _drawn(rng):
    return [rng.choice("abcde") for _ in range(rng.randint(1, 12))]


@pytest.fixture(scope="module")
def pairs():
    """300 pairs of lists of letters, few letters and many repetitions; some short, some without any match."""
    rng = random.Random(1)
    found = [(_drawn(rng), _drawn(rng)) for _ in range(200)]
    for _ in range(100):
        one = _drawn(rng) + _drawn(rng)
        changed = [rng.choice("abcde") if rng.random() < 0.15 else each for each in one]
        found.append((changed[: rng.randint(1, 24)], one))
    return found


@pytest.mark.parametrize("smooth", ["none", "exp"])
@pytest.mark.parametrize("most", [1, 2, 4])
def test_bleu_is_sacrebleus(opened, pairs, most, smooth):
    page = opened("measuring")
    count = "([pairs, most, smooth]) => pairs.map(([c, r]) => Transduce.measures.bleu(c, r, most, smooth).score)"
    shown = page.evaluate(count, [pairs, most, smooth])
    metric = BLEU(tokenize="none", smooth_method=smooth, max_ngram_order=most, effective_order=False)
    true = [metric.sentence_score(" ".join(c), [" ".join(r)]).score for c, r in pairs]
    assert [100 * each for each in shown] == pytest.approx(true, abs=1e-9)
    assert len({round(each, 6) for each in true}) > 30


@pytest.mark.parametrize("n", [1, 2, 3, "L"])
def test_rouge_is_rouge_scores(opened, pairs, n):
    page = opened("measuring")
    name = "rougeL" if n == "L" else "rouge"
    shown = page.evaluate(f"([pairs, n]) => pairs.map(([c, r]) => Transduce.measures.{name}(c, r, n))", [pairs, n])
    scorer = RougeScorer([f"rouge{n}"], tokenizer=Spaces())
    for (candidate, reference), found in zip(pairs, shown, strict=True):
        true = scorer.score(" ".join(reference), " ".join(candidate))[f"rouge{n}"]
        assert (found["precision"], found["recall"], found["f1"]) == pytest.approx(true)


def test_the_notes_example(opened):
    """G4 and G6 of the notes: candidate ABBCD, reference ABCDEF."""
    page = opened("measuring")
    page.click("#pair-letters")
    for most, score in (("1", "65.50"), ("2", "63.42"), ("3", "47.88"), ("4", "0.00")):
        page.click(f"#choice-n-up-to-{most}")
        assert page.text_content("#bleu-score") == score
    assert "0.819" in page.text_content("#penalty")
    page.click("#choice-smoothing-exp")
    assert page.text_content("#bleu-score") == "38.72"
    rows = [row.split("\t") for row in page.locator("#rouge tbody").inner_text().splitlines()]
    assert [row[1] for row in rows] == ["0.6667", "0.6000", "0.2500", "0.0000", "0.6667"]
    assert [row[3] for row in rows] == ["0.7273", "0.6667", "0.2857", "0.0000", "0.7273"]


def states(page):
    """How many bars of the candidate and the reference together are counted, clipped, alone."""
    kinds = ("counted", "clipped", "alone")
    return tuple(page.locator(f"#stop .grams rect.gram-{kind}").count() for kind in kinds)


def test_bars_show_what_is_counted_and_what_is_clipped(opened):
    page = opened("measuring")
    page.fill("#reference", "la rue est la rue")
    page.fill("#candidate", "la la la rue")
    page.click("#choice-n-1")
    assert states(page) == (3 + 3, 1 + 1, 1)  # la la rue; the third la, the second rue; est
    assert page.locator("#stop .gram-link").count() == 3
    page.click("#choice-n-2")
    assert states(page) == (1 + 1, 1, 2 + 2)  # la rue; its second time; la la twice, rue est, est la


def test_typing_changes_the_scores_and_the_link_keeps_them(opened):
    page = opened("measuring")
    before = page.text_content("#bleu-score")
    page.fill("#candidate", REFERENCE)
    assert page.text_content("#bleu-score") == "100.00" != before
    assert "candidate=" in page.url
    page.reload()
    page.wait_for_selector("#stop[data-drawn]")
    assert page.text_content("#bleu-score") == "100.00"


def test_its_french_words_are_apart_from_marks_and_chinese_is_split_into_characters(opened):
    page = opened("measuring")
    words = page.evaluate("texts => texts.map(Transduce.measures.words)", [REFERENCE, "机器学习。"])
    assert " ".join(words[0]) == "L'animal n'a pas traversé la rue parce qu'il était trop fatigué ."
    assert words[1] == ["机", "器", "学", "习", "。"]


@pytest.fixture(scope="module")
def rounded(run):
    """The model as the page has it: matrices in 8 bits."""
    model = load(run)
    weights = dict(model.model.named_parameters())
    for name, weight in in_int8({name: each.detach() for name, each in weights.items()}).items():
        if name.endswith(".scale"):
            matrix = weights[name.removesuffix(".scale")]
            matrix.data = in_int8({"w": matrix.detach()})["w"].float() * weight.reshape(-1, 1)
    return model


@pytest.mark.parametrize("translation", [REFERENCE, REFERENCE.replace("qu'il", "qu'elle"), "La rue."])
def test_perplexity_is_the_models(opened, rounded, translation):
    page = opened("measuring")
    page.fill("#candidate", translation)
    found = rounded.score(SOURCE, translation)
    assert float(page.text_content("#perplexity")) == pytest.approx(found.perplexity, rel=0.02)


def test_perplexity_is_of_the_text_that_is_chosen(opened):
    page = opened("measuring")
    wrong = float(page.text_content("#perplexity"))
    page.click("#choice-Scored-text-reference")
    assert float(page.text_content("#perplexity")) < wrong / 1.5
    page.fill("#source", SOURCE.replace("tired", "wide"))
    assert float(page.text_content("#perplexity")) > 1.2
