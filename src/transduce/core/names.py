"""Names of recipes, variants and the like, which become names of folders and files."""

import unicodedata
from typing import Annotated

from pydantic import AfterValidator

LONGEST = 200  # bytes; file systems take 255, and names get endings such as -teacher-1
NOT_SHOWN = {"Cc", "Cs", "Zl", "Zp"}  # categories of Unicode: controls, halves of characters, breaks of lines


def checked_name(name: str) -> str:
    """The same. Raises ValueError for what is no name of one file or folder."""
    if problem := _problem(name):
        raise ValueError(f"expected a name, such as my-model; got {name!r:.100}, {problem}")
    return name


def _problem(name: str) -> str:
    if not name.strip():
        return "which is empty"
    if name in (".", ".."):
        return "which is a folder"
    if "/" in name or "\\" in name:
        return "which is a path"
    if any(unicodedata.category(each) in NOT_SHOWN for each in name):
        return "which has characters that cannot be seen"
    if len(name.encode()) > LONGEST:
        return f"which is longer than {LONGEST} bytes"
    return ""


Name = Annotated[str, AfterValidator(checked_name)]
