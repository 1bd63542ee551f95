"""What is wanted of outputs, as text: real tokenizers write phrases in many ways, and none of them gets past."""

import json
import random
from functools import cache
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import transduce
from random_models import language_model, sentences, translator
from transduce.core.errors import InputError
from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer
from transduce.inference.constraints import ConstraintCompiler, Constraints, constraints_of_each, read_constraints
from transduce.pipeline.pipeline import Pipeline
from transduce.search.phrases import occurrences, plain
from transduce.search.token_text import Spelling

KINDS = ["bpe", "unigram", "character", "byte", "whitespace"]
TEXTS = ["ba de fi, go", "Bade (fi) go-ku!", "é ba café", "ku ku  ba", "中国 ba 我爱中国人", "ba\u00a0de 'fi'"]


@cache
def tokenizer(kind: str) -> Tokenizer:
    return train_tokenizer(TokenizerConfig(kind=kind, vocabulary=300, min_frequency=1), TEXTS * 2 + sentences(60))


@cache
def pipeline(kind: str) -> Pipeline:
    return translator(kind, tokenizer={"kind": kind, "vocabulary": 90, "min_frequency": 1})


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100)
@given(data=st.data())
def test_spellings_join_to_what_decoding_gives(kind: str, data: st.DataObject) -> None:
    its = tokenizer(kind)
    ids = data.draw(st.lists(st.integers(4, its.size - 1), max_size=8))
    pieces = its.spellings()
    joined = b"".join(pieces[index] for index in ids).decode("utf-8", "replace")
    decoded = its.decode(ids)
    assert decoded in (joined, joined[1:])
    assert plain(decoded) == plain(joined)


def test_special_tokens_write_nothing() -> None:
    its = tokenizer("bpe")
    assert {its.spellings()[index] for index in (its.pad, its.start, its.end)} == {b""}
    assert not any(Spelling(tokenizer("whitespace").spellings()).letters(0).begun_V)


@pytest.mark.parametrize(
    ("kind", "phrase"),
    [(kind, phrase) for kind in KINDS for phrase in ("ba", "go ku la")] + [("bpe", "ba de"), ("byte", "b")],
)
def test_a_forbidden_phrase_never_comes_whatever_its_tokens(kind: str, phrase: str) -> None:
    """Random weights write it often; sampling finds the odd ways to write it."""
    model, texts = pipeline(kind), sentences(16, seed=4)
    if phrase == "ba" and kind == "whitespace":
        free = model.predict(sentences(40, seed=4), method="sample", temperature=2.0)
        assert sum(occurrences([phrase], plain(each.text)) for each in free) > 0
    for search in (
        {"method": "greedy"},
        {"beam": 4},
        {"method": "sample", "temperature": 2.0},
        {"beam": 4, "groups": 2},
    ):
        for found in model.predict(texts, must_not=[phrase], **search):
            assert occurrences([phrase], plain(found.text)) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_phrases_that_must_appear_do_or_are_told(kind: str) -> None:
    model, texts, told = pipeline(kind), [text for text in sentences(12, seed=4) if text], list[str]()
    must = ["go ku", ("de la", "pe"), "fi", "fi"]
    found = model.predict(texts, must=must, must_not=["ba"], max_length_offset=60, tell=told.append, protect=False)
    for each in found:
        text = plain(each.text)
        lack = [name for name in (["go ku"], ["de la", "pe"]) if not occurrences(name, text)]
        lack += [["fi"]] * max(0, 2 - occurrences(["fi"], text))
        assert len(each.unmet) == len(lack)
        assert not (each.ended and lack)
        assert occurrences(["ba"], text) == 0
    assert len(told) == sum(bool(each.unmet) for each in found)
    assert not any(each.unmet for each in found)


def test_a_limit_that_comes_first_is_told() -> None:
    told: list[str] = []
    [found, nothing] = pipeline("whitespace").predict(
        ["ba de", " "], must=["fi go ku la"], max_length_factor=0, max_length_offset=2, tell=told.append
    )
    assert (found.ended, found.unmet) == (False, ("fi go ku la",))
    assert nothing.unmet == ("fi go ku la",)
    assert told == [
        'line 1: "fi go ku la" must appear but does not: the output reached its length limit.',
        'line 2: "fi go ku la" must appear but does not: it has no tokens.',
    ]
    assert found.to_dict()["unmet"] == ["fi go ku la"]


