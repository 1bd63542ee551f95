"""Keys with limits each: hashed, counted, refused; and how often an address may ask."""

import hashlib
import random
import sqlite3
import stat
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from served import serving
from transduce.cli.app import app
from transduce.core.errors import InputError
from transduce.serve.keys import ApiKeys, RequestRates, TooMany

ASKED = {"q": "ba de", "source": "de", "target": "en"}  # five characters


class Clock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.seconds = 86_400.0 * 20_000

    def __call__(self) -> float:
        return self.seconds


def test_the_file_holds_hashes_and_no_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys.db"
    key = ApiKeys(path).add("maria", 60, 1000)
    assert key not in path.read_bytes().decode("latin-1") and len(key) > 40
    with sqlite3.connect(path) as found:
        [row] = found.execute("SELECT name, digest FROM keys").fetchall()
    assert row == ("maria", hashlib.sha256(key.encode()).digest())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ApiKeys(path).known([key, "x"]) == ApiKeys(path).listed()[0]
    assert ApiKeys(path).known([key[:-1], key + "x", ""]) is None


def test_a_day_has_so_many_characters(tmp_path: Path) -> None:
    clock = Clock()
    keys = ApiKeys(tmp_path / "keys.db", clock)
    keys.add("maria", characters_per_day=10)
    keys.add("anna")
    keys.spend("maria", 8)
    clock.seconds += 3600
    with pytest.raises(TooMany, match="10 characters a day, and 2 are left; try again in 82800 s"):
        keys.spend("maria", 3)
    keys.spend("maria", 2)
    keys.spend("anna", 1_000_000)
    assert [each.used for each in keys.listed()] == [1_000_000, 10]
    clock.seconds += 82_800
    keys.spend("maria", 10)


def test_rates_are_those_of_a_bucket_that_fills_steadily() -> None:
    """Against a simulation in small steps: whatever the gaps, never more than the limit and what flowed in since."""
    clock, drawn = Clock(), random.Random(2)
    rates, left, refused = RequestRates(clock), 30.0, 0
    for _ in range(500):
        gap = drawn.choice((0.0, 0.1, 1.0, 5.0))
        clock.seconds += gap
        left = min(30.0, left + gap / 2)  # 30 a minute are one in two seconds
        if abs(left - 1) < 1e-6:
            continue  # sums of fractions decide
        if left >= 1:
            rates.ask("a", 30)
            left -= 1
        else:
            refused += 1
            with pytest.raises(TooMany):
                rates.ask("a", 30)
    assert 50 < refused < 450
    rates.ask("b", 30)  # who has a bucket of its own


def test_a_key_opens_the_server_within_its_limits(tmp_path: Path, served_file: Path) -> None:
    path = tmp_path / "keys.db"
    keys = ApiKeys(path)
    slow, few = keys.add("slow", requests_per_minute=2), keys.add("few", characters_per_day=12)
    with serving([served_file], api_keys=path, api_key="master") as running:
        assert running.post("/translate", **ASKED).status_code == 403
        for _ in range(2):
            assert running.post("/translate", **ASKED, api_key=slow).status_code == 200
        refused = running.post("/translate", **ASKED, api_key=slow)
        assert refused.status_code == 429 and 1 <= int(refused.headers["retry-after"]) <= 30
        assert "2 requests a minute are allowed; try again" in refused.json()["error"]
        for _ in range(2):
            headers = {"authorization": f"Bearer {few}"}
            assert running.client.post("/v1/predict", json={"texts": ["ba de"]}, headers=headers).status_code == 200
        refused = running.post("/translate", **ASKED, api_key=few)
        assert refused.status_code == 429 and "12 characters a day, and 2 are left" in refused.json()["error"]
        assert all(running.post("/translate", **ASKED, api_key="master").status_code == 200 for _ in range(5))
        new = keys.add("new")  # while the server runs
        assert running.post("/detect", q="x", api_key=new).status_code == 200
        keys.remove("new")
        assert running.post("/detect", q="x", api_key=new).status_code == 403


def test_who_has_no_key_is_limited_by_address(tmp_path: Path, served_file: Path) -> None:
    path = tmp_path / "keys.db"
    key = ApiKeys(path).add("maria")
    with serving([served_file], api_keys=path, keyless=True, requests_per_minute=2) as running:
        statuses = [running.post("/translate", **ASKED).status_code for _ in range(3)]
        assert statuses == [200, 200, 429]
        with httpx.Client(base_url=running.address, transport=httpx.HTTPTransport(local_address="127.0.0.3")) as other:
            assert other.post("/translate", json=ASKED).status_code == 200
        assert [running.post("/translate", **ASKED, api_key=key).status_code for _ in range(5)] == [200] * 5
        assert running.post("/translate", **ASKED, api_key="wrong").status_code == 403
        assert running.client.get("/health").status_code == running.client.get("/languages").status_code == 200


def test_the_command_makes_lists_and_removes(tmp_path: Path) -> None:
    path = str(tmp_path / "keys.db")

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["keys", *arguments])
        return done.exit_code, done.stdout

    code, key = run("add", path, "maria", "--requests-per-minute", "60", "--characters-per-day", "5000")
    assert (code, ApiKeys(Path(path)).known([key.strip()]) is not None) == (0, True)
    code, listed = run("list", path)
    assert listed.startswith("maria\t") and "60 requests a minute\t0 of 5,000 characters today" in listed
    assert key.strip() not in listed
    assert run("remove", path, "maria")[0] == 0
    assert run("list", path) == (0, "")


def test_what_is_wrong_with_keys_is_said(tmp_path: Path, served_file: Path) -> None:
    keys = ApiKeys(tmp_path / "keys.db")
    with pytest.raises(InputError, match="there is no such file of keys; make one: transduce keys add"):
        keys.listed()
    keys.add("maria")
    with pytest.raises(InputError, match='there is a key "maria"'):
        keys.add("maria")
    with pytest.raises(InputError, match='there is no key "anna"; the file has maria'):
        keys.remove("anna")
    (tmp_path / "text").write_text("no database at all, but long enough to be looked at" * 50)
    with pytest.raises(InputError, match="expected a file of keys"):
        ApiKeys(tmp_path / "text").listed()
    with pytest.raises(InputError, match="no such file"), serving([served_file], api_keys=tmp_path / "gone"):
        pass
