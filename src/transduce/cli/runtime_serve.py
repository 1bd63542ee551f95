"""`transduce-runtime serve MODEL --port 8000`: the server of the package without torch."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transduce.cli.runtime_options import PRECISION, SEARCH
from transduce.cli.search_keys import models_and_search
from transduce.cli.server import hosts_of, key_of, start

SETTINGS: dict[str, dict[str, Any]] = {
    "--batch-size": {"type": int, "help": "How many texts to translate at once. By default 32."},
    "--wait-ms": {
        "type": float,
        "help": "How many milliseconds a text may wait for others to share a batch. By default 5.",
    },
    "--queue": {"type": int, "help": "How many texts may wait. Requests beyond that get status 429. By default 1024."},
    "--timeout": {"type": float, "help": "After how many seconds a request is given up. By default 60."},
    "--characters": {"type": int, "help": "How many characters a request may have. By default 20000."},
    "--sentences-above": {
        "type": int,
        "help": "/translate splits lines of more tokens than this into sentences. By default 64.",
    },
    "--requests-per-minute": {
        "type": int,
        "help": "How many requests an address may send in a minute; a key has its own limit. By default any.",
    },
    "--threads": {"type": int, "help": "How many threads the models use. By default all cores."},
}
"""Options that are keys of `transduce.serve.settings.ServeSettings`."""
SEARCHED = ("--prune", "--shortlist")


def parser(name: str) -> argparse.ArgumentParser:
    """Of the command's arguments, which are named as those of `transduce serve`. name: of the command."""
    whole = argparse.ArgumentParser(
        prog=f"{name} serve",
        description="Serve Transformers that translate over HTTP, without torch: LibreTranslate's API and our own.",
    )
    whole.add_argument(
        "model",
        nargs="+",
        metavar="MODEL|search.KEY=VALUE",
        help="Run directories or model files, each also as name=path. search.KEY=VALUE sets a key of search.",
    )
    whole.add_argument("--host", default="127.0.0.1", help="The address to listen on. By default only this machine.")
    whole.add_argument("--port", type=int, default=8000, help="The port to listen on. 0 takes any free one.")
    whole.add_argument(
        "--allow-host", action="append", default=[], help="A further host name to be called by. Repeatable."
    )
    whole.add_argument(
        "--allow-origin", action="append", default=[], help="A site whose web pages may use the server. Repeatable."
    )
    whole.add_argument(
        "--api-key-file", type=Path, help="A file with the API key that requests must send; else TRANSDUCE_API_KEY."
    )
    whole.add_argument(
        "--api-keys", type=Path, help="A file of API keys with limits each. Requests must send one of them."
    )
    whole.add_argument(
        "--keyless", action="store_true", help="Answer requests without a key too, within --requests-per-minute."
    )
    whole.add_argument("--suggestions", type=Path, help="A file to which /suggest adds lines of JSON.")
    whole.add_argument(
        "--trust-proxy", action="append", default=[], help="A reverse proxy whose X-Forwarded-For is believed."
    )
    for option, how in SETTINGS.items():
        whole.add_argument(option, **how)
    whole.add_argument("--precision", **PRECISION)
    for option in SEARCHED:
        whole.add_argument(option, **SEARCH[option])
    return whole


def serve(name: str, arguments: Sequence[str]) -> None:
    """Serve models over HTTP, as `transduce serve --engine kernels` does."""
    given = parser(name).parse_intermixed_args(arguments)
    models, search = models_and_search(given.model, {option[2:]: getattr(given, option[2:]) for option in SEARCHED})
    asked = {key: getattr(given, key) for key in (option[2:].replace("-", "_") for option in SETTINGS)}
    asked |= {
        "api_key": key_of(given.api_key_file),
        "api_keys": given.api_keys,
        "keyless": given.keyless,
        "suggestions": given.suggestions,
        "proxies": tuple(given.trust_proxy),
        "hosts": hosts_of(given.host, given.allow_host),
        "origins": tuple(given.allow_origin),
    }
    use = {"precision": given.precision, "device": "cpu", "search": search, "engine": "kernels"}
    start(models, use, asked, given.host, given.port)


def keys_parser(name: str) -> argparse.ArgumentParser:
    """Of the arguments of `keys`, which are named as those of `transduce keys`. name: of the command."""
    whole = argparse.ArgumentParser(prog=f"{name} keys", description="Make, list and remove the API keys of a server.")
    whole.add_argument("action", choices=["add", "list", "remove"])
    whole.add_argument("file", type=Path, help="The file of keys, for --api-keys of serve. add makes it.")
    whole.add_argument("name", nargs="?", default="", help="What the key is called: whose it is.")
    whole.add_argument("--requests-per-minute", type=int, help="How often the key may be used. By default any.")
    whole.add_argument("--characters-per-day", type=int, help="Characters it may send a day (UTC). By default any.")
    return whole


def keys(name: str, arguments: Sequence[str]) -> None:
    """Make, list and remove API keys, as `transduce keys` does."""
    from transduce.cli.text import tell
    from transduce.serve.keys import managed

    given = keys_parser(name).parse_args(arguments)
    lines, told = managed(given.file, given.action, given.name, given.requests_per_minute, given.characters_per_day)
    print("\n".join(lines), end="\n" if lines else "")
    if told:
        tell(told)
