"""How the target's language separates words, which decides how a metric of words must split its text.

The language's code decides. Without one, or with one that does not tell, the script of the references decides.
"""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

Kind = Literal["spaces", "chinese", "japanese", "korean", "unspaced"]

CHINESE = ("zh", "zho", "chi", "cmn", "yue", "wuu", "hak", "nan", "gan", "hsn", "cdo", "lzh")
OTHERS_UNSPACED = ("th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bur", "bo", "bod", "tib", "dz", "dzo")
CODES: dict[str, Kind] = {  # of ISO 639; all others write spaces
    **dict.fromkeys(CHINESE, "chinese"),
    **dict.fromkeys(("ja", "jpn"), "japanese"),
    **dict.fromkeys(("ko", "kor"), "korean"),
    **dict.fromkeys(OTHERS_UNSPACED, "unspaced"),
}
SCRIPT: dict[Kind, str] = {
    "chinese": "Chinese characters",
    "japanese": "Japanese",
    "korean": "Korean",
    "unspaced": "a script without spaces",
}
LETTERS: dict[Kind, re.Pattern[str]] = {
    "chinese": re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"),
    "japanese": re.compile(r"[\u3041-\u3096\u30a1-\u30fa\u30fc\u31f0-\u31ff\uff66-\uff9d]"),
    "korean": re.compile(r"[\u1100-\u11ff\uac00-\ud7a3]+"),  # which writes spaces: a run is a word
    "unspaced": re.compile(r"[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\uaa60-\uaa7f]"),  # Thai, Lao, Tibetan, ..
}
WORD = re.compile(r"[^\W\d_]+")
KANA_SHARE = 0.1  # of Han and kana: Japanese has some five times as much, Chinese next to none


class Writing(NamedTuple):
    """How a text separates its words.

    kind: "spaces", or the writing system whose rules split it.
    reason: a sentence if the script decided and not the language's code, or "".
    """

    kind: Kind
    reason: str = ""


def writing(language: str | None, references: Iterable[Iterable[str]]) -> Writing:
    """How targets in `language` (a code such as zh, zh-CN, zho_Hans) are written; None: as the references are."""
    tags = re.split(r"[-_]", (language or "").lower())
    if tags[0] in CODES and "latn" not in tags:
        return Writing(CODES[tags[0]])
    kind = _script(" ".join(text for several in references for text in several))
    if kind == "spaces":
        return Writing("spaces")
    said = f'the target language is given as "{language}"' if language else "no target language is given"
    return Writing(kind, f"{said}, and the references are mostly {SCRIPT[kind]}.")


def _script(text: str) -> Kind:
    """What most words are written in; a character counts as a word where no spaces are written."""
    found = {kind: len(letters.findall(text)) for kind, letters in LETTERS.items()}
    if not any(found.values()):
        return "spaces"
    if found["japanese"] > KANA_SHARE * (found["japanese"] + found["chinese"]):
        found["japanese"] += found.pop("chinese")
    for letters in LETTERS.values():
        text = letters.sub(" ", text)
    found = {"spaces": len(WORD.findall(text)), **found}
    return max(found, key=lambda kind: found[kind])  # the first of equals
