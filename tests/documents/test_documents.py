"""Files in, files out: what is text in them is translated, and all else stays."""

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from samples import JSON, MARKDOWN, PO, TEXTS, TMX, XLIFF1, XLIFF2, ZIPPED

from transduce.core.errors import InputError
from transduce.documents.bilingual import FileLanguages
from transduce.documents.encoding import decoded
from transduce.documents.formats import FORMATS, opened, translated_name
from transduce.documents.runs import Link, Output, Piece

ENGLISH_FRENCH = FileLanguages("en", "fr")
WORD = re.compile(r"[^\W_]+|[^\w\s]|_")
Translate = Callable[[Piece], Output]


def never_whole(line: str) -> bool:
    return False


def same(piece: Piece) -> Output:
    return piece.text, []


def loud(piece: Piece) -> Output:
    """Each word in capitals, with its link."""
    spans = [found.span() for found in WORD.finditer(piece.text)]
    return piece.text.upper(), [Link(span, span) for span in spans]


def backwards(piece: Piece) -> Output:
    """The words from the last to the first."""
    output, links = "", []
    for found in reversed([*re.finditer(r"\S+", piece.text)]):
        output += " " if output else ""
        links.append(Link(found.span(), (len(output), len(output) + len(found[0]))))
        output += found[0].upper()
    return output, links


def blind(piece: Piece) -> Output:
    """Other words, without links."""
    return "QQ", []


def told(name: str, content: bytes, translate: Translate) -> bytes:
    cut = opened(name, content, ENGLISH_FRENCH).cut(never_whole, "en")
    return cut.rejoined([translate(each) for each in cut.pieces])


@pytest.mark.parametrize("suffix", [*TEXTS])
def test_text_that_does_not_change_keeps_its_bytes(suffix: str) -> None:
    source = TEXTS[suffix]
    if suffix == ".md":
        pytest.importorskip("pyromark")
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        if encoding == "utf-16" and "encoding=" in source:
            continue
        content = source.encode(encoding)
        once = told(f"a{suffix}", content, same)
        assert told(f"a{suffix}", once, same) == once
        if suffix not in (".po", ".xlf", ".xliff", ".tmx"):
            assert once == content
    windows = source.replace("\n", "\r\n").encode()
    assert told(f"a{suffix}", windows, same).count(b"\r\n") >= windows.count(b"\r\n")


@pytest.mark.parametrize("suffix", [*ZIPPED])
@pytest.mark.parametrize("translate", [same, loud, backwards, blind])
def test_only_parts_with_text_change_in_an_archive(suffix: str, translate: Translate) -> None:
    content = ZIPPED[suffix]()
    made = told(f"a{suffix}", content, translate)
    before, after = (zipfile.ZipFile(io.BytesIO(each)) for each in (content, made))
    facts = [
        [(each.filename, each.date_time, each.compress_type) for each in one.infolist()] for one in (before, after)
    ]
    assert facts[0] == facts[1]
    changed = {each for each in before.namelist() if before.read(each) != after.read(each)}
    assert after.testzip() is None
    assert changed == (set() if translate is same else changed)
    assert bool(changed) == (translate is not same)
    assert all(re.search(r"(?i)document|header|content\.xml|slide|sheet|html|ncx", each) for each in changed)
    for name in changed:
        one, other = (etree.fromstring(archive.read(name)) for archive in (before, after))
        assert codes(one) == codes(other), name


FORMATTING = {"r", "t", "rPr", "b", "i"}  # of runs, which may be written apart or together


def codes(root: "etree._Element") -> list[str]:
    """The elements of a part in their order, but for the formats of runs in Office's."""
    office = "openxml" in etree.QName(root).namespace
    names = [etree.QName(each).localname for each in root.iter() if isinstance(each.tag, str)]
    return [each for each in names if not (office and each in FORMATTING)]


def test_word_reads_what_was_written() -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document(io.BytesIO(told("a.docx", ZIPPED[".docx"](), loud)))
    assert [each.text for each in document.paragraphs] == [
        "THE TITLE OF IT",
        "THE BLACK CAT SLEEPS\t HERE & THERE.",
        "FIRST POINT",
    ]
    runs = document.paragraphs[1].runs
    assert [each.text for each in runs if each.bold] == ["BLACK"]
    assert [each.text for each in runs if each.italic] == ["SLEEPS"]
    assert document.paragraphs[2].style.name == "List Number"  # type: ignore[union-attr]
    assert [each.text for each in document.tables[0].rows[0].cells] == ["A CELL", "12.5"]
    assert document.sections[0].header.paragraphs[0].text == "HEAD OF THE PAGE"
    moved = docx.Document(io.BytesIO(told("a.docx", ZIPPED[".docx"](), backwards))).paragraphs[1]
    assert [each.text for each in moved.runs if each.bold] == ["BLACK"]
    assert moved.text == "SLEEPS CAT BLACK THE\t THERE. & HERE"


