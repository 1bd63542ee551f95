"""Markup comes out as it came in: every tag, in its order, at the words it belongs to."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from growing import grows_as_a_line
from transduce.documents import html
from transduce.documents.html import HtmlDocument, parts_of
from transduce.documents.runs import Link, Run

BITS = [
    *("<b>", "</b>", "<p>", "</p>", "<a href='x>'>", "</a>", "<br/>", "<img src=x>", "<script>", "</script>", "<code>"),
    *("</code>", "<!--", "-->", "<![CDATA[", "<![foo[", "]]>", "<!x>", "<?y>", "<p translate=no>", "<svg/>", "</>"),
    *("two words ", "Stop. ", "&amp;", "&lt;", "&#65;", "&#x;", "&nope;", "&", "<", "<b", "'", '"', "\n", "\r", "\x00"),
]
SOURCES = st.lists(st.sampled_from(BITS), max_size=14).map("".join)


def never_whole(line: str) -> bool:
    return False


def tags(markup: str) -> list[str]:
    return re.findall(r"</?[a-zA-Z][^<>]*>", markup)


@given(SOURCES)
def test_the_parts_are_the_document(source: str) -> None:
    assert "".join(part.raw if isinstance(part, Run) else part for part in parts_of(source)) == source


@given(SOURCES, st.data())
def test_no_tag_is_lost_and_none_changes_its_place_among_tags(source: str, data: st.DataObject) -> None:
    document = HtmlDocument(source, never_whole)
    spans = st.tuples(st.integers(0, 12), st.integers(0, 12))
    links = st.lists(st.builds(Link, spans, spans), max_size=4)
    answers = [("QQ & <i> Q", data.draw(links)) for _ in document.pieces]
    assert tags(document.rejoined(answers)) == tags(source)


@given(SOURCES)
def test_what_a_model_writes_is_text(source: str) -> None:
    document = HtmlDocument(source, never_whole)
    made = document.rejoined([("<script>alert(1)</script>", []) for _ in document.pieces])
    assert made.count("<script>") == source.count("<script>")


def translated(source: str, outputs: dict[str, tuple[str, list[tuple[str, str]]]]) -> str:
    """`outputs`: piece -> its translation and pairs of words that belong together."""
    document = HtmlDocument(source, never_whole)
    assert {piece.text for piece in document.pieces} == set(outputs)
    answers = []
    for piece in document.pieces:
        output, pairs = outputs[piece.text]
        spans = [(piece.text.index(a), output.index(b), a, b) for a, b in pairs]
        answers.append((output, [Link((i, i + len(a)), (j, j + len(b))) for i, j, a, b in spans]))
    return document.rejoined(answers)


@pytest.mark.parametrize("digits", [1, 7, 8, 4299, 4300, 4301, 19_000])
def test_a_reference_of_any_length_is_a_character(digits: int) -> None:
    """HTML 5: zeros in front mean nothing, and a number of no character is U+FFFD."""
    (zeros,) = parts_of(f"a &#{'0' * digits}65; b")
    (nines,) = parts_of(f"a &#{'9' * max(7, digits)} b")
    assert (zeros.text, nines.text) == ("a A b", "a \ufffd b")  # type: ignore[union-attr]


def test_inner_tags_go_where_their_words_went() -> None:
    source = "<p>The <b>black dog</b> saw <a href='#'>me</a><br>Yes &amp; no.</p>"
    dog = ("Le chien noir m'a vu", [("black", "noir"), ("dog", "chien"), ("me", "m'"), ("saw", "vu")])
    made = translated(source, {"The black dog saw me": dog, "Yes & no.": ("Oui & non.", [])})
    assert made == "<p>Le <b>chien noir</b> <a href='#'>m'</a>a vu<br>Oui &amp; non.</p>"


def test_without_attention_inner_tags_go_to_the_ends() -> None:
    assert translated("The <b>dog</b> ran", {"The dog ran": ("Le chien courait", [])}) == "<b>Le chien courait</b>"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('One two <i class="icon"></i>three.', 'UN DEUX <i class="icon"></i>TROIS.'),
        ("One two <i></i> three.", "UN DEUX <i></i>TROIS."),
        ("One two three <i></i>.", "UN DEUX TROIS <i></i>."),
        ("One <a id=x></a><b>two</b> three.", "UN <a id=x></a><b>DEUX</b> TROIS."),
        ("One two<sup></sup> three.", "UN DEUX <sup></sup>TROIS."),
        ("One two<span> </span>three.", "UN DEUX <span></span>TROIS."),
        ("One <u>two<i> <s></s></i> three</u>.", "UN <u>DEUX <i><s></s></i>TROIS</u>."),
        ("One tw<wbr><i></i>o <b>three</b>.", "UN DEUX <wbr><i></i><b>TROIS</b>."),
        (
            "One (<i>-</i>) <b>two</b> three.",
            "UN (-) <i></i><b>DEUX</b> TROIS.",
        ),  # no link for a dash
    ],
)
def test_an_element_without_words_stays_empty_where_it_was(source: str, expected: str) -> None:
    text = HtmlDocument(source, never_whole).pieces[0].text
    output = text.replace("One", "UN").replace("two", "DEUX").replace("three", "TROIS")
    pairs = [("One", "UN"), ("two", "DEUX"), ("three", "TROIS"), (".", ".")]
    assert translated(source, {text: (output, pairs)}) == expected


def test_an_element_without_words_stays_empty_without_attention() -> None:
    assert translated("The <i></i>dog ran", {"The dog ran": ("Le chien courait", [])}) == "Le chien courait<i></i>"


@pytest.mark.parametrize("quiet", ["—", "12:30", "2.200.112", "<b>½</b> … *", "3 &times; 4 = 12", "€ 9.99", "١٢٣"])
def test_what_has_no_letter_stays_as_it_is(quiet: str) -> None:
    made = translated(f"<p>{quiet}</p><p>Yes.</p>", {"Yes.": ("Oui.", [])})
    assert made == f"<p>{quiet}</p><p>Oui.</p>"


@pytest.mark.parametrize("word", ["a", "é", "字", "ไ", "я", "ª"])
def test_a_letter_of_any_script_is_read(word: str) -> None:
    assert [piece.text for piece in HtmlDocument(f"<p>{word}</p>", never_whole).pieces] == [word]


def test_a_tag_at_an_end_goes_with_its_partner_inside() -> None:
    pairs = [("a", "b"), ("x", "y")]
    others = [("a", "b"), ("xx", "y")]
    assert translated("<u><b>a</b> x</u>", {"a x": ("y b", pairs)}) == "<u>y <b>b</b></u>"
    assert translated("a <b>xx</b>.<i> A</i>", {"a xx.": ("y b.", others), "A": ("B", [])}) == "<b>y</b> b.<i> B</i>"


def test_tags_at_the_ends_and_between_sentences_stay() -> None:
    source = "<i>One.</i> <b>\n Two. </b><!-- c --> &nbsp;!"
    assert translated(source, {"One.": ("1", []), "Two.": ("2", [])}) == "<i>1</i> <b>\n 2 </b><!-- c --> &nbsp;!"


def test_what_asks_for_it_is_left_alone() -> None:
    quiet = "<style>p{}</style><p translate=no>Keep <b>this</b></p><span class='x notranslate'>and this</span>"
    assert HtmlDocument(quiet, never_whole).pieces == []
    made = translated(
        f"{quiet}Run <code>ls -l</code> now", {quiet and "Run now": ("Lance maintenant", [("now", "mai")])}
    )
    assert made == f"{quiet}Lance <code>ls -l</code> maintenant"


@pytest.mark.parametrize(
    "unit", ["<a ", "<a href='", "<!--", "<![", "</", "&", "<", "<b>", "<b>x</b>. ", "<a b>", "<a\n", "<script>", "<?"]
)
@pytest.mark.parametrize("ending", ["", ">", "-->"])
def test_no_markup_takes_long(unit: str, ending: str) -> None:
    def there_and_back(size: int) -> None:
        document = HtmlDocument(unit * (size // len(unit)) + ending, never_whole)
        document.rejoined([(piece.text, []) for piece in document.pieces])

    assert grows_as_a_line(there_and_back, 2_500)


@given(st.lists(st.sampled_from(["<!--", "-->", "--!>", "-- >", "--", ">", "<b>", "</b>", "x ", "<p>", "<!", "-"])))
@settings(max_examples=300, deadline=None)
def test_comments_end_where_the_library_says(parts: list[str]) -> None:
    class Plain(html._Events):
        parse_comment = HTMLParser.parse_comment

    source = "".join(parts)
    assert html._Events(source).found == Plain(source).found
