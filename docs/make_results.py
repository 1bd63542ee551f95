"""Writes docs/results.md, and the tables of README.md and README.zh-CN.md, from benchmarks/results/.

`tests/test_docs.py` fails when one of them is out of date.
"""

import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import decision_tables
import language_tables
import no_recipe_tables
import plain_tables
import verdicts
from beside_recipe import Scale, scale_of, told
from intervals import over_seeds
from markdown_table import markdown_table
from metric_headings import Metric, metric_of, numbered
from remarks import remarks, without_record

PAGE = Path(__file__).with_name("results.md")
READMES = {  # each with the head of its table, and the colon of its language
    Path(__file__).parents[1] / "README.md": (["recipe", "greedy", "beam 5", "published, greedy"], ": "),
    Path(__file__).parents[1] / "README.zh-CN.md": (
        ["训练配置", "贪心搜索", "束搜索，束宽 5", "已发表，贪心搜索"],
        "：",
    ),
}
RECORDS = Path(__file__).parents[1] / "benchmarks" / "results" / "recipes"
COMPARISONS = RECORDS.with_name("compare")
LANGUAGES = RECORDS.with_name("languages")
NO_RECIPE = RECORDS.with_name("no_recipe")
DECISIONS = RECORDS.with_name("decisions")
PLAIN = RECORDS.with_name("plain_transformer")
RECIPES = Path(__file__).parents[1] / "recipes" / "compare"
HEAD = """# Results

The scores of the recipes, and below them the [comparisons](#comparisons). Each line of a recipe's table is one training
with one seed: `transduce train recipes/NAME.toml`, with the settings in the column *changed* on the command line.

- Validation chooses the weights. Test sets are scored once, after training.
- Intervals are 95 % bootstrap intervals over sentences. They do not include the variation between seeds.
- Scores of different metrics cannot be compared. The signatures at the end define each metric.
- A baseline is a simple system that the training of the same line trained beside the model, on the same files.

`python docs/make_results.py` makes this page from the records that `python benchmarks/publish.py RUN` and
`python benchmarks/publish_comparison.py DIR` write.
"""
COMPARED = """
## Comparisons

Each table is one run of `transduce compare recipes/compare/NAME.toml`. All variants have the same data, batches and
budget, and are trained once with each seed. The weights that a training ends with are scored; of variants named
`-stopped`, those that did best in validation. Budgets are small, so a table says which variant learns most from this
budget, not which is best in the end. [Comparisons](compare.md) explains how they are made.

- The mean over the seeds stands with the standard deviation between them, and then the score of each seed.
- *p* is of the difference to the first variant: a paired bootstrap over the examples of the test set and the seeds.
- The sentences above a table are computed from its figures. Intervals in them are 95 % intervals of the mean over the
  seeds (Student's t), so three seeds give wide ones.
- *For scale* gives the best score of any recipe by the same metric on the same test set. Where the trainings here saw
  less than half of that recipe's tokens and reach less than 90 % of its score, a variant is called ahead, not best.
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
    return _read(RECORDS)


def _read(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]


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
    return text[:before] + markdown_table(head, rows) + text[after:]


def _shown(record: dict[str, Any], words: str, published: str) -> list[str]:
    scores = [each for each in record["scores"] if (each["signature"], each["test"]) == (PUBLISHED, TEST)]
    found = {each["search"].partition(",")[0]: f"{each['value']:.1f}" for each in scores}
    return [f"`{record['recipe']}`{words}", found.get("greedy", ""), found.get("beam 5", ""), published]


def page() -> str:
    """The whole page."""
    records = read_records()
    comparisons, languages, no_recipe = _read(COMPARISONS), _read(LANGUAGES), _read(NO_RECIPE)
    plain, decided = _read(PLAIN), _read(DECISIONS)
    scores = [score for each in records for score in _all_scores(each)]
    scores += [score for each in [*comparisons, *languages, *no_recipe, *plain, *decided] for score in each["scores"]]
    headings = numbered(scores)
    sections = "".join(_section(recipe, records, headings) for recipe in sorted({each["recipe"] for each in records}))
    by_language = "".join(language_tables.section(each, headings) for each in languages)
    compared = "".join(comparison_section(each, records, headings) for each in comparisons)
    more = language_tables.HEAD + by_language if languages else ""
    more += no_recipe_tables.HEAD + no_recipe_tables.section(no_recipe, headings) if no_recipe else ""
    more += decision_tables.HEAD + decision_tables.section(decided, headings) if decided else ""
    more += plain_tables.HEAD + plain_tables.section(plain, headings) if plain else ""
    more += COMPARED + compared if comparisons else ""
    unrecorded = without_record((path.stem for path in RECIPES.parent.glob("*.toml")), records)
    return HEAD + verdicts.section(records) + sections + unrecorded + more + _signatures(headings) + _trainings(records)


def _section(recipe: str, records: list[dict[str, Any]], headings: dict[Metric, str]) -> str:
    chosen = sorted(
        (each for each in records if each["recipe"] == recipe), key=lambda each: (each["change"], each["seed"])
    )
    used = {metric_of(score) for record in chosen for score in _all_scores(record)}
    metrics = [metric for metric in headings if metric in used]
    head = ["seed", "changed", "test set", "search", *(headings[metric] for metric in metrics)]
    rows = [row for record in chosen for row in _rows(record, record["scores"], metrics)]
    rows += _baselines(chosen, metrics)
    if not any(record["change"] for record in chosen):
        head, rows = _without(head, rows, "changed")
    if not any(score["search"] for record in chosen for score in record["scores"]):
        head, rows = _without(head, rows, "search")
    more = [*remarks(recipe, records), *(text for record in chosen for text in _further(record, headings))]
    return "\n\n".join([f"\n## {recipe}", markdown_table(head, rows).rstrip(), *more]) + "\n"


def _further(record: dict[str, Any], headings: dict[Metric, str]) -> Iterable[str]:
    """What stands below the table."""
    yield from _against(record, headings)
    yield from _restarts(record, headings)
    yield from _groups(record, headings)


def _against(record: dict[str, Any], headings: dict[Metric, str]) -> Iterable[str]:
    """The difference to another training of the recipe."""
    if found := record.get("against"):
        told = [
            f"{each['test']}, {headings[metric_of(each)]} {each['value']:+.2f} "
            f"[{each['interval'][0]:+.2f}, {each['interval'][1]:+.2f}], p = {each['p_value']:.3f}"
            for each in found["scores"]
        ]
        change = f", `{record['change']}`," if record["change"] else ""
        yield (
            f"Seed {record['seed']}{change} less `{found['change']}`, by a paired bootstrap over the sentences: "
            f"{'; '.join(told)}."
        )


def _restarts(record: dict[str, Any], headings: dict[Metric, str]) -> Iterable[str]:
    """How the training was chosen among those with other seeds, and a table of all."""
    if found := record.get("restarts"):
        values: dict[str, dict[str, float]] = {}
        for seed, one in found.items():
            for score in one["scores"]:
                values.setdefault(f"{score['test']}, {headings[metric_of(score)]}", {})[seed] = score["value"]
        spreads = [f"{name} {mean(each.values()):.2f} ± {stdev(each.values()):.2f}" for name, each in values.items()]
        yield (
            f"Seed {record['seed']} has the lowest training loss of {len(found)} and is the one above. Mean and "
            f"standard deviation of all: {'; '.join(spreads)}."
            + (f" The table was measured at commit `{earlier}`." if (earlier := record.get("restarts_commit")) else "")
        )
        rows = [
            [seed, f"{one['training_loss']:.4f}", *(f"{each[seed]:.2f}" for each in values.values())]
            for seed, one in found.items()
        ]
        yield markdown_table(["seed", "training loss", *values], rows).rstrip()


def _groups(record: dict[str, Any], headings: dict[Metric, str]) -> Iterable[str]:
    """A table for each test set whose examples are in groups, such as tasks."""
    for test, groups in record.get("groups", {}).items():
        used = {metric_of(score): None for group in groups.values() for score in group["scores"].values()}
        rows = []
        for name, group in groups.items():
            values = {metric_of(score): _figure(score) for score in group["scores"].values()}
            rows.append([name, *(values.get(each, "") for each in used), f"{group['examples']:,}"])
        yield f"By group of {test}, seed {record['seed']}:"
        yield markdown_table(["", *(headings[each] for each in used), "examples"], rows).rstrip()


def _all_scores(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [*record["scores"], *record.get("baseline", {"scores": []})["scores"]]


def _baselines(records: list[dict[str, Any]], columns: list[Metric]) -> list[list[str]]:
    """Each once: a baseline has no seed."""
    found: dict[tuple[str, ...], list[str]] = {}
    for record in records:
        if baseline := record.get("baseline"):
            for _, change, test, search, *figures in _rows(record, baseline["scores"], columns):
                row = ["", change, f"{test}, {baseline['name']} (baseline)", search, *figures]
                found[tuple(row)] = row
    return list(found.values())


def _rows(record: dict[str, Any], scores: list[dict[str, Any]], columns: list[Metric]) -> list[list[str]]:
    found: dict[tuple[str, str], dict[Metric, str]] = {}
    for score in scores:
        found.setdefault((score["test"], score["search"]), {})[metric_of(score)] = _figure(score)
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


def _signatures(headings: dict[Metric, str]) -> str:
    rows = [[name, f"`{signature.replace('|', chr(92) + '|')}`"] for (_, signature), name in headings.items()]
    return "\n## Signatures\n\n" + markdown_table(["", "signature"], rows)


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
    return note + markdown_table(head, rows)


def _sorted(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(records, key=lambda each: (each["recipe"], each["change"], each["seed"]))


def _training(record: dict[str, Any]) -> list[str]:
    machine, versions = record["machine"], record["versions"]
    return [
        record["recipe"],
        f"`{record['change']}`" if record["change"] else "",
        str(record["seed"]),
        f"{record['parameters']:,}",
        f"{record['updates']:,}",
        f"{record['target_tokens'] / 1e6:.1f} million",
        _minutes(record),
        f"{machine['processor']}, {_kernels_and_threads(record)}",
        f"Python {versions['python']}, torch {versions['torch']}",
        record["finished"],
        f"`{record['commit']}`",
    ]


def _minutes(record: dict[str, Any]) -> str:
    """Of the training, and of those of its teachers."""
    own = f"{record['seconds'] / 60:.0f}"
    if "teachers" not in record:
        return own
    teachers = "1 teacher" if record["teachers"] == 1 else f"{record['teachers']} teachers"
    return f"{own}, and {record['teachers_seconds'] / 60:.0f} for {teachers}"


def comparison_section(record: dict[str, Any], records: list[dict[str, Any]], headings: dict[Metric, str]) -> str:
    """The table of one comparison, with the question, its answer and the published figures."""
    question, published = _asked(record["comparison"])
    shown = _shown_scores(record)
    answers = " ".join(filter(None, _answers(shown, [scale_of(each, record["budget"], records) for each in shown])))
    parts = [question, answers, _compared(record, shown, headings).rstrip(), *published, _how(record)]
    return f"\n### {record['comparison']}\n\n" + "\n\n".join(part for part in parts if part) + "\n"


def _answers(scores: list[dict[str, Any]], scales: list[Scale | None]) -> Iterable[str]:
    """What each test set says, beside a recipe's score; of trainings that are far from one, none is called the best."""
    leads = "is ahead in" if any(scale and scale.undertrained for scale in scales) else "has the best"
    for score, scale in zip(scores, scales, strict=True):
        if found := answer(score, leads):
            yield found
            yield told(scale, score["digits"], score["lower_is_better"]) if scale else ""


