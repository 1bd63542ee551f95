"""What a model file holds as examples of what the model is given: texts, or recordings as data: URLs."""

from collections.abc import Mapping
from typing import Any

from transduce.data.speech.uploads import DATA

EXAMPLES, LONGEST = 16, 2000  # texts, characters of one: a model file may hold anything
SOUND = 200_000  # characters of a recording


def example_texts(provenance: Mapping[str, Any], sound: bool = False) -> list[str]:
    """Those that can be shown; older files have none. sound: whether they are recordings."""
    found = provenance.get("examples")
    texts = [text for text in found if isinstance(text, str)] if isinstance(found, list) else []
    whole = [text for text in texts if text.encode(errors="ignore").decode() == text]  # no half of a surrogate pair
    longest = SOUND if sound else LONGEST
    fitting = [text for text in whole if text.strip() and len(text) <= longest and text.startswith(DATA) is sound]
    return fitting[:EXAMPLES]
