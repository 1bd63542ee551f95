"""The pages on attention that people use say what the records say."""

from types import ModuleType
from typing import Any

import pytest

from scripts import loaded


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    return loaded("docs/make_attention_pages.py")


def figure(mean: float) -> dict[str, Any]:
    return {"mean": mean, "interval": [mean - 1, mean + 0.5], "seeds": {"1": mean - 0.5, "2": mean + 0.5}}


RECORD: dict[str, Any] = {
    "comparison": "cards",
    "rows": 1000,
    "budget": "300ktok",
    "commit": "abc",
    "machine": "a processor",
    "torch": "2.13",
    "variants": {
        "soft": {"right": figure(98.0), "share": figure(97.5), "seen": figure(60.0)},
        "hard": {"right": figure(90.0), "share": figure(99.5), "seen": figure(90.0)},
        "mean": {"right": figure(20.0)},
    },
    "drawn": [
        {
            "text": "R7 B3 B8",
            "label": "11",
            "variants": {
                "soft": {"answer": "11", "hops": [[0.0, 0.5, 0.5], [0.1, 0.0, 0.9]]},
                "hard": {"answer": "12", "hops": [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]},
            },
        }
    ],
}


DIGITS: dict[str, Any] = {
    "training": 898,
    "test": 899,
    "seeds": [1, 2],
    "epochs": 3,
    "parameters": {"attention": 1081, "convolution": 1000},
    "accuracy": {"attention": figure(94.0), "convolution": figure(96.0), "moved": figure(93.5)},
    "difference": {"value": -2.0, "interval": [-3.0, -1.0], "p_value": 0.002},
    "heads": {
        seed: [
            {
                "before": {**heads, "distance": 0.4, "on_one_pixel": 0.25, "pixels": 2},
                "after": {**heads, "distance": distance, "on_one_pixel": 0.9, "pixels": 1},
            }
        ]
        for seed, distance in (("1", 0.1), ("2", 0.2))
        for heads in [{"centres": [[0.9, 0.0], [1.0, -2.0]], "sharpness": [4.0, 8.0]}]
    },
    "commit": "abc",
    "machine": "a processor",
    "torch": "2.13",
}


@pytest.mark.parametrize("name", ["PEOPLE", "CONVOLUTION"])
def test_a_page_is_up_to_date(pages: ModuleType, name: str) -> None:
    path = getattr(pages, name)
    assert path.read_text(encoding="utf-8") == pages.page(path), "run: python docs/make_attention_pages.py"


def test_the_record_of_digits_becomes_tables(pages: ModuleType) -> None:
    text = pages.found_of_digits(DIGITS)
    assert "| convolution | 1,000 | 96.0 [95.0, 96.5] | 95.5, 96.5 |" in text
    assert "| attention, each head moved to its pixel | 1,081 | 93.5 [92.5, 94.0] | 93.0, 94.0 |" in text
    assert "Attention minus convolution: -2.0 [-3.0, -1.0], p = 0.002." in text
    assert "changes the accuracy of attention by -0.5." in text
    assert "| 1 | 0.40 → 0.15 | 25 % → 90 % | 2.0 → 1.0 |" in text


def test_the_figure_of_heads_shows_centres_and_widths(pages: ModuleType) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.patches import Circle

    before, after = pages.draw_heads(DIGITS["heads"]["1"]).axes
    assert [before.get_title(loc="left"), after.get_title(loc="left")] == ["layer 1, before", "layer 1, after"]
    circles = [each for each in after.patches if isinstance(each, Circle)]
    assert [each.center for each in circles] == [(0.0, 0.9), (-2.0, 1.0)]  # columns go across, rows down
    assert [each.radius for each in circles] == pytest.approx([8**-0.5, 0.25])


def test_a_record_becomes_a_table_and_a_sentence(pages: ModuleType) -> None:
    text = pages.found(RECORD, "the black cards")
    soft = "| `soft` | 98.0 [97.0, 98.5] | 97.5 [96.5, 98.0] | 60.0 [59.0, 60.5] | 97.0, 98.0 |"
    assert soft in text
    assert "| `mean` | 20.0 [19.0, 20.5] |  |  |  |" in text
    assert (
        "this is on the black cards: `soft` 97.5 %, `hard` 99.5 %. At most 2.5 % goes anywhere else (`soft`)." in text
    )
    assert "seeds 1, 2; 1,000 rows" in text
    page = f"before\n<!-- cards -->\nold\n{pages.END}after\n"
    assert pages.between(page, "<!-- cards -->\n", text) == f"before\n<!-- cards -->\n{text}{pages.END}after\n"


def test_the_figure_shows_every_hop(pages: ModuleType) -> None:
    pytest.importorskip("matplotlib")
    drawn = pages.draw(RECORD["drawn"])
    [axes] = drawn.axes
    texts = [each.get_text() for each in axes.texts]
    assert texts[:3] == ["7", "3", "8"]  # cards; their colours are drawn
    assert [each.get_color() for each in axes.texts[:3]] == ["#c1121f", "#1d2433", "#1d2433"]
    assert {"soft, hop 1", "soft, hop 2", "hard, hop 1", "hard, hop 2", "answers 11", "answers 12", "= 11"} <= set(
        texts
    )
    assert len(axes.patches) == 4 * 3
