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
    from transduce.serve.keys import managed

    lines, told = managed(file, action, name, requests_per_minute, characters_per_day)
    for line in lines:
        typer.echo(line)
    if told:
        tell(told)
