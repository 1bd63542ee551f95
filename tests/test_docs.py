"""Docs that are made from the code say what the code says, and the README's Python runs."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_page_of_recipes_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("make_recipes", ROOT / "docs" / "make_recipes.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run: python docs/make_recipes.py"


def test_every_link_of_the_readme_leads_somewhere() -> None:
    import re

    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
