"""What a model reads in place of a text, and what becomes of its output."""

import random
from pathlib import Path

import pytest

from random_models import translator
from transduce.core.errors import InputError
from transduce.data.character_profile import CharacterProfile
from transduce.data.placeholders import NAMES, with_placeholders
from transduce.data.protected import KINDS
from transduce.inference.glossary import Glossary, read_glossary
from transduce.inference.preparation import DIGIT, UNSEEN, Preparation, mapped, noted_of
from transduce.inference.sentences import has_letters
from transduce.inference.typography import Typography, cased_words

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,!?()'\"-0123456789"
PROFILE = CharacterProfile.of([LETTERS] * 50)
TYPOGRAPHY = Typography(PROFILE, {"i": "I", "paris": "Paris"}, 0.0)
KEPT = frozenset((*KINDS, DIGIT, UNSEEN))


def preparation(copies: bool = True, annotates: bool = True) -> Preparation:
    return Preparation(TYPOGRAPHY, copies, annotates, KEPT, has_letters, True)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Meet me at 12:30.", "Meet me at ⟦1⟧."),
        ("MEET ME AT 12:30, I SEE PARIS.", "Meet me at ⟦1⟧, I see Paris."),
        ("The dog’s don\u00adkey\u200b “sees” it.", 'The dog\'s donkey "sees" it.'),
        ("ﬁne ＡＢＣ", "fine ABC"),
        ("a 猫 sat", "a ⟦1⟧ sat"),
        ("⟦2⟧ and %s", "⟦1⟧ and ⟦2⟧"),
        ("non\u00a0breaking", "non breaking"),
        ("IT is here", "IT is here"),
        ("Plain text.", "Plain text."),
    ],
)
def test_a_text_is_read_as_training_texts_are_written(text: str, read: str) -> None:
    prepared = preparation().prepared(text)
    assert prepared.read == read
    assert "".join(text[edit.start : edit.end] for edit in prepared.edits) == text
    assert "".join(edit.written for edit in prepared.edits) == read


@pytest.mark.parametrize("text", ["—", "***", "😀😀", "12:30", "\u200b", " — ", "www.example.org", "{x}, A4!", "漢字"])
def test_text_without_letters_stays_as_it_is(text: str) -> None:
    prepared = preparation().prepared(text)
    assert prepared.read == ""
    assert prepared.restored("anything at all").text == text


def test_values_stand_in_the_output_where_the_model_puts_them() -> None:
    prepared = preparation().prepared("Send %s to x@y.org.")
    assert prepared.restored("An ⟦2⟧ schicke ⟦1⟧.").text == "An x@y.org schicke %s."
    assert prepared.lacking("An x@y.org.") == ["%s"]
    assert prepared.must(["%s"]) == ["⟦1⟧"]


def test_a_text_in_capitals_gives_an_output_in_capitals() -> None:
    assert preparation().prepared("GO TO PARIS AT 9:30").restored("Va à Paris à ⟦1⟧").text == "VA À PARIS À 9:30"
    assert preparation().prepared("Go to NATO").restored("Va à l'OTAN").text == "Va à l'OTAN"


def test_a_model_without_placeholders_reads_the_parts_themselves() -> None:
    prepared = preparation(copies=False).prepared("Send %s to “x@y.org”.")
    assert prepared.read == 'Send %s to "x@y.org".'
    assert prepared.lacking("nothing") == ["%s", "x@y.org"]
    assert prepared.must(["%s"]) == ["%s"]


def test_terms_are_annotated_or_required() -> None:
    terms = Glossary.of({"Street": "avenue", "A4": "DIN A4"})
    taught = preparation().prepared("The street, and A4.", terms)
    assert taught.read == "The ⟦term⟧ street ⟦as⟧ avenue ⟦end⟧, and ⟦term⟧ A4 ⟦as⟧ DIN A4 ⟦end⟧."
    assert (taught.terms, taught.values) == (("avenue", "DIN A4"), ())
    assert taught.lacking("les avenues, DIN A4") == []  # another form of the term will do
    plain = preparation(annotates=False).prepared("The street, and A4.", terms)
    assert plain.read == "The street, and A4."
    assert plain.must(plain.lacking("La rue")) == ["avenue", "DIN A4"]


def test_terms_stand_where_whole_words_do() -> None:
    terms = Glossary.of([("ice cream", "Eis"), ("ice", "Eiskristall"), ("冰", "ice")])
    assert [term.target for term in terms.found("Ice  cream, ice, price, 吃冰了")] == ["Eis", "Eiskristall", "ice"]


@pytest.mark.parametrize(("term", "text"), [("street", "ſtreet"), ("οδοσ", "ΟΔΟΣ"), ("istanbul", "ıstanbul İSTANBUL")])
def test_letters_that_are_folded_together_are_found_or_not_but_no_error(term: str, text: str) -> None:
    found = Glossary.of({term: "x"}).found(text)
    assert [text[each.start : each.end].casefold() for each in found] == [term.casefold()] * len(found)


def test_a_large_glossary_takes_time_by_the_text() -> None:
    terms = Glossary.of([(f"term{number} word", f"x{number}") for number in range(20_000)])
    assert len(terms.found("term5 word is " * 2_000)) == 2_000


def test_any_text_is_prepared_with_any_terms() -> None:
    """Terms may begin or end with what is left out."""
    draw, alphabet = random.Random(2), [*"ab 中\u202e\ufeff\u00ad", "12:30", "⟦9⟧"]
    for _ in range(300):
        text, *terms = ("".join(draw.choices(alphabet, k=draw.randrange(1, 9))) for _ in range(4))
        glossary = Glossary.of({term: "Z" for term in terms if term.split()})
        prepared = preparation().prepared(text, glossary)
        assert "".join(text[edit.start : edit.end] for edit in prepared.edits) == text


