"""Optional libraries, and the command that installs them, wherever this package was installed from."""

import json
import shlex
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError

NAME = __name__.partition(".")[0].replace("_", "-")  # of this package, as installers call it: it has a second name


def library(module: str, what: str, extra: str, called: str = "") -> Any:
    """An optional library, or a module of it.

    Args:
        what: is done with it, for the error.
        extra: of Transduce, to which it belongs.
        called: what installers call it; "" = as the module.

    Raises:
        InputError: it is not installed; the error says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise missing(what, called or module, extra) from error


def missing(what: str, library: str, extra: str) -> InputError:
    """The error for using `what` without `library`, which belongs to one of Transduce's extras."""
    return InputError(f"{what} needs {library}, which is not installed: {installing(extra)}")


def installing(extra: str) -> str:
    """The command that installs an extra into this very environment."""
    here = shlex.quote(sys.executable)
    installer = f"{here} -m pip install" if find_spec("pip") else f"uv pip install --python {here}"
    return f"{installer} {_requirement(extra, _origin())}"


def _requirement(extra: str, origin: dict[str, Any]) -> str:
    """This package with an extra, as installers are told."""
    url = str(origin.get("url", ""))
    if "dir_info" in origin and url.startswith("file://"):
        editable = "-e " if origin["dir_info"].get("editable") else ""
        return f'{editable}"{_path(url)}[{extra}]"'
    if "vcs_info" in origin:
        return f'"{NAME}[{extra}] @ {origin["vcs_info"]["vcs"]}+{url}"'
    return f'"{NAME}[{extra}] @ {url}"' if url else f'"{NAME}[{extra}]"'


def _path(url: str) -> str:
    from urllib.parse import urlparse
    from urllib.request import url2pathname

    return url2pathname(urlparse(url).path)


def _origin() -> dict[str, Any]:
    """Where this package was installed from (PEP 610); the folder of its source where it was not installed at all."""
    source = Path(__file__).resolve().parents[3]
    if (source / "pyproject.toml").exists():
        return {"url": source.as_uri(), "dir_info": {"editable": True}}
    from importlib.metadata import PackageNotFoundError, distribution  # late: it takes a tenth of a command's start

    try:
        found = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        found = None
    return json.loads(found) if found else {}
