"""Writes docs/api.md from the docstrings of the public names; `tests/test_docs.py` fails when it is out of date."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import transduce
from transduce.attention.capture import Record
from transduce.evaluation.result import EvaluatedSystem, PairedComparison
from transduce.inference.likelihood import Likelihood
from transduce.inference.prediction import Prediction
from transduce.interpret.attention import Attention
from transduce.metrics.paired import Difference

PAGE = Path(__file__).with_name("api.md")
HEAD = """# Transduce in Python

Everything that `import transduce` offers. The examples of this page are run by the tests.

```python
import transduce

digits = "zero one two three four five six seven eight nine".split()
pairs = [(" ".join(f"{n:03}"), " ".join(digits[int(d)] for d in f"{n:03}")) for n in range(0, 1000, 3)]
recipe = {
    "task": {"kind": "translation"},
    "tokenizer": {"kind": "whitespace"},
    "model": {"kind": "transformer", "d_model": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1},
    "training": {"updates": 20, "validate_every": 10},
}
data = {"train": pairs[:250], "validation": pairs[250:280], "test": pairs[280:]}
trained = transduce.train(recipe, "runs/digits", data, callbacks=[lambda now: print(now.update, now.loss)])

model = trained.model  # or transduce.load("runs/digits")
prediction = model.predict("1 2 3", beam=4)
print(prediction.text, prediction.score)

found = transduce.evaluate({"digits": model, "other": "runs/multi30k-en-de"}, pairs[280:], metrics=["chrf"])
print(found)
print(found.per_sentence("digits")[0])
```

No recipe is needed: `transduce.train(data=pairs)` decides all of it from the data, and so do
`transduce.train("pairs.tsv")` and `transduce.train(source="train.en", target="train.sw", time="2h")`
([training without a recipe](planning.md)).

In a notebook, `train` shows one output that is rewritten in place: a bar with loss, speed and time left, the best and
the last validations, and the lines of the log, folded. The test scores stand below it. Results of `evaluate` are tables
there, and predictions show what the model attended to (`prediction.attention()`).

Names that begin with a capital letter are classes. Modules below the package may change between versions; what this
page describes does not change without a note in the changelog.