def test_each_text_has_its_own_wants_in_any_batch() -> None:
    model, texts = pipeline("bpe"), [text for text in sentences(24, seed=6) if text]
    drawn = random.Random(3)
    words = ["ba", "de fi", "go", "ku la", "me"]
    must = [drawn.sample(words[:3], drawn.randrange(3)) for _ in texts]
    must_not = [drawn.sample(words[3:], drawn.randrange(2)) for _ in texts]
    prefix = [drawn.choice(["", "", "ne po"]) for _ in texts]
    constraints: dict = {"must": must, "must_not": must_not, "prefix": prefix}
    whole = model.predict(texts, **constraints, beam=4, nbest=2)
    for batch_size in (1, 5):
        again = model.predict(
            texts, must=must, must_not=must_not, prefix=prefix, beam=4, nbest=2, batch_size=batch_size
        )
        assert [each.text for each in again] == [each.text for each in whole]
        assert [each.score for each in again] == pytest.approx([each.score for each in whole], abs=1e-5)
    for each, begins in zip(whole, prefix, strict=True):
        assert each.text.startswith(begins)
    free = model.predict(texts, beam=4, nbest=2)
    untouched = [place for place, each in enumerate(zip(must, must_not, prefix, strict=True)) if not any(each)]
    assert untouched
    assert [whole[place].text for place in untouched] == [free[place].text for place in untouched]


def test_a_text_in_the_place_of_a_list_is_one_phrase() -> None:
    model, texts = pipeline("whitespace"), ["ba de", "fi"]
    assert model.predict(texts, must="go ku") == model.predict(texts, must=["go ku"])
    assert model.predict(texts, must_not="ba") == model.predict(texts, must_not=["ba"])
    assert "go ku" in model.predict("ba de", must="go ku", max_length_offset=60).text


