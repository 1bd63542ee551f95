"""Translation memories: what translators' tools write, read as pairs."""

import gzip
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.core.errors import InputError
from transduce.data.corpus import read_pairs
from transduce.data.formats import tmx
from transduce.data.formats.tmx import Tmx, tmx_languages
from transduce.data.pairs.inputs import Named, resolve_inputs
from transduce.data.pairs.languages import parse_languages
from transduce.data.pairs.pair_files import PairFiles

HEAD = (
    '<?xml version="1.0" encoding="{}"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
    '<tmx version="1.4"><header srclang="EN"/>\n'
)
PAIRS = [("Two dogs & a cat <run>.", "Mbwa wawili."), ("Tom's \U0001f600 house", "Nyumba ya Tom"), ("x " * 90_000, "y")]


def unit(**texts: str) -> str:
    variants = "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in texts.items())
    return f'<tu tuid="1"><prop type="x">no text</prop>{variants}</tu>\n'


def memory(path: Path, *units: str, encoding: str = "utf-8") -> Path:
    path.write_bytes((HEAD.format(encoding) + "<body>\n" + "".join(units) + "</body></tmx>\n").encode(encoding))
    return path


def files(path: Path, source: str = "en", target: str = "sw") -> PairFiles:
    return PairFiles(tmx=str(path), source_column=source, target_column=target)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_units_are_pairs_as_another_parser_reads_them(tmp_path: Path, encoding: str) -> None:
    units = [unit(en=escape(source), sw=escape(target)) for source, target in PAIRS]
    path = memory(tmp_path / "a.tmx", *units, encoding=encoding)
    root = ElementTree.parse(path).getroot()
    others = [tuple(seg.text for seg in each.iter("seg")) for each in root.iter("tu")]
    read = [*read_pairs(files(path), Path())]
    assert [(source, target) for _, source, target in read] == others == PAIRS
    assert [line for line, *_ in read] == [5, 6, 7]
    packed = tmp_path / "b.tmx.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert [*read_pairs(files(packed), Path())] == read


def test_codes_of_the_original_format_are_no_text(tmp_path: Path) -> None:
    text = 'Press <bpt i="1">&lt;b&gt;<sub>title</sub></bpt><hi>OK</hi><ept i="1">&lt;/b&gt;</ept> now<ph>{0}</ph>.'
    path = memory(tmp_path / "a.tmx", unit(en=text, sw="Bonyeza"))
    assert [*Tmx().rows(path, ["en", "sw"])] == [(5, ["Press OK now{0}.", "Bonyeza"])]


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ("Click&nbsp;Next, no&euml;l &quot;&eacute;&quot;", 'Click\xa0Next, noël "é"'),
        ("A &companyname; product", "A &companyname; product"),
        ('First line<ph x="1">&lt;br/&gt;</ph>second line', "First line second line"),
        ('You have <ph x="1">%d</ph> files of <it pos="begin">%1$s</it>', "You have %d files of %1$s"),
        ('H<bpt i="1">&lt;sub&gt;</bpt>2<ept i="1">&lt;/sub&gt;</ept>O', "H2O"),
        ("One<ut>{\\b </ut> word, <ph>&lt;b&gt;</ph>bold<ph>&lt;/b&gt;</ph>.", "One word, bold."),
    ],
)
def test_entities_and_codes_neither_lose_text_nor_glue_words(segment: str, text: str, tmp_path: Path) -> None:
    path = memory(tmp_path / "a.tmx", unit(en=segment, sw="Bonyeza"))
    assert [*Tmx().rows(path, ["en", "sw"])] == [(5, [text, "Bonyeza"])]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("<tmx><body><tu><tuv xml:lang='en'><seg>" + "a " * 600_000, "more than 1.0 MB"),
        ("<tmx><body><tu x='" + "a" * 3_000_000, "more than 1.0 MB"),
        ("<tmx>" + "<a>" * 2000, "1,000 elements within one another"),
    ],
)
def test_what_does_not_end_is_refused_before_it_fills_memory(
    content: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSDUCE_MAX_LINE_MB", "1")
    (tmp_path / "a.tmx").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=rf"a\.tmx, line 1: .*{said}"):
        tmx_languages(tmp_path / "a.tmx")


def test_languages_are_found_with_their_regions_and_what_lacks_one_is_empty(tmp_path: Path) -> None:
    units = [unit(**{"EN-US": "a", "sw": "b"}), unit(**{"sw": "c", "fr": "d"}), unit(**{"EN-US": "e", "sw": "f"})]
    path = memory(tmp_path / "a.tmx", *units)
    assert tmx_languages(path) == {"EN-US": 2, "sw": 3, "fr": 1}
    assert [row for _, row in Tmx().rows(path, ["en", "sw"])] == [["a", "b"], ["", "c"], ["e", "f"]]
    path = memory(tmp_path / "a.tmx", *units, unit())
    assert [row for _, row in Tmx().rows(path, ["en", "sw"])][-1] == ["", ""]
    with pytest.raises(InputError, match="expected units in de; it has EN-US, sw, fr"):
        Tmx().rows(path, ["de", "sw"])
    assert resolve_inputs(Named(path, languages=("en", "fr"))).train["source_column"] == "EN-US"
    with pytest.raises(InputError, match="has units in EN-US, sw, fr; say which are meant, as --languages"):
        resolve_inputs(Named(path))


