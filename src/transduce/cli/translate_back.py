"""`transduce translate-back MODEL --text FILE --output FOLDER`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from transduce.cli import options
from transduce.cli.distill import translated
from transduce.cli.search_keys import models_and_search


def translate_back(
    model: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL|search.KEY=VALUE",
            help="A run directory or a model file that translates from your target language into your source language. "
            "Several work as an ensemble. search.KEY=VALUE sets any key of search, such as search.method=sample.",
        ),
    ],
    text: Annotated[list[Path], typer.Option(help="A file of texts in your target language, one a line. Repeatable.")],
    output: Annotated[Path, typer.Option(help="The folder for source.gz, target.gz and distillation.json.")],
    tag: Annotated[
        str, typer.Option(help="The word that stands before these sources in training. An empty one is no tag.")
    ] = "<BT>",
    beam: Annotated[int | None, typer.Option(help="The beam width. By default the model's.")] = None,
    precision: options.Precision = "fp32",
    device: options.Device = "auto",
    batch_size: options.BatchSize = 128,
    engine: options.Engine = "local",
    workers: options.Workers = None,
    trust_code: options.TrustCode = False,
) -> None:
    """Make training pairs of texts in your target language.

        transduce translate-back runs/sw-en --text sw.txt --output bt

    A model of the other direction writes a source for each text. The same command continues where it stopped. With a
    table [backtranslation] in a recipe, `transduce train` trains that model and does all of this.
    """
    from transduce.cli.text import tell
    from transduce.core.errors import InputError
    from transduce.data.corpus import TextFile
    from transduce.data.pairs.pair_files import PairFiles
    from transduce.data.tags import checked_tag
    from transduce.distillation.translations import BACKTRANSLATION

    try:
        tag = tag and checked_tag(tag)
    except ValueError as error:
        raise InputError(f"--tag: {error}.") from None
    models, asked = models_and_search(model, {"beam": beam})
    texts = [TextFile(text=str(path)) for path in text]
    use = {"trust_code": trust_code, "precision": precision, "device": device}
    how: dict[str, Any] = {"batch_size": batch_size, "engine": engine, "workers": workers, "method": BACKTRANSLATION}
    told = translated(models, use, asked, texts, Path(), output, **how)
    tell(f"{told} To train on these pairs, add to the recipe's data.train:")
    pairs = PairFiles(source=f"{output}/source.gz", target=f"{output}/target.gz", tag=tag or None)
    entry = pairs.model_dump(exclude_none=True, exclude_defaults=True)
    typer.echo(
        "{ " + ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()) + " }"
    )
