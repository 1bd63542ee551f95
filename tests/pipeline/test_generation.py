"""Texts sampled from a language model are what `predict` samples, are shown as they grow, and may be acrostics."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import forked
from random_models import language_model, model_file, poet, translator
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.kernels.native import kernels
from transduce.pipeline.generation import generate
from transduce.pipeline.pipeline import load


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("asked", [{"seed": 5}, {"temperature": 0.7, "top_k": 5, "seed": 2}, {"top_p": 0.6}])
def test_samples_are_those_of_predict(streams: bool, asked: dict[str, Any]) -> None:
    model, prompt = language_model(), "ba de fi"
    wanted = model.predict([prompt] * 5, method="sample", **asked)
    told: dict[int, str] = {}

    def grow(number: int, added: str) -> None:
        assert number >= max(told, default=0)  # one after the other
        told[number] = told.get(number, "") + added

    found = generate(model, prompt, count=5, on_text=grow if streams else None, batch_size=2, **asked)
    assert [each.text for each in found] == [each.text for each in wanted]
    assert found == wanted or not kernels()  # the kernels' sums are the same in every batch
    for each, other in zip(found, wanted, strict=True):
        assert each.token_log_probabilities == pytest.approx(other.token_log_probabilities, abs=1e-5)
        assert each.ended == other.ended
    assert len({each.text for each in found}) > 1
    assert all(each.text.startswith(prompt) for each in found)
    assert list(told.values()) == ([each.text for each in found] if streams else [])


def test_a_text_grows_token_by_token() -> None:
    added: list[str] = []
    [found] = generate(poet(), "春", on_text=lambda _, text: added.append(text))
    assert "".join(added) == found.text
    assert added == list(found.text)  # characters


def test_without_a_prompt_the_model_begins() -> None:
    model = poet()
    found = generate(model, count=20, seed=3, max_length_offset=6)
    assert len({each.text[:1] for each in found}) > 5
    assert all(0 < len(each.token_log_probabilities) <= 6 for each in found)
    empty = next(each for each in generate(model, count=200, seed=1, max_length_offset=2) if each.ended)
    assert empty.log_probability == pytest.approx(model.score(empty.text).log_probability, abs=1e-4)
    assert model.predict([""], method="sample")[0].text == ""  # an empty line in, an empty line out


@pytest.mark.parametrize("seed", range(4))
def test_an_acrostic_begins_its_lines_as_it_was_told(seed: int) -> None:
    model, told = poet(seed), list[str]()
    first, second = generate(model, acrostic="春白夜", count=2, seed=seed, on_text=lambda _, text: told.append(text))
    assert "".join(told) == first.text + second.text
    assert first.text != second.text
    for each in (first, second):
        assert [line[0] for line in each.text.split("|")] == ["春", "白", "夜"]
        assert each.log_probability == pytest.approx(model.score(each.text).log_probability)
        assert "".join(each.tokens) == each.text
    assert generate(model, acrostic="春白夜", count=2, seed=seed) == [first, second]


def test_an_acrostic_of_one_line_is_a_sample_up_to_its_separator() -> None:
    model = poet()
    samples = model.predict(["春"] * 6, method="sample", seed=4)
    found = generate(model, acrostic="春", count=6, seed=4)
    assert [each.text for each in found] == [each.text.partition("|")[0] for each in samples]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"acrostic": "春x"}, 'no token for "x"'),
        ({"acrostic": "春|白"}, "'\\|' stands between the lines"),
        ({"acrostic": "春" * 33}, "its 33 lines have 65 tokens or more, and a text of this model has at most 64"),
        ({"acrostic": "春", "separator": "+"}, "separator: the model cannot write '\\+'"),
        ({"acrostic": "春", "prompt": "白"}, "acrostic and prompt"),
        ({"count": 0}, "count = 0: expected at least 1"),
        ({"nbest": 3}, "nbest = 3"),
        ({"method": "beam"}, 'method = "beam": expected "sample" or "greedy"'),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        generate(poet(), **options)


def test_lines_of_an_acrostic_that_a_limit_ends_are_told() -> None:
    told: list[str] = []
    [found] = generate(poet(), acrostic="春白夜", separator="|", tell=told.append, max_length_offset=1)
    lines = found.text.split("|")
    cut = sum(len(line) == 2 for line in lines)  # the first character, and the one more that it may have
    assert cut
    assert told == [f"{cut} of 3 lines were cut short, by --max-new or by the model's limit of a text, 64 tokens."]
    told.clear()
    generate(poet(), "春x", count=2, tell=told.append, max_length_offset=2)
    assert told[-1] == "1 of 2 tokens of the prompt are unknown to the model: it reads <unk>."
    told.clear()
    generate(poet(), "春", tell=told.append)
    assert not told


def test_a_model_that_reads_a_source_is_refused() -> None:
    with pytest.raises(InputError, match="use predict"):
        generate(translator(), "ba")


def test_from_right_to_left_a_prompt_is_the_end() -> None:
    model = poet(direction="right_to_left")
    told: list[tuple[int, str]] = []
    found = generate(model, "少", count=3, on_text=lambda number, text: told.append((number, text)))
    assert all(each.text.endswith("少") and len(each.text) > 1 for each in found)
    assert told == [(number, each.text) for number, each in enumerate(found)]  # whole, as it grows at its front
    assert [each.text for each in found] == [each.text for each in model.predict(["少"] * 3, method="sample")]
    with pytest.raises(InputError, match="from right to left"):
        generate(model, acrostic="春")


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
class TestTheVerb:
    @pytest.fixture
    def run(self, tmp_path: Path) -> Callable[..., forked.Ended]:
        save_model_file(tmp_path / "model.safetensors", model_file(language_model()))
        return partial(forked.transduce, tmp_path, "generate", tmp_path / "model.safetensors")

    def test_it_writes_a_text_a_line(self, run: Callable[..., forked.Ended], tmp_path: Path) -> None:
        done = run("--prompt", "ba de", "--temperature", 0.8, "--top-k", 9, "--top-p", 0.9, "--count", 4, "--seed", 6)
        assert done.code == 0, done.err
        asked: dict[str, Any] = {"temperature": 0.8, "top_k": 9, "top_p": 0.9, "seed": 6}
        wanted = load(tmp_path).predict(["ba de"] * 4, method="sample", **asked)
        assert done.out.splitlines() == [each.text for each in wanted]
        done = run("--prompt", "ba de", "--count", 2, "--json", "search.seed=6")
        assert [json.loads(line)["source"] for line in done.out.splitlines()] == ["ba de"] * 2

    def test_what_is_wrong_has_exit_code_2(self, run: Callable[..., forked.Ended]) -> None:
        done = run("--prompt", "ba", "--acrostic", "ba")
        assert (done.code, done.out) == (2, "")
        assert "acrostic and prompt" in done.err
        assert run("--count", 0).code == 2
        assert run("--max-new", 0).code == 2  # which wrote one token

    def test_evaluate_says_what_the_perplexity_is_conditioned_on(self, run: Any, tmp_path: Path) -> None:
        (tmp_path / "lines.txt").write_text("ba de\nfi\n")
        done = forked.transduce(
            tmp_path, "evaluate", tmp_path / "model.safetensors", "--reference", tmp_path / "lines.txt"
        )
        assert done.code == 0, done.err
        assert "|context:each line alone|" in done.out

    def test_what_the_model_does_not_know_is_told(self, run: Callable[..., forked.Ended]) -> None:
        done = run("--prompt", "ba \u6625", "--max-new", 2)
        assert done.code == 0
        assert "unknown to the model" in done.err
