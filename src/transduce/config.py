"""The base of every configuration: unknown keys are errors, values cannot change after they are read."""

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """A frozen set of settings. A default is written once: in the subclass, beside the class that reads it."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)
