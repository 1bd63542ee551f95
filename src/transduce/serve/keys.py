"""API keys in a small SQLite file, each with limits of its own; and how often clients may ask.

The file holds the name of each key, its SHA-256, its limits, and how many characters it sent today. The key itself is
shown once, when it is made: 256 random bits, which no table of hashes finds. A running server sees changes at once.
"""

import hashlib
import hmac
import math
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from transduce.core.errors import InputError, TransduceError

PREFIX = "td_"  # of every key, so that one is known for what it is where it is found
TABLES = """
CREATE TABLE IF NOT EXISTS keys (
    name TEXT PRIMARY KEY, digest BLOB NOT NULL, created TEXT NOT NULL,
    requests_per_minute INTEGER, characters_per_day INTEGER
);
CREATE TABLE IF NOT EXISTS used (name TEXT PRIMARY KEY, day INTEGER NOT NULL, characters INTEGER NOT NULL);
"""
DAY = 86_400
BUCKETS = 10_000  # clients whose rate is remembered


class TooMany(TransduceError):
    """A client is over a limit.

    Args:
        seconds: after which it may ask again.
    """

    def __init__(self, told: str, seconds: float) -> None:
        self.seconds = max(1, math.ceil(seconds))
        super().__init__(f"{told}; try again in {self.seconds} s.")


class ApiKey(NamedTuple):
    """A key that is known. None = no limit. used: characters today (UTC)."""

    name: str
    digest: bytes
    created: str
    requests_per_minute: int | None
    characters_per_day: int | None
    used: int = 0


class ApiKeys:
    """The keys in a file.

    Args:
        path: is made by `add` where it is missing.
        now: seconds since 1970.
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self.path, self._now = path, now

    def add(self, name: str, requests_per_minute: int | None = None, characters_per_day: int | None = None) -> str:
        """A new key, which is stored nowhere.

        Raises:
            InputError: there is a key of this name; the file is none of ours.
        """
        key = PREFIX + secrets.token_urlsafe(32)
        made = time.strftime("%Y-%m-%d", time.gmtime(self._now()))
        with self._opened(new=True) as found:
            if found.execute("SELECT 1 FROM keys WHERE name = ?", (name,)).fetchone():
                raise InputError(f'{self.path}: there is a key "{name}"; remove it first, or choose another name.')
            row = (name, digest_of(key), made, requests_per_minute, characters_per_day)
            found.execute("INSERT INTO keys VALUES (?, ?, ?, ?, ?)", row)
        return key

    def remove(self, name: str) -> None:
        """Without the key of this name. Raises InputError where there is none."""
        with self._opened() as found:
            if not found.execute("DELETE FROM keys WHERE name = ?", (name,)).rowcount:
                known = ", ".join(each.name for each in self._read(found)) or "none"
                raise InputError(f'{self.path}: there is no key "{name}"; the file has {known}.')
            found.execute("DELETE FROM used WHERE name = ?", (name,))

    def listed(self) -> list[ApiKey]:
        """All keys, in the order of their names."""
        with self._opened() as found:
            return self._read(found)

    def known(self, given: Sequence[str]) -> ApiKey | None:
        """The key that is among those given. Every one is compared with every one, in constant time."""
        digests = [digest_of(each) for each in given]
        same = [key for key in self.listed() if sum(hmac.compare_digest(key.digest, each) for each in digests)]
        return same[0] if same else None

    def spend(self, name: str, characters: int) -> None:
        """Count the characters of a request.

        Raises:
            TooMany: they are more than are left of this day; none is counted.
        """
        now = self._now()
        today = int(now // DAY)
        with self._opened() as found:
            found.execute("BEGIN IMMEDIATE")
            row = found.execute("SELECT characters_per_day FROM keys WHERE name = ?", (name,)).fetchone()
            used = found.execute("SELECT characters FROM used WHERE name = ? AND day = ?", (name, today)).fetchone()
            total = (used[0] if used else 0) + characters
            if row and row[0] is not None and total > row[0]:
                told = f"this key may send {row[0]:,} characters a day, and {row[0] - total + characters:,} are left"
                raise TooMany(told, (today + 1) * DAY - now)
            found.execute("INSERT OR REPLACE INTO used VALUES (?, ?, ?)", (name, today, total))

    def _read(self, found: sqlite3.Connection) -> list[ApiKey]:
        query = """SELECT keys.name, digest, created, requests_per_minute, characters_per_day, coalesce(characters, 0)
            FROM keys LEFT JOIN used ON used.name = keys.name AND day = ? ORDER BY keys.name"""
        return [ApiKey(*row) for row in found.execute(query, (int(self._now() // DAY),))]

    @contextmanager
    def _opened(self, new: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are kept unless something is raised."""
        if not new and not self.path.is_file():
            raise InputError(
                f"{self.path}: there is no such file of keys; make one: transduce keys add {self.path} NAME."
            )
        try:
            with closing(sqlite3.connect(self.path, timeout=5)) as found, found:
                if new:
                    found.executescript(TABLES)
                    self.path.chmod(0o600)
                yield found
        except sqlite3.Error as error:
            raise InputError(
                f"{self.path}: expected a file of keys, as transduce keys add makes it: {error}."
            ) from None


def managed(
    file: Path, action: str, name: str = "", per_minute: int | None = None, per_day: int | None = None
) -> tuple[list[str], str]:
    """What `transduce keys` does: the lines to print, and what else there is to tell.

    Raises:
        InputError: a name is missing, is there already, or is not there; the file is none of ours.
    """
    keys = ApiKeys(file)
    if action != "list" and not name:
        raise InputError(f"keys {action}: expected the NAME of a key behind {file}.")
    if action == "add":
        return [keys.add(name, per_minute, per_day)], f"The key of {name}. It is shown once; {file} holds its hash."
    if action == "remove":
        keys.remove(name)
        return [], f"{name}: removed from {file}."
    return [_row(each) for each in keys.listed()], ""


def _row(key: ApiKey) -> str:
    rate = f"{key.requests_per_minute} requests a minute" if key.requests_per_minute else "any rate"
    day = f"{key.characters_per_day:,}" if key.characters_per_day else "any number"
    return f"{key.name}\t{key.created}\t{rate}\t{key.used:,} of {day} characters today"


@lru_cache(maxsize=16)
def keys_in(path: Path) -> ApiKeys:
    """The keys of a server."""
    return ApiKeys(path)


def digest_of(text: str) -> bytes:
    """SHA-256: of one length, so that a comparison says nothing about the key's."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class RequestRates:
    """How often each client asks: a bucket that holds a minute's requests, and fills up steadily.

    Args:
        now: seconds of a clock that never goes back.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._buckets: dict[str, tuple[float, float]] = {}  # client -> requests left, at which time

    def ask(self, client: str, per_minute: int) -> None:
        """One more request.

        Raises:
            TooMany: it is one too many.
        """
        now = self._now()
        left, at = self._buckets.pop(client, (float(per_minute), now))
        left = min(float(per_minute), left + (now - at) * per_minute / 60)
        self._buckets[client] = (max(left - 1, 0.0) if left >= 1 else left, now)  # the last to ask stands last
        if len(self._buckets) > BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        if left < 1:
            raise TooMany(f"{per_minute} requests a minute are allowed", (1 - left) * 60 / per_minute)
