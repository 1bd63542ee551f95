"""Confusion matrices: counts and shares by hand, in a report, a table and a figure."""

import io
import json
import random

import pytest
from rich.console import Console

from transduce.core.errors import InputError
from transduce.interpret.confusion import confusion_figure, confusion_table
from transduce.metrics.confusion import Confusion
from transduce.metrics.labels import accuracy_tally, macro_f1_tally


def drawn(labels: str, count: int = 200) -> tuple[list[str], list[str]]:
    random_ = random.Random(1)
    weights = range(1, len(labels) + 1)
    return random_.choices(labels, weights, k=count), random_.choices(labels, weights, k=count)


def shown(confusion: Confusion) -> str:
    file = io.StringIO()
    Console(file=file, width=200).print(confusion_table(confusion, "test:"))
    return file.getvalue()


def test_counts_and_scores_are_their_definitions() -> None:
    said, true = drawn("abcd")
    found = Confusion.of(said, true)
    for row, one in enumerate("abcd"):
        for column, other in enumerate("abcd"):
            pairs = zip(true, said, strict=True)
            assert found.counts_CC[row, column] == sum(pair == (one, other) for pair in pairs)
        hits = sum(t == s == one for t, s in zip(true, said, strict=True))
        precision, recall, f1, support = found.scores()[one]
        assert (precision, recall) == pytest.approx((100 * hits / said.count(one), 100 * hits / true.count(one)))
        assert f1 == pytest.approx(2 * precision * recall / (precision + recall))
        assert support == true.count(one)
    assert 100 * found.counts_CC.trace() / 200 == pytest.approx(accuracy_tally(said, true).value)
    mean = sum(each.f1 for each in found.scores().values()) / 4
    assert mean == pytest.approx(macro_f1_tally(said, true).value)


def test_labels_that_no_example_has_are_shown_and_score_nothing() -> None:
    found = Confusion.of(["a", "b"], ["a", "a"], labels=["c", "b", "a"])
    assert found.labels == ("c", "b", "a")
    assert found.counts_CC.tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 1]]
    assert found.scores()["c"] == (0, 0, 0, 0)
    assert found.scores()["a"] == pytest.approx((100, 50, 200 / 3, 2))


def test_of_several_references_the_one_that_was_found_counts() -> None:
    assert Confusion.of(["b", "c"], [["a", "b"], ["a", "b"]]).to_dict()["counts"] == {"b": {"b": 1}, "a": {"c": 1}}
    with pytest.raises(InputError):
        Confusion.of([], [])


def test_it_survives_json() -> None:
    found = Confusion.of(*drawn("正负abc"))
    again = Confusion.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.labels == found.labels
    assert (again.counts_CC == found.counts_CC).all()


def test_rare_labels_are_put_together() -> None:
    said, true = drawn("abcdefghijklmnopqrstuvwxyz", 3000)
    found = Confusion.of(said, true)
    few = found.of_most_frequent(20)
    kept = sorted(sorted(set(true), key=lambda label: -true.count(label))[:20])
    assert few.labels == (*kept, "others")
    assert few.counts_CC.sum() == 3000
    assert few.counts_CC[0, 1] == found.counts_CC[found.labels.index(kept[0]), found.labels.index(kept[1])]
    rare = [label not in kept for label in true]
    assert few.counts_CC[-1].sum() == sum(rare)
    assert few.counts_CC[-1, -1] == sum(one and other not in kept for one, other in zip(rare, said, strict=True))
    assert found.of_most_frequent(26) is found
    assert "16 others" in shown(found)


def test_the_table_has_counts_and_shares() -> None:
    lines = shown(Confusion.of([*"aabb"], [*"aaab"])).splitlines()
    assert [line.split() for line in lines] == [
        ["test:"],
        ["true", "\\", "predicted", "a", "b", "precision", "recall", "F1"],
        ["a", "2", "1", "100.0", "66.7", "80.0"],
        ["b", "0", "1", "50.0", "100.0", "66.7"],
    ]
    assert "[a]" in shown(Confusion.of(["[a]", "b"], ["[a]", "b"]))  # no markup


@pytest.mark.parametrize("labels", ["ab", "正负中立", "abcdefghijklmnopqrstuvwxyz"])
def test_the_figure_names_labels_and_counts(labels: str) -> None:
    pytest.importorskip("matplotlib")
    found = Confusion.of(*drawn(labels, 3000))
    figure = confusion_figure(found, "A title")
    few = found.of_most_frequent(20)
    [axes] = figure.axes
    assert [each.get_text() for each in axes.get_yticklabels()] == list(few.labels)
    assert [each.get_text() for each in axes.get_xticklabels()] == list(few.labels)
    assert sorted(each.get_text() for each in axes.texts) == sorted(f"{n:,}" for n in few.counts_CC.flat if n)
    width, height = figure.get_size_inches() * figure.dpi
    for text in [*axes.get_yticklabels(), *axes.get_xticklabels()]:
        box = text.get_window_extent()
        assert 0 <= box.x0 <= box.x1 <= width
        assert 0 <= box.y0 <= box.y1 <= height
