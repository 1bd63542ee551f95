"""What a translation keeps: which parts are found in a text, and whether an output has them."""

import pytest

from transduce.data.protected import lacking, protected


def parts(text: str) -> list[tuple[str, str]]:
    return [(text[part.start : part.end], part.kind) for part in protected(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Meet me at 12:30.", [("12:30", "number")]),
        ("It costs 1,000.50 EUR or 1 000 €.", [("1,000.50", "number"), ("1 000 €", "number")]),
        ("See https://example.org/a_(b)?c=1&d=2, please.", [("https://example.org/a_(b)?c=1&d=2", "url")]),
        ("(see www.example.org)", [("www.example.org", "url")]),
        ("Write to first.last+x@mail.example.org!", [("first.last+x@mail.example.org", "email")]),
        ("%s has %1$d of {count} {{ name }} ${x}", ["%s", "%1$d", "{count}", "{{ name }}", "${x}"]),
        ("100% of it, 5%d", [("100%", "number"), ("5%", "number")]),
        ('<x id="1"/>Hello <b>you</b> &amp; me', ['<x id="1"/>', "<b>", "</b>", "&amp;"]),
        ("A4, COVID-19 and MP3 but not 2nd or IT", [("A4", "code"), ("COVID-19", "code"), ("MP3", "code"), "2"]),
        ("so 😀😀 and ❤️ and 👩‍👩‍👧", [("😀😀", "emoji"), ("❤️", "emoji"), ("👩‍👩‍👧", "emoji")]),
        ("⟦3⟧ stays", [("⟦3⟧", "reserved")]),
        ("−5 °C, $5, €7.50 and +33 1 23 45 67 89", [("−5 °C", "number"), "$5", "€7.50", "+33 1 23 45 67 89"]),
        ("see file_name.txt, C:\\dir\\a.txt, @user #tag", ["file_name.txt", "C:\\dir\\a.txt,", "@user", "#tag"]),
        ("Plain words, and nothing else: yes!", []),
    ],
)
def test_parts_that_a_translation_keeps_are_found(text: str, found: list[str | tuple[str, str]]) -> None:
    named = [each if isinstance(wanted, tuple) else each[0] for each, wanted in zip(parts(text), found, strict=False)]
    assert named == found
    assert len(parts(text)) == len(found)


@pytest.mark.parametrize(
    ("source", "output", "lost"),
    [
        ("1,000.50", "Es kostet 1.000,50 Euro", []),
        ("1,000.50", "Es kostet 1.000 Euro", ["1,000.50"]),
        ("2026-11-28", "le 28.11.2026", []),
        ("12:30 and 12:30", "12:30 et midi", ["12:30"]),
        ("%s and %s", "%s", ["%s"]),
        ("x@y.org", "x@y.com", ["x@y.org"]),
        ("7 of 17", "17 Stück", ["7"]),
        ("1000", "1 000", []),
        ("3", "٣", []),
    ],
)
def test_an_output_lacks_what_it_does_not_have_as_often(source: str, output: str, lost: list[str]) -> None:
    assert lacking(parts(source), output) == lost


def test_long_texts_take_time_in_proportion() -> None:
    """Patterns that backtrack would take minutes for these."""
    for text in (
        "www." * 20_000,
        "A-" * 30_000,
        "1," * 30_000,
        "<a " * 20_000,
        "%" * 60_000,
        "{" * 60_000,
        "a.b@" * 9_000,
    ):
        protected(text)
