"""The data sets that recipes/prepare.py writes: parts that share nothing, texts as their recipes promise."""

from hashlib import md5
from pathlib import Path

import pytest

from scripts import loaded

prepare = loaded("recipes/prepare.py")


def rows(name: str, data_root: Path) -> dict[str, list[tuple[str, ...]]]:
    folder, read = prepare.SETS[name]
    if not (data_root / folder).is_dir():
        pytest.skip(f"needs {data_root / folder}")
    return {part: [tuple(row) for row in each] for part, each in read(data_root / folder).items()}


@pytest.mark.parametrize(("name", "counts"), [("tatoeba-eng-cmn", (18_237, 934, 962)), ("enja", (50_000, 500, 500))])
def test_parts_have_the_sizes_of_their_data(name: str, counts: tuple[int, ...], data_root: Path) -> None:
    pytest.importorskip("opencc")
    parts = rows(name, data_root)
    assert tuple(len(parts[part]) for part in ("train", "validation", "test")) == counts


def test_no_english_sentence_is_in_two_parts(data_root: Path) -> None:
    parts = rows("tatoeba-eng-fra", data_root)
    sources = {part: {pair[0] for pair in pairs} for part, pairs in parts.items()}
    assert not sources["train"] & sources["validation"] | sources["train"] & sources["test"]
    assert all(int(md5(source.encode()).hexdigest(), 16) % 100 in (0, 1) for source in sources["test"])
    assert sum(map(len, parts.values())) == 167_130


def test_chinese_is_in_simplified_characters(data_root: Path) -> None:
    pytest.importorskip("opencc")
    texts = "".join(target for pairs in rows("tatoeba-eng-cmn", data_root).values() for _, target in pairs)
    assert not set("們個說這時過為來還對學會讓裡") & set(texts)
    assert set("们个说这时过为来还对学会让里") <= set(texts)


def test_low_resource_texts_are_no_targets_of_its_pairs(data_root: Path) -> None:
    parts = rows("low-resource", data_root)
    assert {part: len(each) for part, each in parts.items()} == {
        "train": 5000,
        "validation": 1000,
        "test": 1000,
        "monolingual": 20_000,
    }
    assert not {source for source, _ in parts["train"]} & {source for source, _ in parts["test"]}


def test_lines_of_couplets_answer_each_other_in_length(data_root: Path) -> None:
    for pairs in rows("couplets", data_root).values():
        assert {len(line) for line, _ in pairs} == {5, 7}
        assert all(len(line) == len(answer) for line, answer in pairs)


def test_questions_have_names_in_the_place_of_variables(data_root: Path) -> None:
    parts = rows("geoquery", data_root)
    assert [len(parts[part]) for part in ("train", "validation", "test")] == [549, 49, 279]
    assert not any("_name0" in text for pairs in parts.values() for pair in pairs for text in pair)


def test_the_longest_variables_are_filled_first() -> None:
    assert prepare.filled("from city1 to city10", {"city1": "rome", "city10": "paris"}) == "from rome to paris"


def test_a_file_has_one_line_a_row(tmp_path: Path) -> None:
    assert prepare.write(tmp_path / "set" / "train.tsv", [("a\tb\n c", "d"), ("e", "f")]) == 2
    assert (tmp_path / "set" / "train.tsv").read_text() == "a b c\td\ne\tf\n"