def test_powerpoint_reads_what_was_written() -> None:
    pptx = pytest.importorskip("pptx")
    slides = pptx.Presentation(io.BytesIO(told("a.pptx", ZIPPED[".pptx"](), loud)))
    slide = slides.slides[0]
    assert slide.shapes.title.text == "THE TITLE OF IT"
    paragraph = slide.placeholders[1].text_frame.paragraphs[0]
    assert paragraph.text == "THE BLACK CAT SLEEPS."
    assert [each.text for each in paragraph.runs if each.font.bold] == ["BLACK"]
    assert slide.notes_slide.notes_text_frame.text == "SAY HELLO"


def test_excel_reads_what_was_written() -> None:
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(told("a.xlsx", ZIPPED[".xlsx"](), loud)), rich_text=True)
    sheet = book.active
    assert sheet is not None
    rows = [[each.value for each in row] for row in sheet.iter_rows()]
    assert [rows[0], rows[1][0], rows[2]] == [["Name", "Price"], "BLACK CAT & DOG", ["AB-12", "=B2*2"]]
    assert str(rows[3][0]) == "THE BLACK CAT SLEEPS."
    assert [str(each) for each in rows[3][0] if not isinstance(each, str)] == ["BLACK"]
    assert [each.name for each in sheet.tables["T1"].tableColumns] == ["Name", "Price"]


def test_shared_strings_of_excel_are_read() -> None:
    content = ZIPPED[".xlsx"]()
    archive = io.BytesIO()
    strings = (
        '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>One cat</t></si>'
        "<si><r><t>A big </t></r><r><rPr><b/></rPr><t>dog</t></r>"
        "<rPh sb='0' eb='1'><t>x y</t></rPh></si><si><t>Name</t></si></sst>"
    )
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(archive, "w") as new:
        for each in old.namelist():
            new.writestr(each, old.read(each))
        new.writestr("xl/sharedStrings.xml", strings)
    made = zipfile.ZipFile(io.BytesIO(told("a.xlsx", archive.getvalue(), loud))).read("xl/sharedStrings.xml").decode()
    expected = strings.replace("<t>One cat", '<t xml:space="preserve">ONE CAT').replace(
        "<t>A big ", '<t xml:space="preserve">A BIG '
    )
    assert made == expected.replace("<t>dog", '<t xml:space="preserve">DOG')


def test_opendocument_reads_what_was_written() -> None:
    pytest.importorskip("odf")
    from odf import teletype
    from odf.opendocument import load
    from odf.text import Note, P, Span

    document = load(io.BytesIO(told("a.odt", ZIPPED[".odt"](), loud)))
    texts = [teletype.extractText(each) for each in document.getElementsByType(P)]
    assert texts == ["THE BLACK CAT1A NOTE BELOW.   SLEEPS & DREAMS.", "A NOTE BELOW."]
    assert [teletype.extractText(each) for each in document.getElementsByType(Span)] == ["BLACK"]
    assert len(document.getElementsByType(Note)) == 1


def test_a_book_is_read_as_it_was_written(tmp_path: Path) -> None:
    ebooklib, epub = pytest.importorskip("ebooklib"), pytest.importorskip("ebooklib.epub")
    path = tmp_path / "a.epub"
    path.write_bytes(told("a.epub", ZIPPED[".epub"](), loud))
    book = epub.read_epub(str(path), {"ignore_ncx": False})
    pages = {each.file_name: each.get_content().decode() for each in book.get_items_of_type(ebooklib.ITEM_DOCUMENT)}
    assert "<p>THE <b>BLACK</b> CAT &amp; DOG SLEEP.<br/>NOW.</p>" in pages["one.xhtml"]
    assert [each.title for each in book.toc] == ["FIRST PART"]


