"""`transduce keys add FILE NAME`."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def keys(
    action: Annotated[Literal["add", "list", "remove"], typer.Argument(help="add, list or remove.")],
    file: Annotated[Path, typer.Argument(help="The file of keys, for transduce serve --api-keys. add makes it.")],
    name: Annotated[str, typer.Argument(help="What the key is called: whose it is.")] = "",
    requests_per_minute: Annotated[
        int | None, typer.Option(min=1, help="How often the key may be used. By default without limit.")
    ] = None,
    characters_per_day: Annotated[
        int | None, typer.Option(min=1, help="How many characters it may send a day (UTC). By default without limit.")
    ] = None,
) -> None:
    """Make, list and remove the API keys of a server.

        transduce keys add keys.db maria --requests-per-minute 60

    add prints the new key, which is stored nowhere: the file holds its hash. A running server sees changes at once.
    """
    from transduce.cli.text import tell
    from transduce.core.errors import InputError
    from transduce.serve.keys import ApiKeys

    store = ApiKeys(file)
    if action != "list" and not name:
        raise InputError(f"transduce keys {action}: expected the NAME of a key behind {file}.")
    if action == "add":
        typer.echo(store.add(name, requests_per_minute, characters_per_day))
        tell(f"This is the key of {name}. It is shown once; {file} holds its hash.")
    elif action == "remove":
        store.remove(name)
        tell(f"{name}: removed from {file}.")
    else:
        for each in store.listed():
            rate = f"{each.requests_per_minute} requests a minute" if each.requests_per_minute else "any rate"
            day = f"{each.characters_per_day:,}" if each.characters_per_day else "any number"
            typer.echo(f"{each.name}\t{each.created}\t{rate}\t{each.used:,} of {day} characters today")
