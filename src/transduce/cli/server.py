"""Starting a server, for `transduce serve`, `transduce explore` and `transduce-runtime serve`."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.core.errors import InputError
from transduce.core.extras import missing

if TYPE_CHECKING:
    from transduce.serve.settings import ServeSettings

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def start(
    models: Sequence[str],
    use: Mapping[str, Any],
    asked: Mapping[str, object],
    host: str,
    port: int,
    page: Callable[[], str] | None = None,
) -> None:
    """Serve models until a signal comes.

    Args:
        models: each as `path` or `name=path`.
        use: arguments of `transduce.serve.served_model.ModelUse`.
        asked: keys of `transduce.serve.settings.ServeSettings`; None = not given.
        page: what is shown at "/explore"; None = nothing is there.

    Raises:
        InputError: a setting, a model or the address is no good; a library is missing.
    """
    from transduce.cli.text import tell

    with needed("serving"):
        settings = _settings(asked)
        import_module("jinja2")  # for /docs, which is written when the server begins
        from transduce.serve.models import Models
        from transduce.serve.run import run
        from transduce.serve.served_model import ModelUse

    opened = Models.open(models, ModelUse(**use, threads=settings.threads))
    for model in opened:
        tell(f"{model.name}: {model.path}")
    shown = page() if page else None
    run(opened, settings, host, port, shown, lambda address: tell(f"Serving on {address}, see {address}/docs"))


@contextmanager
def needed(what: str) -> Iterator[None]:
    """Import from the extra `serve` inside this; a missing library becomes an error that names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("transduce"):
            raise
        raise missing(what, error.name or "a library", "serve") from None


def hosts_of(host: str, further: Sequence[str]) -> tuple[str, ...]:
    """The host names that requests may use; on loopback only its own, so that no web page gets in under another."""
    loopback = host in ("localhost", "::1") or host.startswith("127.")
    return tuple(dict.fromkeys([*(LOOPBACK if loopback else ()), *further, *([host] if loopback else [])]))


def key_of(path: Path | None) -> str | None:
    """The API key in a file; without one that of the environment. Raises InputError where it cannot be read."""
    if path is None:
        return os.environ.get("TRANSDUCE_API_KEY") or None
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the API key cannot be read from this file: {error}.") from None
    if not key:
        raise InputError(f"{path}: expected an API key, but the file is empty.")
    return key


def _settings(asked: Mapping[str, object]) -> "ServeSettings":
    from pydantic import ValidationError

    from transduce.core.config_errors import explain
    from transduce.serve.settings import ServeSettings

    try:
        return ServeSettings.model_validate({name: value for name, value in asked.items() if value is not None})
    except ValidationError as error:
        raise InputError(explain(error, ServeSettings, "serve")) from None
