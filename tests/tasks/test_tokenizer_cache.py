"""Tokenizers found in the cache are those that would be learnt."""

from pathlib import Path

import pytest

from transduce.data.pairs.pair_data import PairData
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.tasks.column_cache import cached_columns
from transduce.tasks.language_modelling import LanguageModelling, LanguageModellingData
from transduce.tasks.translation import Translation

WORDS = TokenizerConfig(kind="whitespace", min_frequency=1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.tsv").write_text("one\tun\tuno\ntwo\tdeux\tdos\n")
    (tmp_path / "one.txt").write_text("one\ntwo\n")
    (tmp_path / "two.txt").write_text("un\ndeux\n")
    return tmp_path


def columns(root: Path, target: int, **more: object) -> PairData:
    file = {"tsv": "a.tsv", "source_column": 0, "target_column": target}
    return PairData.model_validate({"root": str(root), "train": [file], **more})


@pytest.mark.parametrize("kind", ["bpe", "unigram", "byte", "character", "whitespace"])
def test_the_second_time_gives_the_same_text(root: Path, kind: str) -> None:
    config = TokenizerConfig(kind=kind, min_frequency=1, joint=False, vocabulary=300)  # type: ignore[arg-type]
    learnt = cached_columns(root / "cache", Translation, config, columns(root, 1))
    [file] = (root / "cache").iterdir()
    before = file.stat().st_mtime_ns
    found = cached_columns(root / "cache", Translation, config, columns(root, 1))
    assert {side: each.tokenizer.to_json() for side, each in found.items()} == {
        side: each.tokenizer.to_json() for side, each in learnt.items()
    }
    assert file.stat().st_mtime_ns == before


def test_other_columns_of_the_same_file_have_their_own_tokenizer(root: Path) -> None:
    config = TokenizerConfig(kind="whitespace", min_frequency=1, joint=False)
    french = cached_columns(root / "cache", Translation, config, columns(root, 1))
    spanish = cached_columns(root / "cache", Translation, config, columns(root, 2))
    assert french["target"].decode(french["target"].encode(["deux"])[0]) == "deux"
    assert spanish["target"].decode(spanish["target"].encode(["dos"])[0]) == "dos"


def test_held_out_files_and_folders_do_not_count(root: Path) -> None:
    cached_columns(root / "cache", Translation, WORDS, columns(root, 1))
    moved = root / "moved"
    moved.mkdir()
    (moved / "a.tsv").write_bytes((root / "a.tsv").read_bytes())
    held_out = {"validation": {"source": "one.txt", "target": "two.txt"}, "filters": {"max_tokens": 3}}
    cached_columns(root / "cache", Translation, WORDS, columns(moved, 1, **held_out))
    assert len(list((root / "cache").iterdir())) == 1
    (moved / "a.tsv").write_text("one\tun\n")
    assert "deux" not in str(
        cached_columns(root / "cache", Translation, WORDS, columns(moved, 1))["target"].tokenizer.to_json()
    )


@pytest.mark.parametrize("damage", [("one", "ono"), ("tokenizers", "tokenizer"), ("}", ""), ("{", "[")])
def test_a_damaged_file_is_learnt_again(root: Path, damage: tuple[str, str]) -> None:
    data = LanguageModellingData.model_validate({"root": str(root), "train": [{"text": "one.txt"}]})
    first = cached_columns(root / "cache", LanguageModelling, WORDS, data)
    [file] = (root / "cache").iterdir()
    never_split = file.read_text()
    file.write_text(never_split.replace(*damage))
    again = cached_columns(root / "cache", LanguageModelling, WORDS, data)
    assert again["target"].tokenizer.to_json() == first["target"].tokenizer.to_json()
    assert file.read_text() == never_split


def test_a_task_that_learns_otherwise_learns_anew(root: Path) -> None:
    class Later(Translation):
        columns_version = Translation.columns_version + 1

    Later.__name__ = Translation.__name__
    for task in (Translation, Later, Translation):
        cached_columns(root / "cache", task, WORDS, columns(root, 1))
    assert len(list((root / "cache").iterdir())) == 2
