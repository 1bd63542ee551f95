"""Two sentences in, two sentences out: does a model of single sentences lose one, by whatever way a text comes to it?

    python benchmarks/joined_sentences.py RUN --source test.en [--pairs 500]
    python benchmarks/joined_sentences.py RUN --tsv prepared/tatoeba-eng-cmn/test.tsv --column 0

Draws pairs of held-out sentences, those that end as sentences do, and joins each with a space. The output of a pair has
to equal the outputs of its two sentences alone, with a space between. Pairs go through `transduce predict` (as lines,
and as one text with --text), and through a server's /translate, /v1/predict and /v1/explore/predict, which the page
uses. Prints how many pairs came out otherwise, with the first ones; exit code 1 where there are any.
"""

import argparse
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx

import transduce
from transduce.data.corpus import TsvColumn, lines_of
from transduce.inference.sentences import ENDED
from transduce.runtime.environment import library_versions, machine

sys.path.insert(0, str(Path(__file__).parent))
from serve_load import started

AT_ONCE, SHOWN = 50, 3


class Pair(NamedTuple):
    """Two sentences as one text, and what must come of it."""

    text: str
    expected: str


def main() -> None:
    """Every way, one after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a run directory or a model file")
    file = parser.add_mutually_exclusive_group(required=True)
    file.add_argument("--source", type=Path, help="held-out sentences, one a line")
    file.add_argument("--tsv", type=Path, help="a tab-separated file of them; see --column")
    parser.add_argument("--column", type=int, default=0, help="of --tsv, counted from 0")
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    sentences = drawn(lines_of(asked.source or TsvColumn(asked.tsv, asked.column)), 2 * asked.pairs, asked.seed)
    if not transduce.load(asked.model).single_sentences:
        print(f"{asked.model}: its file says that it was not trained on single sentences; texts are not cut.")
    outputs = by_lines(asked.model, sentences)
    pairs = [
        Pair(f"{sentences[place]} {sentences[place + 1]}", f"{outputs[place]} {outputs[place + 1]}")
        for place in range(0, len(sentences), 2)
    ]
    texts = [pair.text for pair in pairs]
    lost = told("predict, lines", pairs, by_lines(asked.model, texts))
    lost += told("predict --text", pairs, by_text(asked.model, texts))
    with (
        started(asked.model, "--threads", asked.threads, "--queue", 2048) as (_, address),
        httpx.Client(base_url=address, timeout=600) as client,
    ):
        for name, ask in served(client).items():
            lost += told(name, pairs, ask(texts))
    print(f"{asked.model}; {machine()['processor']}; transduce {library_versions()['transduce']}")
    sys.exit(bool(lost))


def drawn(lines: Sequence[str], count: int, seed: int) -> list[str]:
    """So many different sentences; the end where there are too few."""
    every = [each.strip() for each in dict.fromkeys(lines) if each.strip()]
    ended = [each for each in every if ENDED.search(each)]
    left_out = len(every) - len(ended)
    print(f"{len(every):,} different held-out texts; {left_out:,} that do not end as sentences are left out")
    if len(ended) < count:
        sys.exit(f"expected at least {count:,} sentences; got {len(ended):,}. Ask for fewer pairs: --pairs")
    return random.Random(seed).sample(ended, count)


def told(name: str, pairs: Sequence[Pair], found: Sequence[str]) -> int:
    """How many pairs came out otherwise; printed."""
    other = [(pair, output) for pair, output in zip(pairs, found, strict=True) if output != pair.expected]
    print(f"{name}: {len(pairs) - len(other):,} of {len(pairs):,} pairs as their sentences alone, {len(other):,} not")
    for pair, output in other[:SHOWN]:
        print(f"    text      {pair.text}\n    expected  {pair.expected}\n    output    {output}")
    sys.stdout.flush()
    return len(other)


# ---- the ways --------------------------------------------------------------------------------------------


def by_lines(model: Path, texts: Sequence[str]) -> list[str]:
    """`transduce predict MODEL < texts`."""
    return predicted(model, input="".join(f"{text}\n" for text in texts)).split("\n")[:-1]


def by_text(model: Path, texts: Sequence[str]) -> list[str]:
    """`transduce predict MODEL --text TEXT`: many pairs are one text, each on a line; "" for lines that are missing."""
    found: list[str] = []
    for several in portions(texts):
        lines = predicted(model, "--text", "\n".join(several)).split("\n")[:-1]
        found += [*lines, *[""] * len(several)][: len(several)]
    return found


def predicted(model: Path, *words: str, input: str | None = None) -> str:
    """What the command writes."""
    command = [sys.executable, "-m", "transduce", "predict", str(model), *words]
    given = None if input is None else input.encode()
    return subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True).stdout.decode()


def served(client: httpx.Client) -> dict[str, Callable[[Sequence[str]], list[str]]]:
    """The ways of a server, by name."""

    def posted(path: str, body: dict[str, Any]) -> Any:
        answer = client.post(path, json=body)
        if answer.is_error:
            sys.exit(f"{path}: {answer.status_code}: {answer.text}")
        return answer.json()

    def translate(texts: Sequence[str]) -> list[str]:
        target = client.get("/v1/models").json()["data"][0]["target"]
        asked = ({"q": list(each), "source": "auto", "target": target} for each in portions(texts))
        return [text for body in asked for text in posted("/translate", body)["translatedText"]]

    def predict(texts: Sequence[str]) -> list[str]:
        answers = (posted("/v1/predict", {"texts": list(each)})["predictions"] for each in portions(texts))
        return [each["text"] for answer in answers for each in answer]

    def explore(texts: Sequence[str]) -> list[str]:
        answers = (posted("/v1/explore/predict", {"text": text}) for text in texts)
        return [each["whole"]["output"] if each["whole"] else each["nbest"][0]["text"] for each in answers]

    return {"/translate": translate, "/v1/predict": predict, "the page": explore}


def portions(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Some at once."""
    return (texts[first : first + AT_ONCE] for first in range(0, len(texts), AT_ONCE))


if __name__ == "__main__":
    main()
