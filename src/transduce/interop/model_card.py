"""What a reader should know of an exported model: where it comes from, and how good it is, with signatures."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from transduce.core.languages import name_of
from transduce.version import __version__

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline


class Languages(NamedTuple):
    """Codes of the languages that a model translates between; "" = nobody said."""

    source: str = ""
    target: str = ""

    @classmethod
    def of(cls, pipeline: "Pipeline") -> "Languages":
        return cls(*pipeline.task.languages)


def model_card(pipeline: "Pipeline", languages: Languages, head: str = "") -> str:
    """Markdown. head: what stands before the title, such as metadata."""
    sides = f"It translates {' to '.join(map(name_of, languages))}. " if all(languages) else ""
    parameters = sum(each.numel() for each in pipeline.model.parameters())
    lines = [
        f"# {pipeline.recipe.name}",
        "",
        f"{sides}Trained with Transduce, exported by Transduce {__version__}; {parameters:,} parameters.",
        *_scores(pipeline.metrics),
    ]
    return head + "\n".join(lines) + "\n"


def _scores(metrics: Any) -> Iterator[str]:
    rows = list(_rows(metrics, ""))
    if not rows:
        return
    yield from ("", "| text | score | signature |", "|---|---|---|")
    yield from rows


def _rows(found: Any, where: str) -> Iterator[str]:
    """Every score in nested tables and lists, as a row of a table."""
    if isinstance(found, dict) and {"name", "value", "signature"} <= found.keys():
        interval = found.get("interval")
        shown = f" [{interval[0]:.1f}, {interval[1]:.1f}]" if interval else ""
        yield f"| {where or 'validation'} | {found['name']} {found['value']:.1f}{shown} | `{found['signature']}` |"
    elif isinstance(found, dict):
        for name, each in found.items():
            yield from _rows(each, f"{where} {name}".strip())
    elif isinstance(found, list):
        for each in found:
            yield from _rows(each, where)