`python docs/make_api.py` makes this page from the code.
"""
Member = tuple[str, Any]
PAGES: list[tuple[str, list[tuple[str, Any, list[str]]]]] = [
    (
        "Training",
        [
            ("transduce.train", transduce.train, []),
            ("transduce.TrainedRun", transduce.TrainedRun, ["model"]),
            ("transduce.TrainingUpdate", transduce.TrainingUpdate, []),
            ("transduce.Recipe", transduce.Recipe, ["load", "from_table", "to_table"]),
        ],
    ),
    (
        "Models",
        [
            ("transduce.load", transduce.load, []),
            ("transduce.Pipeline", transduce.Pipeline, ["predict", "score", "attention", "look_back"]),
            ("Prediction", Prediction, ["attention", "to_dict"]),
            ("Likelihood", Likelihood, ["loss", "perplexity", "to_dict"]),
        ],
    ),
    (
        "Evaluation",
        [
            ("transduce.evaluate", transduce.evaluate, []),
            ("transduce.Evaluation", transduce.Evaluation, ["scores", "outputs", "per_sentence", "to_dict"]),
            ("transduce.Score", transduce.Score, ["to_dict"]),
            ("EvaluatedSystem", EvaluatedSystem, ["values"]),
            ("PairedComparison", PairedComparison, ["to_dict"]),
            ("Difference", Difference, []),
        ],
    ),
    (
        "Attention",
        [
            ("transduce.capture", transduce.capture, []),
            ("transduce.Place", transduce.Place, []),
            ("Record", Record, ["of"]),
            ("Attention", Attention, ["alignment", "matrix", "plot", "to_dict"]),
            ("transduce.explorer", transduce.explorer, []),
            ("transduce.ExplorerPage", transduce.ExplorerPage, ["save"]),
        ],
    ),
    (
        "Errors",
        [
            ("transduce.TransduceError", transduce.TransduceError, []),
            ("transduce.InputError", transduce.InputError, []),
            ("transduce.Interrupted", transduce.Interrupted, []),
        ],
    ),
]
FIELD = re.compile(r"^(\*{0,2}\w+(?:, \w+)*): ")


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, entries in PAGES:
        parts.append(f"\n## {title}\n")
        for name, thing, members in entries:
            parts.append(_entry(f"### {name}", name, thing))
            parts += [_entry(f"#### {name}.{each}", each, inspect.getattr_static(thing, each)) for each in members]
    return "".join(parts)


def _entry(heading: str, name: str, thing: Any) -> str:
    function, how = _function(thing)
    signature = f"\n```\n{_signature(name, function, how)}\n```\n" if function and how != "property" else ""
    kind = " (property)" if how == "property" else ""
    return f"\n{heading}{kind}\n{signature}\n{_markdown(inspect.getdoc(function or thing) or '')}\n"


def _function(thing: Any) -> tuple[Callable[..., Any] | None, str]:
    """What a class holds as a function, and how it is called."""
    if isinstance(thing, property):
        return thing.fget, "property"
    if thing.__class__.__name__ == "cached_property":
        return thing.func, "property"
    if isinstance(thing, classmethod | staticmethod):
        return thing.__func__, "class"
    return (inspect.unwrap(thing), "function") if inspect.isfunction(thing) else (None, "")


def _signature(name: str, function: Callable[..., Any], how: str) -> str:
    """As the source has it, without self; an argument a line where one line is too long."""
    [node] = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    if node.args.args and node.args.args[0].arg in ("self", "cls"):
        del node.args.args[0]
    returns = f" -> {_written(node.returns)}" if node.returns else ""
    short = f"{name}({_written(node.args)}){returns}"
    return (
        short if len(short) <= 100 else f"{name}(\n" + "".join(f"    {each},\n" for each in _each(node)) + f"){returns}"
    )


def _each(node: ast.FunctionDef) -> Iterator[str]:
    arguments = node.args
    first = len(arguments.args) - len(arguments.defaults)
    for place, each in enumerate(arguments.args):
        yield _argument(each, arguments.defaults[place - first] if place >= first else None)
    if arguments.kwonlyargs:
        yield "*"
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(each, default)
    if arguments.kwarg:
        yield f"**{_argument(arguments.kwarg, None)}"


def _argument(each: ast.arg, default: ast.expr | None) -> str:
    kind = f": {_written(each.annotation)}" if each.annotation else ""
    return f"{each.arg}{kind}" + (f" = {ast.unparse(default)}" if default else "")


def _written(node: ast.AST) -> str:
    """Without the quotes around types that are imported late."""
    return re.sub(r"""(?<![\w(=])['"]([^'"]*)['"](?!\s*[,)]?\s*$)|^['"]([^'"]*)['"]$""", r"\1\2", ast.unparse(node))


def _markdown(text: str) -> str:
    """A docstring: arguments, fields and errors become lists."""
    parts = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        if lines[0] in ("Args:", "Raises:"):
            title = {"Args:": "Arguments", "Raises:": "Errors"}[lines[0]]
            parts.append(f"{title}:\n\n{_list(textwrap.dedent(chr(10).join(lines[1:])).splitlines())}")
        elif FIELD.match(lines[0]) and not lines[0].startswith(" "):
            parts.append(_list(lines))
        else:
            parts.append(paragraph)
    return "\n\n".join(parts)


def _list(lines: list[str]) -> str:
    items = list[str]()
    for line in lines:
        if found := FIELD.match(line):
            items.append(f"- **{found[1]}**: {line[found.end() :]}")
        else:
            items.append(f"  {line.strip()}")
    return "\n".join(items)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
