"""Writes docs/results.md, and the tables of README.md and README.zh-CN.md, from benchmarks/results/recipes/.

`tests/test_docs.py` fails when one of them is out of date.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("results.md")
READMES = {  # each with the head of its table, and the colon of its language
    Path(__file__).parents[1] / "README.md": (["recipe", "greedy", "beam 5", "published, greedy"], ": "),
    Path(__file__).parents[1] / "README.zh-CN.md": (
        ["训练配置", "贪心搜索", "束搜索，束宽 5", "已发表，贪心搜索"],
        "：",
    ),
}
RECORDS = Path(__file__).parents[1] / "benchmarks" / "results" / "recipes"
HEAD = """# Results

The scores of the recipes. Each line is one training with one seed: `transduce train recipes/NAME.toml`, with the
settings in the column *changed* on the command line.

- Validation chooses the weights. Test sets are scored once, after training.
- Intervals are 95 % bootstrap intervals over sentences. They do not include the variation between seeds.
- Scores of different metrics cannot be compared. The signatures at the end define each metric.
- A baseline is a simple system that the training of the same line trained beside the model, on the same files.

`python docs/make_results.py` makes this page from the records that `python benchmarks/publish.py RUN` writes.
"""


BEGIN, END = "<!-- results -->\n", "<!-- end -->\n"
PUBLISHED = "nrefs:1|case:lc|eff:no|tok:moses-en|smooth:exp|version:2.6.0|sacremoses:0.2.0"
TEST = "test_2016_flickr"
SHOWN = {  # recipe -> what it is, in the language of each README; what bentrevett/pytorch-seq2seq reports for one
    "multi30k-de-en-rnn-lstm": (("LSTM, one vector for the source", "LSTM，源句为一个向量"), "13.8"),
    "multi30k-de-en-rnn-gru": (("GRU, one vector for the source", "GRU，源句为一个向量"), "20.6"),
    "multi30k-de-en-rnn": (("GRU with additive attention", "GRU，加性注意力"), "28.3"),
    "multi30k-de-en-convolution": (("convolutional", "卷积模型"), "34.1"),
    "multi30k-de-en": (("Transformer", "Transformer"), "36.5"),
    "multi30k-de-en-ctc": (("all words at once", "一次生成所有词"), ""),
}


def read_records() -> list[dict[str, Any]]:
    """All that is on record."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RECORDS.glob("*.json"))]


def readme(path: Path) -> str:
    """One of READMES with its table of results as it should be."""
    records = {each["recipe"]: each for each in read_records() if each["seed"] == 1 and not each["change"]}
    language, (head, colon) = list(READMES).index(path), READMES[path]
    rows = [
        _shown(records[recipe], colon + words[language], published)
        for recipe, (words, published) in SHOWN.items()
        if recipe in records
    ]
    text = path.read_text(encoding="utf-8")
    before, after = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:before] + _table(head, rows) + text[after:]


def _shown(record: dict[str, Any], words: str, published: str) -> list[str]:
    scores = [each for each in record["scores"] if (each["signature"], each["test"]) == (PUBLISHED, TEST)]
    found = {each["search"].partition(",")[0]: f"{each['value']:.1f}" for each in scores}
    return [f"`{record['recipe']}`{words}", found.get("greedy", ""), found.get("beam 5", ""), published]


def page() -> str:
    """The whole page."""
    records = read_records()
    metrics = {score["signature"]: score["name"] for record in records for score in _all_scores(record)}
    letters = {signature: f"{name} ({number})" for number, (signature, name) in enumerate(_ordered(metrics), start=1)}
    sections = "".join(_section(recipe, records, letters) for recipe in sorted({each["recipe"] for each in records}))
    return HEAD + sections + _signatures(letters) + _trainings(records)


def _ordered(metrics: dict[str, str]) -> Iterable[tuple[str, str]]:
    return sorted(metrics.items(), key=lambda item: (item[1], item[0]))


