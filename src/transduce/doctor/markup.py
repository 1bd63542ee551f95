"""HTML that was left in text: tags such as <br>, and entities such as &amp; for &."""

import html
import re
from html.entities import html5

NAMES = (
    "a|abbr|b|blockquote|body|br|center|code|dd|div|dl|dt|em|font|h[1-6]|head|hr|html|i|img|li|ol|p|pre|script|small"
    "|span|strike|strong|style|sub|sup|table|tbody|td|th|title|tr|tt|u|ul"
)
TAG = re.compile(rf"</?(?:{NAMES})(?:\s[^<>]*)?/?>", re.IGNORECASE)
ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")


def has_markup(text: str) -> bool:
    """Whether a tag of HTML or an entity stands in the text."""
    if "<" in text and TAG.search(text):
        return True
    return "&" in text and any(_is_known(found[0]) for found in ENTITY.finditer(text))


def without_entities(text: str) -> str:
    """The text with the characters that its entities stand for; a space for one that is a space or no letter."""
    return ENTITY.sub(_character, text) if "&" in text else text


def _is_known(entity: str) -> bool:
    return entity[1] == "#" or entity[1:] in html5


def _character(found: re.Match[str]) -> str:
    text = html.unescape(found[0]) if _is_known(found[0]) else found[0]
    return text if text.isprintable() else " "
