"""Some of the pairs of a corpus: always the same ones, and the more, the same and others."""

from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from transduce.core.errors import InputError
from transduce.data.corpus import name_row, provenance, read_pairs, sampled_pairs, train_pair_tokenizers
from transduce.data.encoding import open_pairs_store
from transduce.data.filters import FilterConfig
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.distillation.translations import training_sources
from transduce.recipe.recipe import parse_recipe

LINES = 60
BYTES = train_tokenizer(TokenizerConfig(kind="byte"), [])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in "st":
        (tmp_path / name).write_text("".join(f"{name}{number}\n" for number in range(1, LINES + 1)))
    (tmp_path / "columns").write_text("".join(f"IN: a{n} OUT: b{n} c\n" for n in range(1, LINES + 1)))
    return tmp_path


def numbers(root: Path, pairs: int | None) -> list[int]:
    found = list(read_pairs(PairFiles(source="s", target="t", pairs=pairs), root))
    assert [each[1:] for each in found] == [(f"s{number}", f"t{number}") for number, *_ in found]
    return [number for number, *_ in found]


def test_more_pairs_include_those_of_fewer_and_a_hash_says_which(root: Path) -> None:
    chosen = [numbers(root, count) for count in (1, 7, 20, LINES)]
    for fewer, more in pairwise(chosen):
        assert set(fewer) < set(more)
    assert [len(each) for each in chosen] == [1, 7, 20, LINES]
    assert chosen[-1] == numbers(root, None)
    by_hash = sorted(range(1, LINES + 1), key=lambda n: blake2b(str(n).encode(), digest_size=8).digest())
    assert chosen[2] == sorted(by_hash[:20])  # in the files' order
    assert chosen[2] != list(range(1, 21))


def test_more_than_there_are_is_an_error(root: Path) -> None:
    with pytest.raises(InputError, match=r"s has 60 pairs; data\.train\.pairs asks for 61\."):
        read_pairs(PairFiles(source="s", target="t", pairs=61), root)


def test_tokenizer_store_and_sample_see_the_chosen_pairs_alone(root: Path) -> None:
    files = PairFiles(source="s", target="t", pairs=5)
    words = {f"s{number}" for number in numbers(root, 5)}
    source, _ = train_pair_tokenizers(TokenizerConfig(kind="whitespace", min_frequency=1), [files], root)
    known = {f"s{number}" for number in range(1, LINES + 1) if source.unknown not in source.encode([f"s{number}"])[0]}
    assert known == words
    limit = FilterConfig()
    store = open_pairs_store(files, root, (BYTES, BYTES), limit, root / "cache")
    assert {BYTES.decode(ids) for ids in store.read("source", np.arange(len(store)))} == words
    whole = open_pairs_store(PairFiles(source="s", target="t"), root, (BYTES, BYTES), limit, root / "cache")
    assert len(whole) == LINES  # not the cached one of fewer
    assert {text for text, _ in sampled_pairs([files], root, 3)} <= words
    told = provenance([files], {}, root)["train"]
    assert told[0]["pairs"] == 5
    assert name_row(store, 1, told).endswith("example 2 of 5 that were kept")  # its line is another one


def test_what_says_nothing_of_pairs_is_noted_as_before(root: Path) -> None:
    files = PairFiles(source="s", target="t")
    assert not {"pairs", "separator"} & provenance([files], {}, root)["train"][0].keys()
    assert files.read_as == {}


def test_columns_may_be_separated_by_something_else(root: Path) -> None:
    found = list(read_pairs(PairFiles(tsv="columns", separator=" OUT: "), root))
    assert found[2] == (3, "IN: a3", "b3 c")
    with pytest.raises(InputError, match='expected 2 columns separated by " TO " in every line, but 60 lines'):
        list(read_pairs(PairFiles(tsv="columns", separator=" TO "), root))
    assert PairFiles(tsv="columns", separator=" OUT: ").evaluate_options(root) == []
    assert PairFiles(tsv="a.tsv", separator="||").evaluate_options(root) == ["--source", str(root / "a.tsv")]
    with pytest.raises(ValueError, match="two files have no columns"):
        PairFiles(source="s", target="t", separator=" ")


def test_only_training_files_may_be_cut(root: Path) -> None:
    pair = {"source": "s", "target": "t"}
    data = {"train": [pair], "test": {"one": {**pair, "pairs": 3}}}
    with pytest.raises(InputError, match="one: pairs: only training files may be cut"):
        parse_recipe({"data": data, "name": "x"}, "here")
    with pytest.raises(InputError, match="pairs, separator: a teacher translates whole files"):
        training_sources([PairFiles(tsv="columns", separator=" OUT: ", pairs=3)])


def test_blank_lines_between_objects_are_no_pairs(tmp_path: Path) -> None:
    objects = [f'{{"source": "s{number}", "target": "t{number}"}}\n' for number in range(1, 51)]
    (tmp_path / "dense.jsonl").write_text("".join(objects))
    (tmp_path / "blank.jsonl").write_text("\n".join(objects) + "\n\n")
    dense, blank = ([*read_pairs(PairFiles(jsonl=f"{name}.jsonl", pairs=40), tmp_path)] for name in ("dense", "blank"))
    assert len(dense) == 40
    assert [each[1:] for each in blank] == [each[1:] for each in dense]
    assert [number for number, *_ in blank] == [2 * number - 1 for number, *_ in dense]  # their lines
    with pytest.raises(InputError, match="has 50 pairs"):
        read_pairs(PairFiles(jsonl="blank.jsonl", pairs=51), tmp_path)
