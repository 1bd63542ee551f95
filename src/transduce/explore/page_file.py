"""The explorer's page as one self-contained HTML file.

Each `<link rel="stylesheet" href="X.css">` and `<script src="Y.js"></script>` in `page/index.html` is replaced by the
contents of the file. With data included, the page needs no server either.
"""

import json
import re
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError

FOLDER = Path(__file__).parent / "page"
STYLE = re.compile(r'<link rel="stylesheet" href="([\w./-]+\.css)">')
SCRIPT = re.compile(r'<script src="([\w./-]+\.js)"></script>')
HEAD = '<meta charset="utf-8">'
# The content security policy, which a file cannot get from a server's header: nothing but its own contents.
ALONE = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def page(data: dict[str, Any] | None = None, folder: Path = FOLDER) -> str:
    """The page; with `data`, the file that works offline.

    Raises:
        InputError: the page's files are missing, or one of them contains the end tag of its element.
    """
    html = _read(folder, "index.html")
    if data is not None:
        html = _with_data(html, data)
    html = STYLE.sub(lambda match: f"<style>{_inside(folder, match[1], 'style')}</style>", html)
    return SCRIPT.sub(lambda match: f"<script>{_inside(folder, match[1], 'script')}</script>", html)


def _with_data(html: str, data: dict[str, Any]) -> str:
    """Insert the data before the first script, which may read it at once."""
    first = SCRIPT.search(html)
    if first is None or HEAD not in html:
        raise InputError(f"index.html: the explorer's page needs {HEAD} and a script.")
    written = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    element = f'<script type="application/json" id="data">{written}</script>\n'
    html = f"{html[: first.start()]}{element}{html[first.start() :]}"
    return html.replace(HEAD, f'{HEAD}\n<meta http-equiv="Content-Security-Policy" content="{ALONE}">', 1)


def _inside(folder: Path, name: str, element: str) -> str:
    text = _read(folder, name)
    if f"</{element}" in text.lower():
        raise InputError(f"{folder / name}: holds </{element}, which would end it inside the page.")
    return text


def _read(folder: Path, name: str) -> str:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder / name}: the explorer's page is not whole: {error.strerror}.") from None
