"""Builds the documentation site: `python docs/make_site.py site` writes site/docs (English) and site/docs/zh (Chinese).

The pages are docs/*.md and those of the repository's root, as they are. Their links are led to the pages of the site;
links to other files go to the repository's address. The captions of the interactive pages, where there are any, become
pages, too, so that the search finds them.
"""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
Captions = Mapping[str, Mapping[str, Mapping[str, str]]]  # stop -> key -> language -> text

# The sidebar. Each page stands in one group.
GROUPS = {
    "First steps": ["planning", "site", "explorer", "compare", "terms"],
    "Kinds of tasks": [
        *["classification", "tagging", "questions", "speech", "language-models", "pretraining", "graphs"],
    ],
    "How-to guides": [
        *["files", "protection", "translation-memory", "serving", "interop", "speed", "bulk", "distributed", "extend"],
    ],
    "Reference": ["recipes", "api", "mechanisms", "format"],
    "Measurements": [
        *["results", "performance", "limits", "parity", "scale", "experiments"],
        *["attention-as-people-do", "attention-becomes-convolution"],
    ],
    "For developers": ["architecture", "contributing", "changelog"],
}
# Code first, as what looks like a link within code is none.
CODE_OR_LINK = re.compile(
    r"^[ >*-]*```.*?^[ >]*```|`[^`\n]+`|\[(?P<shown>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^)\s]+)\)",
    re.DOTALL | re.MULTILINE,
)
ENTRANCE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Transduce</title>
<meta http-equiv="refresh" content="0; url=docs/index.html"><a href="docs/index.html">Transduce</a></html>
"""
HAS_SCHEME = re.compile(r"[a-z]+:")


@dataclass(frozen=True)
class Language:
    """The pages of one language."""

    code: str
    folder: str  # of the site
    pages: Mapping[str, str]  # file of the repository -> name of its page
    groups: Mapping[str, list[str]]  # of the sidebar
    stops: str  # title of the group of interactive pages
    touch: str  # text of the link to an interactive page


def languages() -> list[Language]:
    """English first, as its folder holds the other."""
    english = {f"docs/{path.name}": path.stem for path in DOCS.glob("*.md") if not path.stem.endswith(".zh-CN")}
    english |= {"README.md": "index", "CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog"}
    chinese = {"README.zh-CN.md": "index", "docs/guide.zh-CN.md": "guide", "docs/terms.md": "terms"}
    return [
        Language("en", "docs", english, GROUPS, "Interactive pages", "Open the interactive page"),
        Language("zh", "docs/zh", chinese, {"入门": ["guide", "terms"]}, "交互式讲义", "打开交互式页面"),
    ]


def main() -> None:
    """Fail where Sphinx warns: of a link or anchor that leads nowhere, of a page in no group."""
    from sphinx.cmd.build import main as sphinx

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path, help="the folder of the whole site")
    parser.add_argument("--captions", type=Path, help="texts of the interactive pages, if not the package's")
    parser.add_argument("--repository", default=repository(), help="address that links to files of the source go to")
    asked = parser.parse_args()
    captions = read_captions(asked.captions) if asked.captions else captions_of_stops()
    make_room(asked.site / "docs")
    for language in languages():
        with tempfile.TemporaryDirectory() as folder:
            sources = Path(folder) / "sources"
            write_sources(sources, language, captions, asked.repository)
            tags = [*(["-t", "zh"] if language.code == "zh" else []), *(["-t", "stops"] if captions else [])]
            options = ["-W", "--keep-going", "-q", "-b", "html", "-c", str(DOCS), "-d", f"{folder}/doctrees", *tags]
            if sphinx([*options, str(sources), str(asked.site / language.folder)]):
                sys.exit(f"the pages of {language.folder} have errors: see above")
    if not (asked.site / "index.html").exists():
        (asked.site / "index.html").write_text(ENTRANCE, encoding="utf-8")


def repository() -> str:
    """The address that pyproject.toml names, or the one that GitHub builds this for; may be empty."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    named = {name.lower(): address for name, address in urls.items()}
    given = os.environ.get("GITHUB_REPOSITORY")
    built_for = f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{given}" if given else ""
    return str(named.get("repository") or named.get("source") or built_for).rstrip("/")


def make_room(folder: Path) -> None:
    """Delete an earlier build, which Sphinx marks, and nothing else."""
    if folder.exists():
        if not (folder / ".buildinfo").exists():
            sys.exit(f"{folder} was not built by this command: name another folder for the site, or delete it")
        shutil.rmtree(folder)