def answer(score: dict[str, Any], leads: str = "has the best") -> str:
    """Which variant leads, by how much, and whether the intervals of its and the next one's mean overlap."""
    values = {name: list(each["seeds"].values()) for name, each in score["variants"].items() if each["seeds"]}
    ordered = sorted(values, key=lambda name: mean(values[name]), reverse=not score["lower_is_better"])
    if len(ordered) < 2:
        return ""
    digits, label = score["digits"], f"{score['name']} on {score['test']}"
    first, second, last = ordered[0], ordered[1], ordered[-1]
    if f"{mean(values[first]):.{digits}f}" == f"{mean(values[second]):.{digits}f}":
        return f"No variant {leads} {label}: `{first}` and `{second}` both have {mean(values[first]):.{digits}f}."
    gaps = [f"{_gap(values[first], values[second], digits)} {_direction(score)} `{second}`"]
    if last != second:
        gaps.append(f"{_gap(values[first], values[last], digits)} {_direction(score)} `{last}`, the last")
    found = f"`{first}` {leads} {label}, {mean(values[first]):.{digits}f}, {' and '.join(gaps)}."
    (low, high), (other_low, other_high) = over_seeds(values[first]), over_seeds(values[second])
    if math.isnan(low + other_low):
        return f"{found} One seed does not say how far seeds differ."
    apart = "do not overlap" if high < other_low or other_high < low else "overlap"
    intervals = f"[{low:.{digits}f}, {high:.{digits}f}] and [{other_low:.{digits}f}, {other_high:.{digits}f}]"
    return f"{found} The intervals of the first two, {intervals}, {apart}."


