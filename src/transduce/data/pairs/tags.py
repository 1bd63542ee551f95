"""Tags behind a word, such as the features of inflection in "Bluff | N;DAT;SG": what they are, from the texts alone."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

MOST = 500  # different tags
OFTEN = 10  # times that a tag occurs, on average
BETWEEN = ";,"  # the tags of one column
ONE_TAG = "\ue000"  # stands for a tag where texts are counted


class Tags(NamedTuple):
    """pattern: what a tag looks like in a text, with what stands before it. different: how many there are.

    in_a_text: how many a text has, on average.
    """

    pattern: str
    different: int
    in_a_text: float = 0.0

    def shortened(self, text: str) -> str:
        """The text with one character for each tag."""
        return re.sub(self.pattern, ONE_TAG, text)


def tags_in(texts: Sequence[str], separator: str) -> Tags | None:
    """The tags in these texts of several columns; None where the further columns are something else.

    separator: what stands between the columns. Tags in one column stand between semicolons or commas,
        if no word has one.
    """
    if not separator.strip():
        return None
    parted = [text.partition(separator) for text in texts]
    marks = "".join(mark for mark in BETWEEN if not any(mark in word for word, _, _ in parted))
    before = re.escape(separator).replace("\\ ", " ")
    pattern = f"{before}[^{BETWEEN}\\s]+" + (f"|[{marks}][^{BETWEEN}\\s]+" if marks else "")
    tagged = [between + further for _, between, further in parted]
    found = Counter(match for text in tagged for match in re.findall(pattern, text))
    left = sum(len(re.sub(pattern, "", text).strip()) for text in tagged)
    if not found or left or len(found) > MOST or found.total() < OFTEN * len(found):
        return None
    return Tags(pattern, len(found), found.total() / len(texts))
