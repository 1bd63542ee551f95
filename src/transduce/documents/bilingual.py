"""FileLanguages of files that hold texts and their translations."""

from typing import NamedTuple


class FileLanguages(NamedTuple):
    """What a model reads and writes; "" = nobody says."""

    source: str = ""
    target: str = ""
