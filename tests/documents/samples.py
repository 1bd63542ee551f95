"""Files of every format, made by the libraries that are known for them."""

import io
from collections.abc import Callable

import pytest

Make = Callable[[], bytes]


def docx_file() -> bytes:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("The title of it", 1)
    paragraph = document.add_paragraph("The ")
    paragraph.add_run("black").bold = True
    paragraph.add_run(" cat ")
    paragraph.add_run("sleeps").italic = True
    paragraph.add_run().add_tab()
    paragraph.add_run(" here & there.")
    document.add_paragraph("First point", style="List Number")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "A cell", "12.5"
    document.sections[0].header.paragraphs[0].text = "Head of the page"
    return saved(document.save)


def pptx_file() -> bytes:
    pptx = pytest.importorskip("pptx")
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[1])
    slide.shapes.title.text = "The title of it"
    frame = slide.placeholders[1].text_frame
    for text, bold in (("The ", False), ("black", True), (" cat sleeps.", False)):
        run = frame.paragraphs[0].add_run()
        run.text, run.font.bold = text, bold or None
    slide.notes_slide.notes_text_frame.text = "Say hello"
    return saved(slides.save)


def xlsx_file() -> bytes:
    import openpyxl
    from openpyxl.cell.rich_text import CellRichText, TextBlock
    from openpyxl.cell.text import InlineFont
    from openpyxl.worksheet.table import Table

    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["Name", "Price"])
    sheet.append(["Black cat & dog", 12.5])
    sheet.append(["AB-12", "=B2*2"])
    sheet["A4"] = CellRichText("The ", TextBlock(InlineFont(b=True), "black"), " cat sleeps.")
    sheet.add_table(Table(displayName="T1", ref="A1:B3"))
    return saved(book.save)


def odt_file() -> bytes:
    pytest.importorskip("odf")
    from odf.opendocument import OpenDocumentText
    from odf.style import Style, TextProperties
    from odf.text import H, Note, NoteBody, NoteCitation, P, S, Span

    document = OpenDocumentText()
    bold = Style(name="Bold", family="text")
    bold.addElement(TextProperties(fontweight="bold"))
    document.automaticstyles.addElement(bold)
    document.text.addElement(H(outlinelevel=1, text="The title of it"))
    paragraph = P(text="The ")
    paragraph.addElement(Span(stylename=bold, text="black"))
    paragraph.addText(" cat")
    note = Note(noteclass="footnote")
    note.addElement(NoteCitation(text="1"))
    body = NoteBody()
    body.addElement(P(text="A note below."))
    note.addElement(body)
    paragraph.addElement(note)
    paragraph.addText(" ")
    paragraph.addElement(S(c=2))
    paragraph.addText("sleeps & dreams.")
    document.text.addElement(paragraph)
    return saved(document.save)


def epub_file() -> bytes:
    epub = pytest.importorskip("ebooklib.epub")  # AGPL: of the extra ci

    book = epub.EpubBook()
    book.set_identifier("x1")
    book.set_title("The book")
    book.set_language("en")
    page = epub.EpubHtml(title="First part", file_name="one.xhtml", lang="en")
    page.content = "<h1>First part</h1><p>The <b>black</b> cat &amp; dog sleep.<br/>Now.</p>"
    book.add_item(page)
    book.add_item(epub.EpubItem(uid="s", file_name="s.css", media_type="text/css", content=b"p { color: red }"))
    book.toc, book.spine = [page], ["nav", page]
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())

    def save(file: io.BytesIO) -> None:
        epub.write_epub(file, book)

    return saved(save)


