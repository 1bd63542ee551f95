"""The keys of search, each with its default, bounds and option of the command line, for everything that reads them.

`transduce.search.settings.Search` reads all of them with pydantic, `transduce.search.plain_settings` those of a search
that is one call of a kernel, and the commands make options of them. Nothing here imports pydantic, torch or typer, and
not annotated-types, which takes as long to load as a command's help.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

METHODS = ("greedy", "beam", "sample", "mask_predict", "ctc")
"""What `--method` takes; "exhaustive" is for tests."""


@dataclass(frozen=True, kw_only=True)
class SearchKey:
    """One key. As metadata of a pydantic field it says the bounds.

    kind: of its values: a number, or one of these names.
    default: None = it may be left unset.
    ge, gt, le, lt: bounds of a number, as pydantic calls them.
    only: the one method that uses it; "" = several do.
    plain: what it is to a search that is one call of a kernel: read; "steps": needing a search that goes step by step,
        but for its default; "unread": nothing.
    help: of its option; "" = it has none.
    flag: its option without dashes, where that is not its name.
    """

    kind: type[int] | type[float] | tuple[str, ...]
    default: Any
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    only: str = ""
    plain: Literal["read", "steps", "unread"] = "read"
    help: str = ""
    flag: str = ""

    @property
    def bounds(self) -> dict[str, float]:
        """Those that it has, by name."""
        every = {"ge": self.ge, "gt": self.gt, "le": self.le, "lt": self.lt}
        return {name: bound for name, bound in every.items() if bound is not None}

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """For pydantic: the schema of the type, with the bounds."""
        schema = handler(source)
        number = schema["schema"] if schema["type"] == "nullable" else schema
        number.update(self.bounds)
        return schema


KEYS = {
    "method": SearchKey(
        kind=METHODS,
        default="beam",
        help="The search method. mask_predict and ctc are for models of these kinds.",
    ),
    "beam": SearchKey(kind=int, default=5, ge=1, le=10_000, help="The beam width. 1 is greedy search."),
    "prune": SearchKey(
        kind=float,
        default=None,
        gt=0,
        only="beam",
        help="Drop hypotheses that are this many nats less likely than the best. 1.5 is faster and gives nearly the "
        "same results.",
    ),
    "length_rule": SearchKey(
        kind=("power", "gnmt", "none"),
        default="power",
        help="How outputs are ranked: power is log p / length^alpha, gnmt is log p / ((5 + length) / 6)^alpha, none is "
        "log p.",
    ),
    "alpha": SearchKey(kind=float, default=0.75, ge=0, le=10, help="The exponent in --length-rule."),
    "stopping": SearchKey(
        kind=("slots", "heuristic", "complete", "never"),
        default="slots",
        only="beam",
        help="What ended hypotheses do to a beam. slots: each keeps its slot. The others keep the beam's width, and "
        "stop as transformers does with early_stopping = False, True and never.",
    ),
    "at_limit": SearchKey(kind=("stop", "end"), default="stop"),
    "coverage": SearchKey(
        kind=float,
        default=0.0,
        ge=0,
        le=1000,
        plain="steps",
        help="The weight of the penalty for source words that were not attended to.",
    ),
    "ctc_weight": SearchKey(kind=float, default=0.0, ge=0, lt=1, plain="steps"),
    "lm_weight": SearchKey(
        kind=float,
        default=0.0,
        ge=0,
        le=10,
        plain="steps",
        help="The weight of the model's n-gram language model.",
    ),
    "nbest": SearchKey(
        kind=int, default=1, ge=1, le=10_000, help="How many outputs to list for each line, with --json."
    ),
    "max_length_factor": SearchKey(kind=float, default=1.5, ge=0, le=1000),
    "max_length_offset": SearchKey(
        kind=int,
        default=20,
        ge=0,
        le=100_000,
        help="How many tokens longer an output may be than search.max_length_factor times its source.",
        flag="max-new",
    ),
    "min_length": SearchKey(
        kind=int, default=0, ge=0, le=100_000, plain="steps", help="The least number of tokens in an output."
    ),
    "no_repeat_ngram": SearchKey(
        kind=int,
        default=None,
        ge=1,
        plain="steps",
        help="Forbid that a sequence of this many tokens appears twice in an output.",
    ),
    "shortlist": SearchKey(
        kind=int,
        default=None,
        ge=1,
        help="Allow only this many candidates for each source token, which is faster. See transduce shortlist.",
    ),
    "groups": SearchKey(
        kind=int, default=1, ge=1, only="beam", plain="steps", help="The number of groups of a diverse beam search."
    ),
    "diversity": SearchKey(
        kind=float,
        default=0.5,
        ge=0,
        le=1000,
        only="beam",
        plain="unread",
        help="The strength of diversity between groups.",
    ),
    "temperature": SearchKey(
        kind=float,
        default=1.0,
        gt=0,
        only="sample",
        plain="unread",
        help="With --method sample, divide the logits by this number first.",
    ),
    "top_k": SearchKey(
        kind=int,
        default=None,
        ge=1,
        only="sample",
        plain="unread",
        help="With --method sample, draw from this many of the most probable tokens.",
    ),
    "top_p": SearchKey(
        kind=float,
        default=None,
        gt=0,
        le=1,
        only="sample",
        plain="unread",
        help="With --method sample, draw from the most probable tokens that make up this share.",
    ),
    "seed": SearchKey(
        kind=int,
        default=0,
        ge=0,
        lt=2**63,
        plain="unread",
        help="With --method sample, the seed. Each line has its own stream.",
    ),
    "iterations": SearchKey(
        kind=int, default=4, ge=1, le=10_000, plain="unread", help="With mask_predict, the number of iterations."
    ),
    "lengths": SearchKey(
        kind=int,
        default=3,
        ge=1,
        le=10_000,
        plain="unread",
        help="With mask_predict, the number of output lengths to try.",
    ),
}

DEFAULTS = {name: key.default for name, key in KEYS.items()}

READ_BY_ONE = {name: key.only for name, key in KEYS.items() if key.only}
"""The settings that only one method uses."""

OTHER_NAMES = {
    **dict.fromkeys(("max_new", "max_new_tokens", "max_length", "max_len", "max_tokens"), "max_length_offset"),
    **dict.fromkeys(("num_beams", "beam_size", "beam_width", "width"), "beam"),
    **dict.fromkeys(("length_penalty", "lenpen"), "alpha"),
    **dict.fromkeys(("n", "n_best", "num_return_sequences"), "nbest"),
    **dict.fromkeys(("no_repeat_ngram_size",), "no_repeat_ngram"),
    **dict.fromkeys(("min_new_tokens", "min_len"), "min_length"),
}
"""Names that our options, our API and other toolkits use for a key. The error for such a key suggests ours."""
