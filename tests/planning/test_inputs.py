"""Which files are meant by what is named: every kind, parts beside each other, languages."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from transduce.core.errors import InputError
from transduce.data.corpus import read_pairs
from transduce.data.pairs.inputs import Inputs, Named, is_data, looks_like_data, named_inputs, resolve_inputs
from transduce.data.pairs.languages import language_of, parse_languages
from transduce.data.pairs.pair_files import PairFiles

ENGLISH, SWAHILI = ["two dogs", "a cat", "red"], ["mbwa wawili", "paka", "nyekundu"]


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


SIDES = {"source": "en", "target": "sw"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The same pairs in every kind of file."""
    rows = list(zip(ENGLISH, SWAHILI, strict=True))
    (tmp_path / "a.tsv").write_text("".join(f"{one}\t{two}\n" for one, two in rows), encoding="utf-8")
    for name, between in (("tabs.txt", "\t"), ("bars.txt", " ||| ")):
        (tmp_path / name).write_text("".join(f"{one}{between}{two}\n" for one, two in rows), encoding="utf-8")
    (tmp_path / "a.csv").write_text(
        "target,source\n" + "".join(f"{two},{one}\n" for one, two in rows), encoding="utf-8"
    )
    objects = [json.dumps({"target": two, "source": one}) for one, two in rows]
    (tmp_path / "a.jsonl").write_text("\n".join(objects), encoding="utf-8")
    (tmp_path / "moses").mkdir()
    with zipfile.ZipFile(tmp_path / "sw-en.txt.zip", "w") as archive:
        archive.writestr("README", "about")
        for language, lines in (("en", ENGLISH), ("sw", SWAHILI)):
            archive.writestr(f"X.en-sw.{language}", text(lines))
            for part in ("train", "dev", "test_2016"):
                (tmp_path / "moses" / f"{part}.{language}").write_text(text(lines), encoding="utf-8")
    return tmp_path


def read(inputs: Inputs) -> list[tuple[str, str]]:
    return [pair for _, *pair in read_pairs(PairFiles.model_validate(inputs.train), Path())]


@pytest.mark.parametrize(
    "name", ["a.tsv", "a.csv", "a.jsonl", "sw-en.txt.zip", "moses", "moses/train", "tabs.txt", "bars.txt"]
)
def test_every_kind_gives_the_same_pairs(folder: Path, name: str) -> None:
    languages = ("en", "sw") if name == "sw-en.txt.zip" else None
    inputs = resolve_inputs(Named(folder / name, languages=languages))
    assert read(inputs) == [list(pair) for pair in zip(ENGLISH, SWAHILI, strict=True)]


def test_source_and_target_may_stand_on_a_line_with_anything_between(folder: Path) -> None:
    (folder / "scan.txt").write_text("walk OUT: WALK\nrun OUT: RUN\n", encoding="utf-8")
    inputs = resolve_inputs(Named(folder / "scan.txt", separator=" OUT: "))
    assert read(inputs) == [["walk", "WALK"], ["run", "RUN"]]
    with pytest.raises(InputError, match="csv has its own"):
        resolve_inputs(Named(folder / "a.csv", separator=" ||| "))
    with pytest.raises(InputError, match="--separator are for one file with columns"):
        resolve_inputs(Named(folder / "a.tsv", folder / "tabs.txt", separator=" ||| "))


def test_columns_that_are_guessed_are_told(folder: Path) -> None:
    """The header of a .csv is not learnt from, so a file without one loses a pair."""
    (folder / "b.csv").write_text("two dogs,mbwa wawili\na cat,paka\n", encoding="utf-8")
    [note] = resolve_inputs(Named(folder / "b.csv")).notes
    assert '"two dogs" and "mbwa wawili" are the source and the target' in note
    assert "The first line is a header" in note
    (folder / "b.tsv").write_text("source\ttarget\tlicence\na cat\tpaka\tCC\n", encoding="utf-8")
    assert read(resolve_inputs(Named(folder / "b.tsv"))) == [["a cat", "paka"]]
    assert not resolve_inputs(Named(folder / "b.tsv", columns=(1,), target_column=0)).notes
    (folder / "c.tsv").write_text("a cat\tpaka\tCC\n", encoding="utf-8")
    [note] = resolve_inputs(Named(folder / "c.tsv")).notes
    assert "the first of its 3 columns is the source" in note
    (folder / "d.tsv").write_text("en\tsw\na cat\tpaka\n", encoding="utf-8")
    [note] = resolve_inputs(Named(folder / "d.tsv")).notes
    assert "The first line is a header" in note
    assert not resolve_inputs(Named(folder / "a.csv")).notes
    assert not resolve_inputs(Named(folder / "a.tsv")).notes


