"""What is decided for some corpora, on record in decisions.json, so that no value changes unseen.

python tests/planning/recorded_decisions.py        # writes it anew, where a decision was meant to change
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from transduce.data.pairs.tags import Tags
from transduce.planning.decisions import Size, decide, deserved_updates, schedule
from transduce.planning.facts import Facts, SideFacts

RECORD = Path(__file__).with_name("decisions.json")
SIZES = [10, 200, 10_000, 1_000_000]
TEXT = SideFacts(words=12, characters=65, longest=200, word_length=4.5, alphabet=90, types=12_000, closing=0.08)
WORD = SideFacts(words=1, characters=8, longest=20, word_length=8, alphabet=40, types=8_000)
PHONES = SideFacts(words=7, characters=14, longest=40, word_length=1.2, alphabet=40, types=50)
CHINESE = SideFacts(words=1.1, characters=14, longest=60, word_length=12, alphabet=3_000, types=9_000, unspaced=0.9)
LONG = SideFacts(words=500, characters=2_800, longest=20_000, word_length=4.6, alphabet=120, types=40_000, closing=0.1)
TITLE = SideFacts(words=5, characters=30, longest=90, word_length=5, alphabet=90, types=9_000, closing=0.03)
COMMANDS = SideFacts(words=8, characters=50, longest=90, word_length=5.5, alphabet=20, types=12)
QUERIES = SideFacts(words=19, characters=150, longest=400, word_length=7, alphabet=60, types=230, new=0.09)
CORPORA = {
    "queries": Facts(10_000, replace(QUERIES, words=8, characters=40), QUERIES, shared=1, copied=0.1, ratio=10),
    "commands": Facts(10_000, COMMANDS, COMMANDS, shared=1, copied=0, ratio=3),
    "sentences": Facts(10_000, TEXT, TEXT, shared=0.95, copied=0.1, ratio=1.8, languages=("en", "sw")),
    "pronunciation": Facts(10_000, WORD, PHONES, shared=0.5, copied=0, ratio=3),
    "Korean words": Facts(
        10_000, replace(WORD, characters=4, alphabet=1_100, letters=67), PHONES, shared=0.0, copied=0, ratio=3
    ),
    "transliteration": Facts(10_000, WORD, replace(WORD, alphabet=50), shared=0.0, copied=0, ratio=2),
    "Chinese": Facts(10_000, TEXT, CHINESE, shared=0.6, copied=0, ratio=8, languages=("en", "zh")),
    "titles": Facts(10_000, LONG, TITLE, shared=1, copied=0.4, ratio=200),
    "inflection": Facts(
        10_000, replace(WORD, words=3, characters=25), replace(WORD, words=1.4), shared=1, copied=0, ratio=3, columns=2
    ),
}
OTHERS = {
    "inflection with tags": replace(CORPORA["inflection"], tags=Tags(";[^;]+", 18)),
    "targets that are longer": replace(CORPORA["sentences"], expansion=9.0),
    "commands with new words": replace(
        CORPORA["commands"],
        source=replace(COMMANDS, new=0.001),
        target=replace(COMMANDS, new=0.001),
        pairs=1_000_000,
    ),
    "long words to short ones": replace(CORPORA["pronunciation"], source=replace(WORD, characters=50, longest=60)),
    "thirty million sentences": replace(CORPORA["sentences"], pairs=30_000_000),
    "five hundred Chinese sentences": replace(CORPORA["Chinese"], pairs=500),
}


def corpora() -> Iterator[tuple[str, Facts, Size | None]]:
    """By name, the facts, and the size of the model if it is not the usual one."""
    for name, facts in CORPORA.items():
        yield from ((f"{name}, {pairs:,} pairs", replace(facts, pairs=pairs), None) for pairs in SIZES)
    yield from ((name, facts, None) for name, facts in OTHERS.items())
    yield "sentences by a small model", CORPORA["sentences"], Size(64, 2)


def decided(facts: Facts, size: Size | None) -> dict[str, Any]:
    """All keys with their values, as JSON has them."""
    made = [*decide(facts, size=size), *schedule(deserved_updates(facts), "")]
    found: dict[str, Any] = json.loads(json.dumps({each.key: each.value for each in made}))
    return found


if __name__ == "__main__":
    record = {name: decided(facts, size) for name, facts, size in corpora()}
    lines = [f"{json.dumps(name)}: {json.dumps(each)}" for name, each in record.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