@pytest.mark.parametrize("translate", [loud, backwards, blind])
def test_catalogues_get_what_is_missing_with_every_code_once(translate: Translate) -> None:
    polib = pytest.importorskip("polib")
    made = told("a.po", PO.encode(), translate).decode()
    catalogue = polib.pofile(made)
    assert [entry.msgstr for entry in catalogue if entry.msgid == "Done"] == ["Fait"]
    for entry in catalogue:
        written = entry.msgstr_plural or {0: entry.msgstr}
        for number, text in written.items():
            source = entry.msgid_plural if entry.msgid_plural and number else entry.msgid
            assert found(r"%[ds]|</?b>|\n", text) == found(r"%[ds]|</?b>|\n", source)
            assert text or entry.obsolete
    assert re.sub(r'(?m)^msgstr.*\n(".*"\n)*', "", made) == re.sub(r'(?m)^msgstr.*\n(".*"\n)*', "", PO)
    assert made[: made.index("#: a.c")] == PO[: PO.index("#: a.c")], "the header stays"


def found(pattern: str, text: str) -> Counter[str]:
    return Counter(re.findall(pattern, text))


def test_a_fuzzy_message_is_translated_again() -> None:
    made = told(
        "a.po", b'msgid "a"\nmsgstr "b"\n\n#, fuzzy\nmsgid "One"\nmsgstr "Deux"\n\nmsgid "c"\nmsgstr "d"\n', loud
    )
    assert made == b'msgid "a"\nmsgstr "b"\n\n#, fuzzy\nmsgid "One"\nmsgstr "ONE"\n\nmsgid "c"\nmsgstr "d"\n'


@pytest.mark.parametrize("translate", [same, loud, backwards, blind])
@pytest.mark.parametrize(("suffix", "source"), [(".xlf", XLIFF1), (".xliff", XLIFF2)])
def test_xliff_gets_what_is_missing_with_every_code_once(suffix: str, source: str, translate: Translate) -> None:
    made = told(f"a{suffix}", source.encode(), translate)
    root, before = etree.fromstring(made), etree.fromstring(source.encode())
    units = root.xpath("//*[local-name()='trans-unit' or local-name()='segment']")
    for unit in units:
        read, written = (unit.xpath(f"*[local-name()='{name}']") for name in ("source", "target"))
        if unit.get("translate") == "no":
            assert not written
        elif "Kept" not in read[0].text:
            inner = [[(each.tag, dict(each.attrib)) for each in one[0].iterdescendants()] for one in (read, written)]
            assert inner[0] == inner[1]
            placeholders = [found(r"%d|\{name\}", "".join(each[0].itertext())) for each in (read, written)]
            assert placeholders[0] == placeholders[1]
            assert "".join(written[0].itertext()).strip()
    pairs = re.findall(r"<source>(.*?)</source>\s*<target>(.*?)</target>", made.decode())
    assert len(pairs) == (4 if suffix == ".xlf" else 2)
    assert translate is not same or all(one == other for one, other in pairs if one not in ("Kept", "No"))
    if translate is loud:
        kept = b"<source>Kept</source><target>Gard\xc3\xa9</target>"
        assert kept in made or suffix == ".xliff"
    texts = [[each.text for each in one.iter("{*}source")] for one in (before, root)]
    assert texts[0] == texts[1]


def test_translate_toolkit_reads_what_was_written() -> None:
    factory = pytest.importorskip("translate.storage.factory")  # GPL: of the extra ci
    for name, source in (("a.xlf", XLIFF1), ("a.tmx", TMX), ("a.po", PO)):
        file = io.BytesIO(told(name, source.encode(), loud))
        file.name = name
        units = [each for each in factory.getobject(file).units if each.istranslatable() and each.source]
        assert all(each.target for each in units), name
        assert any("BLACK" in str(each.target) for each in units), name


def test_memories_get_the_target_language() -> None:
    made = told("a.tmx", TMX.encode(), loud).decode()
    new = '\n    <tuv xml:lang="fr"><seg>YOU HAVE <ph x="1">%d</ph> BLACK <hi>CATS</hi>.</seg></tuv>'
    expected = TMX.replace("</hi>.</seg></tuv>", f"</hi>.</seg></tuv>{new}")
    assert made == expected.replace('"FR"><seg>Done', '"FR"><seg>DONE')
    with pytest.raises(InputError, match="no text in de; its languages are EN, FR, en-US"):
        opened("a.tmx", TMX.encode(), FileLanguages("de", "fr"))


@pytest.mark.parametrize("translate", [loud, backwards, blind])
def test_json_changes_in_its_values_alone(translate: Translate) -> None:
    made = json.loads(told("a.json", JSON.encode(), translate))
    before = json.loads(JSON)
    assert {key: made[key] for key in ("n", "on", "id", "url", "none", "empty")} == {
        key: before[key] for key in ("n", "on", "id", "url", "none", "empty")
    }
    assert [*made] == [*before] and [*made["list"][1]] == ["deep"]
    assert made["list"][0].count("{count}") == made["list"][1]["deep"].count("%s") == 1
    assert made["list"][1]["deep"].count("\n") == 1
    if translate is loud:
        assert made["title"] == "THE BLACK CAT" and made["list"][0] == "YOU HAVE {count} ÉLÈVES"


