"""The documentation site: nothing is broken, nothing comes from other hosts, and the search finds both languages."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from headless import headless
from scripts import ROOT, loaded
from test_docs import anchors

ADDRESS = "https://example.org/transduce"
CAPTIONS = {
    "tug-of-war": {
        "title": {"en": "A tug of war", "zh": "拔河"},
        "question": {"en": "Who pulls harder?", "zh": "谁的力气更大？"},
        "hint": {"en": "Drag the *rope* < 3 m; the <zugzwang> wins.", "zh": "拖动绳子，蚂蚁和大象。"},
    }
}
FOLDERS = {"en": "docs", "zh": "docs/zh"}


@pytest.fixture(scope="module")
def make_site():
    return loaded("docs/make_site.py")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make site` builds it, with one interactive page in each language."""
    for package in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(package, reason=f"{package} is not installed: make test-all EXTRAS=ci")
    folder = tmp_path_factory.mktemp("pages")
    captions = folder / "captions.json"
    captions.write_text(json.dumps(CAPTIONS), encoding="utf-8")
    for code in FOLDERS:
        for name in ("index", "tug-of-war"):
            page = folder / "site" / code / f"{name}.html"
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(f'<!doctype html><html lang="{code}"><title>{name}</title>', encoding="utf-8")
    done = build(folder / "site", "--captions", captions, "--repository", ADDRESS)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def build(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "docs" / "make_site.py", *arguments]
    return subprocess.run([*map(str, command)], capture_output=True, encoding="utf-8", timeout=300, check=False)


