"""Language modelling as a task: what it learns is which words go together."""

import random
from pathlib import Path

import pytest
from rich.console import Console

import transduce
from transduce.core.errors import InputError
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.recipe.recipe import parse_recipe
from transduce.search.settings import Search
from transduce.tasks.language_modelling import LanguageModelling, LanguageModellingConfig, LanguageModellingData
from transduce.training.display import Display
from transduce.training.run import run_training

EATEN = ("bread", "toast", "cake", "roll")
WORN = ("feet", "legs", "toes", "heels")


def sentences(count: int) -> list[str]:
    """People spread food on food and pull clothes on limbs."""
    drawn = random.Random(4)
    made = []
    for _ in range(count):
        who = drawn.choice(("she", "he", "they"))
        if drawn.random() < 0.5:
            made.append(f"{who} spread {drawn.choice(('butter', 'jam', 'honey'))} on the {drawn.choice(EATEN)}")
        else:
            made.append(f"{who} pulled {drawn.choice(('socks', 'boots', 'shoes'))} on the {drawn.choice(WORN)}")
    return made


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> transduce.pipeline.pipeline.Pipeline:
    folder = tmp_path_factory.mktemp("language")
    (folder / "train.txt").write_text("".join(f"{line}\n" for line in sentences(400)))
    (folder / "test.txt").write_text("".join(f"{line}\n" for line in sentences(40)))
    table = {
        "name": "butter",
        "task": {"kind": "language_modelling", "context": 32},
        "data": {"root": str(folder), "train": [{"text": "train.txt"}], "test": {"own": {"text": "test.txt"}}},
        "tokenizer": {"kind": "whitespace"},
        "batch": {"tokens": 256},
        "model": {
            "kind": "transformer_decoder",
            "d_model": 32,
            "heads": 2,
            "layers": 2,
            "feed_forward": 64,
            "dropout": 0.0,
        },
        "training": {"updates": 250, "warmup": 10, "learning_rate": 5e-3, "average": 0.9, "label_smoothing": 0.0},
    }
    with (folder / "shown").open("w") as shown:
        report = run_training(parse_recipe(table, "test"), folder / "run", Display(Console(file=shown)))
    assert report["tests"]["own"]["likelihood"]["perplexity"] < 3
    assert "rows of" in report["tests"]["own"]["likelihood"]["context"]
    assert report["data"]["train"][0]["lines"] == 400
    assert report["validation"] == {}
    words = [line.split() for line in (folder / "test.txt").read_text().splitlines()]
    counted = report["baseline"]["tests"]["own"]["likelihood"]
    assert counted["tokens"] == sum(len(line) + 1 for line in words) == report["tests"]["own"]["likelihood"]["tokens"]
    assert 1.5 < counted["perplexity"] < 3  # two choices of 3 and of 6 in seven words; all else is certain
    return transduce.load(folder / "run")


def test_it_finds_the_likelier_sentence(learnt: transduce.pipeline.pipeline.Pipeline) -> None:
    pairs = [
        ("she spread butter on the bread", "she spread socks on the bread"),
        ("he pulled socks on the feet", "he pulled jam on the feet"),
        ("they spread honey on the toast", "they spread honey on the toes"),
        ("she pulled boots on the legs", "she boots pulled the on legs"),
    ]
    for likely, unlikely in pairs:
        first, second = learnt.score([("", likely), ("", unlikely)])
        assert first.tokens == second.tokens == 7
        assert first.log_probability > second.log_probability + 2, likely


def test_it_continues_a_prompt(learnt: transduce.pipeline.pipeline.Pipeline) -> None:
    food, clothes = learnt.predict(["she spread jam on the", "he pulled shoes on the"], method="greedy")
    assert food.text.removeprefix("she spread jam on the ") in EATEN
    assert clothes.text.removeprefix("he pulled shoes on the ") in WORN
    assert food.ended


def test_samples_are_sentences_of_the_language(learnt: transduce.pipeline.pipeline.Pipeline) -> None:
    known = {" ".join(line.split()[1:3]) for line in sentences(400)}
    found = learnt.predict(["she"] * 30, method="sample", top_p=0.9)
    assert len({each.text for each in found}) > 8
    assert sum(" ".join(each.text.split()[1:3]) in known for each in found) >= 25


def task(root: Path, **more: object) -> LanguageModelling:
    data = LanguageModellingData.model_validate({"root": str(root), "train": [{"text": "a"}], **more})
    config = TokenizerConfig(kind="whitespace", min_frequency=1)
    tokenizers = LanguageModelling.learn_columns(config, data)
    return LanguageModelling(LanguageModellingConfig(context=4), data, tokenizers)


def test_rows_predict_every_token_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one two\nthree\n")
    told: list[str] = []
    data = task(tmp_path).open(tmp_path / "cache", told.append)
    assert told == [f"{tmp_path / 'a'}: 5 tokens in 2 rows."]  # one two </s> three </s>, four to a row
    assert data.validation is None
    assert set(data.provenance) == {"train"}


def test_a_request_imposes_its_prompt_and_stays_in_the_context(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one two three\n")
    made = task(tmp_path)
    request = made.request(made.target.encode(["one two"])[0], Search(max_length_offset=9))
    assert (request.source, len(request.prefix), request.limit) == (None, 2, 4)
    assert (request.min_length, made.request(made.target.encode(["one two"])[0], Search(min_length=3)).min_length) == (
        2,
        5,
    )  # beside the prompt
    assert made.request(made.target.encode(["one two three one two"])[0], Search()).limit == 6
    assert made.request(made.target.encode(["one"])[0], Search(max_length_offset=1)).limit == 2
    assert made.start == made.end == made.target.end
    assert made.max_source_length == 2  # half of the context, so that there is room to go on


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one two\n")
    (tmp_path / "b").write_text("")
    with pytest.raises(InputError, match="no text to learn from"):
        task(tmp_path, validation={"text": "b"}).open(tmp_path / "cache", lambda line: None)
