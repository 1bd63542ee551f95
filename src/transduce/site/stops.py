"""The stops' texts, read from stops/NAME.json: each one in English and Chinese.

{"title": {"en", "zh"},
 "lead": {..},                         what to do here
 "after": [{..}],                      paragraphs below the figures: what one has seen
 "question": {"ask": {..}, "answers": [{"text": {..}, "why": {..}}], "right": 1},   from 0
 "says": {KEY: {..}},                  what NAME.js says, as T.say("NAME.KEY")
 "needs": ["drawings"],                assets that not all pages load: of page/parts, or as build.py names them
 "sources": [{"text": "..", "url": ".."}]}
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "stops"
LANGUAGES = ("en", "zh")
STOPS = (
    "it",
    "vectors",
    "scores",
    "values",
    "heads",
    "blocks",
    "writing",
    "searching",
    "explanation",
    "cost",
    "measuring",
    "beyond-text",
    "yours",
)


def stops() -> list[str]:
    """The names of all stops, in their order."""
    return [name for name in STOPS if (FOLDER / f"{name}.json").is_file()]


@cache
def texts(name: str) -> dict[str, Any]:
    """All texts of a stop, or those of the frame around it ("frame"), with both languages in each."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def spoken(texts: Any, language: str) -> Any:
    """The same in one language: {"en": .., "zh": ..} becomes one of the two, at any depth."""
    if isinstance(texts, list):
        return [spoken(each, language) for each in texts]
    if isinstance(texts, dict):
        if set(texts) == set(LANGUAGES):
            return texts[language]
        return {key: spoken(each, language) for key, each in texts.items()}
    return texts
