"""Texts that are names for programs: codes, paths, addresses."""

import re

IDENTIFIER = re.compile(r"(?=[\x21-\x7e]*[\d_/\\@#.:=][\x21-\x7e])[\x21-\x7e]+")


def is_identifier(text: str) -> bool:
    """Whether it is one word of ASCII with a digit, a slash or the like inside, such as AB-12 or img/a.png."""
    return IDENTIFIER.fullmatch(text) is not None
