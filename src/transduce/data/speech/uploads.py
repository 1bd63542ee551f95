"""The bytes of a sound file as a data: URL, which may hold the file's name: data:audio/*;name=7.wav;base64,UklGR..."""

import base64
import re
from urllib.parse import quote, unquote

DATA = "data:"
UPLOADED = re.compile(r"data:[^,;]*;name=([^,;]*);base64,")
SHOWN = 80  # characters of a name in a message


def called(name: str) -> str:
    """What messages call a recording. The bytes of an upload are called by the name of its file, if they have one."""
    if not name.startswith(DATA):
        return name[:SHOWN]
    found = UPLOADED.match(name)
    given = unquote(found[1]) if found else ""
    return "".join(each if each.isprintable() else "?" for each in given)[:SHOWN] or "the recording"


def uploaded(content: bytes, file: str = "") -> str:
    """The bytes of a sound file as a data: URL, with the name of the file."""
    return f"{DATA}audio/*;name={quote(file, safe='', errors='replace')};base64,{base64.b64encode(content).decode()}"
