"""The page that translates, as one self-contained HTML file, and its icon.

In `page/index.html.jinja` each `style("X.css")` and `script("Y.js")` stands for the file beside it.
"""

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from transduce.core.templates import self_contained
from transduce.documents.formats import FORMATS
from transduce.serve.models import Models
from transduce.serve.settings import ServeSettings

FOLDER = Path(__file__).parent / "page"


def translation_page(models: Models, settings: ServeSettings, explorer: bool) -> str | None:
    """The page for these models; None if none of them translates.

    Args:
        explorer: whether it links to /explore.
    """
    pairs: dict[str, list[str]] = {}
    translators = [model.current for model in models if model.current.is_translator]
    for each in translators:
        pairs.setdefault(each.source, []).extend(each.targets)
    attends = all(each.served.attends for each in translators)
    memory = all(each.served.datastore for each in translators) and find_spec("rapidfuzz") is not None
    told = tuple((source, tuple(dict.fromkeys(targets))) for source, targets in pairs.items() if targets)
    limits = (settings.characters, settings.file_bytes)
    return _page(told, limits, settings.wants_key, explorer, attends, memory) if told else None


@lru_cache(maxsize=4)
def _page(
    pairs: tuple[tuple[str, tuple[str, ...]], ...],
    limits: tuple[int, int],
    key: bool,
    explorer: bool,
    attends: bool,
    memory: bool,
) -> str:
    """Written anew only when a model with other languages was loaded. limits: of characters, of bytes of a file."""
    data = {"pairs": pairs, "characters": limits[0], "bytes": limits[1], "key": key}
    data |= {"explore": explorer, "attends": attends, "files": list(FORMATS)}
    data |= {"memory": True} if memory else {}
    return self_contained(FOLDER / "index.html.jinja", data=data, explorer=explorer)


def icon() -> bytes:
    """A small attention matrix, as SVG."""
    return (FOLDER / "icon.svg").read_bytes()
