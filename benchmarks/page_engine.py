"""The engine of the explorer's page beside Python: outputs equal, time to open a model and to answer a sentence.

    python benchmarks/page_engine.py runs/demo --texts runs/demo/corpus/test.en --count 300
    python benchmarks/page_engine.py runs/demo --texts runs/demo/corpus/test.en --random kind=rnn hidden=64 d_model=32
    python benchmarks/page_engine.py --sentences fr ../shared/data/multi30k/raw/val.fr.gz

The same texts go through `predict` and, in a headless Chromium, through the engine, with the weights in fp32, fp16 and
int8: greedily, with a beam of 5, by samples and with a forced prefix, or as CTC searches. A language model goes on with
the first quarter of each text. Every other output is printed. In fp32 attention is compared, too.

With `--random` the model has the tokenizers of the one that is named, these settings, and random weights, whose next
tokens are all but equally likely: the hard case. With `--sentences` three lines at a time are one text, and the page's
cuts are compared with Python's.
"""

import argparse
import base64
import random
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from playwright.sync_api import Page, sync_playwright
from torch import Tensor

import transduce
from transduce.core.model_file import NAME, ModelFile, lasting_tensors, load_model_file, save_model_file
from transduce.data.columns.packed import pack
from transduce.data.columns.tokens import Tokens
from transduce.data.files import text_lines
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.explore.exploration import explore
from transduce.explore.live import in_int8
from transduce.explore.page_file import FOLDER, scripts
from transduce.inference.sentences import sentences
from transduce.pipeline.outline import make_model, make_task
from transduce.pipeline.pipeline import Pipeline
from transduce.recipe.recipe import parse_recipe

STORED: dict[str, Callable[[Mapping[str, Tensor]], dict[str, Tensor]]] = {
    "fp32": dict,
    "fp16": lambda weights: {name: each.half() for name, each in weights.items()},
    "int8": lambda weights: in_int8(dict(weights)),
}
WITHOUT_SPACES = ("zh", "ja")
ASK = """([texts, prefixes, search]) => texts.map((text, place) => {
    const start = performance.now();
    const { explorer } = window;
    const forced = prefixes ? explorer.target.tokenizer.encode(prefixes[place]) : [];
    const { found: [best] } = explorer.read(text, { ...explorer.settings, nbest: 1, ...search }, {}, forced, null);
    const output = explorer.target.tokenizer.decode(best.ended ? best.tokens.slice(0, -1) : best.tokens);
    return [output, performance.now() - start];
})"""
LOOK = """(texts) => texts.map((text) =>
    window.explorer.explore(text).attention.map(({ name, weights }) => [name, weights]))"""


@dataclass
class Asked:
    """One search: its name, its settings, the texts, what each output is to begin with, and Python's outputs."""

    name: str
    search: dict[str, Any]
    texts: Sequence[str]
    prefixes: Sequence[str] | None
    expected: Sequence[str]


def main() -> None:
    """Compares, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--column", type=int, help="the column of a table; by default a line is a text")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--stored", nargs="+", choices=STORED, default=list(STORED))
    parser.add_argument("--random", nargs="+", default=[], metavar="KEY=VALUE", help="settings of [model]")
    parser.add_argument("--sentences", nargs=2, metavar=("LANGUAGE", "FILE"))
    parser.add_argument("--browser", help="Chromium's path; by default Playwright's own")
    given = parser.parse_args()
    if not given.sentences and not (given.model and given.texts):
        parser.error("name a model and --texts, or --sentences LANGUAGE FILE")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=given.browser, args=["--no-sandbox"])
        page = browser.new_page()
        if given.sentences:
            compare_cuts(page, *given.sentences)
        else:
            compare_outputs(page, given)
        browser.close()


def compare_outputs(page: Page, given: argparse.Namespace) -> None:
    """Of one model, in each form of its weights."""
    path = Path(given.model)
    file = load_model_file(path / NAME if path.is_dir() else path)
    if given.random:
        file = drawn_at_random(file, given.random)
    pipeline = Pipeline(file)
    read = (line.split("\t")[given.column] if given.column is not None else line for line in text_lines(given.texts))
    texts = [text for text in read if text.strip()][: given.count]
    if "source" not in pipeline.task.columns:
        texts = [text[: max(1, len(text) // 4)] for text in texts]
    searches = asked_of(pipeline, texts)
    for name in given.stored:
        opening, size = opened(page, replace(file, weights=STORED[name](file.weights)))
        print(f"{name}, {size / 1e6:.1f} MB, opened in {opening:.0f} ms")
        for each in searches:
            told(page, each)
        if name == "fp32":
            print(f"  attention of {len(texts[::5])} texts: {difference(page, pipeline, texts[::5]):.1e} apart at most")


def drawn_at_random(file: ModelFile, settings: Sequence[str]) -> ModelFile:
    """With another model of random weights, which reads and writes the same tokens; a decoder alone only writes."""
    pairs = (each.partition("=")[::2] for each in settings)
    model = {key: tomllib.loads(f"v = {value}")["v"] if value[:1].isdigit() else value for key, value in pairs}
    tokenizer = Tokenizer.from_json(next(iter(file.tokenizers.values())))
    alone = str(model["kind"]).endswith("_decoder")
    task: dict[str, Any] = {"kind": "language_modelling", "context": 128} if alone else dict(file.config["task"])
    data = {"train": [{"text": "a"} if alone else {"source": "a", "target": "b"}]}
    recipe = parse_recipe(
        {"name": "random", "task": task, "data": data, "model": {"tied": False if alone else "none", **model}}, "random"
    )
    writes = Tokens(tokenizer, stream=True) if alone else Tokens(tokenizer, starts=True, ends=True)
    made = make_task(
        recipe, {"target": writes} if alone else {"source": Tokens(tokenizer, ends=True), "target": writes}
    )
    torch.manual_seed(1)
    network = make_model(recipe, made)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn_like(weight) * 0.2)
        network.get_submodule("output").weight[tokenizer.end] *= 1.5  # likeliest now and then
    tokenizers, columns = pack(made.columns)
    return ModelFile(lasting_tensors(network), recipe.to_table(), tokenizers, {}, {}, columns=columns)


def asked_of(pipeline: Pipeline, texts: Sequence[str]) -> list[Asked]:
    """The searches that this kind of model has, and what Python finds."""

    def asked(name: str, search: dict[str, Any], prefixes: Sequence[str] | None = None) -> Asked:
        each = [{"prefix": prefix} for prefix in prefixes] if prefixes else [{}] * len(texts)
        found = [pipeline.predict(text, **search, **more).text for text, more in zip(texts, each, strict=True)]
        return Asked(name, search, texts, prefixes, found)

    if pipeline.recipe.search.method == "ctc":
        return [asked("best path", {"method": "ctc", "beam": 1}), asked("prefix beam 5", {"method": "ctc", "beam": 5})]
    greedy = asked("greedy", {"method": "greedy"})
    sampled = {"method": "sample", "seed": 1, "temperature": 0.8, "top_k": 50, "top_p": 0.95}
    found = [greedy, asked("beam 5", {"method": "beam", "beam": 5}), asked("sample", sampled)]
    if "source" in pipeline.task.columns:
        other = [*greedy.expected[1:], greedy.expected[0]]  # the first word of what was written for another text
        prefixes = [next(iter(text.split()), "A") for text in other]
        found.append(asked("forced prefix, beam 5", {"method": "beam", "beam": 5}, prefixes))
    return found


def opened(page: Page, file: Any) -> tuple[float, int]:
    """Opens the model in the page: the milliseconds that it took, and the model's bytes."""
    with_engine(page)
    with tempfile.TemporaryDirectory() as folder:
        save_model_file(Path(folder) / NAME, file)
        data = (Path(folder) / NAME).read_bytes()
    page.evaluate(
        "(text) => { window.bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0)).buffer; }",
        base64.b64encode(data).decode(),
    )
    time = page.evaluate(
        """() => {
            const start = performance.now();
            window.explorer = new Transduce.engine.Explorer(window.bytes);
            return performance.now() - start;
        }"""
    )
    return float(time), len(data)


