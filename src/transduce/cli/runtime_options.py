"""Options of `transduce-runtime` that several of its verbs have, for argparse."""

from typing import Any

SEARCH: dict[str, dict[str, Any]] = {
    "--method": {"choices": ["greedy", "beam"], "help": "The search method."},
    "--beam": {"type": int, "help": "The beam width."},
    "--prune": {"type": float, "help": "Drop hypotheses that are this many nats less likely than the best."},
    "--length-rule": {"choices": ["power", "gnmt", "none"], "help": "How outputs are ranked."},
    "--alpha": {"type": float, "help": "The exponent in --length-rule."},
    "--nbest": {"type": int, "help": "How many outputs to list for each line, with --json."},
    "--max-new": {
        "type": int,
        "dest": "max_length_offset",
        "help": "How many tokens longer an output may be than search.max_length_factor times its source.",
    },
    "--shortlist": {"type": int, "help": "Allow only this many candidates for each source token."},
}
"""Options that are keys of search."""
PRECISION: dict[str, Any] = {
    "choices": ["fp32", "int8"],
    "default": "fp32",
    "help": "The precision of matrix products.",
}
