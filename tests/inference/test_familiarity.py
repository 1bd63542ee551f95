"""Inputs that a model cannot have learnt to read are told from others, by what its file says of its training."""

import pytest

from transduce.data.character_profile import CharacterProfile
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.inference.familiarity import Familiarity, InputFamiliarity

WORDS = ["huis", "boom", "ijs", "trein", "kat"]
PHONES = ["h œy s", "b oː m", "ɛi s", "t r ɛi n", "k ɑ t"]


def familiarity(tokenizer: Tokenizer | None = None) -> Familiarity:
    source, target = (CharacterProfile.of(texts).to_dict() for texts in (WORDS, PHONES))
    return Familiarity.of({"characters": {"source": source, "target": target}}, tokenizer)


def tokenizer(**settings: object) -> Tokenizer:
    config = TokenizerConfig.model_validate({"kind": "bpe", "vocabulary": 60, "min_frequency": 1, **settings})
    return train_tokenizer(config, WORDS)


def test_each_text_has_its_share() -> None:
    known = familiarity()
    assert [known.unseen(text) for text in ("huis", "HUIS", "kat K", "", "日本")] == [0, 1, 0.25, 0, 1]
    assert Familiarity.of({}, None).unseen("HUIS") is None


def test_what_the_tokenizer_makes_alike_is_not_new() -> None:
    assert familiarity(tokenizer()).unseen("HUIS") == 1
    assert familiarity(tokenizer(lowercase=True)).unseen("HUIS") == 0
    accented = Familiarity.of({"characters": {"source": CharacterProfile.of(["é"]).to_dict()}}, tokenizer())
    assert accented.unseen("e\u0301") == 0


def test_tags_are_no_characters_of_the_text() -> None:
    tagged = tokenizer().with_added([">>fr<<"])
    assert familiarity(tagged).unseen(">>fr<< huis") == 0


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["huis", "boom"], ""),
        (["huis"] * 30 + ["kat X"], ""),
        (["HUIS"], "100 % of the characters of the input were never seen in training."),
        (["huis", "日本"], "33 % of the characters of the input were never seen in training; 1 of 2 texts are mostly"),
        (["huis"] * 99 + ["日"], "0.3 % of the characters of the input were never seen in training; 1 of 100 texts"),
        (PHONES * 20, "The input looks like what this model writes, not like what it reads"),
    ],
)
def test_one_sentence_says_what_is_unfamiliar(texts: list[str], told: str) -> None:
    sentence = familiarity().of_inputs(texts).sentence()
    assert told in sentence
    assert bool(told) == bool(sentence)


def test_words_that_a_vocabulary_of_words_lacks_are_told() -> None:
    """Their characters were all there."""
    found = familiarity(tokenizer(kind="whitespace")).of_inputs(["huis boom", "mooi huis", "tak"])
    assert found == InputFamiliarity(unseen=0.0, unknown=0.4, texts=3)
    assert found.sentence() == "40 % of the tokens of the input are unknown to this model."


def test_a_file_that_does_not_say_it_tells_of_unknown_words_alone() -> None:
    found = Familiarity.of({}, tokenizer(kind="whitespace")).of_inputs(["huis", "tak"])
    assert found.to_dict() == {"unknown": 0.5, "texts": 2, "unread": 0, "exchanged": False}
