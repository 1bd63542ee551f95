"""`transduce.explorer`: the page of `transduce explore --file`, for a program and for a notebook's cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from transduce.core.atomic import human_size, write_text
from transduce.core.errors import InputError
from transduce.explore.offline import offline
from transduce.explore.page_file import page
from transduce.pipeline.arguments import texts_of
from transduce.pipeline.pipeline import Pipeline

HEIGHT = 900  # pixels of a notebook's cell


@dataclass(frozen=True, eq=False)
class ExplorerPage:
    """The explorer in one file, which needs no server. In a notebook it shows itself, and can be used there.

    html: the page.
    height: of its frame in a notebook, in pixels.
    """

    html: str
    height: int = HEIGHT

    def __repr__(self) -> str:
        size = human_size(len(self.html.encode()))
        return f"<transduce ExplorerPage of {size}; shown in a notebook, or by .save(path) and a browser>"

    def _repr_html_(self) -> str:
        """A frame that holds the page. What runs in it sees nothing of the notebook."""
        from markupsafe import escape

        style = f"width: 100%; height: {self.height}px; border: 0"
        return (
            f'<iframe title="Transduce" sandbox="allow-scripts allow-downloads" style="{style}" '
            f'srcdoc="{escape(self.html)}"></iframe>'
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file, which a browser opens without a network.

        Args:
            path: the file.

        Raises:
            InputError: it cannot be written.
        """
        write_text(Path(path), self.html)


def explorer(
    models: Pipeline | Mapping[str, Pipeline], texts: str | Sequence[str] = (), *, height: int = HEIGHT
) -> ExplorerPage:
    """The explorer for some models, in one page: what they do with these texts, and with others typed into the page.

    A model that the page can run answers new texts there (docs/explorer.md lists which); of others it shows `texts`.

    Args:
        models: a loaded model, or several by name.
        texts: what the page shows from the start; none: it opens with an example sentence of the model file.
        height: of its frame in a notebook, in pixels.

    Raises:
        InputError: a text cannot be explored, or there is none for a model that does not run in the page; no model.
    """
    named = {models.recipe.name: models} if isinstance(models, Pipeline) else dict(models)
    wrong = [name for name, each in named.items() if not isinstance(each, Pipeline)]
    if not named or wrong:
        got = ", ".join(f"{name!r}: {type(named[name]).__name__}" for name in wrong) or "none"
        raise InputError(f"explorer: expected loaded models, as transduce.load gives them; got {got}.")
    data = offline(named, texts_of(texts)[0])
    still = [] if data["explorations"] else [name for name in named if name not in data["live"]]
    if still:
        raise InputError(f"texts: expected some to show; {', '.join(still)} does not run in the page.")
    return ExplorerPage(page(data), height)