def test_values_are_filled_in_at_once() -> None:
    prepared = preparation().prepared("⟦2⟧ and x1 here: %s")
    assert prepared.values[0] == "⟦2⟧"
    assert prepared.restored("⟦2⟧ and ⟦1⟧, ⟦9⟧").text == f"{prepared.values[1]} and ⟦2⟧, ⟦9⟧"


def test_of_equal_values_all_are_asked_for() -> None:
    prepared = preparation().prepared("see 5 and 5 of them")
    missing = prepared.lacking(prepared.restored("⟦1⟧ davon").text)
    assert missing == ["5"]
    assert prepared.must(missing) == ["⟦1⟧", "⟦2⟧"]


def test_values_side_by_side_do_not_run_together() -> None:
    prepared = preparation().prepared("See 1.2 and 34 there.")
    assert prepared.restored("Siehe ⟦1⟧⟦2⟧.").text == "Siehe 1.2 34."


def test_places_are_found_again_on_both_sides() -> None:
    text = "A “dog” at 12:30, don\u00adkey."
    prepared = preparation().prepared(text)
    for word in ("dog", "12:30", "key"):
        start, end = mapped(prepared.edits, text.index(word), text.index(word) + len(word), back=False)
        assert prepared.read[start:end] == {"12:30": "⟦1⟧"}.get(word, word)
        assert mapped(prepared.edits, start, end, back=True) == (text.index(word), text.index(word) + len(word))


def test_any_text_comes_back_from_a_model_that_copies() -> None:
    draw = random.Random(1)
    alphabet = [*"ab C.,“’—\u00ad\u200b猫é", "12", " %s", "😀", "⟦1⟧", "{x}", " street ", "\u00a0", "\ue000", "\ue001"]
    for copies in (True, False):
        for _ in range(400):
            text = "".join(draw.choices(alphabet, k=draw.randrange(1, 25)))
            prepared = preparation(copies).prepared(text)
            assert prepared.lacking(prepared.restored(prepared.read).text) == []
            assert "".join(text[edit.start : edit.end] for edit in prepared.edits) == text


def test_what_training_pairs_do_is_noted_and_followed() -> None:
    digits = [(f"{number}", f"word {number % 7 + 20}x") for number in range(100, 160)]
    noted = noted_of([*digits, *[(f"See {number} men.", "Des hommes.") for number in range(100, 160)]])
    assert noted["protected"]["without letters"] == [60, 0]
    assert noted["protected"]["number"] == [120, 0]
    assert noted_of([("The %s.", "Le %s.")])["protected"] == {"placeholder": [1, 1]}


def test_a_single_digit_is_counted_apart_as_it_often_becomes_a_word() -> None:
    pairs = [("See 3 men.", "Voir trois hommes."), ("See 12 men.", "Voir 12 hommes.")] * 30
    noted = noted_of(pairs)
    assert (noted["protected"]["digit"], noted["protected"]["number"]) == ([30, 0], [30, 30])
    tokenizer = translator().task.tokenizers["source"]
    made = Preparation.of(noted, tokenizer, tokenizer, sentences=True)
    assert [text for text, _ in made.prepared("See 3 men and 45.").parts] == ["45"]
    pairs += [("See 3 men.", "Voir 3 hommes.")] * 15  # a third of all
    copying = with_placeholders(tokenizer, NAMES)
    for each, kept in ((tokenizer, ["45"]), (copying, ["3", "45"])):
        made = Preparation.of(noted_of(pairs), each, each, sentences=True)
        assert [text for text, _ in made.prepared("See 3 men and 45.").parts] == kept
    earlier = Preparation.of({"protected": {"number": [60, 10]}}, tokenizer, tokenizer, sentences=True)
    assert earlier.prepared("See 3 men and 45.").parts == ()


def test_words_with_capitals_are_learnt() -> None:
    assert cased_words(["Then I saw Paris.", "Now I saw paris.", "But I saw Paris. The end"]).split() == ["I", "Paris"]


def entry(english: str, french: str) -> str:
    """Of a term base."""
    terms = (
        f'<langSet xml:lang="{code}"><tig><term>{term}</term></tig></langSet>'
        for code, term in (("en-GB", english), ("fr", french))
    )
    return f"<termEntry>{''.join(terms)}</termEntry>"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("terms.tsv", "# ours\nstreet\tavenue\n\nice cream\tglace\n"),
        ("terms.csv", '"street","avenue"\n"ice cream",glace\n'),
        ("terms.csv", "source;target\nstreet;avenue\nice cream;glace\n"),
        (
            "terms.tbx",
            f"<martif><text><body>{entry('street', 'avenue')}{entry('ice cream', 'glace')}</body></text></martif>",
        ),
    ],
)
def test_glossaries_are_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = read_glossary(tmp_path / name, ("en", "fr"))
    assert found.terms == (("street", "avenue"), ("ice cream", "glace"))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("terms.tsv", "street\tavenue\nice cream\n", "terms.tsv, line 2: expected a term, a tab"),
        ("terms.tsv", "street\tavenue\nStreet\true\n", "two translations"),
        ("terms.tbx", "<martif><body>", "expected TBX"),
        ("terms.tbx", '<!DOCTYPE a [<!ENTITY x "y">]><martif/>', "entities"),
        ("terms.tbx", "<martif/>", "no entry"),
        ("terms.csv", "\ufeffa,b\nc", "line 2"),
        ("terms.tsv", "", "no term"),
    ],
)
def test_what_is_no_glossary_is_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_glossary(tmp_path / name, ("en", "fr"))