class Seen(HTMLParser):
    """A page's text, the targets of its links and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text, self.links, self.anchors = "", list[str](), set[str]()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {values["id"] or ""} if "id" in values else set()
        self.links += [values["href"] or ""] if tag == "a" and "href" in values else []

    def handle_data(self, data: str) -> None:
        self.text += data


# What is built


def test_no_link_anchor_or_picture_is_broken(site: Path) -> None:
    assert loaded("docs/check_site.py").faults(site) == []


def test_the_check_finds_what_is_broken(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.css").write_text('@font-face { src: url("https://fonts.example.org/a.woff") }')
    (tmp_path / "sub" / "other.html").write_text('<h1 id="there">Other</h1><a href="../page.html#%E6%9D%9F">fine</a>')
    (tmp_path / "page.html").write_text(
        """<link rel="stylesheet" href="a.css"><script src="//cdn.example.org/a.js"></script><img src="gone.png">
        <style>@import "https://example.org/b.css";</style><h2 id="束">t</h2><a name="old"></a>
        <a href="sub/other.html#there">fine</a> <a href="#old">fine</a> <a href="https://example.org">fine</a>
        <a href="sub/other.html#gone">broken</a> <a href="#nowhere">broken</a> <a href="gone.html">broken</a>
        <a href="sub/">broken</a> <a href="../../outside.html">broken</a> <a href="site:docs/a.html">broken</a>""",
        encoding="utf-8",
    )
    assert sorted(loaded("docs/check_site.py").faults(tmp_path)) == [
        "a.css: loaded from another host: https://fonts.example.org/a.woff",
        "page.html: leads out of the site: ../../outside.html",
        "page.html: loaded from another host: //cdn.example.org/a.js",
        "page.html: loaded from another host: https://example.org/b.css",
        "page.html: no such anchor: #nowhere",
        "page.html: no such anchor: sub/other.html#gone",
        "page.html: no such file: gone.html",
        "page.html: no such file: gone.png",
        "page.html: no such file: sub/",
        "page.html: unknown kind of address: site:docs/a.html",
    ]


def test_every_page_is_there_with_the_anchors_of_the_forge(site: Path, make_site) -> None:
    for language in make_site.languages():
        for file, page in language.pages.items():
            missing = anchors(ROOT / file) - Seen(site / language.folder / f"{page}.html").anchors
            assert not missing, f"{language.folder}/{page}.html lacks anchors that {file} has on a forge: {missing}"


def test_each_page_stands_in_one_group_and_in_the_chinese_guide(make_site) -> None:
    pages = [page for group in make_site.GROUPS.values() for page in group]
    english, chinese = (set(language.pages.values()) for language in make_site.languages())
    assert sorted(pages) == sorted(english - {"index"}), "give each page its place in GROUPS of docs/make_site.py"
    named = set(re.findall(r"\]\(([^)]+)\.md\)", (ROOT / "docs" / "guide.zh-CN.md").read_text(encoding="utf-8")))
    assert {Path(name).name.lower() for name in named} == set(pages), "docs/guide.zh-CN.md has one line for each page"
    assert {"index", "guide", "terms"} == chinese


def test_links_to_the_source_go_to_the_repository(site: Path) -> None:
    links = Seen(site / "docs" / "extend.html").links
    assert f"{ADDRESS}/blob/HEAD/src/transduce/attention/scores.py" in links
    assert f"{ADDRESS}/tree/HEAD/src/transduce/metrics" in links


@pytest.mark.parametrize(
    ("file", "link", "there"),
    [
        ("docs/bulk.md", "serving.md#without-torch", "serving.md#without-torch"),
        ("README.md", "docs/serving.md#without-torch", "serving.md#without-torch"),
        ("README.md", "README.zh-CN.md", "site:docs/zh/index.html"),
        ("README.md", "docs/images/it.png", "images/it.png"),
        ("docs/bulk.md", "../CHANGELOG.md", "changelog.md"),
        ("docs/bulk.md", "#engines", "#engines"),
        ("docs/bulk.md", "https://docs.ray.io", "https://docs.ray.io"),
        ("docs/bulk.md", "../src/transduce/version.py", "downloads/src/transduce/version.py"),
        ("docs/bulk.md", "../src/transduce", ""),
    ],
)
def test_where_links_lead_without_a_repository(file: str, link: str, there: str, make_site, tmp_path: Path) -> None:
    english = make_site.languages()[0]
    assert make_site.target_of(file, english, tmp_path, address="")(link) == there
    if there.startswith("downloads/"):
        assert (tmp_path / there).read_bytes() == (ROOT / "src/transduce/version.py").read_bytes()


def test_code_is_left_alone(make_site) -> None:
    text = "`[a](b)` and [`c`](d)\n\n```\n[e](f)\n```\n\n- ```\n  [g](h)\n  ```\n[![i](j)](k) [l](gone)"
    led = make_site.led(text, lambda link: "" if link == "gone" else link.upper())
    assert led == text.replace("(d)", "(D)").replace("(j)](k)", "(J)](K)").replace("[l](gone)", "l")


# The interactive pages


@pytest.mark.parametrize("code", FOLDERS)
def test_an_interactive_page_has_a_page_with_its_texts(site: Path, code: str) -> None:
    page = Seen(site / FOLDERS[code] / "stop-tug-of-war.html")
    for key in ("title", "question", "hint"):
        assert CAPTIONS["tug-of-war"][key][code] in page.text, "as plain text, whatever signs it has"
    up = "../" * (FOLDERS[code].count("/") + 1)
    assert {f"{up}{code}/tug-of-war.html", f"{up}{code}/index.html"} <= set(page.links)


def test_a_caption_in_one_language_is_refused(make_site, tmp_path: Path) -> None:
    path = tmp_path / "captions.json"
    path.write_text('{"rope": {"title": {"en": "A rope"}}}')
    with pytest.raises(SystemExit, match=r"captions\.json: rope\.title has no text for 'zh'"):
        make_site.read_captions(path)
    assert make_site.read_captions(tmp_path / "none.json") == {}


def test_only_its_own_folder_is_replaced(make_site, tmp_path: Path) -> None:
    mine = tmp_path / "docs" / "mine.md"
    mine.parent.mkdir()
    mine.write_text("# Mine")
    with pytest.raises(SystemExit, match="was not built by this command"):
        make_site.make_room(mine.parent)
    assert mine.exists()
    (mine.parent / ".buildinfo").touch()
    make_site.make_room(mine.parent)
    assert not mine.parent.exists()


# In a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with headless() as started:
        yield started


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    """The site's address on this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def found(page: Page, folder: str, query: str) -> dict[str, str]:
    """The titles of what a search finds, by page."""
    page.goto(f"{folder}/search.html?q={quote(query)}")
    page.wait_for_function("document.querySelector('#search-results .search-summary')?.innerText")  # filled at the end
    hits = page.eval_on_selector_all("ul.search li > a", "all => all.map(each => [each.href, each.innerText])")
    return {Path(urlsplit(href).path).stem: title for href, title in reversed(hits)}


