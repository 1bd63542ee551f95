"""What a translator keeps, reads in other writing, and knows of its own mistakes.

    python benchmarks/protection.py MODEL SOURCES REFERENCES [--language de] [--count 500]

- kept: numbers, addresses, placeholders and emoji are put into `count` sources, between two words or at the end; the
  share of these parts that stand in the output, with what protects them and without, and how many of the others are
  told of.
- writing: 200 sources in capitals, with curly quotes, soft hyphens and zero-width characters: the share of outputs that
  are the same but for case.
- plain: BLEU of the sources as they are, with what protects them and without.
- confidence: the expected calibration error of the words of these outputs.
"""

import argparse
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np

import transduce
from transduce.data.files import read_lines
from transduce.data.protected import lacking, protected
from transduce.inference.confidence import WrittenText, expected_calibration_error, judged_words
from transduce.metrics.evaluate import METRICS

PARTS = {
    "number": ["12", "1,250.75", "2026-11-28", "12:30", "3.14", "7"],
    "url": ["https://example.org/a?b=1&c=2", "www.example.org"],
    "email": ["first.last@example.org"],
    "placeholder": ["%s", "%1$s", "{name}", "{{count}}"],
    "tag": ['<x id="1"/>', "<b>"],
    "code": ["A4", "COVID-19"],
    "emoji": ["😀", "👍🏽", "❤️"],
}
WRITINGS: dict[str, Callable[[str], str]] = {
    "capitals": str.upper,
    "curly quotes": lambda text: text.replace("'", "’").replace('"', "”"),
    "soft hyphens": lambda text: " ".join(
        f"{word[:3]}\u00ad{word[3:]}" if len(word) > 5 else word for word in text.split(" ")
    ),
    "zero-width": lambda text: text.replace(" ", " \u200b"),
}


def with_part(source: str, part: str, draw: random.Random) -> str:
    """The source with a part in it."""
    words = source.split(" ")
    place = draw.randrange(1, len(words) + 1)
    if place == len(words) and words[-1][-1:] in ".!?":
        return f"{source[:-1]} {part}{source[-1]}"
    return " ".join([*words[:place], part, *words[place:]])


def main() -> None:
    """Print a table for each of the four."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("references", type=Path)
    parser.add_argument("--language", default="de")
    parser.add_argument("--count", type=int, default=500)
    asked = parser.parse_args()
    model = transduce.load(asked.model, device="cpu")
    sources, references = [*read_lines(asked.sources)], [*read_lines(asked.references)]
    kept(model, [source for source in sources if not protected(source)], asked.count)
    writing(model, [source for source in sources if not protected(source)][:200])
    plain(model, sources, references, asked.language)


def kept(model: "transduce.Pipeline", sources: list[str], count: int) -> None:
    """By kind of part."""
    draw = random.Random(1)
    kinds = [kind for kind, _ in zip(sorted(PARTS) * count, range(count), strict=False)]
    parts = [draw.choice(PARTS[kind]) for kind in kinds]
    texts = [with_part(draw.choice(sources), part, draw) for part in parts]
    print("| kind | sentences | kept without | kept | lost, and told |\n|---|---|---|---|---|")
    outputs = {protect: model.predict(texts, protect=protect) for protect in (False, True)}
    for kind in [*sorted(PARTS), "all"]:
        rows = [place for place, each in enumerate(kinds) if kind in (each, "all")]
        shares = []
        for protect, found in outputs.items():
            lost = [place for place in rows if lacking([(parts[place], kinds[place])], found[place].text)]
            shares.append(100 - 100 * len(lost) / len(rows))
            told = sum(parts[place] in found[place].missing for place in lost) if protect else 0
        print(f"| {kind} | {len(rows)} | {shares[0]:.1f} | {shares[1]:.1f} | {told} of {len(lost)} |")


def writing(model: "transduce.Pipeline", sources: list[str]) -> None:
    """By how they are written."""
    print("\n| writing | sentences | same without | same |\n|---|---|---|---|")
    usual = [each.text.casefold() for each in model.predict(sources)]
    for name, written in WRITINGS.items():
        texts = [written(source) for source in sources]
        same = [
            np.mean(
                [
                    each.text.casefold() == other
                    for each, other in zip(model.predict(texts, protect=way), usual, strict=True)
                ]
            )
            for way in (False, True)
        ]
        print(f"| {name} | {len(texts)} | {100 * same[0]:.1f} | {100 * same[1]:.1f} |")


def plain(model: "transduce.Pipeline", sources: list[str], references: list[str], language: str) -> None:
    """BLEU, and how sure the words are."""
    found = {protect: model.predict(sources, protect=protect) for protect in (True, False)}
    bleu = {
        protect: METRICS["bleu"]([each.text for each in own], references, language).value
        for protect, own in found.items()
    }
    print(f"\nBLEU {bleu[True]:.2f} with what protects, {bleu[False]:.2f} without")
    sure, right = [], []
    for each, reference in zip(found[False], references, strict=True):
        words = each.word_confidences
        written = WrittenText(each.text, each.tokens, each.token_log_probabilities)
        hits = judged_words(written, reference, [(word.start, word.end) for word in words])
        sure += [word.confidence for word in words]
        right += hits
    error = expected_calibration_error(np.array(sure), np.array(right, float))
    print(f"expected calibration error {error:.3f} of {len(sure):,} words, {100 * np.mean(right):.1f} % of them right")


if __name__ == "__main__":
    main()
