"""`transduce explore MODEL`: attention in the browser, or in one file that works offline."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli import options
from transduce.cli.search_keys import models_and_search
from transduce.cli.server import hosts_of, needed
from transduce.core.destination import check_output
from transduce.core.errors import InputError

if TYPE_CHECKING:
    from transduce.serve.models import Models

LOOPBACK = "127.0.0.1"


def explore(
    models: options.SomeNamedModels = None,
    run: Annotated[
        Path | None,
        typer.Option(
            help="The run directory whose training to show, live while it runs. By default the first model's."
        ),
    ] = None,
    port: options.Port = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    file: Annotated[
        Path | None, typer.Option(help="Write a single HTML file that works offline, and start no server.")
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option(help="With --file, a sentence or sound file to show. Repeatable.")
    ] = None,
    datastore: Annotated[
        list[str] | None,
        typer.Option(
            help="A translation memory that a model consults, a file of transduce datastore build; of several models "
            "NAME=FILE. The page then shows from which of its pairs each word came. Repeatable."
        ),
    ] = None,
    device: options.Device = "auto",
    trust_code: options.TrustCode = False,
) -> None:
    """See a model's predictions, search and attention in the browser.

        transduce explore runs/my

    The server answers only this machine. Without a model it opens interactive pages about attention.
    """
    if not models and not (run or file or text or datastore):
        _pages(port, browser)
        return
    _check(run, file, text or [])
    with needed("exploring"):
        from transduce.serve.models import Models, named_model
        from transduce.serve.served_model import ModelUse

        if not file:  # told before a model is loaded
            import_module("transduce.serve.run")
    models, search = models_and_search(models or ([str(run)] if run else []), {})
    stores = tuple(datastore or ())
    use = ModelUse(trust_code, device=device, files=True, search=search, engine="torch", datastores=stores)
    if file:
        check_output(file, [*(named_model(each)[1] for each in models), run, *map(Path, text or [])], "--file")
    opened = Models.open(models, use, run)
    if file:
        _write(opened, file, text or [])
    else:
        _serve(opened, port, browser)


def _check(run: Path | None, file: Path | None, texts: list[str]) -> None:
    problems = []
    if file and not texts:
        problems.append('--file needs sentences to show: add --text "..", as often as you like.')
    if file and not file.absolute().parent.is_dir():
        problems.append(f"--file {file}: there is no folder {file.absolute().parent}.")
    if texts and not file:
        problems.append("--text goes with --file; in the browser you type the sentence.")
    if run and not run.is_dir():
        problems.append(f"--run {run}: there is no such directory.")
    if problems:
        raise InputError(problems)


def _write(models: "Models", file: Path, texts: list[str]) -> None:
    from transduce.cli.text import tell
    from transduce.core.atomic import human_size, write_text
    from transduce.explore.offline import offline
    from transduce.explore.page_file import page

    loaded = [model.current for model in models]
    stores = {each.name: each.served.datastore for each in loaded if each.served.datastore}
    run = models.run(loaded[0].name)
    data = offline({each.name: each.pipeline for each in loaded}, texts, run, datastores=stores)
    written = page(data)
    write_text(file, written)
    tell(f"{file}: {human_size(len(written.encode()))}, works offline.")
    for name, model in data["live"].items():
        tell(f"{name} runs in the page, in int8 ({human_size(len(model))} of it): it answers new texts, too.")


def _pages(port: int, browser: bool) -> None:
    """The interactive pages; their model is trained first where that was never done."""
    from transduce.runtime.console import make_console
    from transduce.site.on_call import pages, serve

    serve(pages(make_console()), port, partial(_ready, browser, "Interactive pages", ""))


def _ready(browser: bool, what: str, path: str, address: str) -> None:
    """Tells where the server is, and opens it."""
    import webbrowser

    from transduce.cli.text import tell

    tell(f"{what} on {address}{path}; Ctrl-C ends it.")
    if browser and not webbrowser.open(f"{address}{path}"):
        tell("No browser was found: open the address yourself.")


def _serve(models: "Models", port: int, browser: bool) -> None:
    from transduce.explore.page_file import page
    from transduce.serve.run import run
    from transduce.serve.settings import ServeSettings

    ready = partial(_ready, browser, "Exploring", "/explore")
    run(models, ServeSettings(hosts=hosts_of(LOOPBACK, [])), LOOPBACK, port, page(), ready)
