"""Each part of a streamed text is sent once."""

import random

import pytest

from transduce.serve.v1 import Growing


def received(texts: list[str]) -> tuple[str, int]:
    """What a listener has who puts the events of a growing text together, and how many characters were sent."""
    growing, held, sent = Growing(), "", 0
    for place, text in enumerate(texts):
        event = growing.more(text, done=place == len(texts) - 1)
        assert len(event) == 1
        held = event.get("text", held + event.get("delta", ""))
        sent += sum(map(len, event.values()))
    return held, sent


@pytest.mark.parametrize(
    "texts",
    [
        ["", "ba", "ba de", "ba de fi", "ba de fi"],
        ["caf\ufffd", "café", "café"],
        ["\ufffd\ufffd\ufffd", "\ufffd\ufffd\ufffd"],
        ["Two", "Two ,", "Two, dogs", "Two, dogs."],
        ["a b", "a", "a b c"],
        ["a", "b"],
        [""],
    ],
    ids=repr,
)
def test_what_arrives_is_the_text(texts: list[str]) -> None:
    assert received(texts)[0] == texts[-1]


def test_nothing_is_sent_twice() -> None:
    drawn = random.Random(1)
    whole = "".join(drawn.choices("ab é漢", k=5000))
    ends = sorted(drawn.sample(range(5000), 900))
    assert received([*(whole[:end] for end in ends), whole]) == (whole, len(whole))
