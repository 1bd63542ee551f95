"""Limits and batching of a server, with their defaults."""

import re
from pathlib import Path

from pydantic import Field, field_validator

from transduce.core.config import Config

ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s?#@]+")


class ServeSettings(Config):
    """Limits apply to one request unless stated otherwise."""

    batch_size: int = Field(default=32, ge=1)
    """Texts translated together, from any number of requests."""
    batch_characters: int = Field(default=16_384, ge=1)
    """Characters in a batch; one text always fits."""
    batch_seconds: float = Field(default=0.5, gt=0, allow_inf_nan=False)
    """Seconds that a batch may take, about, so that nobody waits long for another client's; one text always fits."""
    wait_ms: float = Field(default=5.0, ge=0, allow_inf_nan=False)
    """Milliseconds that a text may wait for others to share a batch while the model is idle."""
    queue: int = Field(default=1024, ge=1)
    """Segments waiting, of all requests; when they are so many, further requests get 429."""
    timeout: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    """Seconds for a request's body to arrive, and again for its answer."""
    drain: float = Field(default=60.0, ge=0, allow_inf_nan=False)
    """Seconds that requests under way get to end after SIGTERM."""
    body_bytes: int = Field(default=1_000_000, ge=1)
    """The longest request body; a shorter one where `characters` cannot need as much."""
    characters: int = Field(default=20_000, ge=1)
    """Characters of all texts together."""
    audio_bytes: int = Field(default=25_000_000, ge=1)
    """The longest sound file."""
    file_bytes: int = Field(default=10_000_000, ge=1)
    """The longest file that is translated, whose text may have `characters`."""
    texts: int = Field(default=128, ge=1)
    """Texts in a list."""
    beam: int = Field(default=16, ge=1)
    """The widest beam and the longest n-best list that may be asked for."""
    max_new: int = Field(default=512, ge=0)
    """The most that `max_new` may ask for."""
    attention_numbers: int = Field(default=2_000_000, ge=1)
    """Attention weights in one answer."""
    sentences_above: int = Field(default=64, ge=0)
    """/translate splits a line of more tokens into its sentences, 0 every line; see `split`."""
    watch_seconds: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """How often the model files are looked at for a change."""
    threads: int | None = Field(default=None, ge=1)
    """Threads of the models; by default as many as their engine takes by itself."""
    proxies: tuple[str, ...] = ()
    """Addresses of proxies in front, whose X-Forwarded-For says where a request comes from."""
    api_key: str | None = Field(default=None, min_length=1, repr=False)
    """Without it nothing is translated."""
    api_keys: Path | None = None
    """A file of keys with limits each, as `transduce keys` makes it; any of them will do, beside `api_key`."""
    keyless: bool = False
    """Whether requests without a key are answered, within `requests_per_minute`, though there are keys."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Of each address, without a key that has its own limit."""
    suggestions: Path | None = None
    """A file to which /suggest adds lines of JSON; None = nothing is suggested."""
    hosts: tuple[str, ...] = ()
    """Host names that requests may call the server by, without port; empty allows all."""
    explore: bool = True
    """Whether /explore and /v1/explore are there. Without them nobody looks into the models."""
    origins: tuple[str, ...] = ()
    """Origins (https://example.org) whose web pages may ask beside the server's own; "*" allows all, "null" files."""

    @property
    def wants_key(self) -> bool:
        """Whether nothing is translated without a key."""
        return (self.api_key is not None or self.api_keys is not None) and not self.keyless

    @property
    def longest_body(self) -> int:
        """In bytes: every character may come as a surrogate pair, escaped and quoted by itself."""
        return min(self.body_bytes, 16 * self.characters + 65_536)

    @field_validator("origins")
    @classmethod
    def _are_origins(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        known = tuple(each.rstrip("/").lower() for each in given)
        wrong = [each for each in known if each not in ("*", "null") and not ORIGIN.fullmatch(each)]
        if wrong:
            raise ValueError(f'expected scheme://host or scheme://host:port, "null" or "*"; got {", ".join(wrong)}')
        return known