def _gap(one: list[float], other: list[float], digits: int) -> str:
    return f"{abs(mean(one) - mean(other)):.{digits}f}"


def _direction(score: dict[str, Any]) -> str:
    return "below" if score["lower_is_better"] else "above"


def _asked(name: str) -> tuple[str, list[str]]:
    """The question at the top of a comparison's recipe, and the figures that it says were published."""
    lines = (RECIPES / f"{name}.toml").read_text(encoding="utf-8").splitlines()
    head = lines[: next(number for number, line in enumerate(lines) if not line.startswith("#"))]
    paragraphs = "\n".join(line.removeprefix("#").removeprefix(" ") for line in head).split("\n\n")
    return paragraphs[0], [each for each in paragraphs[1:] if each.startswith("Published")]


def _shown_scores(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The metric that decides, of every test set, and the perplexity of the first."""
    first, *others = record["scores"]
    same = [each for each in others if (each["metric"], each["search"]) == (first["metric"], first["search"])]
    return [first, *same, *(one for one in others if one["test"] == first["test"] and one["metric"] == "perplexity")]


def _compared(record: dict[str, Any], shown: list[dict[str, Any]], headings: dict[Metric, str]) -> str:
    head = ["variant"]
    several = len({score["test"] for score in shown}) > 1
    for score in shown:
        heading = headings[metric_of(score)]
        head += [f"{score['test']}: {heading}" if several else heading, "each seed", "p"]
    rows = [
        [f"`{name}`", *(cell for score in shown for cell in _cells(score, name, variant)), *_costs(variant)]
        for name, variant in record["variants"].items()
    ]
    return markdown_table([*head, "parameters", "training tokens/s"], rows)


def _cells(score: dict[str, Any], name: str, variant: dict[str, Any]) -> list[str]:
    """Mean and standard deviation, the score of each seed, p."""
    found, digits = score["variants"].get(name), score["digits"]
    if found is None:
        return ["", "failed", ""]
    values = list(found["seeds"].values())
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    scores = {str(each["seed"]): "failed" for each in variant["trainings"]}
    scores |= {seed: f"{value:.{digits}f}" for seed, value in found["seeds"].items()}
    p_value = found["difference"] and found["difference"]["p_value"]
    p_text = "" if p_value is None else f"{p_value:.3f}"
    return [f"{found['mean']:.{digits}f}{spread}", ", ".join(scores.values()), p_text]


def _costs(variant: dict[str, Any]) -> list[str]:
    speed = variant["training_tokens_a_second"]
    return [f"{variant['parameters']:,}", "" if speed is None else f"{speed:,.0f}"]


def _how(record: dict[str, Any]) -> str:
    versions = record["versions"]
    updates = {each["updates"] for one in record["variants"].values() for each in one["trainings"] if "updates" in each}
    minutes = sum(each.get("minutes", 0) for one in record["variants"].values() for each in one["trainings"])
    counts = f"{min(updates):,}" if len(updates) == 1 else f"{min(updates):,} to {max(updates):,}"
    seeds = ", ".join(map(str, record["seeds"]))
    return (
        f"Budget {record['budget']} a training, which is {counts} updates; seeds {seeds}; "
        f"{minutes:.0f} minutes of training in all. {record['machine']['processor']}, {_kernels_and_threads(record)}, "
        f"Python {versions['python']}, torch {versions['torch']}, {record['finished']}, commit `{record['commit']}`."
    )


def _kernels_and_threads(record: dict[str, Any]) -> str:
    machine = record["machine"]
    threads = f"{machine['threads']} thread{'s' * (machine['threads'] > 1)}"
    return f"{machine['kernels']} kernels, {record['precision']}, {threads}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
    for each in READMES:
        each.write_text(readme(each), encoding="utf-8")
        sys.stdout.write(f"{each}\n")