def _section(recipe: str, records: list[dict[str, Any]], letters: dict[str, str]) -> str:
    chosen = sorted(
        (each for each in records if each["recipe"] == recipe), key=lambda each: (each["change"], each["seed"])
    )
    used = {score["signature"] for record in chosen for score in _all_scores(record)}
    columns = [(signature, letter) for signature, letter in letters.items() if signature in used]
    head = ["seed", "changed", "test set", "search", *(letter for _, letter in columns)]
    signatures = [signature for signature, _ in columns]
    rows = [row for record in chosen for row in _rows(record, record["scores"], signatures)]
    rows += _baselines(chosen, signatures)
    if not any(record["change"] for record in chosen):
        head, rows = _without(head, rows, "changed")
    if not any(score["search"] for record in chosen for score in record["scores"]):
        head, rows = _without(head, rows, "search")
    return f"\n## {recipe}\n\n{_table(head, rows)}"


def _all_scores(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [*record["scores"], *record.get("baseline", {"scores": []})["scores"]]


def _baselines(records: list[dict[str, Any]], columns: list[str]) -> list[list[str]]:
    """Each once: a baseline has no seed."""
    found: dict[tuple[str, ...], list[str]] = {}
    for record in records:
        if baseline := record.get("baseline"):
            for _, change, test, search, *figures in _rows(record, baseline["scores"], columns):
                row = ["", change, f"{test}, {baseline['name']} (baseline)", search, *figures]
                found[tuple(row)] = row
    return list(found.values())


def _rows(record: dict[str, Any], scores: list[dict[str, Any]], columns: list[str]) -> list[list[str]]:
    found: dict[tuple[str, str], dict[str, str]] = {}
    for score in scores:
        found.setdefault((score["test"], score["search"]), {})[score["signature"]] = _figure(score)
    change = f"`{record['change']}`" if record["change"] else ""
    return [
        [str(record["seed"]), change, test, search, *(values.get(each, "") for each in columns)]
        for (test, search), values in found.items()
    ]


def _without(head: list[str], rows: list[list[str]], name: str) -> tuple[list[str], list[list[str]]]:
    place = head.index(name)
    return head[:place] + head[place + 1 :], [row[:place] + row[place + 1 :] for row in rows]


def _figure(score: dict[str, Any]) -> str:
    digits = 1 if score["name"] == "perplexity" else 2
    interval = " [{:.{d}f}, {:.{d}f}]".format(*score["interval"], d=digits) if score["interval"] else ""
    return f"{score['value']:.{digits}f}{interval}"


def _signatures(letters: dict[str, str]) -> str:
    rows = [[letter, f"`{signature.replace('|', chr(92) + '|')}`"] for signature, letter in letters.items()]
    return "\n## Signatures\n\n" + _table(["", "signature"], rows)


def _trainings(records: list[dict[str, Any]]) -> str:
    head = [
        "recipe",
        "changed",
        "seed",
        "parameters",
        "updates",
        "target tokens",
        "minutes",
        "machine",
        "versions",
        "date",
        "commit",
    ]
    rows = [
        _training(each) for each in sorted(records, key=lambda each: (each["recipe"], each["change"], each["seed"]))
    ]
    note = "\n## Trainings\n\nMinutes are wall-clock time, on machines that may have done other work too.\n\n"
    return note + _table(head, rows)


def _sorted(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(records, key=lambda each: (each["recipe"], each["change"], each["seed"]))


def _training(record: dict[str, Any]) -> list[str]:
    machine, versions = record["machine"], record["versions"]
    threads = f"{machine['threads']} thread{'s' * (machine['threads'] > 1)}"
    return [
        record["recipe"],
        f"`{record['change']}`" if record["change"] else "",
        str(record["seed"]),
        f"{record['parameters']:,}",
        f"{record['updates']:,}",
        f"{record['target_tokens'] / 1e6:.1f} million",
        f"{record['seconds'] / 60:.0f}",
        f"{machine['processor']}, {machine['kernels']} kernels, {record['precision']}, {threads}",
        f"Python {versions['python']}, torch {versions['torch']}",
        record["finished"],
        f"`{record['commit']}`",
    ]


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
    for each in READMES:
        each.write_text(readme(each), encoding="utf-8")
        sys.stdout.write(f"{each}\n")
