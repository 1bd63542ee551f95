"""What is decided for corpora of every size and kind: valid recipes, which grow with the data."""

import json
from dataclasses import replace
from typing import Any

import pytest
from recorded_decisions import CHINESE, COMMANDS, CORPORA, RECORD, SIZES, TEXT, corpora, decided

from transduce.data.pairs.tags import Tags
from transduce.planning.decisions import (
    Decision,
    Size,
    affordable_validations,
    decide,
    deserved_updates,
    positions,
    schedule,
    smaller,
    usual_size,
)
from transduce.planning.facts import SAMPLED, Facts
from transduce.recipe.recipe import Recipe, parse_recipe


def table(decisions: list[Decision]) -> dict[str, Any]:
    found: dict[str, Any] = {"data": {"train": [{"tsv": "a.tsv"}]}}
    for key, value, reason in decisions:
        assert reason, key
        *sections, last = key.split(".")
        inner = found
        for section in sections:
            inner = inner.setdefault(section, {})
        assert last not in inner, key
        inner[last] = value
    return found


def recipe(facts: Facts) -> Recipe:
    return parse_recipe(table([*decide(facts), *schedule(deserved_updates(facts), "why")]), "decided")


def test_decisions_are_those_on_record() -> None:
    """Where one was meant to change: python tests/planning/recorded_decisions.py."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert {name: decided(facts, size) for name, facts, size in corpora()} == record


@pytest.mark.parametrize("pairs", SIZES)
@pytest.mark.parametrize("name", CORPORA)
def test_decisions_are_a_valid_recipe(name: str, pairs: int) -> None:
    facts = replace(CORPORA[name], pairs=pairs)
    decided: Any = recipe(facts)
    assert decided.model.d_model % decided.model.heads == 0
    assert decided.training.warmup < decided.training.updates
    assert decided.training.validate_every <= decided.training.updates
    held = decided.data.hold_out
    assert 1 <= held.validation == held.test <= max(1, pairs // 10)


@pytest.mark.parametrize("name", CORPORA)
def test_more_text_never_means_a_smaller_training(name: str) -> None:
    found: list[Any] = [recipe(replace(CORPORA[name], pairs=pairs)) for pairs in SIZES]
    for get in (
        lambda each: each.model.d_model,
        lambda each: each.model.encoder_layers,
        lambda each: each.training.updates,
        lambda each: each.batch.tokens,
        lambda each: each.tokenizer.of_side("source").vocabulary,
        lambda each: -each.model.dropout,
        lambda each: each.data.hold_out.test,
    ):
        values = [get(each) for each in found]
        assert values == sorted(values)


@pytest.mark.parametrize(
    ("name", "source", "target", "joint"),
    [
        ("sentences", "bpe", "bpe", True),
        ("pronunciation", "character", "whitespace", False),
        ("Korean words", "character", "whitespace", False),
        ("transliteration", "character", "character", False),
        ("Chinese", "bpe", "character", False),
        ("titles", "bpe", "bpe", True),
        ("inflection", "character", "character", True),
        ("commands", "whitespace", "whitespace", True),
        ("queries", "bpe", "bpe", True),
    ],
)
def test_texts_are_cut_by_what_they_are(name: str, source: str, target: str, joint: bool) -> None:
    tokenizer = recipe(CORPORA[name]).tokenizer
    assert (tokenizer.of_side("source").kind, tokenizer.of_side("target").kind) == (source, target)
    assert tokenizer.joint == joint


def test_only_syllables_are_taken_apart() -> None:
    apart = {name: recipe(facts).tokenizer.of_side("source").normalization == "NFD" for name, facts in CORPORA.items()}
    assert apart == {name: name == "Korean words" for name in CORPORA}


def test_metrics_follow_the_target() -> None:
    found: dict[str, Any] = {name: recipe(facts) for name, facts in CORPORA.items()}
    assert found["sentences"].task.metrics == found["Chinese"].task.metrics == ("bleu", "chrf")
    assert found["Chinese"].task.target == "zh"
    assert found["pronunciation"].task.metrics == ("exact_match", "per")
    assert found["commands"].task.metrics == ("exact_match", "wer")
    assert found["queries"].task.metrics == ("exact_match", "wer")
    assert found["inflection"].task.metrics == ("exact_match", "cer")
    assert found["titles"].task.metrics == ("rouge1", "rouge2", "rougeL")


def test_validations_become_fewer_where_they_would_take_much_of_the_time() -> None:
    """Of a training of 400 seconds: all twelve where one takes 2 seconds, and six, two, two."""
    for each, expected in [(0.0, 12), (2.0, 12), (10.0, 6), (40.0, 2), (400.0, 2)]:
        assert affordable_validations(400.0, each) == expected
    made = {each.key: each.value for each in schedule(6000, "", 600, validations=3)}
    assert (made["training.validate_every"], made["training.checkpoint_every"]) == (200, 50)


def test_a_pointer_where_targets_stand_in_their_sources() -> None:
    """Running text in words of its source: much shorter, a summary; else a correction or a near language."""
    titles, sentences = CORPORA["titles"], CORPORA["sentences"]
    for facts, points, compresses in [
        (titles, True, True),
        (replace(titles, copied=0.1), False, False),
        (replace(titles, target=replace(titles.target, words=200)), True, False),
        (replace(titles, source=TEXT), True, False),
        (replace(sentences, copied=0.5), True, False),
        (replace(sentences, copied=0.5, pairs=100_000), False, False),  # enough to learn it without one
        (replace(sentences, copied=0.5, shared=0.1), False, False),  # no joint vocabulary
        (sentences, False, False),
        (CORPORA["queries"], False, False),
        (replace(CORPORA["commands"], copied=0.5), False, False),
    ]:
        made = recipe(facts)
        assert (made.model.pointer, made.training.best == "rougeL") == (points, compresses)  # type: ignore[attr-defined]
        assert not points or (made.tokenizer.joint and made.training.sampled_words is None)


def test_there_is_room_for_words_of_pairs_that_are_not_sampled() -> None:
    """One new word in a thousand texts, and a million texts beyond the sample."""
    commands = replace(COMMANDS, new=0.001)
    large = replace(CORPORA["commands"], source=commands, target=commands, pairs=SAMPLED + 1_000_000)
    assert recipe(large).tokenizer.of_side("source").vocabulary >= 12 + 1_000


def test_only_targets_of_few_words_are_learnt_without_label_smoothing() -> None:
    without = {name for name, facts in CORPORA.items() if recipe(facts).training.label_smoothing == 0.0}
    assert without == {"commands", "queries"}


@pytest.mark.parametrize(("name", "reads"), [("inflection", "joint"), ("pronunciation", "source")])
def test_tags_are_tokens_of_what_cuts_the_source(name: str, reads: str) -> None:
    tagged: Any = recipe(replace(CORPORA[name], tags=Tags(";[^;]+", 18)))
    assert tagged.tokenizer.of_side("source").symbols == ";[^;]+"
    assert tagged.tokenizer.of_side("target").symbols == (";[^;]+" if reads == "joint" else "")
    assert recipe(CORPORA[name]).tokenizer.of_side("source").symbols == ""


def test_titles_of_long_texts_are_not_dropped_for_their_length() -> None:
    decided: Any = recipe(CORPORA["titles"])
    assert decided.data.filters.max_ratio >= 200
    assert decided.data.filters.max_tokens == 1024
    assert decided.batch.tokens >= 2048


def test_a_smaller_model_is_the_next_size() -> None:
    facts = CORPORA["sentences"]
    assert usual_size(replace(facts, pairs=1_000_000)) == Size(256, 4)
    assert smaller(Size(256, 4)) == Size(128, 4)
    assert smaller(Size(64, 2)) is None


def test_half_of_multi30k_has_about_the_tokens_that_it_has() -> None:
    assert 200_000 < positions(replace(CORPORA["sentences"], pairs=15_000)) < 300_000


def reason(facts: Facts, key: str) -> str:
    return next(each.reason for each in decide(facts) if each.key == key)


def test_reasons_are_those_of_the_case() -> None:
    chinese = replace(CORPORA["Chinese"], target=replace(CHINESE, repeated=2_100))
    assert "texts and their titles" in reason(CORPORA["titles"], "data.filters.max_ratio")
    assert "a syllable or a word, one of the other a letter" in reason(chinese, "data.filters.max_ratio")
    vocabulary = reason(chinese, "tokenizer.target.vocabulary")
    assert vocabulary == "the 2,100 characters that occur twice, of 3,000"
    assert reason(CORPORA["pronunciation"], "tokenizer.source.vocabulary") == "all 40 characters"
    assert reason(chinese, "task.target") == "the target's file or column says so"
    assert reason(replace(chinese, languages_named=True), "task.target") == "chosen by you"


@pytest.mark.parametrize(
    ("updates", "expected", "average", "warmup", "every"),
    [
        (10, None, 0.99, 1, 20),
        (999, None, 0.99, 49, 83),
        (1000, None, 0.995, 50, 83),
        (2999, None, 0.995, 149, 249),
        (3000, None, 0.999, 150, 250),
        (50_000, None, 0.999, 400, 4166),
        (50_000, 600, 0.99, 30, 50),  # of which the time allows 600
    ],
)
def test_what_follows_from_the_number_of_updates(
    updates: int, expected: int | None, average: float, warmup: int, every: int
) -> None:
    found = {each.key: each.value for each in schedule(updates, "why", expected)}
    assert found == {
        "training.updates": updates,
        "training.warmup": warmup,
        "training.average": average,
        "training.validate_every": every,
        "training.checkpoint_every": every,
    }


@pytest.mark.parametrize("alphabets", [(400, 40), (40, 400)])
def test_a_joint_vocabulary_has_room_for_both_sides_and_the_tags(alphabets: tuple[int, int]) -> None:
    """All characters of both, with 16 more each; once is enough where that is so for one side."""
    usual = CORPORA["inflection"]
    source, target = (
        replace(side, alphabet=each) for side, each in zip((usual.source, usual.target), alphabets, strict=True)
    )
    found = {each.key: each for each in decide(replace(usual, source=source, target=target, tags=Tags(";[^;]+", 18)))}
    assert found["tokenizer.joint"].value is True
    assert found["tokenizer.vocabulary"].value == (400 + 16) + (40 + 16) + 18
    assert found["tokenizer.min_frequency"].value == 1
    assert " of the source, " in found["tokenizer.vocabulary"].reason


def test_a_joint_vocabulary_of_pieces_is_that_of_the_side_with_more() -> None:
    wide = replace(TEXT, alphabet=6_000)
    for facts in (replace(CORPORA["sentences"], source=wide), replace(CORPORA["sentences"], target=wide)):
        found = {each.key: each.value for each in decide(facts)}
        assert (found["tokenizer.vocabulary"], found["tokenizer.min_frequency"]) == (2 * 6_000 + 100, 2)
