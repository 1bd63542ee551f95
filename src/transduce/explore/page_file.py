"""The explorer's page as one self-contained HTML file.

In `page/index.html.jinja` each `style("X.css")` and `script("Y.js")` stands for the file beside it. With data in it the
page needs no server either.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.core.errors import InputError
from transduce.core.templates import render

if TYPE_CHECKING:
    from markupsafe import Markup

FOLDER = Path(__file__).parent / "page"


def page(data: dict[str, Any] | None = None, folder: Path = FOLDER) -> str:
    """The page; with `data`, the file that works offline.

    Raises:
        InputError: the page's files are missing, or one of them contains the end tag of its element.
    """

    def style(name: str) -> "Markup":
        return _inside(folder / name, "style")

    def script(name: str) -> "Markup":
        return _inside(folder / name, "script")

    return render(folder / "index.html.jinja", data=data, style=style, script=script)


def _inside(path: Path, element: str) -> "Markup":
    from markupsafe import Markup

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: the explorer's page is incomplete: {error.strerror}.") from None
    if f"</{element}" in text.lower():
        raise InputError(f"{path}: holds </{element}, which would end it inside the page.")
    return Markup(f"<{element}>{text}</{element}>")
