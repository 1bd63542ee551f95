"""Fonts for the letters of a figure, in any script; matplotlib's own has no Chinese, Japanese, Korean or Devanagari.

Characters that a text's fonts lack are looked for in all installed fonts, and the fonts that have them are put behind
its own, so that matplotlib takes each character from the first font that has it. Letters that no font has are told.
"""

import unicodedata
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

PREFERRED = (  # where several fonts have a letter, the first of these families; else sans-serif ones before others
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei",
    "Microsoft YaHei", "PingFang SC", "Hiragino Sans", "Arial Unicode MS",
)  # fmt: skip
CJK = ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "BOPOMOFO", "HANGUL", "FULLWIDTH", "HALFWIDTH")
REGULAR = ("400", "normal", "regular")
PLACEHOLDERS = ("Last Resort",)  # has a box for every character, and comes with matplotlib
PACKAGES = {"fonts-noto-cjk": "Chinese, Japanese and Korean", "fonts-noto-core": "most other scripts"}
told: set[str] = set()  # warnings, each of which is given once: Python's own count is lost with every changed filter


class FontWarning(UserWarning):
    """No installed font has some letters of a figure."""


def add_fonts(figure: "Figure") -> None:
    """Give each text of `figure` the fonts that have its characters.

    Warns (`FontWarning`) of letters that no font has, once in a process for each package that would have them.
    """
    missing: set[str] = set()
    for text in _texts(figure):
        lacking = _lacking(text.get_text(), text.get_fontfamily())
        if lacking:
            found = _families(lacking)
            first, *others = text.get_fontfamily()
            text.set_fontfamily([first, *found, *others])
            missing |= _lacking("".join(lacking), found)
    letters = sorted(each for each in missing if unicodedata.category(each)[0] in "LM")
    if letters and (sentence := what_to_install(letters)) not in told:
        told.add(sentence)
        warnings.warn(sentence, FontWarning, stacklevel=4)


def what_to_install(letters: Iterable[str]) -> str:
    """What to install for letters that no font has."""
    needed = sorted({_package(each) for each in letters})
    scripts = " and ".join(PACKAGES[each] for each in needed)
    return (
        "No installed font has some letters of the figures, which show boxes in their place. On Debian and Ubuntu: "
        f"apt-get install {' '.join(needed)}; elsewhere install Noto fonts for {scripts}."
    )


def _package(letter: str) -> str:
    return "fonts-noto-cjk" if unicodedata.name(letter, "").split(" ")[0] in CJK else "fonts-noto-core"


def _texts(figure: "Figure") -> "list[Text]":
    from matplotlib.text import Text

    return [each for each in figure.findobj(Text) if isinstance(each, Text) and each.get_text().strip()]


def _lacking(text: str, families: Iterable[str]) -> set[str]:
    """The characters of `text` that no font of these families has."""
    from matplotlib.font_manager import FontProperties, findfont

    lacking = {each for each in text if each.isprintable() and not each.isspace()}
    for family in families:
        if not lacking:
            break
        path = findfont(FontProperties(family=[family]))
        letters = _letters(path)
        lacking = {each for each in lacking if ord(each) not in letters}
    return lacking


@cache
def _letters(path: str) -> frozenset[int]:
    """The code points that a font has."""
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):  # a damaged file, or one that FreeType does not read
        return frozenset()


def _families(letters: Iterable[str]) -> list[str]:
    """The installed fonts that have these letters, as far as there are any, the preferred first."""
    found: list[str] = []
    lacking = {ord(each) for each in letters}
    for known in (_installed(), _installed(new=True)):
        for name, path in known:
            has = lacking & _letters(path)
            if has:
                found.append(name)
                lacking -= has
            if not lacking:
                return found
    return found


def _installed(new: bool = False) -> list[tuple[str, str]]:
    """Family and file of each upright font, the preferred first.

    new: also those that were installed since matplotlib last looked, which it does not do by itself.
    """
    from matplotlib import font_manager

    manager = font_manager.fontManager
    if new:
        known = {Path(font.fname) for font in manager.ttflist}
        for path in sorted({Path(each) for each in font_manager.findSystemFonts()} - known):
            try:
                manager.addfont(path)
            except (OSError, RuntimeError):
                continue
    upright = [
        font
        for font in manager.ttflist
        if font.style == "normal" and str(font.weight) in REGULAR and not font.name.startswith(PLACEHOLDERS)
    ]
    ordered = sorted(upright, key=lambda font: (_rank(font.name), font.name, font.fname))
    return [(font.name, font.fname) for font in ordered]


def _rank(name: str) -> int:
    if name in PREFERRED:
        return PREFERRED.index(name)
    return len(PREFERRED) + ("Sans" not in name) + ("Mono" in name)
