"""A pair is dropped whole, for the first reason that holds, and counted."""

import json

import pytest

from transduce.data.filters import Dropped, FilterConfig, reason_to_drop


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ([], [1], "empty source"),
        ([], [], "empty source"),
        ([1], [], "empty target"),
        ([1] * 256, [1] * 256, None),
        ([1] * 257, [1] * 257, "too long"),
        ([1] * 30, [1] * 257, "too long"),
        ([1], [1] * 10, None),
        ([1], [1] * 11, "extreme ratio"),
        ([1] * 19, [1] * 2, "extreme ratio"),
        ([1] * 18, [1] * 2, None),
        ([1, 2], [1, 2], None),
    ],
)
def test_reasons(source: list[int], target: list[int], reason: str | None) -> None:
    assert reason_to_drop(FilterConfig(), source, target) == reason


def test_copies_are_dropped_on_request() -> None:
    assert reason_to_drop(FilterConfig(drop_copies=True), [1, 2], [1, 2]) == "copy"
    assert reason_to_drop(FilterConfig(drop_copies=True), [1, 2], [1, 3]) is None


def test_report_counts_and_names_lines() -> None:
    dropped = Dropped()
    for line in range(1, 1001):
        dropped.add(None, line)
    assert dropped.report() == "All 1,000 pairs kept."
    for line in range(1001, 1009):
        dropped.add("too long", line)
    dropped.add("empty source", 1010)
    assert dropped.total == 9
    assert dropped.report() == (
        "Dropped 9 of 1,009 pairs: 8 too long (lines 1001, 1002, 1003, 1004, 1005, …); 1 empty source (line 1010)."
    )
    again = Dropped.from_dict(json.loads(json.dumps(dropped.to_dict())))
    assert again.to_dict() == dropped.to_dict() and again.total == 9
