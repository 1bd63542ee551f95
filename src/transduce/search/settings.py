"""The settings of all search methods."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ValidationError, model_validator

from transduce.core.config import Config
from transduce.core.config_errors import explain
from transduce.core.errors import InputError
from transduce.search.keys import KEYS, OTHER_NAMES, READ_BY_ONE
from transduce.search.length import LengthRule, RuleName
from transduce.search.plain_settings import in_place_of, limit_of, nbest_problem, prune_problem


class Search(Config):
    """Search settings. `method` is the name of a file in this package."""

    OTHER_NAMES: ClassVar[Mapping[str, str]] = OTHER_NAMES

    method: Literal["greedy", "beam", "sample", "exhaustive", "mask_predict", "ctc"] = KEYS["method"].default
    """exhaustive is for tiny vocabularies. mask_predict and ctc are the only methods of models that write at once."""
    beam: Annotated[int, KEYS["beam"]] = KEYS["beam"].default
    """Beam size; a finished hypothesis keeps its slot. For `ctc`: number of prefixes; 1 = best path."""
    prune: Annotated[float | None, KEYS["prune"]] = KEYS["prune"].default
    """For `beam`: drop hypotheses this many nats below their sentence's best (Freitag and Al-Onaizan 2017)."""
    length_rule: RuleName = KEYS["length_rule"].default
    """power: score = log p / L^alpha. gnmt: score = log p / ((5 + L) / 6)^alpha. none: score = log p."""
    alpha: Annotated[float, KEYS["alpha"]] = KEYS["alpha"].default
    """See `length_rule`; each rule needs its own value. 0 ranks by probability, which favours short outputs."""
    stopping: Literal["slots", "heuristic", "complete", "never"] = KEYS["stopping"].default
    """For `beam`. slots: an ended hypothesis keeps its slot. The others keep the beam's width and set ended hypotheses
    aside, as transformers does with early_stopping = False, True and "never"; see `transduce.search.set_aside`."""
    at_limit: Literal["stop", "end"] = KEYS["at_limit"].default
    """end: the last token of an output that reaches its maximum length is the end token, as with transformers'
    forced_eos_token_id."""
    coverage: Annotated[float, KEYS["coverage"]] = KEYS["coverage"].default
    """Coverage penalty: score += coverage * sum_s log(min(sum_t alpha_ts, 1)) (Wu et al. 2016 use 0.2)."""
    ctc_weight: Annotated[float, KEYS["ctc_weight"]] = KEYS["ctc_weight"].default
    """For models with model.ctc_weight: weight of CTC's prefix probabilities, beside attention's (Watanabe et al. 2017
    use 0.3)."""
    lm_weight: Annotated[float, KEYS["lm_weight"]] = KEYS["lm_weight"].default
    """Weight of a language model beside the model (shallow fusion, Gulcehre et al. 2015; of CTC, Hannun et al. 2014).
    Its n-grams are those of the training targets, counted at the end of a training whose recipe sets this."""
    nbest: Annotated[int, KEYS["nbest"]] = KEYS["nbest"].default
    """Number of hypotheses for each source; for `sample`, of independent samples."""
    max_length_factor: Annotated[float, KEYS["max_length_factor"]] = KEYS["max_length_factor"].default
    """Maximum length of an output: max_length_factor * source length + max_length_offset tokens."""
    max_length_offset: Annotated[int, KEYS["max_length_offset"]] = KEYS["max_length_offset"].default
    """See `max_length_factor`. For a language model: maximum number of tokens after the prompt."""
    min_length: Annotated[int, KEYS["min_length"]] = KEYS["min_length"].default
    """Minimum number of tokens of an output, without the end token; for a language model, after the prompt."""
    no_repeat_ngram: Annotated[int | None, KEYS["no_repeat_ngram"]] = KEYS["no_repeat_ngram"].default
    """No n-gram of this length may occur twice in an output."""
    shortlist: Annotated[int | None, KEYS["shortlist"]] = KEYS["shortlist"].default
    """Restrict outputs to this many likely translations of each source token and as many of the most frequent tokens
    (at least `beam`). Faster for Transformers, but less exact. See `transduce shortlist`. Unset: all words."""
    groups: Annotated[int, KEYS["groups"]] = KEYS["groups"].default
    """For `beam`: number of groups of diverse beam search, with beam / groups slots each."""
    diversity: Annotated[float, KEYS["diversity"]] = KEYS["diversity"].default
    """For groups > 1: penalty of a token for each hypothesis of an earlier group that takes it at the same step."""
    temperature: Annotated[float, KEYS["temperature"]] = KEYS["temperature"].default
    """For `sample`: divide logits by this; applied before top_k and top_p."""
    top_k: Annotated[int | None, KEYS["top_k"]] = KEYS["top_k"].default
    """For `sample`: keep only the k most likely tokens; applied before top_p."""
    top_p: Annotated[float | None, KEYS["top_p"]] = KEYS["top_p"].default
    """For `sample`: keep only the most likely tokens that make up this share of the probability."""
    seed: Annotated[int, KEYS["seed"]] = KEYS["seed"].default
    """For `sample`: the random seed. Each line has its own random stream, which depends on (seed, line)."""
    iterations: Annotated[int, KEYS["iterations"]] = KEYS["iterations"].default
    """For `mask_predict`: number of iterations, each of which predicts fewer words again."""
    lengths: Annotated[int, KEYS["lengths"]] = KEYS["lengths"].default
    """For `mask_predict`: number of lengths to try, the most likely first."""

    @model_validator(mode="after")
    def _can_list_nbest(self) -> Self:
        if problem := nbest_problem(self.method, self.nbest, self.beam):
            raise ValueError(problem)
        if self.method == "mask_predict" and self.nbest > self.lengths:
            raise ValueError(
                f"nbest = {self.nbest} is more than lengths = {self.lengths}: each length gives one output"
            )
        return self

    @model_validator(mode="after")
    def _keeps_its_beam(self) -> Self:
        if self.groups > 1 and self.method != "beam":
            raise ValueError(f'groups = {self.groups}: only method "beam" has groups, not "{self.method}"')
        if problem := prune_problem(self.method, self.prune):
            raise ValueError(problem)
        if self.beam % self.groups and self.method == "beam":
            raise ValueError(f"beam = {self.beam} slots cannot be shared evenly among groups = {self.groups}")
        if self.groups > 1 and self.stopping != "slots":
            raise ValueError(f'groups = {self.groups}: they need stopping = "slots", not "{self.stopping}"')
        if self.groups == 1 and self.diversity != KEYS["diversity"].default:
            raise ValueError(f"diversity = {self.diversity}: it acts between groups, so set groups above 1")
        return self

    @model_validator(mode="after")
    def _steps_through_its_shortlist(self) -> Self:
        if self.shortlist is not None and self.method in ("mask_predict", "ctc"):
            raise ValueError(
                f'shortlist = {self.shortlist}: method "{self.method}" writes all words at once, out of the whole '
                "vocabulary; a shortlist is for methods that write token by token"
            )
        return self

    @model_validator(mode="after")
    def _asks_its_language_model(self) -> Self:
        goes = self.method in ("greedy", "beam") or (self.method == "ctc" and self.beam > 1)
        if self.lm_weight and not (goes and self.coverage == 0 and self.shortlist is None):
            raise ValueError(
                f'lm_weight = {self.lm_weight}: n-grams are for the methods "greedy" and "beam", and for "ctc" with a '
                "beam above 1, without coverage or a shortlist; leave out one of them"
            )
        return self

    @model_validator(mode="after")
    def _samples_only_when_told(self) -> Self:
        if self.method != "sample":
            samplings = [name for name, reader in READ_BY_ONE.items() if reader == "sample"]
            idle = [name for name in samplings if getattr(self, name) != KEYS[name].default]
            if idle:
                raise ValueError(f'{", ".join(idle)}: only method "sample" uses this, not "{self.method}"')
        return self

    @property
    def length(self) -> LengthRule:
        """How outputs of different lengths are compared."""
        return LengthRule(self.length_rule, self.alpha)

    def limit(self, source_length: int) -> int:
        """The maximum number of tokens that are searched, for a source of `source_length` tokens or frames.

        The end token is one of them, unless `at_limit` puts it behind them.
        """
        return limit_of(source_length, self.max_length_factor, self.max_length_offset, self.at_limit)


def search_settings(recipe: Search, overrides: Mapping[str, Any]) -> Search:
    """The recipe's settings with those asked for in their place; see `transduce.search.plain_settings.in_place_of`.

    Raises:
        InputError: an unknown key, a wrong value, or keys that do not go together.
    """
    try:
        return Search.model_validate(in_place_of(recipe.model_dump(), overrides))
    except ValidationError as error:
        raise InputError(explain(error, Search, "search")) from None
