"""HTML from Jinja templates, which lie beside the code that fills them in as NAME.html.jinja.

Whatever is put into one is escaped, unless it is `markupsafe.Markup`; a name that nobody gave is an error.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.core.errors import InputError

if TYPE_CHECKING:
    from jinja2 import Environment


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
