"""What is remembered of a file holds as long as the file is the same."""

import hashlib
import os
from pathlib import Path

import pytest

from transduce.core import cache
from transduce.core.cache import recall, remember, state_of
from transduce.data import files
from transduce.data.files import fingerprint


@pytest.fixture(autouse=True)
def settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SETTLED", float("-inf"))


def test_a_value_is_recalled_until_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("ba")
    assert recall("kind", path) is None
    remember("kind", path, [1, "a"], state_of(path))
    assert recall("kind", path) == [1, "a"]
    assert recall("other", path) is None
    path.write_text("de")
    os.utime(path, ns=(state_of(path)[2],) * 2)
    assert recall("kind", path) is None


def test_nothing_is_noted_of_what_changed_meanwhile_or_just_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("ba")
    before = state_of(path)
    path.write_text("defi")
    remember("kind", path, 1, before)
    assert recall("kind", path) is None
    monkeypatch.setattr(cache, "SETTLED", float("inf"))
    remember("kind", path, 1, state_of(path))
    assert recall("kind", path) is None


def test_a_remembered_fingerprint_is_that_of_the_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "REMEMBERED", 0)
    path = tmp_path / "file"
    for text in ("ba", "de", "fi go"):
        path.write_text(text)
        expected = hashlib.sha256(text.encode()).hexdigest()
        assert fingerprint(path) == fingerprint(path) == expected
        assert recall("fingerprints", path) == expected
