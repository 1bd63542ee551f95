"""A loaded model: the same output alone or in any batch, and honest about what it was given."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import transduce
from random_models import SYLLABLES, language_model, model_file, sentences, translator
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.inference.prediction import Prediction
from transduce.pipeline.pipeline import Pipeline
from transduce.search.settings import Search, search_settings

METHODS: dict[str, dict[str, Any]] = {
    "greedy": {"method": "greedy"},
    "beam": {"method": "beam", "beam": 5},
    "sample": {"method": "sample", "seed": 3, "top_p": 0.9},
}


@pytest.fixture(scope="module")
def random_translator() -> Pipeline:
    return translator()


@pytest.fixture(scope="module")
def random_language_model() -> Pipeline:
    return language_model()


def assert_same(one: list[Prediction], other: list[Prediction]) -> None:
    assert [each.text for each in one] == [each.text for each in other]
    for a, b in zip(one, other, strict=True):
        assert a.score == pytest.approx(b.score, abs=1e-5)
        assert a.log_probability == pytest.approx(b.log_probability, abs=1e-5)
        assert a.tokens == b.tokens


@pytest.mark.parametrize("search", METHODS.values(), ids=METHODS)
def test_hundreds_of_sentences_come_out_the_same_in_any_batch(
    random_translator: Pipeline, search: dict[str, Any]
) -> None:
    texts = sentences(300)
    whole = random_translator.predict(texts, batch_size=64, **search)
    assert len({each.text for each in whole}) > 100
    assert_same(random_translator.predict(texts, batch_size=7, **search), whole)
    assert_same(random_translator.predict(texts[:50], batch_size=1, **search), whole[:50])
    assert_same(random_translator.predict(texts, batch_size=300, **search), whole)


@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_shuffled_sentences_come_out_the_same(random_translator: Pipeline, method: str) -> None:
    texts = sentences(300)
    order = list(range(len(texts)))
    random.Random(2).shuffle(order)
    whole = random_translator.predict(texts, **METHODS[method])
    shuffled = random_translator.predict([texts[place] for place in order], **METHODS[method])
    assert_same(shuffled, [whole[place] for place in order])


def test_samples_depend_on_seed_and_line_alone(random_translator: Pipeline) -> None:
    text = "ba de fi go ku"
    drawn = random_translator.predict([text] * 20, method="sample", seed=1)
    assert len({each.text for each in drawn}) > 10
    assert_same(drawn, random_translator.predict([text] * 20, method="sample", seed=1, batch_size=3))
    other = random_translator.predict([text] * 20, method="sample", seed=2)
    assert [each.text for each in other] != [each.text for each in drawn]


@settings(max_examples=25)
@given(
    texts=st.lists(st.lists(st.sampled_from(SYLLABLES), max_size=9).map(" ".join), min_size=1, max_size=7),
    batch_size=st.integers(1, 8),
    name=st.sampled_from(sorted(METHODS)),
)
def test_company_changes_nothing(texts: list[str], batch_size: int, name: str) -> None:
    pipeline = made("whitespace")
    together = pipeline.predict(texts, batch_size=batch_size, **METHODS[name])
    if name != "sample":
        assert_same(together, [pipeline.predict([text], **METHODS[name])[0] for text in texts])
    assert_same(together, pipeline.predict(texts, **METHODS[name]))


@cache
def made(kind: str, longest: int = 256) -> Pipeline:
    """A random translator, as if trained on at most `longest` tokens."""
    filters = {"max_tokens": longest}
    return translator(kind, data={"train": [{"source": "a", "target": "b"}], "filters": filters})


@pytest.mark.parametrize("kind", ["bpe", "whitespace", "character", "byte"])
def test_what_has_no_token_has_no_output(kind: str) -> None:
    found = translator(kind).predict(["", "ba de", "   ", "\x00" if kind == "bpe" else "", "\u2028 "], method="greedy")
    assert [each.log_probability != 0 for each in found] == [False, True, False, False, False]
    assert {each.tokens for place, each in enumerate(found) if place != 1} == {()}
    assert all(each.text in ("", each.source) for place, each in enumerate(found) if place != 1)


def test_nothing_in_nothing_out(random_translator: Pipeline) -> None:
    assert random_translator.predict([]) == []
    assert random_translator.score([]) == []


# ---- long texts ------------------------------------------------------------------------------------------

LONG = "ba de fi. go ku la, me ni po ra"  # 10 words


@pytest.fixture(scope="module")
def short_sighted() -> Pipeline:
    return made("whitespace", longest=4)


def test_long_texts_are_split_and_that_is_told(short_sighted: Pipeline) -> None:
    told: list[str] = []
    greedy = {"method": "greedy", "protect": False}
    found = short_sighted.predict(["ba", LONG, "de fi"], tell=told.append, split="none", **greedy)
    assert told == ["line 2: 10 tokens, the model reads 4 at most; translated in 3 pieces"]
    pieces = ["ba de fi.", "go ku la,", "me ni po ra"]
    parts = short_sighted.predict(pieces, **greedy)
    assert found[1].source == LONG
    assert found[1].text == " ".join(part.text for part in parts)
    assert found[1].log_probability == pytest.approx(sum(part.log_probability for part in parts), abs=1e-5)
    assert found[1].tokens == sum((part.tokens for part in parts), ())
    assert_same(found[::2], short_sighted.predict(["ba", "de fi"], method="greedy"))


def test_long_texts_are_cut_off_if_asked(short_sighted: Pipeline) -> None:
    told: list[str] = []
    found = short_sighted.predict([LONG], method="greedy", long="truncate", tell=told.append, split="none")
    assert told == ["line 1: 10 tokens, the model reads 4 at most; cut off after 4"]
    assert_same(found, short_sighted.predict(["ba de fi. go"], method="greedy", split="none"))


def test_long_texts_are_refused_all_at_once_if_asked(short_sighted: Pipeline) -> None:
    with pytest.raises(InputError) as caught:
        short_sighted.predict([LONG, "ba", LONG], long="refuse", split="none")
    assert [problem.split(";")[0] for problem in caught.value.problems] == [
        "line 1: 10 tokens, the model reads 4 at most",
        "line 3: 10 tokens, the model reads 4 at most",
    ]


@settings(max_examples=30)
@given(text=st.text("ab é漢🙂.", min_size=1, max_size=40), kind=st.sampled_from(["bpe", "byte", "character"]))
def test_pieces_and_cuts_are_never_too_long(text: str, kind: str) -> None:
    pipeline = made(kind, longest=6)
    encode = pipeline.task.tokenizers["source"].encode
    for long in ("split", "truncate"):
        found = pipeline.pieces([text], "none", long)  # type: ignore[arg-type]
        pieces, owners = found.read, found.owners
        assert max(map(len, encode(pieces))) <= 6
        assert owners == [0] * len(pieces)
        if long == "split":
            assert "".join("".join(pieces).split()) == "".join(text.split())
        else:
            assert text.startswith(pieces[0])


# ---- what predictions hold -------------------------------------------------------------------------------


def test_nbest_is_ranked_and_plain_data(random_translator: Pipeline) -> None:
    [found] = random_translator.predict(["ba de fi"], beam=5, nbest=4)
    listed = [each.score for each in found.alternatives]
    assert len(listed) == 4
    assert listed == sorted(listed, reverse=True)
    assert len({each.text for each in found.alternatives}) == 4
    assert replace(found, alternatives=()) == found.alternatives[0]
    values = json.loads(json.dumps(found.to_dict()))
    assert set(values) == {
        "source", "text", "score", "log_probability", "tokens", "token_log_probabilities", "ended", "nbest"
    }  # fmt: skip
    assert set(values["nbest"][0]) == set(values) - {"source", "nbest"}
    assert sum(values["token_log_probabilities"]) == pytest.approx(values["log_probability"])
    [single] = random_translator.predict(["ba de fi"])
    assert set(single.to_dict()) == set(values) - {"nbest"}


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"beam": 2, "nbest": 5}, "nbest = 5 is more than beam = 2"),
        ({"bean": 3}, 'unknown key search.bean. Did you mean "beam"?'),
        ({"temperature": 0.5}, 'only method "sample" uses this'),
        ({"alpha": -1.0, "beam": 0}, "search.beam"),
    ],
)
def test_wrong_search_settings_are_input_errors(random_translator: Pipeline, search: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        random_translator.predict(["ba"], **search)
    assert said in str(caught.value)


# ---- scoring ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["greedy", "beam", "sample"])
def test_what_was_found_scores_what_it_was_found_with(random_translator: Pipeline, name: str) -> None:
    texts = [text for text in sentences(90, seed=8) if text]
    found = random_translator.predict(texts, **METHODS[name])
    ended = [each for each in found if each.ended]
    assert len(ended) > 5
    scored = random_translator.score([(each.source, each.text) for each in ended], batch_size=9)
    for prediction, likelihood in zip(ended, scored, strict=True):
        assert likelihood.log_probability == pytest.approx(prediction.log_probability, abs=1e-4)
        assert likelihood.tokens == len(prediction.token_log_probabilities)


def test_a_language_model_continues_its_prompt(random_language_model: Pipeline) -> None:
    prompts = [*sentences(20, seed=3, longest=8), "ba de"]
    found = random_language_model.predict(prompts, method="greedy")
    for prompt, prediction in zip(prompts, found, strict=True):
        assert prediction.text.startswith(prompt)
        assert bool(prediction.tokens) == bool(prompt)
        assert prediction.tokens[: len(prompt.split())] == tuple(prompt.split())
    assert any(len(each.tokens) > len(each.source.split()) for each in found)
    assert_same(found, random_language_model.predict(prompts, method="greedy", batch_size=1))


# ---- loading ---------------------------------------------------------------------------------------------


def test_a_run_and_its_model_file_are_the_same_model(tiny_run: Path, tmp_path: Path) -> None:
    one, other = transduce.load(tiny_run), transduce.load(str(tiny_run / "model.safetensors"))
    texts = ["1 2", "", "4 4 3 5"]
    assert one.predict(texts) == other.predict(texts)
    assert one.recipe.name == "tiny"
    assert one.metrics["update"] == 24
    assert "root" not in json.dumps(one.recipe.to_table()["task"])
    assert str(tiny_run.parent.parent) not in (tiny_run / "model.safetensors").read_bytes().decode("latin-1")


def test_saved_and_loaded_gives_the_same_bits(random_translator: Pipeline, tmp_path: Path) -> None:
    save_model_file(tmp_path / "a.safetensors", model_file(random_translator))
    loaded = transduce.load(tmp_path / "a.safetensors")
    assert loaded.predict(sentences(20)) == random_translator.predict(sentences(20))


def _flipped(content: bytes) -> bytes:
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


@pytest.mark.parametrize("damage", [_flipped, lambda content: content[:-1], lambda content: b"", lambda content: b"PK"])
def test_a_damaged_file_is_refused(
    random_translator: Pipeline, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "a.safetensors"
    save_model_file(path, model_file(random_translator))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=r"a\.safetensors"):
        transduce.load(path)


def test_weights_of_another_shape_are_all_named(random_translator: Pipeline, tmp_path: Path) -> None:
    file = model_file(random_translator)
    table = file.config["model"] | {"feed_forward": 20}
    save_model_file(tmp_path / "a.safetensors", replace(file, config=file.config | {"model": table}))
    with pytest.raises(InputError) as caught:
        transduce.load(tmp_path / "a.safetensors")
    assert len(caught.value.problems) == 3 * 4  # two matrices and a bias in each of four blocks


def test_a_file_that_names_code_is_refused_before_it_runs(
    random_translator: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "foreign_code.py").write_text("import pathlib\npathlib.Path('was_run').touch()\n")
    file = model_file(random_translator)
    table = file.config["model"] | {"kind": "foreign_code:Transformer"}
    save_model_file(tmp_path / "a.safetensors", replace(file, config=file.config | {"model": table}))
    with pytest.raises(InputError, match="names code outside Transduce: foreign_code:Transformer"):
        transduce.load(tmp_path / "a.safetensors")
    assert not (tmp_path / "was_run").exists()
    with pytest.raises(InputError, match='has no class "Transformer"'):
        transduce.load(tmp_path / "a.safetensors", trust_code=True)
    assert (tmp_path / "was_run").exists()


def test_an_unfinished_run_is_told_from_other_folders(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").touch()
    with pytest.raises(InputError, match="not finished"):
        transduce.load(tmp_path)


def test_predicting_leaves_the_random_numbers_of_the_caller_alone(random_translator: Pipeline) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    random_translator.predict(["ba de fi"], method="sample")
    assert torch.equal(torch.rand(3), expected)


def test_of_a_prompt_longer_than_the_model_reads_the_end_is_continued(random_language_model: Pipeline) -> None:
    told: list[str] = []
    words = (" ".join(SYLLABLES) + " ") * 40
    tokens = random_language_model.task.tokenizers["target"].encode([words.strip()])[0]
    max_source_length = random_language_model.task.max_source_length
    assert len(tokens) > max_source_length
    [found] = random_language_model.predict([words.strip()], method="greedy", tell=told.append)
    kept = random_language_model.task.tokenizers["target"].tokens(tokens[-max_source_length:])
    assert list(found.tokens[: len(kept)]) == kept
    assert len(found.tokens) > len(kept) or found.ended
    assert "only its last" in told[0]


def test_a_beam_asked_for_is_searched_whatever_method_the_recipe_has() -> None:
    assert search_settings(Search(method="greedy"), {"beam": 3}).method == "beam"
    assert search_settings(Search(method="greedy"), {}).method == "greedy"
    assert search_settings(Search(method="beam"), {"method": "greedy"}).method == "greedy"
    with pytest.raises(InputError, match="has no beam"):
        search_settings(Search(method="mask_predict"), {"beam": 3})


def test_what_a_recipe_says_to_its_own_method_is_not_said_to_another() -> None:
    pruned = Search(method="beam", beam=6, prune=1.5, groups=3, diversity=0.2, alpha=1.0)
    assert search_settings(pruned, {"method": "greedy"}) == Search(method="greedy", beam=6, alpha=1.0)
    assert search_settings(pruned, {"beam": 3}) == pruned.model_copy(update={"beam": 3})
    hot = Search(method="sample", temperature=0.5, top_k=3, top_p=0.9, seed=7)
    assert search_settings(hot, {"beam": 3}) == Search(method="beam", beam=3, seed=7)
    with pytest.raises(InputError, match=r"prune = 2.0: only method"):
        search_settings(pruned, {"method": "greedy", "prune": 2.0})
