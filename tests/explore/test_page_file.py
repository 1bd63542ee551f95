"""The page as one file: everything inside, nothing executed that is data, nothing from elsewhere."""

import fnmatch
import json
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest

import transduce
from pipelines import TEXT, pipeline
from transduce.core.errors import InputError
from transduce.explore.offline import offline
from transduce.explore.page_file import page

ROOT = Path(__file__).parents[2]
INDEX = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>x</title>
{{ style("page.css") }}
{{ style("more/figures.css") }}
</head><body><main></main>
{% if data is not none %}
<script type="application/json" id="data">{{ data | tojson }}</script>
{% endif %}
{{ script("vendor/d3.min.js") }}
{{ script("main.js") }}
</body></html>
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A page of a few lines."""
    for name, text in {
        "index.html.jinja": INDEX,
        "page.css": "body { color: red }",
        "more/figures.css": "svg { fill: blue }",
        "vendor/d3.min.js": r'const pattern = /\1 \g<0>/; const less = "<b>" < 1 && "{{ data }}{% if %}";',
        "main.js": "start();",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


class Scripts(HTMLParser):
    """What a browser would take for scripts and data."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[dict[str, str | None], str]] = []
        self.links = 0
        self._inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "script"
        self.links += tag == "link"
        if self._inside:
            self.found.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found[-1] = (self.found[-1][0], self.found[-1][1] + data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = False


def test_files_are_put_in_as_they_are_and_in_order(folder: Path) -> None:
    html = page(folder=folder)
    scripts = Scripts(html)
    assert [text for _, text in scripts.found] == [
        (folder / name).read_text() for name in ("vendor/d3.min.js", "main.js")
    ]
    assert scripts.links == 0
    assert html.index("color: red") < html.index("fill: blue") < html.index("start();")
    assert "src=" not in html


def test_data_stays_data(folder: Path) -> None:
    told = {"text": "</script><script>alert(1)</script><!--", "other": "两只狗 \u2028 &amp;"}
    html = page(told, folder)
    (attributes, text), *_ = Scripts(html).found
    assert attributes == {"type": "application/json", "id": "data"}
    assert json.loads(text) == told
    assert "alert(1)</script>" not in html
    assert len(Scripts(html).found) == 3


def test_the_file_alone_may_ask_nobody() -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page({}))
    assert policy
    assert policy[1].startswith("default-src 'none'")
    assert "http" not in policy[1]
    assert "http-equiv" not in page()


def test_a_page_that_is_not_whole_is_refused(folder: Path) -> None:
    (folder / "main.js").write_text('x = "</SCRIPT>"', encoding="utf-8")
    with pytest.raises(InputError, match=r"main\.js: holds </script"):
        page(folder=folder)
    (folder / "main.js").unlink()
    with pytest.raises(InputError, match=r"main\.js"):
        page(folder=folder)
    with pytest.raises(InputError, match=r"index\.html"):
        page(folder=folder / "nowhere")


def test_not_a_number_is_not_written(folder: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        page({"weight": float("nan")}, folder)


def test_the_offline_data_is_all_that_the_page_shows(tiny_run: Path) -> None:
    models = {"one": pipeline("transformer"), "two": pipeline("convolution")}
    found = json.loads(json.dumps(offline(models, [TEXT, "fi go"], tiny_run), allow_nan=False))
    named = {"version", "created_with", "models", "explorations", "live", "positions", "training", "example"}
    assert set(found) == named
    assert list(found["live"]) == ["one"], "a convolution does not run in the page"
    assert [each["name"] for each in found["models"]] == ["one", "two"]
    assert [(each["model"], each["text"]) for each in found["explorations"]] == [
        ("one", TEXT),
        ("two", TEXT),
        ("one", "fi go"),
        ("two", "fi go"),
    ]
    first = found["explorations"][0]
    assert abs(first["heads"]["log_probability"] - first["log_probability"]) < 1e-4
    assert set(first["rollout"]) == {"encoder", "decoder", "cross"}
    assert first["steps"] is None
    assert found["training"]["finished"]
    assert offline(models, [TEXT])["training"] is None


def matches(rule, parts):
    """Whether a rule of .gitignore matches a path of these parts; one that begins with / only does at the root."""
    return any(fnmatch.fnmatch(part, rule.strip("/")) for part in (parts[:1] if rule.startswith("/") else parts))


def test_pages_templates_and_styles_are_in_the_wheel() -> None:
    """setuptools puts in all that lies in a folder under `where`, with a `.py` file in it or without."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert table["packages"] == {"find": {"where": ["src"]}}
    assert table["package-data"] == {"*": ["*"]}
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    package = Path(transduce.__file__).parent
    found = [*(package / "explore" / "page").rglob("*"), *package.rglob("*.html.jinja"), *package.rglob("*.mplstyle")]
    assert len(found) > 40
    for path in found:
        name = path.relative_to(ROOT).as_posix()
        parts = [*path.relative_to(ROOT).parts, name]
        assert not [rule for rule in ignored if matches(rule, parts)], name
