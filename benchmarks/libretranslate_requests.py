"""Does our server answer as LibreTranslate does? The same requests to both, and a table of what differs.

    python benchmarks/libretranslate_requests.py OURS THEIRS [--source en] [--target fr] [--all]

OURS and THEIRS are addresses such as http://127.0.0.1:8000. Both must serve the two directions between the languages,
best of models exported from the same files. Status, kind of content and keys of answers are compared, and the texts
where the same model should give the same. Prints a table in Markdown: the requests that differ, or --all. Exits with 1
if a request that LibreTranslate answers with 200 is not answered with 200.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import httpx

TEXT = "The animal didn't cross the street because it was too tired."
OTHER = "The animal was too tired."


class Asked(NamedTuple):
    """A request. how: json, form, query or file. texts: whether the texts of both answers should be the same."""

    name: str
    path: str
    values: Any = None
    how: str = "json"
    method: str = "POST"
    texts: bool = False
    headers: tuple[tuple[str, str], ...] = ()


def requests(source: str, target: str) -> list[Asked]:
    """What is asked of both."""
    pair = {"source": source, "target": target}
    return [*_translations(pair), *_mistakes(pair), *_beside(pair)]


def _translations(pair: dict[str, str]) -> list[Asked]:
    auto = pair | {"source": "auto"}
    same = pair | {"target": pair["source"]}
    back = {"source": pair["target"], "target": pair["source"]}
    return [
        *(Asked(f"translate, {how}", "/translate", {"q": TEXT} | pair, how, texts=True) for how in ("json", "form")),
        Asked("translate, query", "/translate", {"q": TEXT} | pair, "query", texts=True),
        Asked("the other direction", "/translate", {"q": OTHER} | back),
        Asked("a list", "/translate", {"q": [TEXT, OTHER]} | pair),
        Asked("an empty list", "/translate", {"q": []} | pair),
        Asked("auto", "/translate", {"q": TEXT} | auto, texts=True),
        Asked("auto, a list", "/translate", {"q": [TEXT, OTHER]} | auto),
        Asked("auto, without letters", "/translate", {"q": "12:30"} | auto),
        Asked("alternatives 2", "/translate", {"q": TEXT, "alternatives": 2} | pair),
        Asked("alternatives 2, a list", "/translate", {"q": [TEXT, OTHER], "alternatives": 2} | pair),
        Asked("alternatives 0", "/translate", {"q": TEXT, "alternatives": 0} | pair),
        Asked("HTML", "/translate", {"q": f"<p>{OTHER}</p>", "format": "html"} | pair),
        Asked("HTML, alternatives", "/translate", {"q": f"<p>{OTHER}</p>", "format": "html", "alternatives": 1} | pair),
        Asked("lines", "/translate", {"q": f"{TEXT}\n\n{TEXT}"} | pair),
        Asked("same language", "/translate", {"q": f" {TEXT}\n"} | same, texts=True),
        Asked("same language, alternatives", "/translate", {"q": TEXT, "alternatives": 2} | same, texts=True),
        Asked("a key that is not needed", "/translate", {"q": TEXT, "api_key": "x"} | pair),
        Asked("an empty key", "/translate", {"q": TEXT, "api_key": ""} | pair, texts=True),
        Asked("unknown fields", "/translate", {"q": TEXT, "secret": "x", "y": 1} | pair, texts=True),
        Asked("white space", "/translate", {"q": "  \n "} | pair),
        Asked(
            "codes in capitals", "/translate", {"q": TEXT, "source": pair["source"].upper(), "target": pair["target"]}
        ),
    ]


def _mistakes(pair: dict[str, str]) -> list[Asked]:
    missing = [{"q": TEXT, "source": pair["source"]}, {"q": TEXT, "target": pair["target"]}, pair]
    names = ("target", "source", "q")
    return [
        *(
            Asked(f"without {name}, {how}", "/translate", values, how)
            for name, values in zip(names, missing, strict=True)
            for how in ("json", "form")
        ),
        Asked("an empty text", "/translate", {"q": ""} | pair),
        Asked("a number for a text", "/translate", {"q": 5} | pair),
        Asked("unknown source", "/translate", {"q": TEXT} | pair | {"source": "xx"}),
        Asked("unknown target", "/translate", {"q": TEXT} | pair | {"target": "xx"}),
        Asked("unknown language into itself", "/translate", {"q": TEXT, "source": "xx", "target": "xx"}),
        Asked("unknown format", "/translate", {"q": TEXT, "format": "pdf"} | pair),
        Asked("alternatives no number", "/translate", {"q": TEXT, "alternatives": "x"} | pair),
        Asked("alternatives below 0", "/translate", {"q": TEXT, "alternatives": -1} | pair),
        Asked("no JSON", "/translate", "{bad", "raw"),
        Asked("JSON, no object", "/translate", [], "json"),
        Asked("no body", "/translate", None, "json"),
        Asked("GET /translate", "/translate", method="GET"),
        Asked("DELETE /translate", "/translate", method="DELETE"),
        Asked("an unknown path", "/nothing", method="GET"),
    ]


def _beside(pair: dict[str, str]) -> list[Asked]:
    file = ("letter.txt", TEXT.encode())
    return [
        *(Asked(f"detect, {how}", "/detect", {"q": TEXT}, how) for how in ("json", "form", "query")),
        Asked("detect, another language", "/detect", {"q": "Все люди рождаются свободными и равными."}),
        Asked("detect, without letters", "/detect", {"q": "12:30"}),
        Asked("detect, empty", "/detect", {"q": ""}),
        Asked("detect, without q", "/detect", {}),
        Asked("languages", "/languages", method="GET"),
        Asked("frontend settings", "/frontend/settings", method="GET"),
        Asked("description", "/spec", method="GET"),
        Asked("health", "/health", method="GET"),
        Asked("metrics", "/metrics", method="GET"),
        Asked("suggest", "/suggest", {"q": TEXT, "s": "x"} | pair),
        Asked("suggest, form", "/suggest", {"q": TEXT, "s": "x"} | pair, "form"),
        Asked("a file", "/translate_file", pair | {"file": file}, "file"),
        Asked("a file, unknown format", "/translate_file", pair | {"file": ("letter.xyz", b"x")}, "file"),
        Asked("a file, unknown source", "/translate_file", pair | {"source": "xx", "file": file}, "file"),
        Asked("a file, without target", "/translate_file", {"source": pair["source"], "file": file}, "file"),
        Asked("no file", "/translate_file", pair, "form"),
        Asked("a download that is not there", "/download_file/x.txt", method="GET"),
        Asked("CORS", "/languages", method="GET", headers=(("origin", "https://a.example"),)),
    ]


def send(client: httpx.Client, asked: Asked) -> httpx.Response:
    """The answer to a request."""
    sent: dict[str, Any] = {}
    if asked.how == "file":
        sent = {"data": {k: v for k, v in asked.values.items() if k != "file"}, "files": {"file": asked.values["file"]}}
    elif asked.how == "raw":
        sent = {"content": asked.values, "headers": {"content-type": "application/json"}}
    elif asked.values is not None:
        sent = {{"json": "json", "form": "data", "query": "params"}[asked.how]: asked.values}
    sent["headers"] = sent.get("headers", {}) | dict(asked.headers)
    return client.request(asked.method, asked.path, **sent)


def shape(value: Any, deep: int = 0) -> Any:
    """The keys of an answer, and the kinds of its values; of a list its first item."""
    if isinstance(value, dict):
        return {key: shape(each, deep + 1) for key, each in sorted(value.items())} if deep < 3 else "object"
    if isinstance(value, list):
        return [shape(each, deep + 1) for each in value[:1]]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def told(answer: httpx.Response, asked: Asked) -> dict[str, Any]:
    """What is compared of an answer."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    found: dict[str, Any] = {"status": answer.status_code}
    if asked.path not in ("/spec", "/metrics") and kind == "application/json":
        found["keys"] = shape(answer.json())
        if asked.texts:
            found["text"] = answer.json().get("translatedText")
    elif answer.status_code < 400:
        found["content"] = kind
    if asked.headers:
        found["allowed"] = answer.headers.get("access-control-allow-origin")
    return found


