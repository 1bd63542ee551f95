"""The settings that all searches share."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from transduce.core.config import Config
from transduce.search.length import LengthRule, RuleName

READ_BY_ONE = {
    **dict.fromkeys(("prune", "groups", "diversity"), "beam"),
    **dict.fromkeys(("temperature", "top_k", "top_p"), "sample"),
}
"""The settings that only one method reads."""


class Search(Config):
    """How outputs are searched for. `method` is the name of a file in this room."""

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("max_new", "max_new_tokens", "max_length", "max_len", "max_tokens"), "max_length_offset"),
        **dict.fromkeys(("num_beams", "beam_size", "beam_width", "width"), "beam"),
        **dict.fromkeys(("length_penalty", "lenpen"), "alpha"),
        **dict.fromkeys(("n", "n_best", "num_return_sequences"), "nbest"),
        **dict.fromkeys(("no_repeat_ngram_size",), "no_repeat_ngram"),
        **dict.fromkeys(("min_new_tokens", "min_len"), "min_length"),
    }
    """What our options, our API and other toolkits call a key: what is meant where it comes here."""

    method: Literal["greedy", "beam", "sample", "exhaustive", "mask_predict", "ctc"] = "beam"
    """exhaustive: all outputs, for tiny vocabularies. mask_predict, ctc: the only ones for models of these kinds."""
    beam: int = Field(default=5, ge=1, le=10_000)
    """Slots of a beam search; a finished hypothesis keeps its slot. Of `ctc`: outputs kept; 1 = the best path."""
    prune: float | None = Field(default=None, gt=0)
    """For `beam`: drop what is so many nats less likely than its sentence's likeliest (Freitag and Al-Onaizan 2017)."""
    length_rule: RuleName = "power"
    """power: score = log p / L^alpha. gnmt: log p / ((5 + L) / 6)^alpha, another alpha. none: log p."""
    alpha: float = Field(default=0.75, ge=0, le=10, allow_inf_nan=False)
    """See `length_rule`; 0 ranks by probability alone, which favours short outputs."""
    coverage: float = Field(default=0.0, ge=0, le=1000, allow_inf_nan=False)
    """score += coverage * sum_s log(min(sum_t alpha_ts, 1)): costs what is left unread of the source (GNMT: 0.2)."""
    nbest: int = Field(default=1, ge=1, le=10_000)
    """Hypotheses listed for each source; for `sample`, independent draws."""
    max_length_factor: float = Field(default=1.5, ge=0, le=1000, allow_inf_nan=False)
    """An output has at most factor * source length + offset tokens."""
    max_length_offset: int = Field(default=20, ge=0, le=100_000)
    """See `max_length_factor`; for a language model, the tokens that may follow the prompt."""
    min_length: int = Field(default=0, ge=0, le=100_000)
    """An output has at least so many tokens, the end not counted; for a language model, behind the prompt."""
    no_repeat_ngram: int | None = Field(default=None, ge=1)
    """No sequence of so many tokens comes twice in an output."""
    shortlist: int | None = Field(default=None, ge=1)
    """So many likely translations of each source token, and as many of the most frequent tokens (at least `beam`), are
    all that outputs may hold: for Transformers faster, less exact. See `transduce shortlist`. None = all words."""
    groups: int = Field(default=1, ge=1)
    """For `beam`: diverse beam search in so many groups of beam / groups slots."""
    diversity: float = Field(default=0.5, ge=0, le=1000, allow_inf_nan=False)
    """For groups > 1: what a token costs for each earlier group's hypothesis that takes it at the same step."""
    temperature: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """For `sample`: logits are divided by it, first of all."""
    top_k: int | None = Field(default=None, ge=1)
    """For `sample`: only the k most probable tokens, second."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """For `sample`: only the most probable tokens that make up this share, third."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """For `sample`: each line draws from a stream of its own, by (seed, line)."""
    iterations: int = Field(default=4, ge=1, le=10_000)
    """For `mask_predict`: how often the words, fewer each time, are written."""
    lengths: int = Field(default=3, ge=1, le=10_000)
    """For `mask_predict`: the likeliest lengths of an output that are tried."""

    @model_validator(mode="after")
    def _can_list_nbest(self) -> Self:
        if self.method == "greedy" and self.nbest > 1:
            raise ValueError(f'nbest = {self.nbest}: method "greedy" finds one; use "beam" or "sample"')
        if self.method in ("beam", "ctc") and self.nbest > self.beam:
            raise ValueError(f"nbest = {self.nbest} is more than beam = {self.beam}: a beam finds at most beam")
        if self.method == "mask_predict" and self.nbest > self.lengths:
            raise ValueError(
                f"nbest = {self.nbest} is more than lengths = {self.lengths}: each length gives one output"
            )
        return self

    @model_validator(mode="after")
    def _keeps_its_beam(self) -> Self:
        if self.groups > 1 and self.method != "beam":
            raise ValueError(f'groups = {self.groups}: only method "beam" has groups, not "{self.method}"')
        if self.prune is not None and self.method != "beam":
            raise ValueError(f'prune = {self.prune}: only method "beam" has several to drop, not "{self.method}"')
        if self.beam % self.groups and self.method == "beam":
            raise ValueError(f"beam = {self.beam} slots cannot be shared evenly among groups = {self.groups}")
        if self.groups == 1 and self.diversity != type(self).model_fields["diversity"].default:
            raise ValueError(f"diversity = {self.diversity}: is between groups; ask for groups > 1")
        return self

    @model_validator(mode="after")
    def _steps_through_its_shortlist(self) -> Self:
        if self.shortlist is not None and self.method in ("mask_predict", "ctc"):
            raise ValueError(
                f'shortlist = {self.shortlist}: method "{self.method}" writes all words at once, out of the whole '
                "vocabulary; a shortlist is for methods that go from one token to the next"
            )
        return self

    @model_validator(mode="after")
    def _samples_only_when_told(self) -> Self:
        if self.method != "sample":
            samplings = [name for name, reader in READ_BY_ONE.items() if reader == "sample"]
            idle = [name for name in samplings if getattr(self, name) != type(self).model_fields[name].default]
            if idle:
                raise ValueError(f'{", ".join(idle)}: only method "sample" reads this, not "{self.method}"')
        return self

    @property
    def length(self) -> LengthRule:
        """How outputs of different lengths are compared."""
        return LengthRule(self.length_rule, self.alpha)

    def limit(self, source_length: int) -> int:
        """The most tokens, the end token included, for a source of `source_length` tokens or frames."""
        return max(1, int(self.max_length_factor * source_length) + self.max_length_offset)