def test_the_only_two_keys_are_source_and_target(folder: Path) -> None:
    """As of a .csv with two columns."""
    (folder / "b.jsonl").write_text('{"n": 1, "en": "a cat", "sw": "paka"}\n', encoding="utf-8")
    inputs = resolve_inputs(Named(folder / "b.jsonl"))
    assert (read(inputs), inputs.languages) == ([["a cat", "paka"]], ("en", "sw"))
    assert 'its keys "en" and "sw" are the source and the target' in inputs.notes[0]
    assert not resolve_inputs(Named(folder / "a.jsonl")).notes


@pytest.mark.parametrize("order", ["lemma form tags", "lemma tags form"])
@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_a_table_of_inflection_is_not_learnt_without_its_tags(tmp_path: Path, order: str, kind: str) -> None:
    lemmas = [f"{one}{two}" for one in "bdkmnt" for two in ("alo", "ivu", "etto")]
    ends = {"N;NOM;SG": "", "N;GEN;SG": "n", "N;ESS;SG": "na"}
    rows = [{"lemma": lemma, "form": lemma + end, "tags": tags} for lemma in lemmas for tags, end in ends.items()]
    between, path = ("," if kind == "csv" else "\t"), tmp_path / f"a.{kind}"
    table = [dict(zip(order.split(), order.split(), strict=True))] * (kind == "csv") + rows
    path.write_text("".join(between.join(row[name] for name in order.split()) + "\n" for row in table))
    name = {each: each if kind == "csv" else str(order.split().index(each)) for each in order.split()}
    with pytest.raises(InputError) as caught:
        resolve_inputs(Named(path))
    source, tags = f"--source-column {name['lemma']}", f"--source-column {name['tags']}"
    assert f"With the tags: transduce train {path} {source} {tags} --target-column {name['form']}." in str(caught.value)
    assert f"Without them: transduce train {path} {source} --target-column" in str(caught.value)
    columns = [int(each) if each.isdigit() else each for each in (name["lemma"], name["tags"], name["form"])]
    inputs = resolve_inputs(Named(path, columns=tuple(columns[:2]), target_column=columns[2]))
    assert read(inputs)[1] == ["balo | N;GEN;SG", "balon"]


def test_other_tables_with_a_third_column_are_learnt(tmp_path: Path) -> None:
    """One whose sources have one target each, and one with a number for each row."""
    one = [(f"a cat {n}", f"paka {n}", "CC" if n % 3 else "BY") for n in range(60)]
    several = [(f"a cat {n // 3}", f"paka {n}", str(n)) for n in range(60)]
    for name, rows in (("a.tsv", one), ("b.tsv", several)):
        (tmp_path / name).write_text("".join("\t".join(row) + "\n" for row in rows))
        assert len(read(resolve_inputs(Named(tmp_path / name)))) == 60


