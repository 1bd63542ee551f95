"""Figures in a comparison's folder that are damaged: what they tell of is measured again."""

import json
from pathlib import Path

import pytest

from transduce.compare.run import _is_done

SPOILT = [b"", b"\xff", b"{}", b"[]", b"null", b"[" * 100_000, b'{"recipe": {}}', b'{"memory": 1}']


@pytest.mark.parametrize("content", SPOILT, ids=range(len(SPOILT)))
def test_they_are_measured_again(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "measured.json"
    assert not _is_done(path, {"recipe": {"a": 1}}, ["memory"])
    path.write_text(json.dumps({"recipe": {"a": 1}, "memory": 5}))
    assert _is_done(path, {"recipe": {"a": 1}}, ["memory"])
    assert not _is_done(path, {"recipe": {"a": 2}}, ["memory"])
    path.write_bytes(content)
    assert not _is_done(path, {"recipe": {"a": 1}}, ["memory"])
