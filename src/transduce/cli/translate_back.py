"""`transduce translate-back MODEL --text FILE --output FOLDER`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli import options


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
    output: Annotated[Path, typer.Option(help="The folder for target.gz, source.gz and distillation.json.")],
    tag: Annotated[
        str, typer.Option(help="The word that stands before these sources in training. An empty one is no tag.")
    ] = "<BT>",
    beam: Annotated[int | None, typer.Option(help="The beam width. By default the model's.")] = None,
    precision: options.Precision = "fp32",
    device: options.Device = "auto",
    batch_size: options.BatchSize = 128,
    workers: options.Workers = 1,
    trust_code: options.TrustCode = False,
) -> None:
    """Make training pairs of texts in your target language.

        transduce translate-back runs/sw-en --text sw.txt --output bt

    A model of the other direction writes a source for each text. The same command continues where it stopped. With a
    table [backtranslation] in a recipe, `transduce train` trains that model and does all of this.
    """
    from transduce.cli.text import bar, tell
    from transduce.core.errors import InputError
    from transduce.core.model_file import find_model_file
    from transduce.data.corpus import PairFiles, TextFile
    from transduce.data.files import count_lines, fingerprint
    from transduce.distillation.translations import BACKTRANSLATION, distil
    from transduce.pipeline.pipeline import load
    from transduce.runtime.allocator import keep_freed_memory
    from transduce.runtime.devices import use_device
    from transduce.search.settings import search_settings

    keep_freed_memory()
    use_device(device)
    if tag and len(tag.split()) != 1:
        raise InputError(f"--tag {tag!r}: expected one word without white space.")
    models, asked = options.models_and_search(model, {"beam": beam})
    files = [find_model_file(each) for each in models]
    pipeline = load(files, trust_code=trust_code, precision=precision, device=device)
    search = search_settings(pipeline.recipe.search, {"nbest": 1, **asked})
    checksum = "+".join(fingerprint(file) for file in files)
    texts = [TextFile(text=str(path)) for path in text]
    with bar("translating back", sum(count_lines(path) for path in text)) as advance:
        report = distil(
            pipeline, checksum, texts, Path(), output, search, batch_size, advance, workers, BACKTRANSLATION
        )
    counts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in report["counts"].items())
    tell(f"{output}: {report['lines']:,} lines; {counts}. To train on these pairs, add to the recipe's data.train:")
    pairs = PairFiles(source=f"{output}/target.gz", target=f"{output}/source.gz", tag=tag or None)
    entry = pairs.model_dump(exclude_none=True, exclude_defaults=True)
    typer.echo(
        "{ " + ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()) + " }"
    )
