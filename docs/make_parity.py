"""Writes docs/parity.md from benchmarks/results/parity/.

`tests/test_docs.py` fails when the page is out of date.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from markdown_table import markdown_table
from records import read_record

Record = dict[str, Any]
ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("parity.md")
RECORDS = ROOT / "benchmarks" / "results" / "parity"
HEAD = """# Is it the same model?

What was measured of models that come from elsewhere or go there, beside the original. [Interop](interop.md) says what
is read and written. `python docs/make_parity.py` makes this page from the records that the commands below write.
"""


def page() -> str:
    """The whole page."""
    return HEAD + imported() + fine_tuned() + exported()


def record(name: str) -> Record | None:
    """See `read_record`."""
    return read_record(RECORDS / f"{name}.json")


def where(found: Record, *libraries: str) -> str:
    """Machine, versions and day."""
    machine, versions = found["machine"], found["versions"]
    told = ", ".join(f"{name} {versions[name]}" for name in ("torch", *libraries) if name in versions)
    return f"{machine['processor']}, {machine['kernels']} kernels, {told}, {found['date']}, commit `{found['commit']}`."


def imported() -> str:
    """Models of transformers' own classes."""
    found = record("import")
    if not found:
        return ""
    rows = [
        [
            row["model"],
            f"{row['size']}, {row['parameters'] / 1e6:.1f} million parameters",
            f"{row['apart']:.1e}",
            f"{row['equal']:,} of {row['lines']:,}",
        ]
        for row in found["rows"]
    ]
    return f"""
## In

`python benchmarks/import_parity.py --lines ../shared/data/multi30k/raw/{found["text"]} --record`: models with random
weights, made and saved by transformers' own classes, converted, and compared in fp32 on lines of Multi30k. Random
weights are the hard case: next tokens are nearly equally likely, so a wrong detail shows.

{markdown_table(["model", "size", "largest difference of logits", "equal greedy outputs"], rows)}
{where(found, "transformers", "tokenizers", "sentencepiece")}
"""


def fine_tuned() -> str:
    """A converted model before and after."""
    found = record("fine_tune")
    if not found:
        return ""
    rows = [[name, *(_interval(score, ".2f") for score in scores.values())] for name, scores in found["scores"].items()]
    metrics = found["scores"]["converted"]
    heads = [f"{score['name']}, `{score['signature'].replace('|', chr(92) + '|')}`" for score in metrics.values()]
    apart = "; ".join(
        f"{metrics[metric]['name']} {_interval(each, '+.2f')}" for metric, each in found["differences"].items()
    )
    return f"""
### Fine-tuned

`python benchmarks/fine_tune_imported.py RUNS --record`: a model that was trained on Multi30k and written as a folder of
Hugging Face (`MarianMTModel`) is converted, and fine-tuned for {found["minutes"]:g} minutes, with one thread, on
{found["pairs"]:,} pairs of Tatoeba. Scores of {found["sentences"]:,} held-out pairs of Tatoeba, with 95 % bootstrap
intervals.

{markdown_table(["", *heads], rows)}
Fine-tuned less converted, by a paired bootstrap: {apart}.

{where(found)}
"""


def _interval(found: Record, form: str) -> str:
    low, high = (format(end, form) for end in found["interval"])
    return f"{found['value']:{form}} [{low}, {high}]"


def exported() -> str:
    """Every architecture in every format."""
    found = record("export")
    if not found:
        return ""
    rows = found["rows"]
    architectures, formats = (list(dict.fromkeys(row[key] for row in rows)) for key in ("architecture", "format"))
    cells = {(row["architecture"], row["format"]): row for row in rows}
    table = markdown_table(
        ["architecture", *formats],
        [[name, *(_cell(cells.get((name, kind))) for kind in formats)] for name in architectures],
    )
    lines = max(row.get("lines", 0) for row in rows)
    return f"""
## Out

`python benchmarks/export_parity.py RUNS --record`: small translators from German to English, trained for
{found["updates"]} updates, exported, and compared in fp32 on the {lines:,} lines of Multi30k's {found["text"]}.
A cell has the equal outputs of greedy search, and of a beam of 5 where that can be compared.

{table}
{_parted(rows)}{_refused(rows)}
{where(found, "ctranslate2", "onnxruntime", "transformers", "pymarian")}
"""


def _cell(row: Record | None) -> str:
    if row is None:
        return ""
    if "refused" in row:
        return "refused"
    beam = "" if row["beam"] is None else f", beam {row['beam']:,}"
    return f"{row['greedy']:,}{beam}"


def _parted(rows: list[Record]) -> str:
    """Where greedy outputs differ: whether it was a tie."""
    told = "".join(
        f"- {row['architecture']}, {row['format']}: {row['lines'] - row['greedy']} of {row['lines']:,}, and "
        f"our model finds their token at most {row['margin']:.1e} nats less likely than ours\n"
        for row in rows
        if row.get("margin") is not None
    )
    return f"Where greedy outputs differ:\n\n{told}\n" if told else ""


def _refused(rows: list[Record]) -> str:
    """Why a model does not go, with all that do not for this reason."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if "refused" in row:
            reasons.setdefault(row["refused"], []).append(f"{row['architecture']} ({row['format']})")
    told = "".join(f"- {', '.join(names)}: {reason}\n" for reason, names in reasons.items())
    return f"What is refused, and why:\n\n{told}" if told else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
