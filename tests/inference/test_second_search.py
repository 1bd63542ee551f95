"""What is missing from outputs, or loops, is searched for once more; what is still wrong is told."""

from collections.abc import Sequence

import pytest

from random_models import translator
from transduce.inference.prediction import OutputFaults, Prediction, told_lines
from transduce.inference.preparation import Preparation, Prepared
from transduce.inference.repetition import looped
from transduce.inference.second_search import Wanted, looked_after
from transduce.inference.splitting import Pieces


def prediction(source: str, text: str, *others: str) -> Prediction:
    listed = tuple(Prediction(source, each, 0.0, 0.0, (), ()) for each in (text, *others))
    return Prediction(source, text, 0.0, 0.0, (), (), alternatives=listed if others else ())


def prepared(*texts: str) -> Pieces:
    pieces = Pieces.whole(texts, [[1]] * len(texts))
    kinds = frozenset(("number", "digit", "placeholder"))
    pieces.prepared = [Preparation(checked=kinds, searches_text=True).prepared(text) for text in texts]
    return pieces


@pytest.mark.parametrize(
    ("output", "source", "times"),
    [
        ("il a exploré exploré exploré la rue", "he explored the street", 3),
        ("la rue la rue la rue est là", "the street is there", 3),
        ("哈哈哈哈哈哈", "he laughs", 6),
        ("Ein Mann Mann Mann Mann geht.", "A man walks.", 4),
        ("und so weiter und so weiter und so weiter", "and so on", 3),
        ("the dog , the dog , the dog , the dog", "le chien", 4),
        ("Nein, nein, nein, nein!", "No!", 4),
        ("一个人一个人一个人", "a man", 3),
        ("le chat noir le chat noir le chat noir", "the black cat", 3),
        ("da da da da da da da", "there", 7),
        ("very very very good", "sehr sehr sehr gut", 0),
        ("tick tack tick tack", "tick tock", 0),
        ("哈哈哈", "ha ha", 0),
        ("", "x", 0),
    ],
)
def test_loops_are_noticed(output: str, source: str, times: int) -> None:
    found = looped(output, source)
    assert (found.times if found else 0) == times


def test_only_what_lacks_something_is_searched_again() -> None:
    asked: list[Wanted] = []

    def again(pieces: Pieces, wanted: Sequence[Wanted]) -> list[Prediction | None]:
        asked.extend(wanted)
        return [prediction(pieces.read[want.place], f"mit {' '.join(want.must)}") for want in wanted]

    pieces = prepared("12 dogs", "a dog", "%s and 7")
    found = looked_after(
        pieces, [prediction("12 dogs", "Hunde"), prediction("a dog", "Hund"), prediction("", "%s")], again, None
    )
    assert [(want.place, want.must) for want in asked] == [(0, ("12",)), (2, ("7",))]
    assert [each.text for each in found] == ["mit 12", "Hund", "%s"]  # the last one would lack as much
    assert [each.missing for each in found] == [(), (), ("7",)]


def test_of_a_wider_beam_the_best_output_without_a_loop_is_taken() -> None:
    def widely(pieces: Pieces, places: Sequence[int]) -> list[Prediction]:
        return [prediction("a dog", "ein ein ein Hund", "Hund Hund Hund", "ein Hund", "Hund") for _ in places]

    [found] = looked_after(prepared("a dog"), [prediction("a dog", "ein ein ein Hund")], None, widely)
    assert (found.text, found.repeated) == ("ein Hund", None)


def test_what_is_still_wrong_is_told() -> None:
    outputs = [prediction("12 dogs", "Hunde"), prediction("a dog", "ein ein ein Hund")]
    found = looked_after(prepared("12 dogs", "a dog"), outputs, lambda pieces, wanted: [None], None)
    assert found[0].warnings == ['"12" is not in the output.']
    assert found[1].warnings == ['the output repeats "ein" 3 times.']
    assert found[0].to_dict()["warnings"] == ['"12" is not in the output.']
    assert told_lines(found) == [
        '1 of 2 outputs lacks something of the source, such as "12" in line 1: --json has the warnings of each.',
        '1 of 2 outputs repeats "ein" in line 2: --json has the warnings of each.',
    ]
    both = OutputFaults.of(found[:1]).plus(OutputFaults.of(found[1:], 1))
    assert both == OutputFaults.of(found)


def test_nothing_is_done_to_pieces_that_were_not_prepared() -> None:
    outputs = [prediction("12 dogs", "Hunde")]
    assert looked_after(Pieces.whole(["12 dogs"], [[1]]), outputs, None, None) == outputs


def test_a_search_puts_in_what_was_missing() -> None:
    """A random model loses everything; what its tokens can write, a constrained search puts there."""
    model = translator("character", seed=1)
    model.preparation = Preparation(checked=frozenset(("placeholder",)), searches_text=True)
    texts = ["%s ba de", "fi {x} go", "ba"]
    plain = model.predict(texts, protect=False, max_length_offset=30)
    found = model.predict(texts, max_length_offset=30)
    assert [each.source for each in found] == texts
    writes = {"%s": "%" in str(model.task.tokenizers["target"].to_json()), "{x}": False}
    for part, before, after in zip(("%s", "{x}"), plain, found, strict=False):
        assert part not in before.text
        assert (part in after.text) == writes[part]
        assert (after.missing == (part,)) != writes[part]
    assert found[2].text == plain[2].text


def test_a_text_in_pieces_keeps_what_each_lacks() -> None:
    model = translator(seed=2)
    model.preparation = Preparation(checked=frozenset(("number",)), searches_text=True)
    [found] = model.predict(["ba 12 de.\nfi 13 go."], split="sentences")
    assert found.missing == ("12", "13")
    assert Prepared.as_it_is("ba").read == "ba"


def test_of_a_file_without_notes_outputs_stay_and_what_they_lack_is_told() -> None:
    """As of an imported model; a digit is often a word, and a loop may be the original's own."""
    model, texts = translator(seed=3), ["ba 12:30 de", "  fi\u00ad go www.example.org", "12", "ba 7 de", "go go go"]
    assert model.preparation.only_tells
    plain, found = model.predict(texts, protect=False), model.predict(texts)
    assert [each.text for each in found] == [each.text for each in plain]
    assert [each.tokens for each in found] == [each.tokens for each in plain]
    assert [each.missing for each in found] == [("12:30",), ("www.example.org",), ("12",), (), ()]
    assert not any(each.repeated or each.forced for each in found)
