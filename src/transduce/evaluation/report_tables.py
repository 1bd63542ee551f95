"""A report of an evaluation as lines and tables in a terminal, and as a table in a notebook."""

from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from transduce.core.templates import render
from transduce.inference.familiarity import InputFamiliarity
from transduce.inference.prediction import cut_line, unfinished_line
from transduce.interpret.score_tables import groups_table, with_interval
from transduce.runtime.console import make_console

TEMPLATE = Path(__file__).with_name("report_tables.html.jinja")
WIDE = 120  # columns of a table that is a text

Report = Mapping[str, Any]


def report_parts(report: Report) -> Iterator[str | Table]:
    """Line by line; report: as `transduce.evaluation.evaluate.evaluate_files` gives it."""
    if "left_out" in report:
        yield f"{report['left_out']:,} inputs without a correct answer were left out."
    if "note" in report:
        yield report["note"]
    yield from _compared(report) if "systems" in report else _alone(report)


def report_text(report: Report) -> str:
    file = StringIO()
    console = make_console(file=file, width=WIDE, force_jupyter=False, force_terminal=False, no_color=True)
    for part in report_parts(report):
        console.print(Text(part) if isinstance(part, str) else part, soft_wrap=isinstance(part, str))
    return file.getvalue().rstrip("\n")


def report_html(report: Report) -> str:
    """Systems downwards, metrics across; below them what each comparison says, and the signatures."""
    systems = report.get("systems") or {"": report}
    figures: dict[str, Any] = {}
    for system in systems.values():
        figures = {**system["scores"], **figures}  # of each metric the first system's
    names = list(figures)
    rows = [
        {
            "name": name,
            "cells": [with_interval(system["scores"][each]) if each in system["scores"] else "" for each in names],
            "perplexity": f"{system['likelihood']['perplexity']:.3f}" if "likelihood" in system else "",
        }
        for name, system in systems.items()
    ]
    return render(
        TEMPLATE,
        columns=[figures[metric]["name"] for metric in names],
        rows=rows,
        named="systems" in report,
        perplexity=any(row["perplexity"] for row in rows),
        sentences=f"{report['sentences']:,}",
        verdicts=[each["verdict"] for each in report.get("comparisons", [])],
        signatures=[f"{each['name']}: {each['signature']}" for each in figures.values()],
    )


def _alone(report: Report) -> Iterator[str | Table]:
    for figure in report["scores"].values():
        yield f"{figure['name']} {with_interval(figure)}  {figure['signature']}"
    for note in dict.fromkeys(figure["note"] for figure in report["scores"].values() if "note" in figure):
        yield f"  {note}"
    if "likelihood" in report:
        yield _perplexity(report["likelihood"])
    yield from _details(report, "", "By task:", "Counts of labels:")


def _compared(report: Report) -> Iterator[str | Table]:
    """Metric by metric: every system's figure, its difference to the first, and what that means."""
    systems, comparisons = report["systems"], report["comparisons"]
    width = max(map(len, systems))
    for metric in dict.fromkeys(each["metric"] for each in comparisons):
        against = {each["second"]: each for each in comparisons if each["metric"] == metric}
        any_of_them = next(iter(against.values()))
        yield f"{any_of_them['name']}  {any_of_them['signature']}"
        if "note" in any_of_them:
            yield f"  {any_of_them['note']}"
        for name, system in systems.items():
            figure = system["scores"].get(metric)
            difference = _difference(against[name]) if name in against else ""
            if figure or difference:
                yield f"  {name:<{width}}  {with_interval(figure) if figure else '':<21}  {difference}".rstrip()
        for each in against.values():
            yield f"  {each['verdict']}"
    for name, system in systems.items():
        if "likelihood" in system:
            yield f"{name}: {_perplexity(system['likelihood'])}"
        yield from _details(system, f"{name}: ", f"{name}, by task:", f"{name}, counts of labels:")


def _details(report: Report, name: str, groups: str, counts: str) -> Iterator[str | Table]:
    if count := report.get("unfinished"):
        yield f"{name}{unfinished_line(count)}"
    if cut := report.get("cut"):
        yield f"{name}{cut_line(**cut)}"
    if count := report.get("several_sentences"):
        yield (
            f"{name}inputs of several sentences, which are read whole here: {count:,}. `predict` reads them sentence "
            "by sentence; --split auto scores that."
        )
    if sentence := InputFamiliarity(**report.get("unfamiliar", {})).sentence():
        yield f"{name}{sentence}"
    if count := report.get("unknown_answers"):
        yield f"{name}answers that no training question has, which count as wrong: {count:,}"
    if len(report.get("groups", {})) > 1:
        yield groups_table(report["groups"], groups)
    if "confusion" in report:
        from transduce.interpret.confusion import confusion_table
        from transduce.metrics.confusion import Confusion

        yield confusion_table(Confusion.from_dict(report["confusion"]), counts)


def _difference(comparison: Report) -> str:
    p_value = "" if comparison["p_value"] is None else f"  p = {comparison['p_value']:.3f}"
    return with_interval(comparison, "+") + p_value


def _perplexity(likelihood: Report) -> str:
    return (
        f"perplexity {likelihood['perplexity']:.3f}  {likelihood['signature']}|context:{likelihood['context']}|"
        f"tokens:{likelihood['tokens']}"
    )