def with_engine(page: Page) -> None:
    """The engine, and what it takes of the page, in an empty page."""
    page.goto("about:blank")
    page.add_script_tag(content="window.Transduce = {};")
    for name in ("words.js", "weights.js", *scripts("engine/")):
        page.add_script_tag(content=(FOLDER / name).read_text(encoding="utf-8"))


def told(page: Page, each: Asked) -> None:
    """Asks the engine, and prints how many outputs are equal, and those that are not."""
    found = page.evaluate(ASK, [each.texts, each.prefixes, each.search])
    rows = [(text, mine, theirs) for text, (mine, _), theirs in zip(each.texts, found, each.expected, strict=True)]
    other = [row for row in rows if row[1] != row[2]]
    time = median(time for _, time in found)
    kinds, empty = len({*each.expected}), sum(not text.strip() for text in each.expected)
    print(
        f"  {each.name}: {len(rows) - len(other)} of {len(rows)} outputs equal, {time:.0f} ms a text "
        f"({kinds} different outputs, {empty} empty)"
    )
    for text, mine, theirs in other:
        print(f"    {text}\n      page:   {mine}\n      Python: {theirs}")


def difference(page: Page, pipeline: Pipeline, texts: Sequence[str]) -> float:
    """The greatest difference of an attention weight between page and Python."""
    texts = [text for text in texts if explore_or_none(pipeline, text)]
    greatest = 0.0
    for text, layers in zip(texts, page.evaluate(LOOK, texts), strict=True):
        expected = {each["name"]: each["weights"] for each in explore(pipeline, text)["attention"]}
        assert [name for name, _ in layers] == [*expected]
        for name, weights in layers:
            mine, theirs = (np.frombuffer(base64.b64decode(each), "<f4") for each in (weights, expected[name]))
            greatest = max(greatest, float(np.abs(mine - theirs).max(initial=0)))
    return greatest


def explore_or_none(pipeline: Pipeline, text: str) -> dict[str, Any] | None:
    """None for an output without words, which has no attention in some models."""
    try:
        return explore(pipeline, text)
    except transduce.InputError:
        return None


def compare_cuts(page: Page, language: str, file: str) -> None:
    """Prints how many texts of three lines are cut alike, and those that are not."""
    with_engine(page)
    lines = [line.strip() for line in text_lines(Path(file)) if line.strip()]
    random.Random(1).shuffle(lines)
    between = "" if language in WITHOUT_SPACES else " "
    texts = [between.join(lines[first : first + 3]) for first in range(0, min(3000, len(lines) - 2), 3)]
    cut = (
        "([texts, code]) => texts.map((text) => Transduce.engine.sentences(text, code).map((at) => text.slice(...at)))"
    )
    other = 0
    for text, mine in zip(texts, page.evaluate(cut, [texts, language]), strict=True):
        theirs = [text[start:end] for start, end in sentences(text, language)]
        if mine != theirs:
            other += 1
            print(f"  page:   {mine}\n  Python: {theirs}")
    print(f"{language}: {len(texts) - other} of {len(texts)} texts cut alike")


if __name__ == "__main__":
    main()