@pytest.mark.parametrize(
    ("folder", "query", "page", "title"),
    [
        ("docs", "beam search", "recipes", "Recipes"),
        ("docs", "beam search", "terms", "Terms"),
        ("docs", "束搜索", "terms", "术语"),
        ("docs", "zugzwang", "stop-tug-of-war", "A tug of war"),
        ("docs/zh", "束搜索", "index", "Transduce"),
        ("docs/zh", "束搜索", "guide", "文档导读"),
        ("docs/zh", "注意力权重", "terms", "术语"),
        ("docs/zh", "beam search", "terms", "术语"),
        ("docs/zh", "蚂蚁和大象", "stop-tug-of-war", "拔河"),
        ("docs/zh", "蚁", "stop-tug-of-war", "拔河"),
    ],
)
@pytest.mark.parametrize("is_served", [True, False], ids=["served", "file"])
def test_the_search_finds(
    folder: str, query: str, page: str, title: str, is_served: bool, site: Path, served: str, browser: Browser
) -> None:
    tab = browser.new_page()
    hits = found(tab, f"{served if is_served else site.as_uri()}/{folder}", query)
    tab.close()
    assert title in hits[page]


@pytest.mark.parametrize("query", ["注意力", "搜索", "预训练", "多头注意力", "自助法", "象大", "束注意", "没有的词语"])
def test_the_search_finds_every_page_that_has_the_words(query: str, site: Path, browser: Browser) -> None:
    tab = browser.new_page()
    hits = found(tab, f"{site.as_uri()}/docs/zh", query)
    tab.close()
    texts = {path.stem: article(path) for path in (site / "docs" / "zh").glob("*.html") if path.stem != "search"}
    assert set(hits) >= {stem for stem, text in texts.items() if query in text}
    pairs = [query[first : first + 2] for first in range(len(query) - 1)]
    assert all(pair in texts[stem] for stem in hits for pair in pairs)


def article(path: Path) -> str:
    """What stands between the sidebars, without tags."""
    text = re.search(r'<article role="main"[^>]*>(.*?)</article>', path.read_text(encoding="utf-8"), re.DOTALL)
    assert text
    return re.sub(r"<[^>]+>", "", text[1])


PAGES = ["docs/index", "docs/recipes", "docs/mechanisms", "docs/api", "docs/zh/index", "docs/zh/terms", "docs/search"]


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_fit_the_window_and_ask_no_other_host(width: int, theme: str, served: str, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    tab = context.new_page()
    asked, errors = list[str](), list[str]()
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: errors.append(str(error)))
    for page in PAGES:
        tab.goto(f"{served}/{page}.html")
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{page} is wider than {width} px"
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    context.close()
    assert not errors
    assert all(each.startswith((served, "data:")) for each in asked)
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == (theme == "dark")


BAD = ("serious", "critical")  # lesser ones are the theme's


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", ["docs/performance", "docs/zh/index"])
def test_pages_are_accessible(page: str, theme: str, site: Path, browser: Browser) -> None:
    context = browser.new_context(color_scheme=theme, viewport={"width": 390, "height": 900})
    tab = context.new_page()
    tab.goto(f"{(site / page).as_uri()}.html")
    violations = Axe().run(tab).response["violations"]
    context.close()
    assert not [(each["id"], each["nodes"][0]["html"]) for each in violations if each["impact"] in BAD]
