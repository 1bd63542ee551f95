"""What keys of recipes and model files were called earlier, so that those written then can be read."""

from collections.abc import Collection, Mapping
from typing import Any

EARLIER_NAMES = {"weighing": "normalizer", "pooling_weighing": "pooling_normalizer"}


def current_names(table: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The table with the names of today for those of `known` that it calls by an earlier one.

    Raises:
        ValueError: a key is there by both names.
    """
    renamed = {old: new for old, new in EARLIER_NAMES.items() if old in table and new in known and old not in known}
    for old, new in renamed.items():
        if new in table:
            raise ValueError(f'{old} is called {new} now, and both are there: remove "{old}"')
    return {renamed.get(key, key): value for key, value in table.items()}
