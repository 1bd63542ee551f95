"""Options of `transduce-runtime` that several of its commands have, for argparse."""

from typing import Any

from transduce.search.keys import SearchKey
from transduce.search.plain_settings import METHODS, READ


def _option(name: str, key: SearchKey) -> dict[str, Any]:
    if name == "method":
        return {"choices": METHODS, "help": "The search method."}
    kind = {"choices": key.kind} if isinstance(key.kind, tuple) else {"type": key.kind}
    return {**kind, "dest": name, "help": key.help}


SEARCH = {f"--{key.flag or name.replace('_', '-')}": _option(name, key) for name, key in READ.items() if key.help}
"""Options that are keys of search."""
PRECISION: dict[str, Any] = {
    "choices": ["fp32", "int8"],
    "default": "fp32",
    "help": "The precision of matrix products.",
}
