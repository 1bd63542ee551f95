"""One file is one corpus: whichever command reads a table, it has the same rows, and says the same of what is wrong."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from transduce.core.errors import InputError
from transduce.core.registry import known
from transduce.data.corpus import TsvColumn, lines_of, read_pairs
from transduce.data.formats import format_of
from transduce.data.labelled import LabelledFile, read_labelled
from transduce.data.pairs.inputs import Named, pair_files, resolve_inputs
from transduce.data.pairs.known_columns import AskedColumns, Known, read_pair_inputs
from transduce.doctor import corpora

Pairs = list[tuple[str, str]]
PAIRS: Pairs = [("a cat", "paka"), ("“two”, dogs", 'c "d"'), ("N\0UL", "x\u2028y"), ("", "empty"), ("last", "mwisho")]


def as_tsv(pairs: Pairs) -> bytes:
    return "".join(f"{one}\t{two}\n" for one, two in [("source", "target"), *pairs]).encode()


def as_csv(pairs: Pairs) -> bytes:
    quoted = [tuple('"' + cell.replace('"', '""') + '"' for cell in pair) for pair in pairs]
    return "".join(f"{one},{two}\n" for one, two in [("source", "target"), *quoted]).encode()


def as_jsonl(pairs: Pairs) -> bytes:
    return "".join(json.dumps({"source": one, "target": two}) + "\n" for one, two in pairs).encode()


def as_json(pairs: Pairs) -> bytes:
    return json.dumps([{"source": one, "target": two} for one, two in pairs], ensure_ascii=False).encode()


def as_parquet(pairs: Pairs) -> bytes:
    sink = pyarrow.BufferOutputStream()
    table = {"source": [one for one, _ in pairs], "target": [two for _, two in pairs]}
    pyarrow.parquet.write_table(pyarrow.table(table), sink)
    return bytes(sink.getvalue())


def as_xlsx(pairs: Pairs) -> bytes:
    from io import BytesIO

    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed (extra excel)")
    book, written = openpyxl.Workbook(), BytesIO()
    for row in [("source", "target"), *pairs]:
        book.active.append(row)
    book.save(written)
    return written.getvalue()


def as_tmx(pairs: Pairs) -> bytes:
    from xml.sax.saxutils import escape

    def unit(texts: Sequence[str]) -> str:
        sides = (
            f'<tuv xml:lang="{code}"><seg>{escape(text)}</seg></tuv>'
            for code, text in zip(("en", "sw"), texts, strict=True)
        )
        return f"<tu>{''.join(sides)}</tu>\n"

    return f"<tmx><header srclang='en'/><body>\n{''.join(map(unit, pairs))}</body></tmx>".encode()


def as_po(pairs: Pairs) -> bytes:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    header = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    return "\n".join([header, *(f"msgid {quoted(one)}\nmsgstr {quoted(two)}\n" for one, two in pairs)]).encode()


def as_xliff(pairs: Pairs) -> bytes:
    from xml.sax.saxutils import escape

    units = "".join(
        f'<trans-unit id="{number}"><source>{escape(one)}</source><target>{escape(two)}</target></trans-unit>\n'
        for number, (one, two) in enumerate(pairs)
    )
    head = '<xliff version="1.2"><file source-language="en" target-language="sw" datatype="x" original="x"><body>\n'
    return f"{head}{units}</body></file></xliff>".encode()


WRITERS: dict[str, Callable[[Pairs], bytes]] = {
    "tsv": as_tsv,
    "csv": as_csv,
    "jsonl": as_jsonl,
    "json": as_json,
    "parquet": as_parquet,
    "xlsx": as_xlsx,
    "tmx": as_tmx,
    "po": as_po,
    "xliff": as_xliff,
    "xlf": as_xliff,
}
LINES = ("tsv", "csv", "jsonl")  # formats of lines of text
CANNOT_HAVE_NUL = ("xlsx", "tmx", "xliff", "xlf")
OF_TRANSLATIONS = ("po", "xliff", "xlf")  # whose rows without one are left out
OF_LANGUAGES = ("tmx", "xliff", "xlf")


def test_every_format_is_tried() -> None:
    assert {*WRITERS} == {*known("data.formats")}


def train(path: Path, **named: tuple[str, str]) -> Pairs:
    inputs = resolve_inputs(Named(path, **named))  # type: ignore[arg-type]
    return [(source, target) for _, source, target in read_pairs(pair_files(inputs.train), Path())]


def doctor(path: Path, **named: tuple[str, str]) -> Pairs:
    source, target = corpora.of_named(Named(path, **named)).sides  # type: ignore[arg-type]
    sides = zip(source.raw_lines(), target.raw_lines(), strict=True)
    return [(one.decode(), two.decode()) for one, two in sides if one or two]


def predict(path: Path, **named: tuple[str, str]) -> Pairs:
    """As evaluate, score and the server read it, too: by a recipe that knows no file of this kind."""
    found = read_pair_inputs(path, Known([], Path(), named.get("languages", ("", ""))))
    assert found is not None
    return [(source, several[0]) for source, several in zip(found.texts, found.references, strict=True)]


READERS = [train, doctor, predict]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("read", READERS)
def test_the_rows_are_the_same(name: str, read: Callable[..., Pairs], tmp_path: Path) -> None:
    pairs = [(one.replace("\0", ""), two) for one, two in PAIRS] if name in CANNOT_HAVE_NUL else PAIRS
    pairs = [pair for pair in pairs if all(pair)] if name in OF_TRANSLATIONS else pairs
    (tmp_path / f"a.{name}").write_bytes(WRITERS[name](pairs))
    assert read(tmp_path / f"a.{name}", languages=("en", "sw")) == pairs


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("read", READERS)
def test_marks_of_windows_and_blank_lines_are_no_text(name: str, read: Callable[..., Pairs], tmp_path: Path) -> None:
    first, *others = WRITERS[name](PAIRS[:2]).splitlines()
    content = b"\r\n".join([b"\xef\xbb\xbf" + first, b"", *others, b"  ", b""])
    (tmp_path / f"a.{name}").write_bytes(content)
    assert read(tmp_path / f"a.{name}") == PAIRS[:2]


@pytest.mark.parametrize(
    ("name", "line", "told"),
    [
        ("tsv", "alone", r"a\.tsv: expected 2 tab-separated columns in every line, but 1 line has fewer \(line 3\)"),
        ("csv", "alone", r"a\.csv: expected 2 columns in every line, but 1 line has fewer \(line 3\)"),
        ("jsonl", '{"source": 3}', r'a\.jsonl, line 3: expected an object {"source": \.\., "target": \.\.} of texts'),
    ],
)
def test_short_rows_are_refused_in_the_same_words(name: str, line: str, told: str, tmp_path: Path) -> None:
    lines = WRITERS[name](PAIRS[:2]).decode().splitlines()
    lines.insert(2, line)
    (tmp_path / f"a.{name}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for read in READERS:
        if (name, read) != ("jsonl", predict):  # what is to be predicted may lack its target
            with pytest.raises(InputError, match=told):
                read(tmp_path / f"a.{name}")


@pytest.mark.parametrize(
    ("first", "header"),
    [
        ("source\ttarget", True),
        ("Target\tSource\tlicence", True),
        ("English\tSwahili", True),
        ("en\tsw", True),
        ("text\tlabel", True),
        ("sw\tsw", False),
        ("a cat\tpaka", False),
        ("source\tchanzo", False),
        ("en", False),
    ],
)
def test_a_first_line_of_words_for_columns_is_a_header(first: str, header: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"{first}\nx\ty\tz\n", encoding="utf-8")
    assert format_of(path).header(path) == header
    assert lines_of(TsvColumn(path, 0)) == (["x"] if header else [first.split("\t", maxsplit=1)[0], "x"])
    assert [line for line, _ in format_of(path).rows(path, [0])] == ([2] if header else [1, 2])


def test_a_first_line_with_a_column_that_is_asked_for_is_a_header(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("Kiingereza\tKiswahili\na cat\tpaka\n", encoding="utf-8")
    assert train(path) == [("Kiingereza", "Kiswahili"), ("a cat", "paka")]
    named = Named(path, columns=("Kiswahili",), target_column="Kiingereza")
    files = pair_files(resolve_inputs(named).train)
    assert [pair for _, *pair in read_pairs(files, Path())] == [["paka", "a cat"]]
    asked = Known([], Path(), ("", ""), AskedColumns(("Kiswahili",), "Kiingereza"))
    found = read_pair_inputs(path, asked)
    assert found is not None
    assert (found.texts, found.references) == (["paka"], [["a cat"]])
    with pytest.raises(InputError, match=r"a\.tsv: expected a header with Luganda; its first line is"):
        resolve_inputs(Named(path, columns=("Luganda",)))


@pytest.mark.parametrize("name", [name for name in WRITERS if name not in OF_LANGUAGES])
def test_labels_are_read_from_every_table(name: str, tmp_path: Path) -> None:
    (tmp_path / f"a.{name}").write_bytes(WRITERS[name]([("good", "pos"), ("bad", "neg")]))
    file = LabelledFile(file=f"a.{name}", text="source", label="target")
    assert [example[1:] for example in read_labelled(file, tmp_path)] == [("good", "pos"), ("bad", "neg")]


def test_a_format_of_ones_own_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "semicolons.py").write_text(
        "from transduce.data.formats.tsv import Tsv\n\n\nclass Semicolons(Tsv):\n"
        '    def __init__(self) -> None:\n        super().__init__(";")\n',
        encoding="utf-8",
    )
    (tmp_path / "a.dat").write_text("a cat;paka\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    files = pair_files({"file": "a.dat", "format": "semicolons:Semicolons"})
    with pytest.raises(InputError, match="trust"):
        read_pairs(files, tmp_path)
    from transduce.core.trust import allow_code

    allow_code(["semicolons:Semicolons"])
    assert [*read_pairs(files, tmp_path)] == [(1, "a cat", "paka")]


def test_units_of_xliff_are_pairs_with_their_placeholders(tmp_path: Path) -> None:
    source = """<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en-GB" trgLang="fr">\
<file id="f">
<unit id="1"><notes><note>No</note></notes><segment>\
<source>You have <ph id="1" equiv="%d"/> <pc id="2">cats</pc>.</source>
<target>Vous avez <ph id="1" equiv="%d"/> <pc id="2">chats</pc>.</target></segment></unit>
<unit id="2"><segment><source>Nothing</source></segment></unit></file></xliff>"""
    path = tmp_path / "a.xlf"
    path.write_text(source, encoding="utf-8")
    inputs = resolve_inputs(Named(path, languages=("en", "fr")))
    assert train(path, languages=("en", "fr")) == [("You have %d cats.", "Vous avez %d chats.")]
    assert inputs.notes == (f"{path}: 1 unit without a translation is left out.",)
    path.write_text(source.replace("</file>", ""), encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.xlf, line 4: expected XLIFF; mismatched tag"):
        train(path)


def test_messages_of_a_catalogue_are_pairs(tmp_path: Path) -> None:
    polib = pytest.importorskip("polib")
    catalogue = polib.POFile()
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    long = "A line that is so long that it is wrapped by the library, " * 3
    catalogue.append(polib.POEntry(msgid=long, msgstr='Mstari "mrefu"\n'))
    catalogue.append(polib.POEntry(msgid="%d file", msgid_plural="%d files", msgstr_plural={0: "faili", 1: "mafaili"}))
    catalogue.append(polib.POEntry(msgid="Guess", msgstr="Labda", flags=["fuzzy"]))
    catalogue.append(polib.POEntry(msgid="Empty", msgctxt="x"))
    catalogue.append(polib.POEntry(msgid="Old", msgstr="Zamani", obsolete=True))
    catalogue.save(str(tmp_path / "a.po"))
    expected = [(long, 'Mstari "mrefu"\n'), ("%d file", "faili"), ("%d files", "mafaili")]
    rows = format_of(tmp_path / "a.po").rows(tmp_path / "a.po", ["source", "target"])
    assert [tuple(texts) for _, texts in rows] == expected
    notes = resolve_inputs(Named(tmp_path / "a.po")).notes
    assert notes == (f"{tmp_path / 'a.po'}: 2 messages without a final translation are left out.",)
