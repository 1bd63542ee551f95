"""Does a translation memory teach a model a term, and leave everything else as it was?

    transduce demo
    python benchmarks/datastore.py runs/demo --memory dom.en dom.fr --test test.en test.fr --term street avenue

Builds a datastore of the memory and translates the test twice, without it and with it. It reports

- the term: of the test's lines whose source has the first word of --term, how many outputs have the second;
- everything else: of the other lines, how many outputs are exactly what they were (without --term: of all lines);
- BLEU without and with the memory, with the 95 % interval of the difference (paired bootstrap);
- batches: how many outputs differ between batches of 1, 7 and 64;
- speed: seconds for the test in one call of the kernels, step by step, and with the memory.

For a domain: --memory its training part, --test its test part, --general a test of other texts, whose BLEU and exactly
equal outputs are reported as well.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import transduce
from transduce.cli.datastore import settings_of
from transduce.data.files import read_lines
from transduce.inference.prediction import Prediction
from transduce.metrics.bleu import bleu_tally
from transduce.metrics.paired import paired_bootstrap
from transduce.pipeline.datastores import BuildOptions, build_datastore
from transduce.runtime.environment import library_versions, machine, source_commit

Texts = Sequence[str]


def main() -> None:
    """All figures as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--memory", type=Path, nargs=2, required=True, help="its sources and its targets")
    parser.add_argument("--test", type=Path, nargs=2, required=True, help="its sources and its references")
    parser.add_argument("--general", type=Path, nargs=2, help="sources and references of other texts")
    parser.add_argument("--validation", type=Path, nargs=2, help="pairs to choose the settings on; default: the memory")
    parser.add_argument("--keep", type=Path, help="sources whose outputs should stay; default: none are looked at")
    parser.add_argument("--kept", type=float, default=0.99)
    parser.add_argument("--term", nargs=2, help="a word of sources, and the word that outputs should have")
    parser.add_argument("--knn", action="append", help="a setting that is not chosen, as k=8")
    parser.add_argument("--lines", type=int, help="only so many lines of each test")
    parser.add_argument("--invariance", type=int, default=200, help="lines that are translated in other batches")
    asked = parser.parse_args()
    model = transduce.load(asked.model)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "memory.datastore"
        found: dict[str, Any] = {"datastore": built(model, asked, store)}
        sources, references = (lines(path, asked.lines) for path in asked.test)
        found |= compared(model, store, sources, references, asked.term)
        found["batches"] = invariance(model, store, sources[: asked.invariance])
        if asked.general:
            others = [lines(path, asked.lines) for path in asked.general]
            found["general"] = compared(model, store, others[0], others[1], None)
    found |= {"machine": machine(), "versions": library_versions(), "commit": source_commit()}
    print(json.dumps(found, ensure_ascii=False, indent=1))


def lines(path: Path, most: int | None = None) -> list[str]:
    return list(read_lines(path))[:most]


def built(model: Any, asked: argparse.Namespace, path: Path) -> dict[str, Any]:
    """What was built, in which time."""
    pairs = list(zip(*map(lines, asked.memory), strict=True))
    options = BuildOptions(
        validation=list(zip(*map(lines, asked.validation), strict=True)) if asked.validation else (),
        keep=lines(asked.keep) if asked.keep else (),
        kept=asked.kept,
        knn=settings_of(asked.knn),
    )
    seconds, store = timed(
        lambda: build_datastore(model, ((n, *pair) for n, pair in enumerate(pairs, 1)), path, options)
    )
    size = path.stat().st_size
    return {"pairs": len(store.sources), "entries": len(store), "bytes": size, "seconds": seconds, **store.facts}


def compared(model: Any, store: Path, sources: Texts, references: Texts, term: Sequence[str] | None) -> dict[str, Any]:
    """The outputs without and with the memory."""
    model.predict(sources[:64], datastore=store)  # what is loaded once is not part of the time
    in_one_call, before = timed(lambda: model.predict(sources))
    step_by_step, _ = timed(lambda: model.predict(sources, on_step=lambda step: None))
    with_memory, after = timed(lambda: model.predict(sources, datastore=store))
    plain, recalled = ([each.text for each in outputs] for outputs in (before, after))
    tallies = [bleu_tally(texts, [[each] for each in references]) for texts in (plain, recalled)]
    has_term = [bool(term) and term[0] in source for source in sources]  # type: ignore[index]
    others = [place for place, has in enumerate(has_term) if not has]
    same = sum(plain[place] == recalled[place] for place in others)
    found: dict[str, Any] = {
        "lines": len(sources),
        "else": {"lines": len(others), "unchanged": same, "share": same / len(others)},
        "bleu": {
            "without": tallies[0].value,
            "with": tallies[1].value,
            "difference": paired_bootstrap(*tallies).to_dict(),
            "signature": tallies[0].signature,
        },
        "seconds": {"in one call": in_one_call, "step by step": step_by_step, "with the memory": with_memory},
        "ratio": {"to one call": with_memory / in_one_call, "to step by step": with_memory / step_by_step},
    }
    if term:
        wanted = [place for place, has in enumerate(has_term) if has]
        counts = [sum(term[1] in outputs[place] for place in wanted) for outputs in (plain, recalled)]
        found["term"] = {
            "lines": len(wanted),
            "before": counts[0],
            "after": counts[1],
            "share": counts[1] / len(wanted),
        }
    return found


def invariance(model: Any, store: Path, sources: Texts) -> dict[str, Any]:
    """How many outputs of other batches differ from those alone, and by how much at most their scores do."""
    alone = model.predict(sources, batch_size=1, datastore=store)
    found: dict[str, Any] = {"lines": len(sources)}
    for size in (7, 64):
        other = model.predict(sources, batch_size=size, datastore=store)
        found[f"batch {size}"] = {"differ": differing(alone, other), "score": furthest(alone, other)}
    return found


def differing(one: Sequence[Prediction], other: Sequence[Prediction]) -> int:
    return sum(a.tokens != b.tokens for a, b in zip(one, other, strict=True))


def furthest(one: Sequence[Prediction], other: Sequence[Prediction]) -> float:
    return max((abs(a.score - b.score) for a, b in zip(one, other, strict=True)), default=0.0)


def timed(do: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    found = do()
    return time.perf_counter() - begun, found


if __name__ == "__main__":
    main()
