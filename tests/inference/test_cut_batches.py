"""Which rows are put together."""

from transduce.inference.batches import PADDED, by_length


def test_long_rows_are_in_smaller_batches() -> None:
    lengths = [2 * PADDED, PADDED, PADDED // 3, PADDED // 3, 10, 9, 8, 7, 0, 0]
    assert list(by_length(lengths, 4, longest_first=True)) == [[0], [1], [2, 3, 4], [5, 6, 7, 8], [9]]
    assert list(by_length(lengths, 4)) == [[8, 9, 7, 6], [5, 4, 2], [3], [1], [0]]
    assert list(by_length([], 4)) == []


def test_padding_counts() -> None:
    """Rows that fit by their own lengths, and not padded to the longest."""
    half = PADDED // 2
    assert list(by_length([half, half, 1], 64, longest_first=True)) == [[0, 1], [2]]
    assert list(by_length([half, half, 1], 64)) == [[2, 0], [1]]
