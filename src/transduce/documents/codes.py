"""Placeholders of programs in a run of text: %s, {name}, <b>. They become inline codes, which no model rewrites."""

import re
from itertools import pairwise

from transduce.documents.runs import Kind, Run, RunBuilder

MARKUP = r"</?[A-Za-z][^<>]*>"
CODE = re.compile(
    rf"{MARKUP}"
    r"|%(?:\d+\$)?[-+#0']*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh?|ll?|[qjzt])?[diouxXeEfFgGcrsSpn@](?![^\W\d_])"  # of C
    r"|%\(\w+\)[-+#0\d.]*[a-zA-Z]|%\w+%|%%"  # of Python, of Windows
    r"|\$t\([^()]*\)|\$?\{\{[^{}]*\}\}|[$#%]?\{[\w.,:#!/ -]*\}"  # of i18next, Mustache, str.format, shells
)


def with_codes(run: Run) -> Run:
    """The run with its placeholders as codes."""
    found = [each.span() for each in CODE.finditer(run.text)] if run.exact else []
    found = [(start, end) for start, end in found if not any(start < tag.at < end for tag in run.tags)]
    if not found:
        return run
    building, done, number = RunBuilder(), 0, 0
    for start, end in found:
        number = _copy(run, building, done, start, number)
        _add_code(run, building, start, end, number)
        done = end
    _copy(run, building, done, len(run.text), number)
    return building.run(run.write, run.lines)


def _copy(run: Run, building: RunBuilder, start: int, end: int, first: int) -> int:
    """Text and tags from `start` to `end`, the tags at `end` included; how many tags are behind then."""
    number = first
    while number < len(run.tags) and run.tags[number].at <= end:
        tag = run.tags[number]
        _copy_text(run, building, start, tag.at, number)
        raw = run.raw[run.tag_starts[number] : run.offset(tag.at, number + 1)]
        building.add_tag(raw, tag.kind, tag.name, tag.raw)
        start, number = tag.at, number + 1
    _copy_text(run, building, start, end, number)
    return number


def _copy_text(run: Run, building: RunBuilder, start: int, end: int, tags: int) -> None:
    for at, following in pairwise(range(start, end + 1)):
        building.add_text(run.text[at], run.raw[run.starts[at] : run.offset(following, tags)])


def _add_code(run: Run, building: RunBuilder, start: int, end: int, tags: int) -> None:
    text = run.text[start:end]
    kind: Kind = "alone"
    if re.fullmatch(MARKUP, text) and not text.endswith("/>"):
        kind = "close" if text.startswith("</") else "open"
    name = re.sub(r"\W.*", "", text.strip("</>")) if kind != "alone" else ""
    building.add_tag(run.raw[run.starts[start] : run.offset(end, tags)], kind, name)