def test_of_many_columns_two_must_be_named(folder: Path) -> None:
    (folder / "b.csv").write_text("id,en,sw\n1,a cat,paka\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"3 columns \(id, en, sw\).*--source-column en --target-column sw"):
        resolve_inputs(Named(folder / "b.csv"))
    inputs = resolve_inputs(Named(folder / "b.csv", columns=("en",), target_column="sw"))
    assert read(inputs) == [["a cat", "paka"]]
    (folder / "b.csv").write_text("en,sw,en\na cat,paka,a big cat\n", encoding="utf-8")
    with pytest.raises(InputError, match="the column en is there twice"):
        resolve_inputs(Named(folder / "b.csv"))


@pytest.mark.parametrize(
    ("column", "told"), [("{}", r"30000 columns \(.* and 29,980 more\); say which"), ("a", "column a is there twice")]
)
def test_of_very_many_columns_a_few_are_told(tmp_path: Path, column: str, told: str) -> None:
    header = ",".join(column.format(f"c{place}") for place in range(30_000))
    (tmp_path / "a.csv").write_text(f"{header}\n{header}\n", encoding="utf-8")
    (tmp_path / "a.tsv").write_text(header.replace(",", "\t") + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=told) as caught:
        resolve_inputs(Named(tmp_path / "a.csv"))
    assert len(str(caught.value)) < 1000
    assert len(read(resolve_inputs(Named(tmp_path / "a.tsv")))) == 1


@pytest.mark.parametrize(
    ("header", "languages"),
    [("en,sw", ("en", "sw")), ("ENG,cmn", ("en", "zh")), ("source,target", ("", "")), ("nl,sql", ("", ""))],
)
def test_columns_that_are_called_by_codes_name_the_languages(
    header: str, languages: tuple[str, str], folder: Path
) -> None:
    (folder / "b.csv").write_text(f"{header}\na cat,paka\n", encoding="utf-8")
    assert resolve_inputs(Named(folder / "b.csv")).languages == languages
    assert resolve_inputs(Named(folder / "b.csv", languages=("en", "fr"))).languages == ("en", "fr")


def test_keys_that_are_codes_name_the_languages(folder: Path) -> None:
    (folder / "b.jsonl").write_text('{"translation": {"en": "a cat", "sw": "paka"}, "n": 1}\n', encoding="utf-8")
    named = Named(folder / "b.jsonl", columns=("translation.en",), target_column="translation.sw")
    assert resolve_inputs(named).languages == ("en", "sw")
    assert resolve_inputs(Named(folder / "a.tsv", columns=(0,), target_column=1)).languages == ("", "")


def test_columns_of_texts_are_suggested(folder: Path) -> None:
    rows = "".join(
        f"{number},句子{number},sentence {number},{'checked' if number % 3 else ''}\n" for number in range(30)
    )
    (folder / "b.csv").write_text(f"id,chinesisch,englisch,note\n{rows}", encoding="utf-8")
    with pytest.raises(InputError, match="--source-column chinesisch --target-column englisch, for example"):
        resolve_inputs(Named(folder / "b.csv"))


def test_tables_beside_parallel_files_are_no_languages(folder: Path) -> None:
    for name in ("train.tsv", "train.csv"):
        (folder / "moses" / name).write_text("a\tb\n", encoding="utf-8")
    assert resolve_inputs(Named(folder / "moses" / "train")).languages == ("en", "sw")


def test_two_files_have_their_languages_and_a_name(folder: Path) -> None:
    inputs = resolve_inputs(Named(folder / "moses" / "train.sw", folder / "moses" / "train.en"))
    assert (inputs.languages, inputs.name) == (("sw", "en"), "train-sw-en")


def test_a_folder_brings_its_held_out_parts(folder: Path) -> None:
    inputs = resolve_inputs(Named(folder / "moses"))
    assert inputs.validation == {
        side: str(folder / "moses" / f"dev.{code}") for side, code in (("source", "en"), ("target", "sw"))
    }
    assert [*inputs.tests] == ["test_2016"]


def parallel(folder: Path, *stems: str) -> Inputs:
    folder.mkdir()
    for stem in ("train", *stems):
        for language, lines in (("en", ENGLISH), ("sw", SWAHILI)):
            (folder / f"{stem}.{language}").write_text(text(lines), encoding="utf-8")
    return resolve_inputs(Named(folder))


def test_of_several_validations_one_is_taken_and_told(tmp_path: Path) -> None:
    inputs = parallel(tmp_path / "p", "dev", "valid", "val2")
    assert inputs.validation == {"source": str(tmp_path / "p/valid.en"), "target": str(tmp_path / "p/valid.sw")}
    direction, several = inputs.notes
    assert "p: valid is the validation; val2 and dev are not used. To take another: --validation FILE." in several
    assert direction == f"{tmp_path / 'p'}: learnt from en to sw. The other direction: --languages sw-en."
    assert len(parallel(tmp_path / "q", "dev", "test").notes) == 1


def test_the_direction_of_an_archive_is_told_unless_it_is_named(folder: Path) -> None:
    [note] = resolve_inputs(Named(folder / "sw-en.txt.zip")).notes
    assert "learnt from sw to en" in note
    assert not resolve_inputs(Named(folder / "sw-en.txt.zip", languages=("en", "sw"))).notes


@pytest.mark.parametrize("kind", ["tsv", "tsv.gz", "csv", "jsonl"])
def test_tables_of_a_folder_are_its_parts(tmp_path: Path, kind: str) -> None:
    for number, part in enumerate(("train", "dev", "test", "test_2")):
        rows = [(f"{part} {one}", two) for one, two in zip(ENGLISH, SWAHILI, strict=True)]
        texts = {
            "csv": "sw,en\n" + "".join(f"{two},{one}\n" for one, two in rows),
            "jsonl": "".join(json.dumps({"en": one, "sw": two, "n": number}) + "\n" for one, two in rows),
        }
        text = texts.get(kind, "".join(f"{one}\t{two}\n" for one, two in rows)).encode()
        (tmp_path / f"{part}.{kind}").write_bytes(gzip.compress(text) if kind.endswith("gz") else text)
    (tmp_path / "README.txt").write_text("about")
    columns = ("en",) if kind == "csv" else ()
    assert looks_like_data(tmp_path)
    inputs = resolve_inputs(Named(tmp_path, columns=columns, target_column="sw" if columns else None))
    held_out = {"train": inputs.train, "dev": inputs.validation, **inputs.tests}
    assert [*held_out] == ["train", "dev", "test", "test_2"]
    for part, files in held_out.items():
        assert next(read_pairs(PairFiles.model_validate(files), Path()))[1:] == (f"{part} two dogs", "mbwa wawili")


def test_several_training_tables_of_a_folder_are_refused(tmp_path: Path) -> None:
    for name in ("train.tsv", "train_2.tsv"):
        (tmp_path / name).write_text("a\tb\n")
    with pytest.raises(InputError, match=r"expected one file to train on; found train.tsv, train_2.tsv"):
        resolve_inputs(Named(tmp_path))


def test_held_out_files_are_named_as_those_to_train_on(folder: Path) -> None:
    """A file of the same kind has the training file's columns; any other is read by itself."""
    (folder / "b.csv").write_text("n,sw,en\n1,paka,a cat\n", encoding="utf-8")
    moses = folder / "moses"
    named = Named(
        folder / "b.csv",
        columns=("en",),
        target_column="sw",
        validation=folder / "b.csv",
        test=moses / "test_2016.en",
        test_target=moses / "test_2016.sw",
    )
    inputs = resolve_inputs(named)
    assert (inputs.validation, inputs.named) == (inputs.train, ("validation", "test"))
    assert inputs.tests == {"test": {side: str(moses / f"test_2016.{code}") for side, code in SIDES.items()}}
    other = resolve_inputs(Named(folder / "a.tsv", validation=folder / "a.jsonl"))
    assert other.validation == {"file": str(folder / "a.jsonl")}
    named = Named(moses / "train.en", moses / "train.sw", validation=folder / "a.tsv")
    assert resolve_inputs(named).validation == {"file": str(folder / "a.tsv")}


def test_files_are_named_by_url_likewise(folder: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed (extra remote)")
    with fsspec.open("memory://corpus/b.tsv", "wb") as file:
        file.write((folder / "a.tsv").read_bytes())
    url = Path("memory://corpus/b.tsv")
    inputs = resolve_inputs(Named(url, validation=url, test=folder / "a.tsv"))
    assert inputs.train == inputs.validation == {"file": str(url)}
    with pytest.raises(InputError, match=r"^https://example\.org/a\.zip: this is a URL, and archives are"):
        resolve_inputs(Named(Path("https://example.org/a.zip")))


def test_a_named_validation_takes_the_place_of_one_that_is_found(folder: Path) -> None:
    inputs = resolve_inputs(Named(folder / "moses", validation=folder / "a.tsv"))
    assert inputs.validation == {"file": str(folder / "a.tsv")}
    assert [*inputs.tests] == ["test_2016"]


def test_wrong_held_out_files_are_told(folder: Path) -> None:
    with pytest.raises(InputError, match="--test-target: expected its source as --test"):
        resolve_inputs(Named(folder / "a.tsv", test_target=folder / "a.tsv"))
    with pytest.raises(InputError, match=r"no\.tsv"):
        resolve_inputs(Named(folder / "a.tsv", validation=folder / "no.tsv"))
    moses = folder / "moses"
    for part in ("validation", "test"):
        named = Named(moses / "train.en", moses / "train.sw", **{part: moses / "dev.en"})
        with pytest.raises(InputError, match=rf"dev\.en: the target is missing. Name its file with --{part}-target;"):
            resolve_inputs(named)
    with pytest.raises(InputError, match="expected 2 tab-separated columns"):
        resolve_inputs(Named(folder / "a.tsv", validation=folder / "moses" / "dev.en"))


def test_every_test_set_has_a_name_of_its_own(tmp_path: Path) -> None:
    tests = parallel(tmp_path / "p", "test.a", "test_a", "test-a").tests
    files = {name: Path(each["source"]).name for name, each in tests.items()}
    assert files == {"test_a": "test_a.en", "test_a_2": "test-a.en", "test_a_3": "test.a.en"}


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (
            ["A/train.en", "A/train.sw", "B/train.en", "B/train.sw"],
            r"A.train.en and x.zip.B.train.en; x.zip.A.train.sw",
        ),
        (["a/train.en", "b/train.sw", "c/train.en"], r"found x.zip.a.train.en and x.zip.c.train.en\. Keep one"),
        (["/etc/train.en", "/etc/train.sw"], r"names files outside of itself \(/etc/train.en, /etc/train.sw\)"),
        (["../train.en", "train.sw"], r"names files outside of itself \(../train.en\)"),
    ],
)
def test_an_archive_with_several_files_of_a_name_or_files_elsewhere_is_refused(
    tmp_path: Path, names: list[str], told: str
) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name in names:
            archive.writestr(name, text(ENGLISH))
    with pytest.raises(InputError, match=told):
        named_inputs(Named(tmp_path / "x.zip"))


