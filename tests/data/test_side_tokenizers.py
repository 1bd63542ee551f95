"""[tokenizer.source] and [tokenizer.target]: a tokenizer of another kind for each side."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from transduce.core.errors import InputError
from transduce.data.corpus import train_pair_tokenizers
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer


def test_each_side_has_its_own_kind(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("aal\taː l\nla\tl aː\n", encoding="utf-8")
    config = TokenizerConfig.model_validate(
        {"min_frequency": 1, "source": {"kind": "character"}, "target": {"kind": "whitespace"}}
    )
    assert not config.joint
    source, target = train_pair_tokenizers(config, [PairFiles(tsv="a.tsv")], tmp_path)
    assert source.tokens(source.encode(["aal"])[0]) == ["a", "a", "l"]
    assert target.tokens(target.encode(["l aː"])[0]) == ["l", "aː"]


def test_a_side_has_the_settings_above_unless_it_says_its_own() -> None:
    given = {"kind": "character", "lowercase": True, "source": {"kind": "bpe"}}
    config = TokenizerConfig.model_validate(given)
    assert (config.of_side("source").kind, config.of_side("source").lowercase) == ("bpe", True)
    assert (config.of_side("target").kind, config.of_side("target").lowercase) == ("character", True)
    assert TokenizerConfig.model_validate(config.model_dump(exclude_none=True)) == config


def test_one_vocabulary_cannot_be_of_two_kinds() -> None:
    with pytest.raises(ValidationError, match="joint = true is one tokenizer for both sides"):
        TokenizerConfig.model_validate({"joint": True, "source": {"kind": "byte"}})


def test_a_task_with_one_tokenizer_refuses_two() -> None:
    with pytest.raises(InputError, match="are for pairs of texts"):
        train_tokenizer(TokenizerConfig.model_validate({"source": {"kind": "byte"}}), ["a b a b"])
