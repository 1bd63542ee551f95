"""The four special tokens of every vocabulary, and what other tools call them."""

from collections import Counter
from typing import TYPE_CHECKING

from transduce.core.errors import InputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Inner

PAD, START, END, UNKNOWN = SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
USUAL_NAMES = {
    "pad": (PAD, "[PAD]", "<|pad|>", "<|padding|>"),
    "start": (START, "[CLS]", "[BOS]", "<bos>", "<|startoftext|>", "<|begin_of_text|>"),
    "end": (END, "[SEP]", "[EOS]", "<eos>", "<|endoftext|>", "<|end_of_text|>"),
    "unknown": (UNKNOWN, "[UNK]", "<|unk|>"),
}


def find_special(vocabulary: dict[str, int]) -> dict[str, int]:
    """The id of each role. Without a start token, padding begins an output, as in Marian and T5.

    Raises:
        InputError: others are missing; all are named.
    """
    found = {
        role: next((vocabulary[name] for name in names if name in vocabulary), None)
        for role, names in USUAL_NAMES.items()
    }
    if found["start"] is None:
        found["start"] = found["pad"]
    missing = [role for role, index in found.items() if index is None and role != "start"]
    if missing:
        raise InputError(
            f"the vocabulary has no {role} token (looked for {', '.join(USUAL_NAMES[role])}). "
            f'Add one with the library: tokenizer.add_special_tokens(["{USUAL_NAMES[role][0]}"]), '
            "then save it again."
            for role in missing
        )
    return {role: index for role, index in found.items() if index is not None}


def mark_special(inner: "Inner") -> "Inner":
    """Mark the special tokens, already first in the model's vocabulary, as special for other tools too."""
    from tokenizers import AddedToken

    inner.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in SPECIAL])
    return inner


def most_frequent(counts: Counter[str], vocabulary: int, least: int) -> dict[str, int]:
    """The special tokens, then the units by falling frequency, `least` or more; equal ones in code point order."""
    ranked = sorted(counts, key=lambda unit: (-counts[unit], unit))
    often = [unit for unit in ranked if counts[unit] >= least and unit not in SPECIAL]
    kept = list(SPECIAL) + often[: vocabulary - len(SPECIAL)]
    return {unit: index for index, unit in enumerate(kept)}
