"""UTF-8 that was read as GBK, the commonest damage to Chinese texts: 杩欎粈涔 for 这什么.

Two of the three bytes of a Chinese character make one wrong character, so the bytes of the wrong ones are valid UTF-8
of one script. Those of Chinese text hardly ever are. A byte without a partner is lost in the damage: what stands
before it can be told, and not repaired.
"""

import re
from codecs import getincrementaldecoder

STRETCH = re.compile("[^\x00-\x7f\ufffd]+")  # between ASCII and what is lost
HAN = re.compile("[\u3400-\u9fff]")
FEWEST = 4  # characters of a stretch that are Chinese, to tell from
SCRIPTS = (
    "\u3000-\u30ff\u3400-\u9fff\uff00-\uffef",  # Chinese, Japanese
    "\uac00-\ud7a3",
    "\u0400-\u04ff",
    "\u0370-\u03ff",
    "\u0590-\u05ff",
    "\u0600-\u06ff",
    "\u0e00-\u0e7f",
)
OF_ONE_SCRIPT = re.compile("|".join(f"[\x00-\x7f\u2000-\u206f{script}]+" for script in SCRIPTS))
Decoder = getincrementaldecoder("utf-8")


def read_as_gbk(text: str) -> bool:
    """Whether a stretch of the text is UTF-8 that was read as GBK."""
    return any(_is_utf8(each) for each in STRETCH.findall(text))


def without_gbk(text: str) -> str:
    """The text as it was, where it was read as GBK and nothing was lost; else the text itself."""
    if not read_as_gbk(text):
        return text
    try:
        return text.encode("gb18030").decode("utf-8")
    except UnicodeError:
        return text


def _is_utf8(stretch: str) -> bool:
    """Whether the bytes of wrong characters are UTF-8 of one script, of which the last character may lack some."""
    if len(HAN.findall(stretch)) < FEWEST:
        return False
    try:
        right = Decoder().decode(stretch.encode("gb18030"))
    except UnicodeError:
        return False
    return bool(OF_ONE_SCRIPT.fullmatch(right))
