"""`transduce serve MODEL --port 8000`."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from transduce.cli import options
from transduce.cli.search_keys import models_and_search
from transduce.core.errors import InputError
from transduce.core.extras import missing

if TYPE_CHECKING:
    from transduce.serve.settings import ServeSettings

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def serve(
    models: options.NamedModels,
    host: Annotated[
        str, typer.Option(help="The address to listen on. The default answers only this machine.")
    ] = "127.0.0.1",
    port: options.Port = 8000,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further host name that requests may call the server by. Repeatable.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="A site whose web pages may use the server, such as https://example.org, or * for all. Repeatable."
        ),
    ] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the API key that requests must send. Without it, the variable TRANSDUCE_API_KEY is read."
        ),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="How many texts to translate at once. By default 32.")] = None,
    wait_ms: Annotated[
        float | None,
        typer.Option(help="How many milliseconds a text may wait for others to share a batch. By default 5."),
    ] = None,
    queue: Annotated[
        int | None, typer.Option(help="How many texts may wait. Requests beyond that get status 429. By default 1024.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="After how many seconds a request is given up. By default 60.")
    ] = None,
    characters: Annotated[
        int | None, typer.Option(help="How many characters a request may have. By default 20000.")
    ] = None,
    sentences_above: Annotated[
        int | None,
        typer.Option(
            help="/translate splits lines of more tokens than this into sentences. By default 64. Models that were "
            "trained on single sentences get every line split."
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="How many threads the model uses. By default torch decides.")
    ] = None,
    precision: options.Precision = "fp32",
    device: options.Device = "auto",
    shortlist: options.Shortlist = None,
    prune: options.Prune = None,
    engine: Annotated[
        Literal["transduce", "ctranslate2"],
        typer.Option(help="What runs the models. ctranslate2 takes folders of CTranslate2 in the place of models."),
    ] = "transduce",
    trust_code: options.TrustCode = False,
) -> None:
    """Serve models over HTTP.

        transduce serve runs/my --port 8000

    It offers LibreTranslate's API, our own, and the explorer's page. A model file that changes is loaded again.
    """
    from transduce.cli.text import tell

    asked = {
        "batch_size": batch_size,
        "wait_ms": wait_ms,
        "queue": queue,
        "timeout": timeout,
        "characters": characters,
        "sentences_above": sentences_above,
        "threads": threads,
        "api_key": _key(api_key_file),
        "hosts": hosts_of(host, allow_host or []),
        "origins": tuple(allow_origin or []),
    }
    settings = _settings(asked)
    with needed("serving"):
        from transduce.serve.models import Models, ModelUse
        from transduce.serve.run import run
    from transduce.explore.page_file import page

    models, search = models_and_search(models, {"prune": prune, "shortlist": shortlist})
    use = ModelUse(trust_code, precision, device, search, engine=engine, threads=threads)
    opened = Models.open(models, use)
    for model in opened:
        tell(f"{model.name}: {model.path}")
    shown = page() if engine == "transduce" else None  # the explorer looks into models
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


def _settings(asked: Mapping[str, object]) -> "ServeSettings":
    from pydantic import ValidationError

    from transduce.core.config_errors import explain
    from transduce.serve.settings import ServeSettings

    try:
        return ServeSettings.model_validate({name: value for name, value in asked.items() if value is not None})
    except ValidationError as error:
        raise InputError(explain(error, ServeSettings, "serve")) from None


def hosts_of(host: str, further: list[str]) -> tuple[str, ...]:
    """The host names that requests may use; on loopback only its own, so that no web page gets in under another."""
    loopback = host in ("localhost", "::1") or host.startswith("127.")
    return tuple(dict.fromkeys([*(LOOPBACK if loopback else ()), *further, *([host] if loopback else [])]))


def _key(path: Path | None) -> str | None:
    if path is None:
        return os.environ.get("TRANSDUCE_API_KEY") or None
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the API key cannot be read from this file: {error}.") from None
    if not key:
        raise InputError(f"{path}: expected an API key, but the file is empty.")
    return key
