"""The settings that all searches share."""

from typing import Literal, Self

from pydantic import Field, model_validator

from transduce.config import Config


class Search(Config):
    """How outputs are searched for. `method` is the name of a file in this room.

    beam: slots of a beam search; a finished hypothesis keeps its slot.
    alpha: score = log p / L^alpha; 0 ranks by probability alone, which favours short outputs.
    nbest: hypotheses listed for each source; for `sample`, independent draws.
    max_length_factor, max_length_offset: an output has at most factor * source length + offset tokens.
    temperature, top_k, top_p, seed: of `sample` only, applied in this order.
    """

    method: Literal["greedy", "beam", "sample", "exhaustive"] = "beam"
    beam: int = Field(default=5, ge=1)
    alpha: float = Field(default=0.75, ge=0, allow_inf_nan=False)
    nbest: int = Field(default=1, ge=1)
    max_length_factor: float = Field(default=1.5, ge=0, allow_inf_nan=False)
    max_length_offset: int = Field(default=20, ge=0)
    temperature: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    top_k: int | None = Field(default=None, ge=1)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _can_list_nbest(self) -> Self:
        if self.method == "greedy" and self.nbest > 1:
            raise ValueError(f'nbest = {self.nbest}: method "greedy" finds one; use "beam" or "sample"')
        if self.method == "beam" and self.nbest > self.beam:
            raise ValueError(f"nbest = {self.nbest} is more than beam = {self.beam}: a beam finds at most beam")
        return self

    @model_validator(mode="after")
    def _samples_only_when_told(self) -> Self:
        if self.method != "sample":
            asked = {"temperature": self.temperature != 1.0, "top_k": self.top_k, "top_p": self.top_p}
            idle = [name for name, changed in asked.items() if changed]
            if idle:
                raise ValueError(f'{", ".join(idle)}: only method "sample" reads this, not "{self.method}"')
        return self

    def limit(self, source_length: int) -> int:
        """The most tokens, the end token included, for a source of `source_length` tokens or frames."""
        return max(1, int(self.max_length_factor * source_length) + self.max_length_offset)
