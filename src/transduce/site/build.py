"""The pages written to a folder. They work from any static server, and opened as files.

index.html            chooses the language
en/NAME.html, zh/NAME.html, en/index.html, zh/index.html
assets/               what all pages share: scripts, styles, the model in int8
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transduce.core.atomic import write_text
from transduce.core.templates import SHARED, render
from transduce.demo.lexicon import lexicon
from transduce.explore import page_file
from transduce.explore.live import live
from transduce.pipeline.pipeline import Pipeline
from transduce.site.demo_model import pronoun_head
from transduce.site.stops import FOLDER as STOPS
from transduce.site.stops import LANGUAGES, spoken, stops, texts

PAGE = Path(__file__).parent / "page"
RECORDINGS = Path(__file__).parent / "recordings"
TAGS = {"en": "en", "zh": "zh-Hans"}
STYLES = ("themes.css", "theme.css", "page.css", "figures.css", "pictures.css", "drawings.css", "sound.css")
# Which asset holds which of the explorer's scripts: the first that matches. "" is left out: what asks a server, or puts
# the explorer's own page together. A stop names what it needs beside "explorer" and its language's "text_".
ASSETS = {
    "": r"server|training|composer|recorder|header|main|keyboard|compare|sentences|examples|writing|unknown",
    "text_en": r"text_(\w+_)?en",
    "text_zh": r"text_(\w+_)?zh",
    "engines": r"engine/(recurrent|ctc)",
    "steps": r"engine/steps",
    "drawings": r"sound|spectr|memory|neighbor|hop_|entity_|span|tree|look_back|mov|drawing|shading",
    "views": r"boxes|word_flow|overview|worth|cuts|row|probab|beam|formula|steps|masks|positions|chart|vendor/d3-hier",
    "explorer": r"",
}


def build(folder: Path, pipeline: Pipeline, docs: bool = False) -> None:
    """Writes all pages; files of an earlier build are replaced. docs: whether the documentation is built beside them.

    Raises:
        InputError: the model does not change its pronoun where the sentence's adjective changes.
    """
    head = pronoun_head(pipeline)
    assets = folder / "assets"
    (assets / "stops").mkdir(parents=True, exist_ok=True)
    model = {"live": {"demo": live(pipeline)}, "head": {"layer": head.block, "head": head.head}}
    write_text(assets / "model.js", f"Transduce.stored = {json.dumps(model)};\n")
    for script, names in explorer_scripts().items():
        write_text(assets / f"{script}.js", joined(page_file.FOLDER / name for name in names))
    write_text(assets / "site.js", joined(sorted(PAGE.glob("*.js"))))
    write_text(assets / "site.css", joined([*map(style, STYLES), PAGE / "site.css"]))
    write_text(assets / "words.js", f"Transduce.words = {json.dumps(_words())};\n")
    for file in (PAGE / "parts").glob("*.js"):  # which a page loads if it names them in "needs"
        write_text(assets / file.name, joined([file]))
    for file in (*STOPS.glob("*.js"), *STOPS.glob("*.css")):
        write_text(assets / "stops" / file.name, joined([file]))
    (assets / "recordings").mkdir(exist_ok=True)
    for file in RECORDINGS.glob("*.json"):
        script = f"(Transduce.recordings ??= {{}}).{file.stem} = {joined([file]).rstrip()};\n"
        write_text(assets / "recordings" / f"{file.stem}.js", script)
    for language in LANGUAGES:
        (folder / language).mkdir(exist_ok=True)
        for name in stops():
            write_text(folder / language / f"{name}.html", stop_page(name, language, docs))
        write_text(folder / language / "index.html", index_page(language, docs))
    write_text(folder / "index.html", render(PAGE / "language.html.jinja", frames=_frames(), docs=docs))


def stop_page(name: str, language: str, docs: bool) -> str:
    names = stops()
    place = names.index(name)
    said = spoken(texts(name), language)
    return render(
        PAGE / "stop.html.jinja",
        **_common(language, docs),
        name=name,
        place=place,
        stop=said,
        styled=(STOPS / f"{name}.css").is_file(),
        says=_says(name, said, language),
        before=names[place - 1] if place else None,
        after=names[place + 1] if place + 1 < len(names) else None,
    )


def _says(name: str, said: dict[str, Any], language: str) -> dict[str, str]:
    """What the scripts of a stop say, by the keys under which they ask for it."""
    frame = spoken(texts("frame"), language)
    own = {f"{name}.{key}": text for key, text in said.get("says", {}).items()}
    return own | {f"site.{key}": frame[key] for key in ("empty", "long")}


def index_page(language: str, docs: bool) -> str:
    return render(PAGE / "index.html.jinja", **_common(language, docs))


def explorer_scripts() -> dict[str, list[str]]:
    """The explorer's scripts by the asset that holds them, in the order of its own page."""
    found: dict[str, list[str]] = {asset: [] for asset in ASSETS}
    for name in page_file.scripts():
        found[next(asset for asset, pattern in ASSETS.items() if re.match(pattern, name))].append(name)
    del found[""]
    return found


def style(name: str) -> Path:
    """A style sheet of the explorer, or one that all pages of the package share."""
    return SHARED / name if (SHARED / name).is_file() else page_file.FOLDER / name


def joined(files: Iterable[Path]) -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def _words() -> dict[str, list[str]]:
    """The words of the demo's corpus by what they are, for pages that name heads by what they look at."""
    known = lexicon()
    forms: dict[str, list[tuple[str, ...]]] = {
        "noun": [(noun.english, noun.english_plural) for noun in known.nouns.values()],
        "verb": [(verb.english.split()[0], verb.past.split()[0]) for verb in known.verbs.values()],
        "adjective": [(name,) for name in known.adjectives],
    }
    return {kind: sorted({form for each in found for form in each}) for kind, found in forms.items()}


def _common(language: str, docs: bool) -> dict[str, object]:
    other = next(each for each in LANGUAGES if each != language)
    titles = {name: spoken(texts(name)["title"], language) for name in stops()}
    return {"language": language, "tag": TAGS[language], "other": other, "other_tag": TAGS[other]} | {
        "frame": spoken(texts("frame"), language),
        "titles": titles,
        "docs": docs,
    }


def _frames() -> dict[str, object]:
    return {language: spoken(texts("frame"), language) for language in LANGUAGES}
