"""Puts a finished comparison on record, for docs/results.md, or where it has an axis for docs/limits.md.

    python benchmarks/publish_comparison.py runs/compare/NAME [--commit COMMIT]

Reads what `transduce compare` wrote there and writes benchmarks/results/compare/NAME.json, then
`python docs/make_results.py`; or benchmarks/results/limits/NAME.json, then `python docs/make_limits.py`.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from records import save_record

RECORDS = Path(__file__).with_name("results") / "compare"
LIMITS = RECORDS.with_name("limits")
SCORE = ("test", "search", "metric", "name", "signature", "lower_is_better", "digits")
VARIANT = ("changes", "parameters", "training_tokens_a_second")
TRAINING = ("updates", "target_tokens", "minutes")


def main() -> None:
    """One record, a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the comparison's directory, such as runs/compare/cells")
    parser.add_argument("--commit", help="the code it was trained by, where its trainings do not say")
    asked = parser.parse_args()
    record = recorded(asked.folder, asked.commit)
    records = LIMITS if "axis" in record else RECORDS
    print(save_record(records / f"{record['comparison']}.json", record))


def recorded(folder: Path, commit: str | None = None) -> dict[str, Any]:
    """What the comparison in `folder` found, and what a reader needs to judge it.

    Ends the program with a message where a training is missing or it is not known which code trained.
    """
    results = _read(folder / "compare.json")
    if "points" in results:
        return _along_a_key(folder, results, commit)
    runs = {name: each["runs"] for name, each in results["variants"].items()}
    waiting = [
        f"{name}, seed {run['seed']}" for name, each in runs.items() for run in each if run["state"] == "waiting"
    ]
    if waiting:
        sys.exit(f"{folder}: not trained yet: {'; '.join(waiting)}. The same `transduce compare` command goes on.")
    reports = [
        _read(folder / run["directory"] / "report.json") for each in runs.values() for run in each if _finished(run)
    ]
    if not reports:
        sys.exit(f"{folder}: every training failed; there is nothing to publish.")
    environment = reports[0]["environment"]
    return {
        "comparison": results["name"],
        "commit": commit or _commit(folder, reports),
        "finished": max(each["finished"] for each in reports)[:10],
        "budget": results["budget"]["text"],
        "seeds": results["seeds"],
        "baseline": results["baseline"],
        "settings": _settings(results["recipe"]),
        "searches": results["searches"],
        "precision": reports[0]["training"]["precision"],
        "machine": {key: environment["machine"][key] for key in ("processor", "kernels", "threads")},
        "versions": {key: environment["versions"][key] for key in ("python", "torch")},
        "variants": {name: _variant(each) for name, each in results["variants"].items()},
        "scores": [_score(figure, runs) for figure in results["quality"]],
        **({"axis": results["axis"]} if "axis" in results else {}),
    }


def _along_a_key(folder: Path, results: dict[str, Any], commit: str | None) -> dict[str, Any]:
    """A record whose trainings stand under `points`, those of each value; the settings are of the last."""
    places = results["axis"]["places"]
    if missing := [str(place) for place in places if place not in [each["at"] for each in results["points"]]]:
        sys.exit(f"{folder}: not trained yet: {', '.join(missing)}. The same `transduce compare` command goes on.")
    found = [(each["at"], recorded(folder / each["folder"], commit)) for each in results["points"]]
    if len(commits := {one["commit"] for _, one in found}) > 1:
        sys.exit(f"{folder}: its trainings name the commits {', '.join(sorted(commits))}; say which one: --commit")
    told = {key: value for key, value in found[-1][1].items() if key not in ("variants", "scores")}
    points = [{"at": place, "variants": one["variants"]} for place, one in found]
    finished = max(one["finished"] for _, one in found)
    return {**told, "comparison": results["name"], "finished": finished, "axis": results["axis"], "points": points}


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        sys.exit(f"{path}: there is no such file; expected the directory of a finished `transduce compare`.")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _finished(run: dict[str, Any]) -> bool:
    return bool(run["state"] == "finished")


def _commit(folder: Path, reports: list[dict[str, Any]]) -> str:
    """The one commit of all trainings."""
    found = {each["environment"].get("commit") or "unknown" for each in reports}
    if found == {"unknown"} or len(found) > 1:
        sys.exit(f"{folder}: its trainings name the commits {', '.join(sorted(found))}; say which one: --commit")
    return found.pop()


def _settings(recipe: dict[str, Any]) -> dict[str, Any]:
    """Of the first variant: what the others change stands beside them."""
    sections = ("task", "data", "tokenizer", "batch", "model", "training")
    return {name: recipe[name] for name in sections if name in recipe}


def _variant(variant: dict[str, Any]) -> dict[str, Any]:
    trainings = [
        {"seed": run["seed"], **({key: run[key] for key in TRAINING} if _finished(run) else {"failed": run["failed"]})}
        for run in variant["runs"]
    ]
    return {**{key: variant[key] for key in VARIANT}, "trainings": trainings}


def _score(figure: dict[str, Any], runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """A metric of a test set: for each variant its mean, the interval and the difference that were bootstrapped, and
    the figure of each seed that was trained to its end.
    """
    variants = {}
    for name, value in figure["variants"].items():
        seeds = [run["seed"] for run in runs[name] if _finished(run)]
        against = value.get("difference", {})
        variants[name] = {
            "mean": value["value"],
            "interval": value["interval"],
            "seeds": {str(seed): one for seed, one in zip(seeds, value["runs"], strict=True)},
            "difference": {key: against[key] for key in ("value", "interval", "p_value")} if against else None,
        }
    return {**{key: figure[key] for key in SCORE}, "variants": variants}


if __name__ == "__main__":
    main()
