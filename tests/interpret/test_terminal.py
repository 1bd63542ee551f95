"""Pictures in the terminal, rendered for real: with colour, without, in ASCII, in a narrow window."""

import io
import re

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from transduce.core.errors import InputError
from transduce.interpret.colours import glow
from transduce.interpret.terminal import heat_map, shaded_text, spotlight

ENGLISH = ["The", "animal", "was", "too", "tired"]
FRENCH = ["L'", "animal", "était", "trop", "fatigué"]
WEIGHTS = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [0.25, 0.75, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.5, 0.25, 0.25],
        [0.0, 0.0, 0.0, 1.0, 0.0],
        [0.0, 0.25, 0.0, 0.25, 0.5],
    ]
)


def plain(picture, width=80, encoding="utf-8"):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    Console(file=file, width=width, no_color=True, force_terminal=False).print(picture)
    file.flush()
    return file.buffer.getvalue().decode(encoding).split("\n")


def coloured(picture, width=80):
    console = Console(record=True, width=width, color_system="truecolor", force_terminal=True, file=io.StringIO())
    console.print(picture)
    return console.export_text(styles=True, clear=False), console.export_text()


def test_heat_map_without_colour():
    assert [line.rstrip() for line in plain(heat_map(FRENCH, ENGLISH, WEIGHTS))] == [
        "          a",
        "          n     t",
        "          i     i",
        "        T m w t r",
        "        h a a o e",
        "        e l s o d",
        "     L' ██",
        " animal ░░▓▓",
        "  était     ▒▒░░░░",
        "   trop       ██",
        "fatigué   ░░  ░░▒▒",
        "",
        "        0   ░░░░▒▒▒▒▓▓▓▓██ 1.00",
        "",
    ]


def test_heat_map_in_ascii():
    lines = plain(heat_map(["a", "b"], ["x", "y"], np.eye(2)), encoding="ascii")
    assert [line.rstrip() for line in lines[:3]] == ["  x y", "a ##", "b   ##"]


def test_heat_map_cells_have_the_colour_of_their_weight():
    with_styles, _ = coloured(heat_map(FRENCH, ENGLISH, WEIGHTS))
    for weight in np.unique(WEIGHTS):
        red, green, blue = (round(255 * channel) for channel in glow(weight))
        assert f"38;2;{red};{green};{blue};48;2;{red};{green};{blue}m" in with_styles


def test_a_wide_map_is_continued_below_and_never_wraps():
    columns = [f"w{i}" for i in range(60)]
    weights = np.random.default_rng(0).random((3, 60))
    lines = plain(heat_map(["one", "two", "three"], columns, weights), width=40)
    assert max(map(cell_len, lines)) <= 40
    labels = [line[:5].strip() for line in lines]
    assert labels.count("two") == -(-60 // ((40 - 6) // 2))
    cells = "".join(line[6:].ljust(34) for line in lines if line.startswith("three"))
    shown = cells[: 2 * 60 : 2]
    scaled = weights[2] / weights.max()
    assert shown == "".join(" ░▒▓█"[round(share * 4)] for share in scaled)


def test_labels_that_would_move_the_cursor_are_made_visible():
    _, text = coloured(heat_map(["\n", "\x1b[31m"], ["我", "a\tb"], np.eye(2)))
    assert "\x1b" not in text
    assert "␣" in text
    assert "我" in text


def test_labels_are_no_markup():
    assert "[bold]" in "".join(plain(spotlight(["[bold]", "x"], np.array([0.1, 0.9]), query="[/red]")))


def test_spotlight_bars_are_as_long_as_the_weights():
    weights = np.array([0.05, 0.6, 0.15, 0.0, 0.2])
    title, *lines, end = plain(spotlight(ENGLISH, weights, query="it"))
    assert title == "it attends to"
    assert end == ""
    for word, weight, line in zip(ENGLISH, weights, lines, strict=True):
        match = re.fullmatch(r"(\w+) +(\d\.\d\d) (█*)([▏▎▍▌▋▊▉]?) *", line)
        assert match[1] == word
        assert float(match[2]) == pytest.approx(weight)
        eighths = 8 * len(match[3]) + " ▏▎▍▌▋▊▉".index(match[4] or " ")
        assert eighths == round(weight / 0.6 * 32 * 8)


def test_spotlight_fits_a_narrow_window():
    assert max(map(cell_len, plain(spotlight(ENGLISH, np.full(5, 0.2)), width=24))) <= 24


def test_shaded_text():
    text = " ".join(ENGLISH)
    ends = np.cumsum([len(word) + 1 for word in ENGLISH]) - 1
    spans = [(int(end) - len(word), int(end)) for word, end in zip(ENGLISH, ends, strict=True)]
    picture = shaded_text(text, spans, np.array([0.0, 0.8, 0.2, 0.0, 0.4]), "")
    assert plain(picture)[0].rstrip() == "The animal█ was░ too tired▒"
    with_styles, _ = coloured(picture)
    red, green, blue = (round(255 * channel) for channel in glow(1))
    assert f"48;2;{red};{green};{blue}manimal" in with_styles


def test_nothing_at_all_is_no_error():
    assert plain(heat_map([], [], np.zeros((0, 0))))
    assert plain(heat_map(["a"], ["b"], np.zeros((1, 1))))
    assert plain(spotlight([], np.zeros(0)))


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        (np.ones(3), r"expected shape \(5,\).*got \(3,\)"),
        (np.array([0, 1, np.nan, 0, 0]), r"1 of 5 are negative or not finite, the first at \(2,\)"),
        (np.array([0, -1, 0, -2, 0.0]), "2 of 5 are negative"),
    ],
)
def test_wrong_weights_are_refused(weights, problem):
    with pytest.raises(InputError, match=problem):
        spotlight(ENGLISH, weights)


def test_transposed_weights_are_refused():
    with pytest.raises(InputError, match=r"expected shape \(2, 3\).*got \(3, 2\)"):
        heat_map(["a", "b"], ["x", "y", "z"], np.ones((3, 2)))


def test_emoji_and_flags_stay_whole():
    labels = ["🧑\u200d💻", "🇫🇷", "cafe\u0301"]
    lines = plain(heat_map(labels, labels, np.eye(3)))
    assert "�" not in "".join(lines)
    assert sum(line.count("🧑\u200d💻") for line in lines) == sum(line.count("🇫🇷") for line in lines) == 2
    assert [line.strip() for line in lines[:3]] == ["c", "a", "f"] and "e\u0301" in lines[3]
