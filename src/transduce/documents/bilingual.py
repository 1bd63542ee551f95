"""FileLanguages of files that hold texts and their translations."""

from typing import NamedTuple

from transduce.core.languages import base_of


class FileLanguages(NamedTuple):
    """What a model reads and writes; "" = nobody says."""

    source: str = ""
    target: str = ""


def same_language(one: str, other: str) -> bool:
    """Whether two codes may mean one language: case, and a region that only one of them has, do not matter."""
    plain = [each.replace("_", "-").lower() for each in (one, other)]
    return plain[0] == plain[1] or (base_of(one) == base_of(other) and any("-" not in each for each in plain))
