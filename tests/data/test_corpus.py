"""From files to stores: aligned, counted, refused before tokenising, tokenised once."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from text_columns import PAIRS
from transduce.core.errors import InputError
from transduce.data.batches import BatchConfig, Batches
from transduce.data.collate import collate
from transduce.data.corpus import (
    TextFile,
    name_row,
    provenance,
    read_pairs,
    read_text,
    train_pair_tokenizers,
    train_text_tokenizer,
)
from transduce.data.encoding import open_pairs_store, open_text_store
from transduce.data.filters import Dropped, FilterConfig
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.store import Store
from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer

DATA = Path(os.environ.get("TRANSDUCE_DATA", Path(__file__).parents[2] / "../shared/data"))
TWO = PairFiles(source="s.txt", target="t.txt")
BYTES = train_tokenizer(TokenizerConfig(kind="byte"), [])
LINES = st.lists(st.tuples(*[st.text("ab \r\x85\u2028é", max_size=5)] * 2), min_size=1, max_size=12)


def write_pairs(root: Path, pairs: list[tuple[str, str]]) -> None:
    for name, side in (("s.txt", 0), ("t.txt", 1)):
        (root / name).write_bytes("".join(pair[side] + "\n" for pair in pairs).encode())


def texts(store: Store) -> list[tuple[str, ...]]:
    columns = [[BYTES.decode(ids) for ids in store.read(field, np.arange(len(store)))] for field in store.fields]
    return list(zip(*columns, strict=True))


@given(pairs=LINES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pairs_stay_aligned_and_are_dropped_together(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    write_pairs(tmp_path, pairs)
    pairs = [(source.removesuffix("\r"), target.removesuffix("\r")) for source, target in pairs]
    assert list(read_pairs(TWO, tmp_path)) == [(n, *pair) for n, pair in enumerate(pairs, 1)]
    limit = FilterConfig(max_tokens=6)
    kept = [pair for pair in pairs if all(0 < len(text.encode()) <= 6 for text in pair)]
    if not kept:
        with pytest.raises(InputError, match=r"no pair to learn from\. Dropped"):
            open_pairs_store(TWO, tmp_path, (BYTES, BYTES), limit, tmp_path / "cache")
        return
    store = open_pairs_store(TWO, tmp_path, (BYTES, BYTES), limit, tmp_path / "cache")
    assert texts(store) == kept
    dropped = Dropped.from_dict(store.metadata["dropped"])
    numbers = [number for number, pair in enumerate(pairs, 1) if all(0 < len(text.encode()) <= 6 for text in pair)]
    noted = sum(map(len, dropped.lines.values())) == dropped.total
    for row, number in enumerate(numbers):
        named = name_row(store, row, provenance([TWO], {}, tmp_path)["train"])
        place = f"line {number}" if noted else f"example {row + 1} of {len(kept)} that were kept"
        assert named == f"s.txt and t.txt, {place}"
    assert (dropped.kept, dropped.total) == (len(kept), len(pairs) - len(kept))
    where = [n for n, (source, _) in enumerate(pairs, 1) if not source]
    assert dropped.lines.get("empty source", []) == where[:5]


def test_unequal_files_are_refused_with_both_counts(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("a\n" * 1200)
    (tmp_path / "t.txt").write_text("a\n" * 1199 + "\n" * 2)
    with pytest.raises(InputError, match=r"s\.txt has 1,200 lines and .*t\.txt has 1,201"):
        read_pairs(TWO, tmp_path)
    with pytest.raises(InputError, match="1,200"):
        open_pairs_store(TWO, tmp_path, (BYTES, BYTES), FilterConfig(), tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_columns(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "p.tsv.gz", "wt", encoding="utf-8", newline="\n") as file:
        file.write("1\ta\tb\tx\n2\tc\td\n")
    files = PairFiles(tsv="p.tsv.gz", source_column=2, target_column=1)
    assert list(read_pairs(files, tmp_path)) == [(1, "b", "a"), (2, "d", "c")]
    one = open_pairs_store(files, tmp_path, (BYTES, BYTES), FilterConfig(), tmp_path)
    other = files.model_copy(update={"source_column": 0})
    assert texts(one) == [("b", "a"), ("d", "c")]
    assert texts(open_pairs_store(other, tmp_path, (BYTES, BYTES), FilterConfig(), tmp_path)) == [
        ("1", "a"),
        ("2", "c"),
    ]


def test_short_lines_are_refused_by_number(tmp_path: Path) -> None:
    (tmp_path / "p.tsv").write_text("a\tb\n" + "c\n" * 12 + "d\te\tf\n")
    with pytest.raises(InputError, match=r"expected 2 tab-.* 12 lines have fewer \(lines 2, 3, 4, 5, 6, …\)"):
        [*read_pairs(PairFiles(tsv="p.tsv"), tmp_path)]


@pytest.mark.parametrize(
    "wrong", [{}, {"source": "a"}, {"source": "a", "target": "b", "tsv": "c"}, {"target": "b", "tsv": "c"}]
)
def test_files_are_named_in_one_way(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="name either source and target"):
        PairFiles(**wrong)


class Unused(Tokenizer):
    def encode(self, texts: object) -> list[list[int]]:
        raise AssertionError("tokenised again")


def test_the_second_open_tokenises_nothing(tmp_path: Path) -> None:
    write_pairs(tmp_path, [("a", "b"), ("", "c"), ("d e", "f")])
    seen: list[int] = []
    arguments = (FilterConfig(), tmp_path / "cache")
    first = open_pairs_store(TWO, tmp_path, (BYTES, BYTES), *arguments, progress=seen.append)
    unused = Unused.from_json(BYTES.to_json())
    again = open_pairs_store(TWO, tmp_path, (unused, unused), *arguments, progress=seen.append)
    assert seen == [3]
    assert texts(again) == texts(first) == [("a", "b"), ("d e", "f")]
    assert again.metadata == first.metadata
    with pytest.raises(AssertionError, match="tokenised again"):
        open_pairs_store(TWO, tmp_path, (unused, unused), FilterConfig(max_tokens=9), tmp_path / "cache")


def test_the_cache_notices_changed_text_and_not_a_changed_weight(tmp_path: Path) -> None:
    write_pairs(tmp_path, [("a", "b")])
    arguments = (tmp_path, (BYTES, BYTES), FilterConfig(), tmp_path / "cache")
    open_pairs_store(TWO, *arguments)
    open_pairs_store(TWO.model_copy(update={"weight": 2.0}), *arguments)
    assert len(list((tmp_path / "cache").iterdir())) == 1
    write_pairs(tmp_path, [("a", "c")])
    assert texts(open_pairs_store(TWO, *arguments)) == [("a", "c")]


def test_lines_of_a_language_model(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"the cat\n\nthe <unk> sat")
    config = TokenizerConfig(kind="whitespace", min_frequency=1)
    tokenizer = train_text_tokenizer(config, [TextFile(text="x")], tmp_path)
    store = open_text_store(TextFile(text="x"), tmp_path, tokenizer, 4, tmp_path / "cache")
    the, cat, sat = (tokenizer.encode([word])[0][0] for word in ("the", "cat", "sat"))
    rows = [ids.tolist() for ids in store.read("target", np.arange(len(store)))]
    assert rows == [[2, the, cat, 2, 2], [2, the, 3, sat, 2]]
    assert {key: store.metadata[key] for key in ("lines", "unknown", "predicted")} == {
        "lines": 3, "unknown": {"target": 1}, "predicted": 8
    }  # fmt: skip


def test_running_text_keeps_its_newlines(tmp_path: Path) -> None:
    text = "To be,\n\nor not  to be\r\n"
    (tmp_path / "x").write_bytes(text.encode())
    file = TextFile(text="x", unit="stream")
    store = open_text_store(file, tmp_path, BYTES, 7, tmp_path / "cache")
    rows = store.read("target", np.arange(len(store)))
    assert rows[0][0] == BYTES.end
    assert BYTES.decode([int(i) for row in rows for i in row[1:]]) == text


def test_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(InputError, match="no text to learn from"):
        open_text_store(TextFile(text="x"), tmp_path, BYTES, 7, tmp_path / "cache")


@pytest.mark.parametrize("joint", [True, False])
def test_joint_and_separate_vocabularies(joint: bool, tmp_path: Path) -> None:
    write_pairs(tmp_path, [("aa bb", "xx yy")] * 2)
    config = TokenizerConfig(kind="whitespace", joint=joint)
    source, target = train_pair_tokenizers(config, [TWO], tmp_path)
    assert (source is target) == joint
    assert source.tokens(range(4, source.size)) == (["aa", "bb", "xx", "yy"] if joint else ["aa", "bb"])
    assert target.tokens(range(4, target.size)) == (["aa", "bb", "xx", "yy"] if joint else ["xx", "yy"])


@pytest.mark.slow
def test_real_pairs_pad_below_a_tenth(tmp_path: Path) -> None:
    root = DATA / "multi30k/raw"
    if not root.exists():
        pytest.skip(f"no {root}")
    files = PairFiles(source="train.en.gz", target="train.de.gz")
    tokenizers = train_pair_tokenizers(TokenizerConfig(), [files], root)
    store = open_pairs_store(files, root, tokenizers, FilterConfig(), tmp_path)
    assert len(store) == 29_000 and store.metadata["unknown"] == {"source": 0, "target": 0}
    batches = Batches([(store, 1.0)], BatchConfig(), 1)
    read = [collate(batches.stores, rows, PAIRS) for rows in batches.epoch(0)]
    assert sum(batch.units for batch in read) == store.metadata["tokens"]["target"] + 29_000
    for side in (0, 1):
        real = sum(int(batch[side].lengths.sum()) for batch in read)
        assert 1 - real / sum(batch[side].values.numel() for batch in read) < 0.1


@pytest.mark.slow
def test_treebank_has_its_published_token_counts(tmp_path: Path) -> None:
    """929,589 / 73,760 / 82,430 tokens with a sentence end a line, and 10,000 words, that end included."""
    if not (DATA / "ptb").exists():
        pytest.skip(f"no {DATA / 'ptb'}")
    config = TokenizerConfig(kind="whitespace", vocabulary=20_000, min_frequency=1)
    parts = [TextFile(text=f"ptb/ptb.{part}.txt.gz") for part in ("train", "valid", "test")]
    tokenizer = train_text_tokenizer(config, parts[:1], DATA)
    stores = [open_text_store(part, DATA, tokenizer, 35, tmp_path) for part in parts]
    assert [store.metadata["predicted"] for store in stores] == [929_589, 73_760, 82_430]
    assert tokenizer.size == 10_000 + 2  # pad and start are predicted never


def test_importing_the_settings_loads_nothing_heavy() -> None:
    code = (
        "import sys, transduce.data.corpus, transduce.data.batches;"
        "print({'torch', 'pyarrow', 'tokenizers'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_a_part_of_a_text_is_counted_in_characters(tmp_path: Path) -> None:
    text = "To be, or not\nto be:\nthat is the question.\n"
    (tmp_path / "t.txt").write_text(text)
    at = int(0.3 * len(text))
    first = TextFile(text="t.txt", unit="stream", part=(0.0, 0.3))
    rest = TextFile(text="t.txt", unit="stream", part=(0.3, 1.0))
    assert "".join(read_text(first, tmp_path)) == text[:at]
    assert "".join(read_text(rest, tmp_path)) == text[at:]


def test_in_unit_line_a_part_holds_whole_lines_and_parts_do_not_overlap(tmp_path: Path) -> None:
    lines = [f"line number {number}" for number in range(50)]
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    parts = [TextFile(text="t.txt", part=part) for part in ((0.0, 0.33), (0.33, 0.9), (0.9, 1.0))]
    assert [line for part in parts for line in read_text(part, tmp_path)] == lines


def test_a_text_may_be_a_column_and_lines_without_it_are_named(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("a\tb\nc\td\n")
    assert list(read_text(TextFile(text="t.tsv", column=1), tmp_path)) == ["b", "d"]
    (tmp_path / "t.tsv").write_text("a\tb\nc\n")
    with pytest.raises(InputError, match=r"line 2"):
        list(read_text(TextFile(text="t.tsv", column=1), tmp_path))
