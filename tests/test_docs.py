"""Docs that are made from the code say what the code says, and the README's Python runs."""

import pytest

from scripts import ROOT, loaded


@pytest.mark.parametrize("name", ["api", "recipes", "results", "limits", "parity", "scale"])
def test_a_page_that_is_made_is_up_to_date(name: str) -> None:
    module = loaded(f"docs/make_{name}.py")
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), f"run: python docs/make_{name}.py"
    if name == "results":
        for path in module.READMES:
            assert path.read_text(encoding="utf-8") == module.readme(path), "run: python docs/make_results.py"


def test_every_link_of_the_readme_leads_somewhere() -> None:
    import re

    for page in [*ROOT.glob("README*.md"), ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
