"""The explorer's page as one self-contained HTML file.

In `page/index.html.jinja` each `style("X.css")` and `script("Y.js")` stands for the file beside it. With data in it the
page needs no server either.
"""

import re
from pathlib import Path
from typing import Any

from transduce.core.templates import self_contained

FOLDER = Path(__file__).parent / "page"
TEMPLATE = FOLDER / "index.html.jinja"


def page(data: dict[str, Any] | None = None, folder: Path = FOLDER) -> str:
    """The page; with `data`, the file that works offline.

    Raises:
        InputError: the page's files are missing, or one of them contains the end tag of its element.
    """
    return self_contained(folder / "index.html.jinja", data=data)


def scripts(part: str = "") -> list[str]:
    """The names of the page's scripts, in its order; those whose names begin with `part`, such as "engine/"."""
    return re.findall(rf'script\("({part}[^"]+)"\)', TEMPLATE.read_text(encoding="utf-8"))