def said(answer: httpx.Response, asked: Asked) -> str:
    """An answer in a cell of a table."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    short = answer.text if kind == "application/json" and asked.path != "/spec" else kind
    if asked.headers:
        short = f"allows {answer.headers.get('access-control-allow-origin', 'nobody')}"
    cut = " ".join(short.split())[:110].replace("|", "\\|")
    return f"{answer.status_code} `{cut}`"


def rows(ours: httpx.Client, theirs: httpx.Client, asked: Sequence[Asked], everything: bool) -> tuple[list[str], bool]:
    """The rows of the table, and whether all is answered that LibreTranslate answers."""
    found, sound = [], True
    for each in asked:
        one, other = send(ours, each), send(theirs, each)
        differs = told(one, each) != told(other, each)
        if other.status_code == 200 and differs:
            sound = sound and one.status_code == 200
        if differs or everything:
            found.append(f"| {each.name} | {said(other, each)} | {said(one, each)} |")
    return found, sound


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours")
    parser.add_argument("theirs")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="fr")
    parser.add_argument("--all", action="store_true")
    given = parser.parse_args()
    asked = requests(given.source, given.target)
    with (
        httpx.Client(base_url=given.ours, timeout=120) as ours,
        httpx.Client(base_url=given.theirs, timeout=120) as theirs,
    ):
        found, sound = rows(ours, theirs, asked, given.all)
    print("\n".join(["| request | LibreTranslate | Transduce |", "|---|---|---|", *found]))
    print(json.dumps({"requests": len(asked), "differ": len(found) if not given.all else None}))
    sys.exit(0 if sound else 1)


if __name__ == "__main__":
    main()
