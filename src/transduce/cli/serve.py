"""`transduce serve MODEL --port 8000`."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from transduce.cli import options
from transduce.cli.search_keys import models_and_search
from transduce.cli.server import hosts_of, key_of, start


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
    api_keys: Annotated[
        Path | None,
        typer.Option(help="A file of API keys with limits each, as transduce keys makes it. Requests must send one."),
    ] = None,
    keyless: Annotated[
        bool, typer.Option(help="Answer requests without a key too, within --requests-per-minute.")
    ] = False,
    requests_per_minute: Annotated[
        int | None,
        typer.Option(
            help="How many requests an address may send in a minute; a key has its own limit. By default any."
        ),
    ] = None,
    trust_proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="The address of a reverse proxy, whose X-Forwarded-For says where a request comes from. Repeatable."
        ),
    ] = None,
    suggestions: Annotated[
        Path | None,
        typer.Option(help="A file to which /suggest adds lines of JSON. Without it suggestions are refused."),
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
    explore: Annotated[
        bool, typer.Option(help="Whether /explore shows the explorer. Without it nobody looks into the models.")
    ] = True,
    threads: Annotated[
        int | None, typer.Option(help="How many threads the models use. By default the engine decides.")
    ] = None,
    precision: options.Precision = "fp32",
    device: options.Device = "auto",
    shortlist: options.Shortlist = None,
    prune: options.Prune = None,
    datastore: Annotated[
        list[str] | None,
        typer.Option(
            help="A translation memory that a model consults, a file of transduce datastore build; of several models "
            "as NAME=FILE. Repeatable."
        ),
    ] = None,
    engine: Annotated[
        Literal["auto", "torch", "kernels", "ctranslate2"],
        typer.Option(
            help="What runs the models. kernels starts in a fraction of the time, and translates with Transformers; "
            "torch runs all models. auto takes the kernels where they give the same answers, and loads torch when the "
            "explorer, attention or sampling is asked for. ctranslate2 takes folders of CTranslate2 in the place of "
            "models."
        ),
    ] = "auto",
    trust_code: options.TrustCode = False,
) -> None:
    """Serve models over HTTP.

        transduce serve runs/my --port 8000

    It offers a page that translates, LibreTranslate's API, our own, and the explorer at /explore. A model file that
    changes is loaded again.
    """
    from transduce.explore.page_file import page

    asked = {
        "batch_size": batch_size,
        "wait_ms": wait_ms,
        "queue": queue,
        "timeout": timeout,
        "characters": characters,
        "sentences_above": sentences_above,
        "threads": threads,
        "explore": explore,
        "api_key": key_of(api_key_file),
        "api_keys": api_keys,
        "keyless": keyless,
        "suggestions": suggestions,
        "requests_per_minute": requests_per_minute,
        "proxies": tuple(trust_proxy or []),
        "hosts": hosts_of(host, allow_host or []),
        "origins": tuple(allow_origin or []),
    }
    models, search = models_and_search(models, {"prune": prune, "shortlist": shortlist})
    use: dict[str, Any] = {
        "trust_code": trust_code,
        "precision": precision,
        "device": device,
        "search": search,
        "engine": engine,
    }
    use["datastores"] = tuple(datastore or ())
    explores = explore and engine in ("auto", "torch") and find_spec("torch")  # it looks into models
    start(models, use, asked, host, port, page if explores else None)
