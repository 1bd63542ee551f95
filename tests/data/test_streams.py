"""Windows over a stream: every token but the first is predicted exactly once, rows overlap by one."""

from collections.abc import Iterator
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from transduce.data.encoding import running, sentences, windows

STREAMS = st.lists(st.lists(st.integers(0, 99), max_size=12), max_size=12)


@given(stream=STREAMS, context=st.integers(1, 7))
def test_windows_equal_slices_of_the_whole(stream: list[list[int]], context: int) -> None:
    whole = list(chain.from_iterable(stream))
    slices = [whole[first : first + context + 1] for first in range(0, len(whole), context)]
    assert list(windows(stream, context)) == [row for row in slices if len(row) >= 2]


@given(stream=STREAMS, context=st.integers(1, 7))
def test_every_token_but_the_first_is_predicted_once(stream: list[list[int]], context: int) -> None:
    predicted = [token for row in windows(stream, context) for token in row[1:]]
    assert predicted == list(chain.from_iterable(stream))[1:]


def test_lines_end_with_the_end_and_running_text_does_not() -> None:
    assert list(chain.from_iterable(sentences([[5, 6], [], [7]], 2))) == [2, 5, 6, 2, 2, 7, 2]
    assert list(chain.from_iterable(running([[5, 6], [], [7]], 2))) == [2, 5, 6, 7]


def test_another_token_begins_each_line() -> None:
    assert list(chain.from_iterable(sentences([[5, 6], [], [7]], 2, 1))) == [1, 5, 6, 2, 1, 2, 1, 7, 2]


def test_rows_come_before_the_stream_is_read_to_its_end() -> None:
    def endless() -> Iterator[list[int]]:
        while True:
            yield [1, 2, 3]

    rows = windows(endless(), 4)
    assert [next(rows), next(rows)] == [[1, 2, 3, 1, 2], [2, 3, 1, 2, 3]]
