"""Glossary: terms that training never saw, translated as a glossary says, and what that costs.

    python benchmarks/glossary.py prepare ../shared/data/multi30k FOLDER   # writes training files and FOLDER/terms.tsv
    transduce train FOLDER/plain.toml --run FOLDER/plain                   # without annotated terms
    transduce train FOLDER/taught.toml --run FOLDER/taught                 # with data.placeholders and data.terms
    python benchmarks/glossary.py measure ../shared/data/multi30k FOLDER   # terms, BLEU and speed of both

200 source words of Multi30k's test_2016 whose German word is one and the same in 90 % of their uses are drawn by a
fixed seed; every training and validation pair that holds one of them is dropped. Measured on lines of test_2016 that
hold a term whose reference has the German word: the share of terms of which the output has that word or an inflection
that the whole training data lists for it; BLEU of all lines; seconds with the glossary beside those without, the same
beam, medians of three rounds in turns.
"""

import argparse
import gzip
import json
import random
import re
import statistics
import time
from collections import Counter
from pathlib import Path

import transduce
from transduce.data.word_alignment import WordAligner
from transduce.metrics.evaluate import METRICS

TERMS, LEAST, MOST, SURE, SEED = 200, 5, 60, 0.9, 1
NAMES = {"train": "train", "val": "val", "test": "test_2016_flickr"}
RECIPE = """[task]
kind = "translation"
source = "en"
target = "de"
metrics = ["bleu", "chrf"]

[data]
train = [{{ source = "{folder}/train.en", target = "{folder}/train.de" }}]
validation = {{ source = "{folder}/val.en", target = "{folder}/val.de" }}
{taught}
[tokenizer]
kind = "bpe"
vocabulary = 8000

[batch]
tokens = 4096

[model]
kind = "transformer"
d_model = 128
heads = 4
encoder_layers = 4
decoder_layers = 4
feed_forward = 256
dropout = 0.25

[training]
updates = {updates}
optimizer = "muon"
learning_rate = 4e-3
warmup = 400
best = "bleu"
decode_sentences = 500
"""


def read(data: Path, name: str) -> list[tuple[str, str]]:
    """The pairs of a part."""
    files = (data / "raw" / f"{name}.{code}.gz" for code in ("en", "de"))
    sides = [gzip.decompress(file.read_bytes()).decode("utf-8").splitlines() for file in files]
    return [*zip(*sides, strict=True)]


def words(text: str) -> set[str]:
    """The words of a text, in lower case."""
    return {word.lower() for word in re.findall(r"[^\W\d_]+", text)}


def chosen_terms(train: list[tuple[str, str]], test: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Source word -> its German word and the inflections of it."""
    aligner, uses = WordAligner.learnt(train), dict[str, Counter[str]]()
    for source, target in [*train, *test]:
        for link in aligner.links(source, target):
            word = source[slice(*link.source)].lower()
            uses.setdefault(word, Counter())[target[slice(*link.target)]] += 1
    in_test = Counter(
        (source[slice(*link.source)].lower(), target[slice(*link.target)])
        for source, target in test
        for link in aligner.links(source, target)
    )
    sure = {}
    for (word, form), _ in sorted(in_test.items()):
        often = uses[word]
        [(best, count)] = often.most_common(1)
        if best == form and LEAST <= often.total() <= MOST and count >= SURE * often.total() and len(word) > 3:
            sure[word] = [form, *aligner.forms(word, form)]
    drawn = random.Random(SEED).sample(sorted(sure), min(TERMS, len(sure)))
    return {word: sure[word] for word in sorted(drawn)}


def prepare(data: Path, folder: Path, updates: int) -> None:
    """Write the files and recipes of both trainings."""
    folder.mkdir(parents=True, exist_ok=True)
    train, validation, test = (read(data, name) for name in NAMES.values())
    terms = chosen_terms(train, test)
    for name, pairs in (("train", train), ("val", validation)):
        kept = [pair for pair in pairs if terms.keys().isdisjoint(words(pair[0]))]
        print(f"{name}: {len(kept):,} of {len(pairs):,} pairs hold no term")
        for code, side in zip(("en", "de"), zip(*kept, strict=True), strict=True):
            (folder / f"{name}.{code}").write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    lines = [f"{word}\t{forms[0]}\n" for word, forms in terms.items()]
    (folder / "terms.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "forms.json").write_text(json.dumps(terms, ensure_ascii=False, indent=1), encoding="utf-8")
    for name, taught in (("plain", ""), ("taught", "placeholders = 0.15\nterms = 0.15\n")):
        recipe = RECIPE.format(folder=folder.resolve(), taught=taught, updates=updates)
        (folder / f"{name}.toml").write_text(recipe, encoding="utf-8")


def measure(data: Path, folder: Path) -> None:
    """A row for each model."""
    forms = json.loads((folder / "forms.json").read_text(encoding="utf-8"))
    glossary, test = {word: each[0] for word, each in forms.items()}, read(data, NAMES["test"])
    print("| model | terms | right without | right with | BLEU without | BLEU with | speed |")
    print("|---|---|---|---|---|---|---|")
    for name in ("plain", "taught"):
        model = transduce.load(folder / name, device="cpu")
        sources, references = zip(*test, strict=True)
        without, seconds = timed(model, sources, {})
        with_terms, more_seconds = timed(model, sources, glossary)
        bleu = [METRICS["bleu"](each, references, "de").value for each in (without, with_terms)]
        right = [statistics.fmean(found) for found in (term_hits(test, each, forms) for each in (without, with_terms))]
        terms = len(term_hits(test, without, forms))
        print(
            f"| {name} | {terms} | {100 * right[0]:.1f} | {100 * right[1]:.1f} | {bleu[0]:.2f} | {bleu[1]:.2f} "
            f"| {seconds / more_seconds:.2f} |"
        )


def timed(model: "transduce.Pipeline", sources: tuple[str, ...], glossary: dict[str, str]) -> tuple[list[str], float]:
    """The outputs, and the median of the seconds of three rounds."""
    seconds = []
    for _ in range(3):
        begun = time.perf_counter()
        outputs = [each.text for each in model.predict(sources, glossary=glossary)]
        seconds.append(time.perf_counter() - begun)
    return outputs, statistics.median(seconds)


def term_hits(test: list[tuple[str, str]], outputs: list[str], forms: dict[str, list[str]]) -> list[bool]:
    """For each term in a line whose reference has it, whether the output has it, too."""
    lowered = {word: {form.lower() for form in each} for word, each in forms.items()}
    return [
        not lowered[word].isdisjoint(words(output))
        for (source, reference), output in zip(test, outputs, strict=True)
        for word in sorted(lowered.keys() & words(source))
        if not lowered[word].isdisjoint(words(reference))
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("prepare", "measure"))
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--updates", type=int, default=6000)
    asked = parser.parse_args()
    if asked.what == "prepare":
        prepare(asked.data, asked.folder, asked.updates)
    else:
        measure(asked.data, asked.folder)