def test_markdown_changes_in_its_texts_alone() -> None:
    pytest.importorskip("pyromark")
    from markdown_it import MarkdownIt

    made = told("a.md", MARKDOWN.encode(), loud).decode()
    reader = MarkdownIt("commonmark").enable("table")
    before, after = (reader.parse(each) for each in (MARKDOWN, made))
    assert [(each.type, each.tag, each.map and len(each.map)) for each in before] == [
        (each.type, each.tag, each.map and len(each.map)) for each in after
    ]
    for one, other in zip(before, after, strict=True):
        kinds = [
            [each.type for each in token.children or [] if each.type not in ("text", "softbreak")]
            for token in (one, other)
        ]
        assert kinds[0] == kinds[1]
    assert "# THE BLACK *CAT* {#cat}" in made
    assert '**BLACK [CAT](http://x.y "T")**' in made
    assert (
        "[REF][ref]" in made
        and 'code = "stays"' in made
        and "![a picture](i.png)" in made
        and "title: not read" in made
    )
    assert "> A QUOTED LINE GOES ON HERE. ANOTHER ONE." in made


@pytest.mark.parametrize("text", ["1. x", "# x", "- x", "*a* _b_ `c` [d](e) <b> &amp; \\ | ~~x~~", "a_b", "> x", "==="])
def test_an_output_is_text_in_markdown(text: str) -> None:
    pytest.importorskip("pyromark")
    from markdown_it import MarkdownIt

    made = told("a.md", b"Word\n\n| Word |\n|---|\n| x |\n", lambda piece: (text, [])).decode()
    tokens = MarkdownIt("commonmark").enable("table").parse(made)
    shown = [each for token in tokens for each in token.children or []]
    assert [each.type for each in tokens[:2]] == ["paragraph_open", "inline"]
    assert {each.type for each in shown} <= {"text", "text_special"}
    assert "".join(each.content for each in tokens[1].children or []) == text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("letter.txt", "letter.fr.txt"),
        ("a.b.HTML", "a.b.fr.HTML"),
        (r"C:\x\y.srt", "y.fr.srt"),
        ("../信.vtt", "信.fr.vtt"),
    ],
)
def test_names_of_translated_files(name: str, expected: str) -> None:
    assert translated_name(name, "fr") == expected


def test_encodings_come_back_as_they_were() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        text, found = decoded("Two dogs.".encode(encoding), "a.txt")
        assert (text, found.written(text)) == ("Two dogs.", "Two dogs.".encode(encoding))
    big = b"\xfe\xff" + "Two dogs.".encode("utf-16-be")
    assert decoded(big, "a.txt")[1].written("Two dogs.") == big
    latin = '<?xml version="1.0" encoding="iso-8859-1"?>\n' + XLIFF1.split("\n", 1)[1]
    made = told("a.xlf", latin.encode("latin-1"), lambda piece: ("\u4f60\u597d", []))
    assert "\u4f60\u597d" in "".join(etree.fromstring(made).itertext())


def test_every_format_of_the_list_has_a_sample() -> None:
    assert {*FORMATS} - {".markdown", ".htm", ".pot"} == {*TEXTS, *ZIPPED}


