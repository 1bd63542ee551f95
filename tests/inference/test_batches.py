"""Which texts are searched together."""

from transduce.inference.batches import PADDED, within_memory


def test_long_texts_are_searched_in_smaller_batches() -> None:
    lengths = sorted([2 * PADDED, PADDED, PADDED // 3, PADDED // 3, 10, 9, 8, 7, 0, 0], reverse=True)
    order = list(range(len(lengths)))
    batches = within_memory(order, lengths.__getitem__, 4)
    assert batches == [[0], [1], [2, 3, 4], [5, 6, 7, 8], [9]]
    assert all(len(each) * lengths[each[0]] <= PADDED for each in batches if len(each) > 1)
    assert within_memory([], lengths.__getitem__, 4) == []
