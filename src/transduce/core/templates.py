"""HTML from Jinja templates, which lie beside the code that fills them in as NAME.html.jinja.

Whatever is put into one is escaped, unless it is `markupsafe.Markup`; a name that nobody gave is an error.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.core.errors import InputError

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

SHARED = Path(__file__).parent / "page"


def render(template: Path, **values: Any) -> str:
    """The text of `template` with its names filled in.

    Raises:
        InputError: there is no such file.
        ValueError: a number that JSON cannot say was to be written as JSON.
    """
    from jinja2 import TemplateNotFound

    try:
        found = _environment(template.parent).get_template(template.name)
    except TemplateNotFound:
        raise InputError(f"{template}: there is no such template; is the package whole?") from None
    return found.render(values)


def self_contained(template: Path, **values: Any) -> str:
    """The same for a page that brings all it needs: `style("X.css")` and `script("Y.js")` stand for files beside it.

    What several pages share lies in the folder `page` beside this file.

    Raises:
        InputError: there is no such template or file, or a file contains the end tag of its element.
        ValueError: a number that JSON cannot say was to be written as JSON.
    """

    def style(name: str) -> "Markup":
        own, shared = template.parent / name, SHARED / name
        return _inside(shared if shared.is_file() else own, "style")

    def script(name: str) -> "Markup":
        return _inside(template.parent / name, "script")

    return render(template, style=style, script=script, **values)


def _inside(path: Path, element: str) -> "Markup":
    from markupsafe import Markup

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: the page is incomplete: {error.strerror}.") from None
    if f"</{element}" in text.lower():
        raise InputError(f"{path}: holds </{element}, which would end it inside the page.")
    return Markup(f"<{element}>{text}</{element}>")


@cache
def _environment(folder: Path) -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "allow_nan": False}
    return environment