def saved(save: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    save(file)
    return file.getvalue()


TEXT = """The black cat sleeps.

  It has 3 legs. --- 12:30
"""
MARKDOWN = """---
title: not read
---
# The black *cat* {#cat}

A **black [cat](http://x.y "T")** sleeps with `code` and
<b>html</b> ![a picture](i.png) &amp; more \\* stars\x20\x20
Hard <http://auto.link> [ref].

> A quoted line
> goes on here. Another one.

- item one
- [ ] a task
  1. inner item

| Head | Other |
|------|-------|
| a *cell* | 12 |

<div>
Block text
</div>

```py
code = "stays"
```

[ref]: http://x.y
"""
HTML = """<!doctype html><html><head><title>The page</title></head>
<body><p class='x'>The <b>black</b> cat &quot;Tom&quot;
  sleeps &amp; dreams&hellip; <!-- c --> Then it eats.</p><script>var a = "b";</script></body></html>
"""
SRT = """1
00:00:01,000 --> 00:00:02,500
The cat that we saw in the garden,

2
00:00:02,600 --> 00:00:04,000
sleeps on the old red chair
of my uncle.

3
00:00:09,000 --> 00:00:10,000
- Is it <i>black</i>?
- Yes!
"""
VTT = """WEBVTT

NOTE not read

one
00:01.000 --> 00:02.000 line:0
<v Mo>The black cat &amp; I</v>

00:03.000 --> 00:04.000
sleep now.
"""
PO = r"""# A comment
msgid ""
msgstr ""
"Language: fr\n"
"Content-Type: text/plain; charset=UTF-8\n"

#: a.c:1
#, c-format
msgid "You have %d black cats in <b>%s</b>.\n"
msgstr ""

msgid ""
"A long line that "
"goes on \"here\".\n"
"A second line."
msgstr ""

msgid "Done"
msgstr "Fait"

msgctxt "menu"
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#~ msgid "old"
#~ msgstr ""
"""
XLIFF1 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="fr" datatype="plaintext" original="a"><body>
  <trans-unit id="1">
    <source>The <g id="1">black</g> cat<x id="2"/> has %d &amp; {name}.</source>
  </trans-unit>
  <trans-unit id="2"><source>Kept</source><target>Gardé</target></trans-unit>
  <trans-unit id="3"><source>Open <bpt id="1">&lt;b&gt;</bpt>it<ept id="1">&lt;/b&gt;</ept> now</source><target/>
  <alt-trans><source>No</source><target>Non</target></alt-trans></trans-unit>
  <trans-unit id="4" translate="no"><source>Stay</source></trans-unit>
</body></file></xliff>
"""
XLIFF2 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="fr"><file id="f">
  <unit id="1"><segment><source>The <pc id="1">black</pc> cat<ph id="2"/> sleeps.</source></segment></unit>
  <unit id="2"><segment state="initial"><source>Again</source><target></target></segment></unit>
</file></xliff>
"""
TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en-US" creationtool="x" creationtoolversion="1" segtype="sentence" o-tmf="x" \
adminlang="en" datatype="x"/><body>
  <tu>
    <tuv xml:lang="en-US"><seg>You have <ph x="1">%d</ph> black <hi>cats</hi>.</seg></tuv>
  </tu>
  <tu><tuv xml:lang="EN"><seg>Done</seg></tuv><tuv xml:lang="FR"><seg>Done</seg></tuv></tu>
</body></tmx>
"""
JSON = """{
  "title": "The black cat",
  "n": 12, "on": true, "id": "ab-12", "url": "http://x.y/z",
  "list": ["You have {count} \\u00e9l\\u00e8ves", {"deep": "A \\"quoted\\" word\\nand a line %s"}],
  "none": null, "empty": ""
}
"""
TEXTS = {
    ".txt": TEXT,
    ".md": MARKDOWN,
    ".html": HTML,
    ".srt": SRT,
    ".vtt": VTT,
    ".po": PO,
    ".xlf": XLIFF1,
    ".xliff": XLIFF2,
    ".tmx": TMX,
    ".json": JSON,
}
ZIPPED: dict[str, Make] = {
    ".docx": docx_file,
    ".odt": odt_file,
    ".pptx": pptx_file,
    ".xlsx": xlsx_file,
    ".epub": epub_file,
}
