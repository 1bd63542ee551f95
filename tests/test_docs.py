"""Docs that are made from the code say what the code says, and the README's Python runs."""

import re
from collections import Counter
from pathlib import Path

import pytest

from scripts import ROOT, loaded


@pytest.mark.parametrize("name", ["api", "recipes", "results", "limits", "parity", "scale"])
def test_a_page_that_is_made_is_up_to_date(name: str) -> None:
    module = loaded(f"docs/make_{name}.py")
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), f"run: python docs/make_{name}.py"
    if name == "results":
        for path in module.READMES:
            assert path.read_text(encoding="utf-8") == module.readme(path), "run: python docs/make_results.py"


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_and_anchor_of_a_page_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        if not re.match(r"[a-z]+:", link):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            assert target.exists(), f"{page.name} links to {link}"
            assert not anchor or anchor in anchors(target), f"{page.name} links to {link}"


def without_code(page: Path) -> str:
    """The text of a page but for its fenced blocks."""
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The names that a forge gives to the headings of a page."""
    found = Counter[str]()
    names = set[str]()
    for heading in re.findall(r"^#{1,6} (.*)$", without_code(page), re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names
