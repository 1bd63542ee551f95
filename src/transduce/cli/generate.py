"""`transduce generate MODEL --prompt TEXT`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli import options
from transduce.cli.search_keys import models_and_search


def generate(
    model: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL|search.KEY=VALUE",
            help="A run directory or a model file. Several are used as an ensemble. search.KEY=VALUE sets any key of "
            "search.",
        ),
    ],
    prompt: Annotated[
        str, typer.Option(help="The text that every sample begins with, or ends with if it is written right to left.")
    ] = "",
    count: Annotated[int, typer.Option(min=1, help="How many texts to sample.")] = 1,
    temperature: Annotated[
        float | None,
        typer.Option(
            help="Divide the logits by this number first: below 1 texts are more predictable, above 1 more varied. By "
            "default the recipe's, usually 1. For the most probable token each time set search.method=greedy."
        ),
    ] = None,
    top_k: Annotated[int | None, typer.Option(help="Draw from this many of the most probable tokens only.")] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            help="Draw only from the most probable tokens that make up this share of the probability, such as 0.9."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="The same seed gives the same texts, another seed others. By default the recipe's, usually 0."
        ),
    ] = None,
    max_new: Annotated[
        int | None,
        typer.Option(min=1, help="How many tokens to write after the prompt at most; in an acrostic, for each line."),
    ] = None,
    min_length: Annotated[int | None, typer.Option(help="The least number of tokens after the prompt.")] = None,
    no_repeat_ngram: Annotated[
        int | None, typer.Option(help="Forbid that a sequence of this many tokens appears twice in a text.")
    ] = None,
    acrostic: Annotated[
        str, typer.Option(help="The first characters of the lines, one for each line, instead of a prompt.")
    ] = "",
    separator: Annotated[
        str | None,
        typer.Option(
            help="What stands between the lines of an acrostic. By default a line break for a model of running text, "
            "else | or /, whichever the model has."
        ),
    ] = None,
    batch_size: Annotated[
        int, typer.Option(min=1, help="How many texts to sample at once. It changes speed and memory, not results.")
    ] = 64,
    ensemble: options.Ensemble = "probability",
    precision: options.Precision = "fp32",
    device: options.Device = "auto",
    as_json: options.JsonLines = False,
    trust_code: options.TrustCode = False,
) -> None:
    """Sample texts from a language model.

        transduce generate runs/my --prompt "it was" --count 3

    At a terminal, each text is shown while it is written. Texts of several lines are separated by an empty line. The
    same seed gives the same texts as transduce predict --method sample gives for as many equal lines.
    """
    from transduce.cli.text import is_terminal, tell, write_line
    from transduce.core.errors import InputError
    from transduce.pipeline.generation import generate as sampled
    from transduce.pipeline.pipeline import load

    asked = {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
        "max_length_offset": max_new,
        "min_length": min_length,
        "no_repeat_ngram": no_repeat_ngram,
    }
    models, search = models_and_search(model, asked)
    if sys.stdout is None:
        raise InputError("there is nowhere to write to: standard output is closed.")
    pipeline = load(models, trust_code=trust_code, ensemble=ensemble, precision=precision, device=device)
    shows = is_terminal(sys.stdout) and not as_json
    found = sampled(
        pipeline,
        prompt,
        count=count,
        acrostic=acrostic,
        separator=separator,
        batch_size=batch_size,
        on_text=_Shown() if shows else None,
        tell=tell,
        **search,
    )
    if shows:
        _write("\n")
        return
    several = any("\n" in each.text for each in found)
    for number, each in enumerate(found):
        if as_json:
            write_line(each.to_dict())
        else:
            _write("\n" * (several and number > 0) + each.text + "\n")


class _Shown:
    """Writes texts at a terminal as they grow, with an empty line between two."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, number: int, added: str) -> None:
        _write("\n\n" * (number > self.number) + added)
        self.number = number


def _write(text: str) -> None:
    """Text as it is, at once."""
    sys.stdout.buffer.write(text.encode())
    sys.stdout.flush()
