"""Where the page cuts a text into sentences, against Python's cuts; and outputs joined as Python joins them."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from headless import blank_page
from transduce.data.tags import leading_tags, with_tags
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.inference.sentences import Segment, rejoined, sentences

ENGINE = [f"engine/{name}.js" for name in ("unsupported", "unicode", "patterns", "pieces", "tokenizer", "splitting")]
TEXTS = [
    ("en", "Two dogs run. A man sleeps! Who is it? Nobody."),
    ("en", "Dr. Smith met Mr. J. R. Jones at 5 p.m. on the 3rd. It rained, e.g. a lot.\nThen 1. was cut off"),
    ("en", 'She said: "I am here." Then she left. "Why?" he asked. (Nobody knew. Really.) The end... no, wait.'),
    ("en", "Version 3.5 is out. see example.com or a.b@c.org. A. Lincoln spoke!  \n\n  He was tall.. and thin."),
    ("en", "One sentence without an end"),
    ("en", "M. 1. Hello there. 😀 Bye."),
    ("de", "Er kommt am 3. Mai. Sie wohnt in der Bahnhofstr. 5 usw. im 2. Stock. „Ja.“ Das ist Dr. Müller."),
    ("fr", "M. Dupont dort. Il est tard ! « Merci. » « De rien. » Où vas-tu ? Et M. Martin, etc. Voilà."),
    ("zh", "他睡着了。两只狗在跑！“你感觉怎么样？”他问。为什么？我不知道。"),
    ("ja", "犬が走る。「行こう。」と彼は言った。猫も走る！「はい。」そうです。"),
    ("ru", "Две собаки бегут. Мужчина спит! Кто это?"),
    ("hi", "दो कुत्ते दौड़ते हैं। आदमी सोता है।"),
    ("", "a b c.\r\nd e f\u2028g h i. "),
]
JOINED = [
    ("他睡着了。两只狗在跑！", ["He sleeps.", "Two dogs run!"]),
    ("He sleeps. Two dogs run!  Yes.", ["他睡着了。", "两只狗在跑！", "是。"]),
    ("He sleeps.\nTwo dogs run!", ["他睡着了。", "两只狗在跑！"]),
    ("  Ab cd. Ef gh.  ", ["개가 달린다.", ""]),
    ("Ab cd. Ef gh.", ["สุนัขวิ่ง", "แมว"]),
]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with blank_page(*ENGINE) as opened:
        yield opened


def cut_by(page: Page, text: str, language: str) -> list[str]:
    found: list[str] = page.evaluate(
        "([text, code]) => Transduce.engine.sentences(text, code).map(([start, end]) => text.slice(start, end))",
        [text, language],
    )
    return found


@pytest.mark.parametrize(("language", "text"), TEXTS)
def test_texts_are_cut_as_in_python(page: Page, language: str, text: str) -> None:
    assert cut_by(page, text, language) == [text[start:end] for start, end in sentences(text, language)]


@pytest.mark.parametrize(("text", "outputs"), JOINED)
def test_outputs_are_joined_as_in_python(page: Page, text: str, outputs: list[str]) -> None:
    cut = sentences(text)
    assert len(cut) == len(outputs)
    found = page.evaluate(
        "([text, cut, outputs]) => Transduce.engine.rejoined(text, cut, outputs)", [text, cut, outputs]
    )
    assert found == rejoined(text, [Segment(*each) for each in cut], outputs)


@pytest.mark.parametrize("text", [">>fr<< Two dogs.", "  >>fr<<  <B-1> x", "x >>fr<<", ">>de<< x", "<unk> a", "bt a"])
def test_tags_before_a_text_are_those_of_python(page: Page, text: str) -> None:
    learnt = train_tokenizer(TokenizerConfig(kind="whitespace", vocabulary=50, min_frequency=1), ["a b x >>de<<", "bt"])
    tokenizer = with_tags(learnt, [">>fr<<", "<B-1>", "bt"])
    found = page.evaluate(
        "([json, text]) => Transduce.engine.leadingTags(Transduce.engine.tokenizer(json), text)",
        [tokenizer.to_json(), text],
    )
    assert found == leading_tags(tokenizer, text)
