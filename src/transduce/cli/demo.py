"""`transduce demo`: train on the built-in corpus, then show the model's translations and attention."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from transduce.demo.pronouns import Head, Look, Sought
    from transduce.pipeline.pipeline import Pipeline

UNSEEN = "Sentences it has never seen"
SHOWN = 12  # test sentences in the table
PRONOUN = re.compile(r"\b(?:ils?|elles?)\b")
QUERIES = {
    '"it"': re.compile(r"\b(it|they)\b"),
    "its adjective": re.compile(r"\b(?:it was|they were) (?:too |very )?(\w+)\.$"),
}

Pairs = list[tuple[str, str]]


def demo(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Recipe keys to change, such as training.seed=2."),
    ] = None,
    run: Annotated[Path, typer.Option(help="The run directory. A finished run is shown again.")] = Path("runs/demo"),
) -> None:
    """Train a small model in minutes, and see what "it" attends to.

        transduce demo

    The corpus is built in, and its language pair is English to French.
    """
    from transduce.data.corpus import read_pairs
    from transduce.data.pairs.pair_files import PairFiles
    from transduce.runtime.console import make_console
    from transduce.site.demo_model import CORPUS, demo_model

    console = make_console()
    pipeline = demo_model(run, overrides or [], console)
    files = PairFiles(source="test.en", target="test.fr")
    pairs = [(source, target) for _, source, target in read_pairs(files, run / CORPUS)]
    outputs = [prediction.text for prediction in pipeline.predict([source for source, _ in pairs])]
    _show_translations(console, pairs, outputs)
    _show_scores(console, pipeline, pairs, outputs, run)
    _show_pronoun_pair(console, pipeline)
    _show_attention(console, pipeline, run, [source for source, _ in pairs])
    _build_site(console, pipeline, run / "site")
    _say_what_next(console, run)


# ---- what is shown -------------------------------------------------------------------------------


def _show_translations(console: "Console", pairs: Pairs, outputs: list[str]) -> None:
    """A few sentences of the test split, evenly spread; the pronoun pair, which opens it, comes later."""
    from rich.table import Table
    from rich.text import Text

    table = Table("English", "French, by the model", "", expand=True, header_style="bold", pad_edge=False, box=None)
    places = range(2, len(pairs), max(1, (len(pairs) - 2) // SHOWN))
    for place in places[:SHOWN]:
        (english, reference), output = pairs[place], outputs[place]
        right = output == reference
        french = Text(output) if right else Text.assemble(output, ("\nreference: " + reference, "dim"))
        table.add_row(Text(english), french, _mark(right))
    _heading(console, UNSEEN)
    console.print(table)
    console.print("right: the reference, to the letter", style="dim", highlight=False)


def _show_scores(console: "Console", pipeline: "Pipeline", pairs: Pairs, outputs: list[str], run: Path) -> None:
    """Metrics with their signatures, the baseline, and the pronouns counted, also where they cannot be guessed."""
    from rich.table import Table
    from rich.text import Text

    from transduce.demo.corpus import nouns_differ_in_gender
    from transduce.training.finished import read_report

    table = Table(show_header=False, box=None, pad_edge=False)
    scores = pipeline.task.evaluate(outputs, [reference for _, reference in pairs], ["exact_match", "bleu"])
    for score in scores.values():
        low, high = score.interval or (score.value, score.value)
        figure = Text.assemble((f"{score.value:.2f}", "bold"), f"  95 % interval [{low:.2f}, {high:.2f}]")
        table.add_row(score.name, figure)
        table.add_row("", Text(score.signature, "dim", overflow="fold"))
    if baseline := (read_report(run) or {}).get("baseline"):
        simple = baseline["tests"]["test"]["scores"]
        table.add_row(baseline["name"], ", ".join(f"{each['name']} {each['value']:.2f}" for each in simple.values()))
        table.add_row("", Text("a baseline: the translation of the training sentence that is most like it", "dim"))
    right = [_pronouns(output) == _pronouns(reference) for (_, reference), output in zip(pairs, outputs, strict=True)]
    hard = [each for each, (english, _) in zip(right, pairs, strict=True) if nouns_differ_in_gender(english)]
    table.add_row("il or elle", _share(right))
    table.add_row("", Text("the pronouns il, elle, ils, elles equal the reference's", "dim"))
    table.add_row("where it matters", _share(hard))
    table.add_row("", Text("the nouns it could stand for differ in gender", "dim"))
    _heading(console, f"{len(pairs):,} test sentences; no training sentence joins the same noun and adjective")
    console.print(table)


def _show_pronoun_pair(console: "Console", pipeline: "Pipeline") -> None:
    from rich.text import Text

    from transduce.demo.corpus import PRONOUN_PAIR

    _heading(console, 'One word decides what "it" is')
    found = pipeline.predict([question.english for question in PRONOUN_PAIR])
    for question, prediction in zip(PRONOUN_PAIR, found, strict=True):
        chosen = _pronouns(prediction.text)
        right = chosen == _pronouns(question.french)
        console.print(Text(question.english))
        console.print(Text(prediction.text, "bold"))
        said = f"  it: {' '.join(chosen) or 'no pronoun'}, for the {question.antecedent}? "
        console.print(Text.assemble((said, "dim"), _mark(right)))


def _show_attention(console: "Console", pipeline: "Pipeline", run: Path, sentences: list[str]) -> None:
    """The clearest head on the pronoun pair, drawn, and how often it is right on all test sentences.

    Where no head does it from "it", one may do it from the adjective: that is looked at then.
    """
    from transduce.demo.corpus import PRONOUN_PAIR
    from transduce.demo.pronouns import attention_by_head, clearest

    both = [question.english for question in PRONOUN_PAIR]
    found = {query: attention_by_head(pipeline, _sought(both, query)) for query in QUERIES}
    heads = {query: clearest(found[query]) for query in QUERIES}
    finds = {query: all(look.found for look in found[query][heads[query]]) for query in QUERIES}
    query = next((query for query in QUERIES if finds[query]), '"it"')
    head = heads[query]
    _heading(console, f"What {query} attends to: {head}")
    if not finds['"it"']:
        console.print('No head looks from "it" at animal in one sentence and at street in the other;')
        console.print("this one is the nearest." if query == '"it"' else f"one does from {query} instead.")
    console.print(_spotlights(found[query][head]))
    everywhere = [look.found for look in attention_by_head(pipeline, _sought(sentences, query))[head]]
    _say_how_often(console, everywhere)
    _save_figure(console, run / "figures" / "it.png", head, found[query][head])
    _show_cuts(console, pipeline)


def _show_cuts(console: "Console", pipeline: "Pipeline") -> None:
    """Whether the pronoun changes where "it" may not look at the noun, or at noun and adjective, in any head."""
    from transduce.demo.corpus import PRONOUN_PAIR
    from transduce.demo.pronouns import kept_from

    _heading(console, 'The pronoun, when no head lets "it" attend to these words')
    for question in PRONOUN_PAIR:
        adjective = question.english.split()[-1].strip(".")
        for words in ((question.antecedent,), (question.antecedent, adjective)):
            text = kept_from(pipeline, question.english, "it", words)
            console.print(f"  {', '.join(words)}: {' '.join(_pronouns(text)) or 'no pronoun'}", highlight=False)
    console.print("Pictures of attention show where a head looks. What the output depends on, only such a cut shows.")


def _sought(sentences: Sequence[str], query: str) -> list["Sought"]:
    """Of every sentence that has such a word, the word and the noun that the pronoun stands for."""
    from transduce.demo.corpus import antecedent
    from transduce.demo.pronouns import Sought

    asked = [(sentence, QUERIES[query].search(sentence), antecedent(sentence)) for sentence in sentences]
    return [Sought(sentence, match[1], noun) for sentence, match, noun in asked if match and noun]


def _spotlights(pair: list["Look"]) -> "Table":
    """The sentences side by side, each word with its weight."""
    from rich.table import Table

    from transduce.interpret.terminal import spotlight

    grid = Table.grid(expand=True, padding=(0, 2))
    for _ in pair:
        grid.add_column(ratio=1)
    grid.add_row(*(spotlight(look.words, look.weights) for look in pair))
    return grid


def _say_how_often(console: "Console", found: list[bool]) -> None:
    from rich.text import Text

    share = f"{sum(found):,} of {len(found):,} test sentences ({100 * sum(found) / len(found):.1f} %)"
    console.print(Text.assemble("Its largest weight is on the noun meant in\n", (share, "bold"), "."))


def _save_figure(console: "Console", path: Path, head: "Head", pair: list["Look"]) -> None:
    from transduce.core.errors import InputError
    from transduce.interpret.drawing import save
    from transduce.interpret.figures import Spotlight, spotlight_figure

    try:
        figure = spotlight_figure([Spotlight(look.words, look.query, look.weights, str(head)) for look in pair])
    except InputError as error:
        console.print(f"No figure: {error}", markup=False, highlight=False)
        return
    console.print(f"The same as a figure: {save(figure, path)}", highlight=False, soft_wrap=True)


def _build_site(console: "Console", pipeline: "Pipeline", folder: Path) -> None:
    """The interactive pages, with this very model in them."""
    from transduce.core.errors import InputError
    from transduce.site.build import build

    _heading(console, "Interactive pages about attention")
    try:
        build(folder, pipeline)
    except InputError as error:
        console.print(f"Not built: {error}", markup=False, highlight=False)
        return
    console.print(f"Open {folder / 'index.html'} in a browser; it needs no server.", highlight=False, soft_wrap=True)


def _say_what_next(console: "Console", run: Path) -> None:
    _heading(console, "Try it yourself")
    console.print(
        f'echo "The wolf didn\'t open the door because it was too heavy." | transduce predict {run}',
        highlight=False,
        soft_wrap=True,
    )


# ---- small things --------------------------------------------------------------------------------


def _heading(console: "Console", text: str) -> None:
    console.print()
    console.print(text, style="bold cyan", highlight=False, markup=False)


def _mark(right: bool) -> "Text":
    from rich.text import Text

    return Text("right", "green") if right else Text("WRONG", "bold red")


def _share(right: list[bool]) -> "Text":
    from rich.text import Text

    count = sum(right)
    return Text.assemble((f"{100 * count / len(right):.2f} %", "bold"), f"  {count:,} of {len(right):,}")


def _pronouns(french: str) -> list[str]:
    return PRONOUN.findall(french.lower())
