"""Where attention looks: the share of it that is on the black cards, or on the 8.

    transduce compare recipes/compare/cards.toml
    transduce compare recipes/compare/eights.toml
    python benchmarks/looked_at.py runs/compare/cards runs/compare/eights       # a minute each
    python docs/make_attention_pages.py

Every trained model of a comparison answers the rows of its test, and its attention is captured. Of each row:

- right: whether the answer is
- share: how much of the attention, as the mean of the hops, is on glyphs that count
- seen: whether each glyph that counts is the one that some hop attends to most

Writes results/looked_at/NAME.json, with what each variant attended to in a few rows, for the figure. Intervals are 95 %
bootstrap intervals over rows and seeds.

Shapes: R hops, W words.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import transduce
from transduce.data.labelled import Name, counts, glyph_row
from transduce.interpret.word_shading import WordShading
from transduce.metrics.paired import mean_interval
from transduce.metrics.tally import mean_tally

RESULTS = Path(__file__).parent / "results" / "looked_at"
ROWS, DRAWN, DIGITS = 1000, 3, 3
FIGURES = ("right", "share", "seen")


class Looked(NamedTuple):
    """What a model did with a row. share and seen: None for a model without attention."""

    text: str
    label: str
    answer: str
    hops: list[list[float]]
    right: float
    share: float | None
    seen: float | None


def main() -> None:
    """One record for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="+", help="a comparison's directory, such as runs/compare/cards")
    parser.add_argument("--rows", type=int, default=ROWS, help="how many of the test's rows")
    asked = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for folder in asked.folder:
        record = measured(folder, asked.rows)
        path = RESULTS / f"{record['comparison']}.json"
        path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(path)


def measured(folder: Path, rows: int = ROWS) -> dict[str, Any]:
    """The record of a comparison."""
    results = json.loads((folder / "compare.json").read_text(encoding="utf-8"))
    [test] = results["recipe"]["data"]["test"].values()
    name, texts = test["generated"], [glyph_row(test["generated"], test["seed"], row) for row in range(rows)]
    found: dict[str, dict[str, list[Looked]]] = {}
    environment: dict[str, Any] = {}
    for variant, told in results["variants"].items():
        for run in told["runs"]:
            if run["state"] != "finished":
                continue
            directory = folder / run["directory"]
            environment = json.loads((directory / "report.json").read_text(encoding="utf-8"))["environment"]
            looks = found.setdefault(variant, {})[str(run["seed"])] = looked(transduce.load(directory), name, texts)
            print(
                f"{variant}, seed {run['seed']}:", ", ".join(f"{k} {v}" for k, v in _means(looks).items()), flush=True
            )
    return {
        "comparison": results["name"],
        "question": name,
        "rows": rows,
        "budget": results["budget"]["text"],
        "commit": environment.get("commit"),
        "machine": environment["machine"]["processor"],
        "torch": environment["versions"]["torch"],
        "variants": {variant: _summary(seeds) for variant, seeds in found.items()},
        "drawn": _drawn(found),
    }


def looked(model: Any, name: Name, rows: list[tuple[str, str]]) -> list[Looked]:
    """What a `transduce.load`ed model answers and attends to, row by row."""
    found = []
    for text, label in rows:
        shading = WordShading.of(model.predict(text))
        answer = next(iter(shading.probabilities))
        on_W = np.array([counts(name, word.text) for word in shading.words])
        share = seen = None
        if len(shading.hops):
            share = float(shading.mean[on_W].sum())
            seen = float(set(shading.hops.argmax(1)) >= set(np.flatnonzero(on_W)))
        hops = shading.hops.round(DIGITS).tolist()
        found.append(Looked(text, label, answer, hops, float(answer == label), share, seen))
    return found


def _means(looks: list[Looked]) -> dict[str, float]:
    """In per cent, of the figures that there are."""
    values = {key: [getattr(each, key) for each in looks] for key in FIGURES}
    return {key: round(100 * float(np.mean(each)), 2) for key, each in values.items() if None not in each}


def _summary(seeds: dict[str, list[Looked]]) -> dict[str, Any]:
    """Each figure's mean over the seeds, its interval, and the figure of each seed."""
    each = {seed: _means(looks) for seed, looks in seeds.items()}
    summary = {}
    for key in next(iter(each.values())):
        tallies = [mean_tally(key, key, [getattr(look, key) for look in looks]) for looks in seeds.values()]
        interval = mean_interval(tallies)
        summary[key] = {
            "mean": round(float(np.mean([tally.value for tally in tallies])), 2),
            "interval": [round(side, 2) for side in interval] if interval else None,
            "seeds": {seed: figures[key] for seed, figures in each.items()},
        }
    return summary


def _drawn(found: dict[str, dict[str, list[Looked]]]) -> list[dict[str, Any]]:
    """The first rows, as each variant's first seed attended to them."""
    firsts = {variant: next(iter(seeds.values())) for variant, seeds in found.items()}
    rows = []
    for looks in list(zip(*firsts.values(), strict=True))[:DRAWN]:
        of_variants = {
            variant: {"answer": look.answer, "hops": look.hops}
            for variant, look in zip(firsts, looks, strict=True)
            if look.hops
        }
        rows.append({"text": looks[0].text, "label": looks[0].label, "variants": of_variants})
    return rows


if __name__ == "__main__":
    main()
