"""The texts that a model file holds as examples of what the model is given."""

from collections.abc import Mapping
from typing import Any

EXAMPLES, LONGEST = 16, 2000  # texts, characters of one: a model file may hold anything


def example_texts(provenance: Mapping[str, Any]) -> list[str]:
    """Those that can be shown; older files have none."""
    found = provenance.get("examples")
    texts = [text for text in found if isinstance(text, str)] if isinstance(found, list) else []
    whole = [text for text in texts if text.encode(errors="ignore").decode() == text]  # no half of a surrogate pair
    return [text for text in whole if text.strip() and len(text) <= LONGEST][:EXAMPLES]