def test_of_two_languages_the_first_is_the_source(tmp_path: Path) -> None:
    path = memory(tmp_path / "work.tmx", *(unit(**{"de-DE": f"eins {n}", "en-GB": f"one {n}"}) for n in range(3)))
    inputs = resolve_inputs(Named(path))
    assert (inputs.name, inputs.languages) == ("work-de-en", ("de", "en"))
    assert inputs.train == {"file": str(path), "source_column": "de-DE", "target_column": "en-GB"}
    turned = resolve_inputs(Named(path, columns=("en-GB",), target_column="de-DE"))
    assert (turned.languages, turned.train["source_column"]) == (("en", "de"), "en-GB")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("no XML", "line 1: expected the XML of a translation memory; syntax error"),
        ("<tmx><body><tu>", "line 1: expected the XML of a translation memory; no element found"),
        ("<tmx><body></body></tmx>", "expected units"),
        ('<!DOCTYPE tmx [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><tmx>&b;</tmx>', "declares the entity a"),
        ('<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/passwd">]><tmx>&a;</tmx>', "declares the entity a"),
    ],
)
def test_what_is_no_memory_is_refused(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.tmx").write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        resolve_inputs(Named(tmp_path / "a.tmx"))
    assert said in str(refused.value)


def test_entries_of_recipes_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected the languages of tmx"):
        PairFiles(tmx="a.tmx")
    with pytest.raises(ValueError, match="tmx is read as a whole"):
        PairFiles(tmx="a.tmx", source_column="en", target_column="sw", pairs=3)
    with pytest.raises(InputError, match=r"none\.tmx: no such file"):
        [*read_pairs(files(tmp_path / "none.tmx"), Path())]


DAMAGES = ["a&#x1F;b", "a\x02b", "<b>", "</seg></seg>", "a & b", "<<", "&#xD800;"]
DTD = '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'


@given(
    st.lists(st.tuples(st.sampled_from(["One", "Two&nbsp;dogs", "x\ny", *DAMAGES])), min_size=1, max_size=8),
    st.integers(1, 200),
)
def test_a_damaged_unit_is_left_out_and_told(units: list[tuple[str]], size: int) -> None:
    """Whatever blocks the file is read in; each unit is parsed by itself, by another parser."""
    texts = [unit(en=each, sw="Mbwa") for (each,) in units]
    content = (DTD + "<tmx><body>\n" + "".join(texts) + "</body></tmx>").encode()
    expected, bad, line = list[tuple[int, str]](), list[int](), 3
    for text in texts:
        try:
            root = ElementTree.fromstring(text.replace("&nbsp;", "\xa0"))
            expected.append((line, next(root.iter("seg")).text or ""))
        except ElementTree.ParseError:
            bad.append(line)
        line += text.count("\n")
    reader, found, damaged = tmx._Units(Path("a.tmx")), list[tuple[int, str]](), list[int]()
    for start in range(0, len(content), size):
        found += [(number, texts["en"]) for number, texts in reader.units(content[start : start + size])]
        damaged += reader.take_damaged()
    found += [(number, texts["en"]) for number, texts in reader.units(b"", last=True)]
    assert (found, damaged + reader.take_damaged()) == (expected, bad)


def test_languages_are_found_without_case_and_region(tmp_path: Path) -> None:
    codes = [("en-US", "fr-FR"), ("en-GB", "fr-CA"), ("EN", "fr"), ("en", "zh-TW")]
    units = [unit(**{one: f"A {one}", other: f"B {other}"}) for one, other in codes]
    path = memory(tmp_path / "a.tmx", *units)
    inputs = resolve_inputs(Named(path, languages=("en", "fr")))
    assert inputs.languages == ("en", "fr")
    rows = [*Tmx().rows(path, [inputs.train["source_column"], inputs.train["target_column"]])]
    assert [texts for _, texts in rows] == [
        ["A en-US", "B fr-FR"],
        ["A en-GB", "B fr-CA"],
        ["A EN", "B fr"],
        ["A en", ""],
    ]
    assert [texts for _, texts in Tmx().rows(path, ["en-GB", "fr-CA"])] == [
        ["", ""],
        ["A en-GB", "B fr-CA"],
        *[["A EN", "B fr"], ["A en", ""]],
    ]
    with pytest.raises(InputError, match="expected units in zh-CN; it has"):
        [*Tmx().rows(path, ["en", "zh-CN"])]


def test_the_doctor_and_the_training_tell_of_damaged_units(tmp_path: Path) -> None:
    path = memory(tmp_path / "a.tmx", unit(en="One", sw="Moja"), unit(en="T&#2;wo", sw="Mbili"), unit(en="3", sw="3"))
    assert resolve_inputs(Named(path)).notes == (f"{path}: 1 damaged unit is left out (line 6).",)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("en-sw", ("en", "sw")),
        ("en-zh-CN", ("en", "zh-CN")),
        ("zh-Hant-en", ("zh-Hant", "en")),
        ("en-US-fr-FR", ("en-US", "fr-FR")),
        ("es-419-en", ("es-419", "en")),
        ("pt_BR:en", ("pt_BR", "en")),
        ("eng,fra", ("en", "fr")),
    ],
)
def test_codes_with_regions_are_named(text: str, codes: tuple[str, str]) -> None:
    assert parse_languages(text) == codes


@pytest.mark.parametrize("text", ["en", "en-", "en-fr-de", "a-b-c-d", "EN-FR"])
def test_other_codes_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected the codes"):
        parse_languages(text)
