"""`transduce shortlist MODEL`."""

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli import options


def shortlist(
    model: Annotated[Path, typer.Argument(help="A run directory or a model file.")],
    recipe: Annotated[
        Path | None,
        typer.Option(help="Learn from the training data of this recipe. By default that of the model's run."),
    ] = None,
    candidates: Annotated[
        int,
        typer.Option(min=1, max=10_000, help="How many of the likeliest translations to keep for each source token."),
    ] = 100,
    frequent: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1_000_000,
            help="How many of the most frequent target tokens to keep. By default as many as --candidates.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="The model file to write. By default the table is added to the model's own file."),
    ] = None,
    trust_code: options.TrustCode = False,
) -> None:
    """Learn which words translate which, to predict faster.

        transduce shortlist runs/my --candidates 50

    The table is written into the model file, where predict --shortlist uses it.
    """
    from transduce.cli.text import bar, tell
    from transduce.cli.training_data import training_data
    from transduce.core.atomic import human_size
    from transduce.core.cache import cache_folder
    from transduce.core.destination import check_output, same_file
    from transduce.core.errors import InputError
    from transduce.core.model_file import find_model_file, read_model_file, save_model_file
    from transduce.data.files import count_lines
    from transduce.data.lexicon import ITERATIONS, learn, read_links
    from transduce.pipeline.shortlists import held_out, tokenizers_of, training_stores, use, with_lexicon

    frequent = frequent or candidates
    if frequent < candidates:
        raise InputError(f"--frequent {frequent}: must be at least --candidates, which is {candidates}.")
    path = find_model_file(model)
    file = read_model_file(path)
    sides = tokenizers_of(file)
    data = training_data(path, recipe, "--recipe", trust_code)
    read = [each for files in data.corpora() for each in files.paths(Path(data.root))]
    if not (output and same_file(output, path)):  # a model gets its shortlist in place by default
        check_output(output, [path, recipe, *read], "--output")
    lines = sum(count_lines(files.paths(Path(data.root))[0]) for files in data.corpora())
    with bar("tokenising", lines) as advance:
        stores = training_stores(data, sides, cache_folder(), tell, advance)
    pairs = read_links(stores)
    with bar("learning", (1 + ITERATIONS) * len(pairs)) as advance:
        lexicon = learn(pairs, (sides[0].size, sides[1].size), candidates, frequent, advance)
    tried = held_out(data, sides, cache_folder(), stores)
    save_model_file(output or path, with_lexicon(file, lexicon))
    size = human_size(lexicon.candidates_SC.nbytes + lexicon.frequent_F.nbytes)
    used = f"{len(pairs):,} pairs" if len(pairs) == pairs.of else f"{len(pairs):,} pairs drawn out of {pairs.of:,}"
    counts = f"{candidates} candidates a token and {len(lexicon.frequent_F)} frequent ones"
    tell(f"{output or path}: {counts}, {size}; learnt from {used}.")
    for each in use(lexicon, sorted({candidates, -(-candidates // 2)}, reverse=True), tried, sides[1].size):
        tell(
            f"--shortlist {each.candidates}: {each.words:.0f} of {sides[1].size:,} words a sentence on average; they "
            f"cover {each.covered:.1%} of the reference tokens of {len(tried.sources):,} {tried.name} pairs."
        )
