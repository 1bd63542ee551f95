"""Keys and values already seen."""

import torch

from transduce.attention import KeyValue


def test_append_keeps_order_and_leaves_the_past_as_it_was() -> None:
    torch.manual_seed(0)
    whole = KeyValue(torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5, 4))
    first = KeyValue(whole.key[:, :, :2], whole.value[:, :, :2])
    second = KeyValue(whole.key[:, :, 2:], whole.value[:, :, 2:])
    before = first.key.clone()
    joined = first.append(second)
    assert torch.equal(joined.key, whole.key)
    assert torch.equal(joined.value, whole.value)
    assert (first.length, second.length, joined.length) == (2, 3, 5)
    assert torch.equal(first.key, before)


def test_appending_to_nothing_gives_the_new() -> None:
    empty = KeyValue(torch.empty(2, 3, 0, 4), torch.empty(2, 3, 0, 4))
    new = KeyValue(torch.randn(2, 3, 1, 4).bfloat16(), torch.randn(2, 3, 1, 4).bfloat16())
    joined = empty.append(new)
    assert torch.equal(joined.key, new.key)
    assert joined.value.dtype == torch.bfloat16  # under autocast the empty cache is fp32 and must not widen the rest
