"""What a model file says of its training: recipe, hashes of the data, seed, versions, what its texts are like."""

from pathlib import Path
from typing import Any

from transduce.core.model_file import find_model_file
from transduce.data.character_profile import CharacterProfile
from transduce.data.corpus import sampled_pairs
from transduce.data.files import fingerprint
from transduce.data.known_words import KnownWords
from transduce.data.language_profile import LanguageProfile
from transduce.data.pairs.pair_data import PairData
from transduce.data.shards import sampled_shards
from transduce.inference.preparation import noted_of
from transduce.inference.sentences import LOOKED_AT, examined
from transduce.recipe.recipe import Recipe
from transduce.runtime.environment import library_versions
from transduce.tasks.base import Task, pairs_of
from transduce.tasks.protocols import TaskData
from transduce.training.progress import Progress
from transduce.training.run_directory import without_folders

PROFILED = 50_000  # training pairs whose characters are counted


def config_of(recipe: Recipe) -> dict[str, Any]:
    """The recipe without what belongs to this machine."""
    table = recipe.to_table()
    table["data"].pop("root", None)
    table["training"] = {
        key: each for key, each in table["training"].items() if key not in ("start", "start_tokenizer", "kept")
    }
    return table | {section: without_folders(table[section]) for section in ("data", "tokenizer")}


def provenance_of(recipe: Recipe, task: Task, data: TaskData, progress: Progress) -> dict[str, Any]:
    """What the model was made from, and how; see `transduce.core.model_file`."""
    started = {"start": fingerprint(find_model_file(recipe.training.start))} if recipe.training.start else {}
    raised = {"raised": progress.raised} if progress.raised else {}
    files = without_folders(data.provenance)
    provenance: dict[str, Any] = {
        "data": files,
        "seed": recipe.training.seed,
        "versions": library_versions(),
        **started,
        **raised,
    }
    if named := pairs_of(recipe):
        root = Path(named.root)
        pairs = [*sampled_pairs(sampled_shards(named.train, root), root, LOOKED_AT)]
        provenance |= _writing(named, task)
        provenance["sentences"] = examined(pairs, task.languages[0])
        provenance |= noted_of(pairs)
    return provenance


def _writing(data: PairData, task: Task) -> dict[str, Any]:
    """Characters and n-grams of both sides of a sample, and the words of its sources, so that a model can say what it
    has never read, and which language a text is in."""
    root = Path(data.root)
    pairs = list(sampled_pairs(sampled_shards(data.train, root), root, PROFILED))
    characters, ngrams = dict[str, Any](), dict[str, Any]()
    for place, side in enumerate(("source", "target")):
        normalized = task.tokenizers[side].normalized
        characters[side] = CharacterProfile.of(normalized(pair[place]) for pair in pairs).to_dict()
        if profile := LanguageProfile.of(pair[place] for pair in pairs):
            ngrams[side] = profile.to_dict()
    words = {"words": KnownWords.of(pair[0] for pair in pairs).to_text()} if task.of_sentences else {}
    return {"characters": characters, "ngrams": ngrams, **words}
