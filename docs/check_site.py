"""Checks a built site: `python docs/check_site.py site` lists links, anchors, pictures and scripts that are not there.

It reads every page below the folder, whoever made it. Links to other hosts are not followed. What a page loads by
itself, such as fonts and scripts, must be files of the site.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINKS = {("a", "href"), ("area", "href")}  # what a reader follows; everything else is loaded by the page itself
LOADED = {(tag, "src") for tag in ("img", "script", "iframe", "source", "video", "audio", "embed", "input")}
LOADED |= {("link", "href"), ("object", "data"), ("video", "poster")}
IN_STYLE = re.compile(r"""(?:url\(\s*|@import\s+)["']?([^"')\s;]+)""")
REFRESH = re.compile(r"url=(\S+)", re.IGNORECASE)


class Page(HTMLParser):
    """The anchors of a page, and where it leads: (address, whether the page loads it by itself)."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors = set[str]()
        self.leads = list[tuple[str, bool]]()
        self.is_style = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what one tag has."""
        self.is_style = tag == "style"
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values and (name == "id" or tag == "a")}
        for name, value in values.items():
            if (tag, name) in LINKS | LOADED:
                self.leads.append((value, (tag, name) in LOADED))
            elif name == "srcset":
                self.leads += [(each.split()[0], True) for each in value.split(",") if each.strip()]
            elif name == "style":
                self.leads += [(each, True) for each in IN_STYLE.findall(value)]
        if tag == "meta" and values.get("http-equiv", "").lower() == "refresh":
            self.leads += [(each, False) for each in REFRESH.findall(values.get("content", ""))]

    def handle_data(self, data: str) -> None:
        """Style sheets within the page load files, too."""
        if self.is_style:
            self.leads += [(each, True) for each in IN_STYLE.findall(data)]

    def handle_endtag(self, tag: str) -> None:
        """What follows is no style sheet."""
        self.is_style = False


def faults(site: Path) -> list[str]:
    """One line for each link, anchor or file that is not there, and each file of another host that a page loads."""
    site = site.resolve()
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    found = [
        f"{path.relative_to(site)}: {fault}: {address}"
        for path, page in pages.items()
        for address, is_loaded in page.leads
        if (fault := fault_of(site, pages, path, address, is_loaded))
    ]
    for path in sorted(site.rglob("*.css")):
        for address in IN_STYLE.findall(path.read_text(encoding="utf-8")):
            if fault := fault_of(site, pages, path, address, is_loaded=True):
                found.append(f"{path.relative_to(site)}: {fault}: {address}")
    return found


def fault_of(site: Path, pages: dict[Path, Page], source: Path, address: str, is_loaded: bool) -> str:
    """What is wrong with one address on the page `source`, or ""."""
    parts = urlsplit(address)
    if is_loaded and (parts.netloc or parts.scheme not in ("", "data")):
        return "loaded from another host"
    if parts.scheme or parts.netloc:
        return "" if parts.scheme in ("", "data", "http", "https", "mailto") else "unknown kind of address"
    target = (source.parent / unquote(parts.path)).resolve() if parts.path else source
    if not target.is_relative_to(site):
        return "leads out of the site"
    if target.is_dir():
        target = target / "index.html"
    if not target.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    is_missing = anchor and target in pages and anchor not in pages[target].anchors
    return "no such anchor" if is_missing else ""


def main() -> None:
    """Exit with 1 where something is not there, or where there are no pages at all."""
    site = Path(sys.argv[1])
    found = faults(site)
    pages = sum(1 for _ in site.rglob("*.html"))
    print(*found, f"{site}: {pages} pages, {len(found)} broken links, anchors and files", sep="\n")
    sys.exit(bool(found) or not pages)


if __name__ == "__main__":
    main()
