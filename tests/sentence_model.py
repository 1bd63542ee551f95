"""A small English-German model that is trained in seconds on pairs of single sentences, and all that there are."""

from itertools import product
from pathlib import Path

from rich.console import Console

from transduce.recipe.recipe import load_recipe
from transduce.training.display import Display
from transduce.training.run import run_training

NOUNS = {"horse": "Pferd", "animal": "Tier", "street": "Sträßchen", "child": "Kind", "house": "Haus", "car": "Auto",
         "boat": "Boot", "book": "Buch"}  # fmt: skip
ADJECTIVES = {"tired": "müde", "wide": "breit", "old": "alt", "red": "rot", "small": "klein", "new": "neu"}
VERBS = {"was": "war", "is": "ist", "seems": "scheint"}
NUMBERS = {"Two": "Zwei", "The": "Das", "One": "Ein"}

RECIPE = """
name = "multi30k-en-de"
[task]
kind = "translation"
source = "en"
target = "de"
[data]
root = "{root}"
train = [{{ source = "train.en", target = "train.de" }}]
[tokenizer]
kind = "bpe"
vocabulary = 160
[batch]
tokens = 600
[model]
kind = "transformer"
d_model = 32
heads = 2
encoder_layers = 1
decoder_layers = 1
feed_forward = 64
dropout = 0.0
[training]
threads = 1
updates = 120
learning_rate = 1e-2
warmup = 20
precision = "fp32"
[search]
beam = 4
"""


def all_pairs() -> list[tuple[str, str]]:
    """Every sentence of the language: "The animal was tired." and its translation."""
    found = []
    for one, noun, verb, adjective in product(NUMBERS, NOUNS, VERBS, ADJECTIVES):
        german = f"{NUMBERS[one]} {NOUNS[noun]} {VERBS[verb]} {ADJECTIVES[adjective]}."
        found.append((f"{one} {noun} {verb} {adjective}.", german))
    return found + [("Two dogs run.", "Zwei Hunde laufen.")] * 3


def train_sentence_model(folder: Path) -> Path:
    """The directory of the run."""
    for side, name in enumerate(("train.en", "train.de")):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in all_pairs()), encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE.format(root=folder.as_posix()), encoding="utf-8")
    with (folder / "shown.txt").open("w", encoding="utf-8") as shown:
        recipe = load_recipe(folder / "recipe.toml")
        run_training(recipe, folder / "runs" / "multi30k-en-de", Display(Console(file=shown, width=200)))
    return folder / "runs" / "multi30k-en-de"
