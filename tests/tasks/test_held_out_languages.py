"""Held-out pairs of several directions: a test set for each language, scored by the language's own rules."""

import io
import random
import tomllib
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from rich.console import Console
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

from tiny_recipe import TINY_RECIPE
from transduce.core.errors import InputError
from transduce.data.corpus import read_tagged_pairs
from transduce.metrics.bleu import bleu_tally
from transduce.metrics.evaluate import tallies
from transduce.metrics.tally import pooled
from transduce.recipe.recipe import Recipe, parse_recipe
from transduce.training.display import Display
from transduce.training.run import open_task, run_training

WORDS = {"en": ["zero", "one", "two", "three", "four"], "zh": ["零", "一", "二", "三", "四"]}
COLUMNS = {"en": {"source_column": 1, "target_column": 0}, "zh": {"source_column": 0, "target_column": 1}}


@pytest.fixture
def table(tmp_path: Path) -> dict[str, Any]:
    """A recipe of English and Chinese numbers in both directions, from one file."""
    drawn = random.Random(1)
    numbers = [drawn.choices(range(5), k=drawn.randint(4, 9)) for _ in range(120)]
    rows = (
        " ".join(WORDS["en"][at] for at in each) + "\t" + "".join(WORDS["zh"][at] for at in each) for each in numbers
    )
    (tmp_path / "pairs.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    entries = [{"tsv": "pairs.tsv", "to": to, **columns} for to, columns in COLUMNS.items()]
    table = tomllib.loads(TINY_RECIPE)
    table["data"] = {"root": str(tmp_path), "train": entries, "hold_out": {"validation": 16, "test": 16}}
    table["tokenizer"] = {"kind": "character"}
    table["training"] |= {"updates": 2, "validate_every": 2}
    return table


def opened(recipe: Recipe) -> Any:
    return open_task(recipe, Display(Console(quiet=True)))[1]


def test_each_language_is_a_test_set_with_its_own_pairs(table: dict[str, Any]) -> None:
    recipe = parse_recipe(table, "here")
    data = opened(recipe)
    assert [(name, test.language) for name, test in data.tests.items()] == [
        ("held_out.en", "en"),
        ("held_out.zh", "zh"),
    ]
    for files in recipe.data.train:
        test = data.tests[f"held_out.{files.to}"]
        every = [(source, target) for _, source, target in read_tagged_pairs(files, Path(recipe.data.root))]
        assert len(test.texts) == len(test.store) >= 8
        assert set(test.texts) <= set(every)
    assert len(data.validation.languages) == len(data.validation.texts)
    said = [
        source.startswith(f">>{to}<<")
        for to, (source, _) in zip(data.validation.languages, data.validation.texts, strict=True)
    ]
    assert all(said)


def test_the_signatures_name_the_tokenizers_that_were_used(table: dict[str, Any], tmp_path: Path) -> None:
    report = run_training(parse_recipe(table, "here"), tmp_path / "run", Display(Console(file=io.StringIO())))
    found = {name: test["scores"]["bleu"]["signature"].split("|") for name, test in report["tests"].items()}
    assert {name: [each for each in fields if each.startswith("tok:")] for name, fields in found.items()} == {
        "held_out.en": ["tok:13a"],
        "held_out.zh": ["tok:zh"],
    }
    assert "|tok:13a+zh|" in report["validation_signatures"]["bleu"]


def test_one_language_is_one_set(table: dict[str, Any]) -> None:
    table["data"]["train"] = table["data"]["train"][:1]
    assert list(opened(parse_recipe(table, "here")).tests) == ["held_out"]


def test_a_language_that_only_a_tagged_entry_has_names_no_set(table: dict[str, Any]) -> None:
    table["data"]["train"][1]["tag"] = "<BT>"
    assert list(opened(parse_recipe(table, "here")).tests) == ["held_out"]


def test_the_names_are_taken(table: dict[str, Any]) -> None:
    table["data"]["test"] = {"held_out.zh": {"tsv": "pairs.tsv", "to": "zh"}}
    with pytest.raises(
        InputError, match=r"hold_out\.test is the test set held_out\.zh; give the other one another name"
    ):
        parse_recipe(table, "here")


def test_what_only_one_language_does_is_named_in_the_pooled_signature() -> None:
    """References in Unicode's decomposed form are composed, which the signature of that language says."""
    [french] = tallies(["cer"], ["élu"], [[normalize("NFD", "élu")]], "fr")
    [english] = tallies(["cer"], ["house"], [["mouse"]], "en")
    both = pooled([english, french])
    assert both.value == pytest.approx(100 / 8)
    assert both.signature == f"{english.signature}|unicode:NFC"


def test_the_pooled_score_is_that_of_words_split_before() -> None:
    english = (["the cat sat on a mat, there", "no, it is"], ["the cat sat on the mat, there", "no, it was"])
    chinese = (["我们今天去学校。", "他不在家"], ["我们明天去学校。", "他不在家里"])
    both = pooled([bleu_tally(*english, language="en"), bleu_tally(*chinese, language="zh")])
    split = [
        [cut(text) for (sides, cut) in ((english, Tokenizer13a()), (chinese, TokenizerZh())) for text in sides[side]]
        for side in (0, 1)
    ]
    expected = BLEU(tokenize="none", force=True).corpus_score(split[0], [split[1]]).score
    assert both.value == pytest.approx(expected)
    assert both.signature.replace("tok:13a+zh", "tok:zh") == bleu_tally(*chinese, language="zh").signature