def test_a_phrase_is_what_the_tokenizer_makes_of_it() -> None:
    lower = train_tokenizer(TokenizerConfig(vocabulary=90, min_frequency=1, lowercase=True), sentences(60))
    demands = ConstraintCompiler(lower)
    assert demands.phrases(Constraints((("Ba  DE",),), ("FI",))).must == (("ba de",),)
    assert demands.phrases(Constraints((("Ba  DE",),), ("FI",))).must_not == ("fi",)
    composed = ConstraintCompiler(tokenizer("bpe")).phrases(Constraints((("cafe\u0301",), ("caf\u00e9",))))
    assert composed.must == (("cafe\u0301",), ("cafe\u0301",))


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ({"must": ["xyzzy"]}, 'line 1: "xyzzy" must appear, but cannot be written with the tokens of this model'),
        ({"must": ["ba de"], "must_not": ["de"]}, 'line 1: "ba de" must appear, but contains "de", which must not'),
        ({"prefix": "xyzzy"}, 'line 1: the prefix "xyzzy" cannot be written'),
        ({"must": ["  "]}, "must: '  ' is not a phrase"),
        ({"must": [()]}, r"must: \(\) is not a phrase"),
        ({"must_not": [("ba", "de")]}, "is not a phrase"),
        (
            {"must": [["ba"], ["de"]]},
            "must: expected one list of phrases for all inputs, or 1 lists, .*; got 2 lists and 0",
        ),
        ({"must": [["ba"], "de"]}, "got 1 lists and 1 phrases"),
        ({"prefix": ["ba", "de"]}, "prefix: 2 texts for 1 inputs"),
        ({"must": ["ba"], "method": "greedy"}, 'method "greedy" does not look for phrases'),
        ({"prefix": "ba", "must_not": ["ba"]}, "has a prefix that holds a phrase that must not appear"),
        ({"prefix": "ba", "constraints": [Constraints(prefix="de")]}, 'line 1: got two prefixes, "ba" and "de"'),
    ],
)
def test_wants_that_cannot_be_are_refused(constraints: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        pipeline("whitespace").predict(["ba de"], **constraints)


def test_a_text_in_pieces_has_no_wants() -> None:
    short = translator("whitespace", data={"train": [{"source": "a", "target": "b"}], "filters": {"max_tokens": 3}})
    with pytest.raises(InputError, match=r"line 2: .* is translated in 2 pieces"):
        short.predict(["ba", "ba de fi go ku"], must_not=["ba"])
    assert short.predict(["ba", "ba de fi go ku"], must_not=[["ba"], []])


def test_a_language_model_has_its_prefix_already() -> None:
    model = language_model()
    with pytest.raises(InputError, match="a language model continues its text"):
        model.predict(["ba de"], prefix="fi")
    found = model.predict(["ba de", "go ku"], must=["fi go"], must_not=["la"], beam=3)
    assert [each.text[:5] for each in found] == ["ba de", "go ku"]
    assert all(each.unmet or "fi go" in each.text for each in found)
    with pytest.raises(InputError, match="prefix that holds a phrase"):
        model.predict(["ba de"], must_not=["de"])


def test_minimum_length_counts_what_a_language_model_adds() -> None:
    for each in language_model().predict(["ba", "de fi go"], min_length=3, beam=2):
        assert len(each.tokens) >= len(each.source.split()) + 3


# ---- files -----------------------------------------------------------------------------------------------------------


def test_a_file_of_wants(tmp_path: Path) -> None:
    path = tmp_path / "wants.jsonl"
    lines = [{}, {"must": ["a b", ["c", "d"]], "must_not": ["e"], "prefix": "f"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_constraints(path, 2) == [Constraints(), Constraints((("a b",), ("c", "d")), ("e",), "f")]
    assert constraints_of_each(2, must=["a", ("b", "c")]) == [Constraints((("a",), ("b", "c")))] * 2
    with pytest.raises(InputError, match="has 2 lines for 3 inputs"):
        read_constraints(path, 3)


def test_all_wrong_lines_of_a_file_are_named(tmp_path: Path) -> None:
    path = tmp_path / "wants.jsonl"
    path.write_text('{"must": "a"}\n[]\n{"mus": []}\nnonsense\n{"must_not": [""]}\n{"prefix": 1}\n{"must": [[]]}\n')
    with pytest.raises(InputError) as caught:
        read_constraints(path, 7)
    starts = ["must: expected a list", "expected an object", 'unknown key "mus". Did you mean "must"?', "not JSON"]
    starts += ["must_not: '' is not a phrase", "prefix: expected text", "must: () is not a phrase"]
    for number, (problem, start) in enumerate(zip(caught.value.problems, starts, strict=True), 1):
        assert problem.startswith(f"{path}, line {number}: {start}")


@pytest.mark.parametrize("line", ["[" * 100_000, '{"must":' * 100_000, '{"must": [' + "9" * 5000 + "]}"])
def test_a_line_that_is_too_much_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "wants.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match=r"wants.jsonl, line 1: not JSON"):
        read_constraints(tmp_path / "wants.jsonl", 1)


# ---- lattices and coverage through the pipeline ----------------------------------------------------------------------


def test_a_lattice_and_coverage_on_request() -> None:
    model = pipeline("bpe")
    [plain_found] = model.predict(["ba de fi"], beam=3)
    assert plain_found.lattice is None
    assert "lattice" not in plain_found.to_dict()
    [found] = model.predict(["ba de fi"], beam=3, coverage=0.4, lattice=True)
    assert found.lattice
    last = len(found.lattice.steps) - 1
    texts = {tuple(found.lattice.path(last, place)) for place in range(len(found.lattice.steps[last]))}
    assert texts
    first = found.lattice.steps[0][0]
    assert first.text == model.task.tokenizers["target"].tokens([first.token])[0]
    assert json.loads(json.dumps(found.to_dict()))["lattice"]["steps"]
    free = model.predict(["ba de fi"], beam=3, nbest=3)[0].alternatives
    covered = model.predict(["ba de fi"], beam=3, nbest=3, coverage=0.4)[0].alternatives
    scores = {each.text: each.score for each in free}
    assert all(each.score < scores[each.text] for each in covered if each.text in scores)
    with pytest.raises(InputError, match="this model reads none"):
        language_model().predict(["ba"], coverage=0.2)


def test_a_rule_asked_for_comes_with_the_default_alpha() -> None:
    model = translator(search={"alpha": 1.6})
    [power, gnmt] = (model.predict(["ba de fi"], **asked)[0] for asked in ({}, {"length_rule": "gnmt", "beam": 1}))
    length = len(gnmt.token_log_probabilities)
    assert gnmt.score == pytest.approx(gnmt.log_probability / ((5 + length) / 6) ** 0.75)
    assert power.score == pytest.approx(power.log_probability / len(power.token_log_probabilities) ** 1.6)


def test_scores_of_given_targets_are_there_token_by_token() -> None:
    model = pipeline("bpe")
    [found] = model.score([("ba de", "fi go ku")])
    assert found.pieces[-1] == "</s>"
    assert len(found.pieces) == len(found.token_log_probabilities) == found.tokens
    assert sum(found.token_log_probabilities) == pytest.approx(found.log_probability)
    assert found.to_dict()["pieces"] == list(found.pieces)
    [chosen] = model.predict(["ba de"], beam=3)
    [again] = model.score([("ba de", chosen.text)])
    if list(again.pieces[:-1]) == list(chosen.tokens) and chosen.ended:
        assert again.token_log_probabilities == pytest.approx(chosen.token_log_probabilities, abs=1e-4)


def test_random_numbers_of_the_caller_are_left_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    transduce_found = pipeline("bpe").predict(["ba"], must=["de"])
    assert transduce_found
    assert torch.equal(torch.rand(2), expected)
    assert transduce.load