def test_a_packed_file_beside_its_like_is_told(folder: Path) -> None:
    (folder / "moses" / "train.sw.gz").write_bytes(gzip.compress(b"other\n"))
    with pytest.raises(InputError, match=r"found moses.train.sw and moses.train.sw.gz"):
        resolve_inputs(Named(folder / "moses"))


def test_what_macos_adds_to_an_archive_is_no_file_of_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for language, lines in (("en", ENGLISH), ("sw", SWAHILI)):
            archive.writestr(f"train.{language}", text(lines))
            archive.writestr(f"__MACOSX/._train.{language}", b"\0\5\26\7")
    assert read(resolve_inputs(Named(tmp_path / "x.zip"))) == [
        list(pair) for pair in zip(ENGLISH, SWAHILI, strict=True)
    ]


def test_the_name_of_an_archive_says_its_direction(folder: Path) -> None:
    assert resolve_inputs(Named(folder / "sw-en.txt.zip")).languages == ("sw", "en")


def test_several_languages_need_to_be_chosen(folder: Path) -> None:
    (folder / "moses" / "train.fr").write_text(text(ENGLISH), encoding="utf-8")
    with pytest.raises(InputError, match=r"several languages \(en-fr, en-sw, fr-sw\); say which, as --languages"):
        resolve_inputs(Named(folder / "moses"))
    inputs = resolve_inputs(Named(folder / "moses", languages=("fr", "sw")))
    assert inputs.train["source"] == str(folder / "moses" / "train.fr")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("train.en", "en"),
        ("a/train.en.gz", "en"),
        ("x.cmn", "zh"),
        ("x.pt_BR", "pt_BR"),
        ("x.txt", ""),
        ("x.words", ""),
        ("en", ""),
        ("x.tok.gz", ""),
    ],
)
def test_a_suffix_may_be_a_language(name: str, code: str) -> None:
    assert language_of(Path(name)) == code


def test_languages_are_two_codes() -> None:
    assert parse_languages("eng-sw") == ("en", "sw")
    with pytest.raises(InputError, match="as in en-sw"):
        parse_languages("english")


def test_what_lies_where_a_recipe_may_be_is_looked_at(folder: Path) -> None:
    assert all(looks_like_data(folder / name) for name in ("a.tsv", "tabs.txt", "bars.txt", "moses", "sw-en.txt.zip"))
    (folder / "run").mkdir()
    for name in ("recipe.toml", "train.en", "train.sw"):
        (folder / "run" / name).write_text("a\tb\n", encoding="utf-8")
    others = ("run", "run/recipe.toml", "moses/train.en", "gone.tsv")
    assert not any(looks_like_data(folder / name) for name in others)
    said = [looks_like_data(folder / name, " OUT: ") for name in ("moses/train.en", "run/recipe.toml")]
    assert said == [True, False]


@pytest.mark.parametrize(
    ("name", "data"), [("a.tsv", True), ("a.jsonl.gz", True), ("x.zip", True), ("a.toml", False), ("runs/a", False)]
)
def test_a_recipe_is_no_data(name: str, data: bool) -> None:
    assert is_data(Path(name)) == data
