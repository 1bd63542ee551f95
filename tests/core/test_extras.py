"""What installs a library that is missing, from wherever Transduce came from."""

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from transduce.core import extras

ROOT = Path(__file__).resolve().parents[2]


def test_from_a_checkout_it_is_installed_from_there() -> None:
    words = shlex.split(extras.installing("serve"))
    assert words[-2:] == ["-e", f"{ROOT}[serve]"]
    assert sys.executable in words
    assert "install" in words


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        ({}, "transduce[serve]"),
        ({"url": "file:///a%20b/c", "dir_info": {}}, "/a b/c[serve]"),
        (
            {"url": "https://host/x.git", "vcs_info": {"vcs": "git", "commit_id": "f00"}},
            "transduce[serve] @ git+https://host/x.git",
        ),
        (
            {"url": "file:///dist/transduce-0.1.0-py3-none-any.whl", "archive_info": {}},
            "transduce[serve] @ file:///dist/transduce-0.1.0-py3-none-any.whl",
        ),
    ],
    ids=["from an index", "from a folder", "from a repository", "from a wheel"],
)
def test_elsewhere_as_it_was_installed(monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any], wanted: str) -> None:
    monkeypatch.setattr(extras, "_origin", lambda: origin)
    last = shlex.split(extras.installing("serve"))[-1]
    assert last == wanted
    if not last.startswith("/"):
        assert Requirement(last).extras == {"serve"}


def test_the_error_says_what_for() -> None:
    said = str(extras.missing("drawing figures", "matplotlib", "figures"))
    assert said == f"drawing figures needs matplotlib, which is not installed: {extras.installing('figures')}"
