"""`transduce serve MODEL --port 8000`."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli.options import DeviceOption, PrecisionOption, PruneOption, models_and_search
from transduce.core.errors import InputError
from transduce.core.extras import missing

if TYPE_CHECKING:
    from transduce.serve.settings import ServeSettings

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL|search.KEY=VALUE",
            help="Run directories or model files, also as name=path. Any key of search, as search.beam=5.",
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default this machine alone can ask.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any free one.")] = 8000,
    allow_host: Annotated[list[str] | None, typer.Option(help="A further name that requests may use.")] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="A site whose web pages may ask, https://example.org; repeatable; * allows all."),
    ] = None,
    api_key_file: Annotated[
        Path | None, typer.Option(help="A file with the key that requests must have; or set TRANSDUCE_API_KEY.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Texts translated together.")] = None,
    wait_ms: Annotated[float | None, typer.Option(help="How long a text waits for company.")] = None,
    queue: Annotated[int | None, typer.Option(help="Texts that may wait; beyond, requests get 429.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds until a request is given up.")] = None,
    characters: Annotated[int | None, typer.Option(help="Characters in a request.")] = None,
    sentences_above: Annotated[
        int | None, typer.Option(help="/translate splits longer lines into sentences; of models of single ones all.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of the model.")] = None,
    precision: PrecisionOption = "fp32",
    device: DeviceOption = "auto",
    shortlist: Annotated[
        int | None, typer.Option(help="Candidates a source token, and no other words; see transduce shortlist.")
    ] = None,
    prune: PruneOption = None,
    trust_code: Annotated[bool, typer.Option(help="Let the model file name code outside Transduce.")] = False,
) -> None:
    """Serve models over HTTP: LibreTranslate's API, our own, and the explorer's page. Changed files are loaded anew."""
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
        from transduce.serve.models import Models, Use
        from transduce.serve.run import run
    from transduce.explore.page_file import page

    models, search = models_and_search(models, {"prune": prune, "shortlist": shortlist})
    opened = Models.open(models, Use(trust_code, precision, device, search))
    for model in opened:
        tell(f"{model.name}: {model.path}")
    run(opened, settings, host, port, page(), lambda address: tell(f"Serving on {address}, see {address}/docs"))


@contextmanager
def needed(what: str) -> Iterator[None]:
    """Imports of the extra `serve`; one that is missing is told as such."""
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
    """On loopback only its own names, so that no web page can reach the server under a name of its own."""
    loopback = host in ("localhost", "::1") or host.startswith("127.")
    return tuple(dict.fromkeys([*(LOOPBACK if loopback else ()), *further, *([host] if loopback else [])]))


def _key(path: Path | None) -> str | None:
    if path is None:
        return os.environ.get("TRANSDUCE_API_KEY") or None
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: wanted a file with an API key, but it cannot be read: {error}.") from None
    if not key:
        raise InputError(f"{path}: wanted an API key; the file is empty.")
    return key
