"""The engine of the explorer's page beside Python: outputs equal, time to open a model and to answer a sentence.

    python benchmarks/page_engine.py runs/demo --texts runs/demo/corpus/test.en --count 300

The same texts go through `predict` and, in a headless Chromium, through the engine, with the weights in fp32, fp16 and
int8: greedily, and with a beam of 5 for a fifth of them. Every other output is printed.
"""

import argparse
import base64
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Page, sync_playwright
from torch import Tensor

import transduce
from transduce.core.model_file import NAME, load_model_file, save_model_file
from transduce.data.files import text_lines
from transduce.explore.live import in_int8
from transduce.explore.page_file import FOLDER

SCRIPTS = [
    "unsupported",
    "unicode",
    "patterns",
    "pieces",
    "tokenizer",
    "column",
    "model_file",
    "numbers",
    "positions",
    "weights",
]
SCRIPTS += ["attention", "transformer", "random", "search", "sides", "explorer"]
STORED: dict[str, Callable[[Mapping[str, Tensor]], dict[str, Tensor]]] = {
    "fp32": dict,
    "fp16": lambda weights: {name: each.half() for name, each in weights.items()},
    "int8": lambda weights: in_int8(dict(weights)),
}
ASK = """([texts, beam]) => texts.map((text) => {
    const start = performance.now();
    const { explorer } = window;
    const settings = { ...explorer.settings, nbest: 1, ...(beam ? { method: "beam", beam } : { method: "greedy" }) };
    const ids = explorer.source.tokenizer.encode(text);
    const begun = explorer.model.start(explorer.source.closed(ids), { record: {} });
    const limit = Transduce.engine.limitOf(ids.length, settings);
    const [best] = explorer.searched(begun, limit, settings, undefined, [], null);
    const output = explorer.target.tokenizer.decode(best.ended ? best.tokens.slice(0, -1) : best.tokens);
    return [output, performance.now() - start];
})"""


def main() -> None:
    """Compares, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--browser", help="Chromium's path; by default Playwright's own")
    asked = parser.parse_args()
    texts = [line for line in text_lines(asked.texts) if line.strip()][: asked.count]
    pipeline = transduce.load(asked.model)
    path = Path(asked.model)
    file = load_model_file(path / NAME if path.is_dir() else path)
    some = texts[: max(1, len(texts) // 5)]
    expected = {
        0: [each.text for each in pipeline.predict(texts, method="greedy")],
        5: [each.text for each in pipeline.predict(some, method="beam", beam=5)],
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=asked.browser, args=["--no-sandbox"])
        for name, stored in STORED.items():
            page, opening, size = opened(browser.new_page(), replace(file, weights=stored(file.weights)))
            for beam, wanted in expected.items():
                stands = f"{name}, {size / 1e6:.1f} MB, opened in {opening:.0f} ms"
                told(stands, page, beam, wanted, some if beam else texts)
            page.close()
        browser.close()


def opened(page: Page, file: Any) -> tuple[Page, float, int]:
    """A page with the model in it, the milliseconds that opening took, and its bytes."""
    page.add_script_tag(content="window.Transduce = {};")
    for script in SCRIPTS:
        page.add_script_tag(content=(FOLDER / "engine" / f"{script}.js").read_text(encoding="utf-8"))
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
    return page, float(time), len(data)


def told(what: str, page: Page, beam: int, expected: list[str], texts: list[str]) -> None:
    """Asks the engine, and prints how many outputs are equal, and those that are not."""
    found = page.evaluate(ASK, [texts, beam])
    rows = [(text, mine, theirs) for text, (mine, _), theirs in zip(texts, found, expected, strict=True)]
    other = [row for row in rows if row[1] != row[2]]
    time = median(time for _, time in found)
    search = f"beam {beam}" if beam else "greedy"
    print(f"{what}: {search}: {len(texts) - len(other)} of {len(texts)} outputs equal, {time:.0f} ms a text")
    for text, mine, theirs in other:
        print(f"  {text}\n    page:   {mine}\n    Python: {theirs}")


if __name__ == "__main__":
    main()
