"""`python -m transduce.site FOLDER [RUN]`: writes the pages to FOLDER; trains the demo in RUN where it is missing."""

import sys
from pathlib import Path

from transduce.core.errors import InputError
from transduce.runtime.console import make_console
from transduce.site.build import build
from transduce.site.demo_model import demo_model


def main(folder: str = "site", run: str = "runs/demo") -> None:
    """Trains if need be, and builds."""
    console = make_console()
    build(Path(folder), demo_model(Path(run), [], console), docs=True)
    console.print(f"{folder}/index.html: open it in a browser; it needs no server.", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    except InputError as error:
        sys.exit(f"error: {error}")