def bomb(names: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in names.items():
            archive.writestr(name, content)
    return file.getvalue()


ENTITIES = b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><w:document>&b;</w:document>'
OUTSIDE = b'<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]><xliff>&a;</xliff>'


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.docx", b"no archive", "expected a ZIP archive"),
        ("a.docx", bomb({"a.txt": b"x"}), "has none of its parts"),
        ("a.docx", bomb({"word/document.xml": b"\0" * 70_000_000}), "unpacks to more than 200 times"),
        ("a.docx", bomb({"word/document.xml": ENTITIES}), "declares the entity a"),
        ("a.docx", bomb({"word/document.xml": b"<a>" * 1000 + b"</a>" * 1000}), "200 elements within one another"),
        (
            "a.docx",
            bomb({"word/document.xml": b"<a><b></a>"}),
            r"word/document.xml, line 1: expected XML; mismatched tag",
        ),
        ("a.docx", bomb({"word/document.xml": b"<a/>" * 100})[:-30], "expected a ZIP archive"),
        ("a.pptx", bomb({"word/document.xml": b"<a/>"}), "expected slides of PowerPoint"),
        ("a.epub", bomb({"word/document.xml": b"<a/>"}), "expected a book"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 100, "It is of old Office .* password"),
        ("a.html", b"%PDF-1.4", "It is a PDF"),
        ("a.pdf", b"%PDF-1.4", "ends in .* It is a PDF"),
        ("a.xlf", OUTSIDE, "declares the entity a"),
        ("a.xlf", b"<tmx/>", "expected XLIFF"),
        ("a.xlf", XLIFF1.replace('"fr"', '"de"').encode(), r'line 3: says target-language="de", and this model has fr'),
        ("a.tmx", b"<xliff/>", "expected a translation memory"),
        ("a.po", b"some text", "no line that begins with msgid"),
        ("a.json", b"{", "expected JSON"),
        ("a.json", b"[" * 100_000, "expected JSON"),
        ("a.md", b"\xff", "not text in UTF-8"),
    ],
)
def test_what_cannot_be_read_is_named(name: str, content: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        opened(name, content, ENGLISH_FRENCH)


WORDS = st.lists(st.sampled_from(["One", "two", " ", "three. ", "Four ", "5 ", "& "]), max_size=4).map("".join)
BITS = st.one_of(
    st.tuples(st.sampled_from(["", "<w:b/>", "<w:i/>", '<w:lang w:val="x"/>']), WORDS).map(
        lambda run: (
            f"<w:r><w:rPr>{run[0]}</w:rPr><w:t xml:space='preserve'>{run[1].replace('&', '&amp;')}</w:t></w:r>"
            if run[0]
            else f"<w:r><w:t>{run[1].replace('&', '&amp;')}</w:t></w:r>"
        )
    ),
    st.sampled_from(
        [
            "<w:r><w:br/></w:r>",
            "<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t></w:r>",
            '<w:bookmarkStart w:id="1"/>',
            "<w:hyperlink><w:r><w:t>Linked words</w:t></w:r></w:hyperlink>",
            '<w:r><w:footnoteReference w:id="2"/></w:r>',
            "<w:r><w:pict><w:txbxContent><w:p><w:r><w:t>A box</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>",
            "<w:r/>",
            "\n",
        ]
    ),
)


def test_a_mark_between_spaces_parts_no_word() -> None:
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    runs = '<w:r><w:t>A </w:t></w:r><w:bookmarkStart w:id="1"/><w:r><w:t> One</w:t></w:r>'
    source = f'<w:document xmlns:w="{space}"><w:body><w:p>{runs}</w:p></w:body></w:document>'
    cut = opened("a.docx", bomb({"word/document.xml": source.encode()})).cut(never_whole, "en")
    for at, wanted in ((1, "Word here"), (5, "Word  here")):  # a space of its own, where it stands between words
        made = cut.rejoined([("Word here", [Link((2, 5), (at, 9))])])
        after = etree.fromstring(zipfile.ZipFile(io.BytesIO(made)).read("word/document.xml"))
        assert "".join(after.xpath("//w:t/text()", namespaces={"w": space})) == wanted


@given(st.lists(BITS, max_size=8), st.data())
def test_any_paragraph_of_word_keeps_its_codes_and_takes_its_words(bits: list[str], data: st.DataObject) -> None:
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    source = (
        f'<w:document xmlns:w="{space}"><w:body><w:p><w:pPr><w:jc/></w:pPr>{"".join(bits)}</w:p></w:body></w:document>'
    )
    cut = opened("a.docx", bomb({"word/document.xml": source.encode()})).cut(never_whole, "en")
    spans = st.tuples(st.integers(0, 9), st.integers(0, 9))
    links = st.lists(st.builds(Link, spans, spans), max_size=3)
    outputs = [(f"Q{number} & <x>", data.draw(links)) for number, _ in enumerate(cut.pieces)]
    made = zipfile.ZipFile(io.BytesIO(cut.rejoined(outputs))).read("word/document.xml").decode()
    before, after = etree.fromstring(source), etree.fromstring(made)
    kept = {"br", "tab", "bookmarkStart", "hyperlink", "footnoteReference", "pict", "jc", "p"}
    one, other = ([etree.QName(each).localname for each in root.iter()] for root in (before, after))
    assert [each for each in one if each in kept] == [each for each in other if each in kept]
    own = etree.XPath("(w:r | w:hyperlink/w:r)/w:t/text()", namespaces={"w": space})
    text = "|".join("".join(own(paragraph)) for paragraph in after.iter("{*}p"))
    for output, _ in outputs:
        assert text.replace("Linked words", "").count(output) == 1
    assert not re.search("[a-zA-PR-Z]", re.sub(r"Q\d+ & <x>", "", text))
