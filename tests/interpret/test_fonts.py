"""Figures in any script: fonts that are installed are found, and what is missing is told once."""

import contextlib
import itertools
import os
import subprocess
import sys
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from fontTools.fontBuilder import FontBuilder  # which matplotlib brings
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

from transduce.interpret import fonts
from transduce.interpret.drawing import save
from transduce.interpret.figures import attention_figure
from transduce.interpret.fonts import FontWarning, what_to_install


@pytest.fixture(scope="module")
def unknown() -> str:
    """Two letters that no font of this machine has."""
    known: set[int] = set()
    paths = {font.fname for font in font_manager.fontManager.ttflist if not font.name.startswith("Last Resort")}
    for path in paths | set(font_manager.findSystemFonts()):
        with contextlib.suppress(OSError, RuntimeError):
            known.update(FT2Font(path).get_charmap())
    letters = (chr(each) for each in range(0x1000, 0x32000) if each not in known)
    return "".join(itertools.islice((each for each in letters if unicodedata.category(each) == "Lo"), 2))


def tiny_font(path: Path, letters: str, name: str) -> Path:
    """A font in which each of these letters is a square."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pen = TTGlyphPen(None)
    for number, place in enumerate([(100, 0), (100, 700), (700, 700), (700, 0)]):
        pen.lineTo(place) if number else pen.moveTo(place)
    pen.closePath()
    square = pen.glyph()
    names = [".notdef", *(f"u{ord(each):x}" for each in letters)]
    builder = FontBuilder(1000)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(each): glyph for each, glyph in zip(letters, names[1:], strict=True)})
    builder.setupGlyf(dict.fromkeys(names, square))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (800, 100)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": name, "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=800, usWeightClass=400)
    builder.setupPost()
    builder.save(path)
    return path


def drawn(path: Path, *words: str) -> tuple[list[list[str]], list[warnings.WarningMessage]]:
    """The families of each label, and all that was warned of until the figure was saved."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        figure = attention_figure(words, ["a"], np.ones((len(words), 1)))
        save(figure, path)
    return [label.get_fontfamily() for label in figure.axes[0].get_yticklabels()], warned


def test_each_letter_comes_from_a_font_that_has_it(
    unknown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [*font_manager.fontManager.ttflist])
    for number, letter in enumerate(unknown):
        font_manager.fontManager.addfont(tiny_font(tmp_path / f"{number}.ttf", letter, f"Tiny {number}"))
    families, warned = drawn(tmp_path / "f.png", "latin", unknown[0], f"b{unknown}c")
    assert not warned
    assert [[each for each in label if "Tiny" in each] for label in families] == [[], ["Tiny 0"], ["Tiny 0", "Tiny 1"]]
    assert all(label[0] == "DejaVu Sans" for label in families)


def test_letters_without_a_font_are_told_once(unknown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "told", set())
    families, warned = drawn(tmp_path / "f.png", "latin", unknown)
    assert [each.category for each in warned] == [FontWarning]
    assert what_to_install(unknown) in str(warned[0].message)
    assert families[0] == families[1]
    assert not drawn(tmp_path / "f.png", "latin", unknown)[1]


@pytest.mark.parametrize(
    ("letters", "package"),
    [("今天", "fonts-noto-cjk"), ("カな", "fonts-noto-cjk"), ("한", "fonts-noto-cjk"), ("हि", "fonts-noto-core"),
     ("ع", "fonts-noto-core"), ("今ع", "fonts-noto-cjk fonts-noto-core")],
)  # fmt: skip
def test_the_package_is_that_of_the_script(letters: str, package: str) -> None:
    assert f"apt-get install {package};" in what_to_install(letters)


def test_a_font_that_was_installed_later_is_found(unknown: str, tmp_path: Path) -> None:
    """matplotlib keeps a list of fonts between processes, and looks no second time by itself."""
    code = (
        "import numpy as np\nfrom transduce.interpret.figures import attention_figure\n"
        f"figure = attention_figure(['{unknown}'], ['a'], np.ones((1, 1)))\n"
        "print(figure.axes[0].get_yticklabels()[0].get_fontfamily())"
    )
    known = {**os.environ, "MPLCONFIGDIR": str(tmp_path / "config"), "XDG_DATA_HOME": str(tmp_path / "data")}

    def said() -> str:
        done = subprocess.run([sys.executable, "-c", code], env=known, capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    assert "apt-get install" in said()
    tiny_font(tmp_path / "data" / "fonts" / "tiny.ttf", unknown, "Tiny Unknown")
    assert "Tiny Unknown" in (after := said()) and "apt-get install" not in after
