"""Tags behind a word, such as the features of inflection in "Bluff | N;DAT;SG": what they are, from the texts alone."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

MOST = 500  # different tags
OFTEN = 10  # times that a tag occurs, on average
ONE_TAG = "\ue000"  # stands for a tag where texts are counted


class Tags(NamedTuple):
    """pattern: what a tag looks like in a text, with what stands before it. different: how many there are."""

    pattern: str
    different: int

    def shortened(self, text: str) -> str:
        """The text with one character for each tag."""
        return re.sub(self.pattern, ONE_TAG, text)


def tags_in(texts: Sequence[str], separator: str) -> Tags | None:
    """The tags in these texts of several columns; None where the further columns are something else.

    separator: what stands between the columns. Tags in one column stand between semicolons or commas.
    """
    before = "".join(f"[{each}]" if each in "|.^$*+?()[{\\" else each for each in separator)
    pattern = f"{before}[^;,\\s]+|[;,][^;,\\s]+"
    further = [text[text.index(separator) :] for text in texts if separator in text]
    found = Counter(match for text in further for match in re.findall(pattern, text))
    left = sum(len(re.sub(pattern, "", text).strip()) for text in further)
    if not separator.strip() or not found or left or len(found) > MOST or found.total() < OFTEN * len(found):
        return None
    return Tags(pattern, len(found))
