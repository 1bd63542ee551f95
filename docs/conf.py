"""Sphinx's settings for both languages of the site; docs/make_site.py calls Sphinx, with the tag `zh` for Chinese."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))
from bilingual_search import BilingualSearch, ChineseSearch

if TYPE_CHECKING:
    from sphinx.util.tags import Tags

tags: "Tags" = globals()["tags"]  # Sphinx puts it here
IS_CHINESE = tags.has("zh")
ROOT = "../../" if IS_CHINESE else "../"  # of the site, seen from a page: pages of one language lie in one folder

project = "Transduce"
project_copyright = "Transduce, Apache-2.0"
language = "zh_CN" if IS_CHINESE else "en"
extensions = ["myst_parser"]
templates_path = ["theme/templates"]
locale_dirs = ["locale"]  # copied there by make_site.py: Sphinx compiles its catalogs where they lie
smartquotes = False  # titles are code as often as prose

myst_heading_anchors = 6  # by the rules of GitHub, where the same pages are read
myst_url_schemes = ["http", "https", "mailto", "site"]  # site:docs/api.html is a page of another part of the site
highlight_language = "text"

html_theme = "furo"
html_title = "Transduce"
html_static_path = ["theme/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "elsewhere.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_context = {
    "is_chinese": IS_CHINESE,
    "other_language": f"{ROOT}docs/index.html" if IS_CHINESE else "zh/index.html",
    "stops": f"{ROOT}{'zh' if IS_CHINESE else 'en'}/index.html" if tags.has("stops") else "",
}


def use_anchors_of_github(app: Sphinx, doctree: nodes.document) -> None:
    """Headings get the anchors that GitHub gives them, so that links from other parts of the site find them."""
    for section in doctree.findall(nodes.section):
        slug = section.get("slug")
        if slug and slug not in section["ids"]:
            section["ids"].insert(0, slug)


def lead_to_other_parts(app: Sphinx, doctree: nodes.document) -> None:
    """`site:` links become relative ones."""
    for reference in doctree.findall(nodes.reference):
        if reference.get("refuri", "").startswith("site:"):
            reference["refuri"] = ROOT + reference["refuri"].removeprefix("site:")
            reference["internal"] = True


def serve_keyboards(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """What scrolls can be scrolled with keys, and titles in the sidebar have a level, which the theme leaves out."""
    for name, old, new in [
        ("body", "<pre>", '<pre tabindex="0">'),
        ("body", '<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
        ("furo_navigation_tree", 'role="heading"', 'role="heading" aria-level="2"'),
    ]:
        context[name] = context.get(name, "").replace(old, new)


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_search_language(BilingualSearch)
    app.add_search_language(ChineseSearch)
    app.connect("doctree-read", use_anchors_of_github, priority=100)  # before Sphinx collects anchors
    app.connect("doctree-read", lead_to_other_parts)
    app.connect("html-page-context", serve_keyboards, priority=900)  # after the theme has made its part
    return {"parallel_read_safe": True, "parallel_write_safe": True}
