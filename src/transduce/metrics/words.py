"""Split text into words, in any script, for ROUGE and the textbook formulas.

ROUGE's own tokenizer keeps a-z and 0-9 alone: identical Chinese sentences score 0 there, and `Straße Übung` becomes
stra, e, bung. On ASCII text this one gives exactly what that one gives.
"""

import unicodedata
from functools import cache

UNSPACED = ("CJK ", "HIRAGANA ", "KATAKANA ", "THAI ", "LAO ", "KHMER ", "MYANMAR ")


def words(text: str) -> list[str]:
    """Lower-cased runs of letters, digits and the marks on them; where a script writes no spaces, each letter alone.

    Punctuation and symbols separate and are left out. Composed and decomposed accents are the same (NFC).
    """
    found: list[str] = []
    open_to = ""  # what may join the last word: "LNM" after a letter, "M" after one that stands alone
    for letter in unicodedata.normalize("NFC", text.lower()):
        kind = unicodedata.category(letter)[0]
        alone = kind in "LN" and _stands_alone(letter)
        if kind in open_to and not alone:
            found[-1] += letter
        elif kind in "LN":
            found.append(letter)
            open_to = "M" if alone else "LNM"
        else:
            open_to = ""
    return found


@cache
def _stands_alone(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(UNSPACED)