def write_sources(folder: Path, language: Language, captions: Captions, address: str) -> None:
    """The pages of one language as Sphinx reads them, with the pictures that they show."""
    for pictures in ("images", "figures"):
        shutil.copytree(DOCS / pictures, folder / pictures)
    shutil.copytree(DOCS / "theme" / "locale", folder / "locale")
    for file, page in language.pages.items():
        text = led((ROOT / file).read_text(encoding="utf-8"), target_of(file, language, folder, address))
        groups = {**language.groups, **({language.stops: [f"stop-{stop}" for stop in captions]} if captions else {})}
        text += sidebar(groups) if page == "index" else ""
        (folder / f"{page}.md").write_text(text, encoding="utf-8")
    for stop, texts in captions.items():
        (folder / f"stop-{stop}.md").write_text(stop_page(stop, texts, language), encoding="utf-8")


def led(text: str, target: Callable[[str], str]) -> str:
    """A page with every link outside its code led to where `target` says; to "" means that its text stays alone."""

    def link(found: re.Match[str]) -> str:
        if not found["target"]:
            return found[0]
        shown, there = led(found["shown"], target), target(found["target"])  # a picture may be a link
        return f"[{shown}]({there})" if there else shown

    return CODE_OR_LINK.sub(link, text)


def target_of(file: str, language: Language, folder: Path, address: str) -> Callable[[str], str]:
    """Where a link of the page `file` leads in the site; without an `address`, files of the source are downloads."""
    elsewhere = {
        path: f"site:{other.folder}/{page}.html" for other in languages() for path, page in other.pages.items()
    }

    def target(link: str) -> str:
        if HAS_SCHEME.match(link) or link.startswith("#"):
            return link
        name, hash_sign, anchor = link.partition("#")
        path = (ROOT / file).parent.joinpath(name).resolve().relative_to(ROOT).as_posix()
        if page := language.pages.get(path):
            return f"{page}.md{hash_sign}{anchor}"
        if path in elsewhere:
            return f"{elsewhere[path]}{hash_sign}{anchor}"
        if path.startswith(("docs/images/", "docs/figures/")):
            return path.removeprefix("docs/")
        if address:
            return f"{address}/{'tree' if (ROOT / path).is_dir() else 'blob'}/HEAD/{path}{hash_sign}{anchor}"
        return downloaded(path, folder)

    return target


def downloaded(path: str, folder: Path) -> str:
    """A copy of a file among the sources, which Sphinx offers to download; "" for a folder."""
    if (ROOT / path).is_dir():
        return ""
    copy = folder / "downloads" / path
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / path, copy)
    return copy.relative_to(folder).as_posix()


def sidebar(groups: Mapping[str, list[str]]) -> str:
    """Tables of contents that only the sidebar shows."""
    parts = [f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(pages) for title, pages in groups.items()]
    return "".join(f"\n{part}\n```\n" for part in parts)


def read_captions(path: Path) -> Captions:
    """The texts of the interactive pages, in both languages; none without the file."""
    if not path.exists():
        return {}
    captions = json.loads(path.read_text(encoding="utf-8"))
    for stop, texts in captions.items():
        for key, text in texts.items():
            for code in ("en", "zh"):
                if not isinstance(text, dict) or not isinstance(text.get(code), str):
                    sys.exit(f"{path}: {stop}.{key} has no text for {code!r}: give it one in both languages")
    return captions


def captions_of_stops() -> Captions:
    """What the package's interactive pages say, but for what their scripts say, which may have {names}."""
    from transduce.site.stops import stops, texts

    found = dict[str, dict[str, Mapping[str, str]]]()
    for stop in stops():
        said = texts(stop)
        answers = [answer[key] for answer in said["question"]["answers"] for key in ("text", "why")]
        more = [said["lead"], *said["after"], said["question"]["ask"], *answers]
        found[stop] = {"title": said["title"], **{str(place): text for place, text in enumerate(more)}}
    return found


def stop_page(stop: str, texts: Mapping[str, Mapping[str, str]], language: Language) -> str:
    """What an interactive page says: its title, its question, the way there, and all other captions."""
    said = {key: plain(text[language.code]) for key, text in texts.items()}
    title = said.pop("title", plain(stop))
    question = said.pop("question", "")
    way = f"[{language.touch}](site:{language.code}/{stop}.html)"
    return "\n\n".join([f"# {title}", *filter(None, [question, way, *said.values()])]) + "\n"


def plain(text: str) -> str:
    """One line that Markdown shows as it is."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(text.split()))


if __name__ == "__main__":
    main()
