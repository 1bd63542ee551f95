"""How transformers would search with a folder's model: the settings of `model.generate(..)` as settings of ours.

transformers reads `generation_config.json`, and only where there is none the `config.json`. A setting that is not there
has the default of transformers, not ours: one beam, which is greedy search, length_penalty 1, 20 new tokens.

| transformers | here |
|---|---|
| `num_beams`, `num_return_sequences` | `method`, `beam`, `nbest` |
| `length_penalty` p: log p / L^p, L counts all tokens but the start | `length_rule = "power"`, `alpha` |
| `early_stopping` | `stopping` |
| `max_length`, which counts the start; `max_new_tokens` | `max_length_factor = 0`, `max_length_offset` |
| `min_length`, which counts the start; `min_new_tokens` | `min_length`, which does not count what outputs begin with |
| `no_repeat_ngram_size` | `no_repeat_ngram` |
| `forced_eos_token_id` | `at_limit = "end"` |
| `forced_bos_token_id` | what an output begins with (the target's column) |
| `suppress_tokens`, `bad_words_ids` of one token each; `begin_suppress_tokens` | tokens never written, or never first |
| `do_sample`, `temperature`, `top_k`, `top_p` | `method = "sample"` and the same |

Other settings that change outputs are refused by name.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from transduce.core.errors import InputError
from transduce.interop.foreign_folder import GENERATION, ForeignFolder
from transduce.search.keys import KEYS

NEW_TOKENS = 20  # of an output, unless the settings say more
TOP_K = 50  # of samples
STOPPING = {None: "heuristic", False: "heuristic", True: "complete", "never": "never"}
IDLE: dict[str, tuple[Any, ...]] = {
    "repetition_penalty": (None, 1),
    "encoder_repetition_penalty": (None, 1),
    "encoder_no_repeat_ngram_size": (None, 0),
    "num_beam_groups": (None, 1),
    "diversity_penalty": (None, 0),
    "penalty_alpha": (None, 0),
    "guidance_scale": (None, 1),
    "sequence_bias": (None,),
    "exponential_decay_length_penalty": (None,),
    "forced_decoder_ids": (None,),
    "force_words_ids": (None,),
    "constraints": (None,),
    "renormalize_logits": (None, False),
    "stop_strings": (None,),
    "max_time": (None,),
    "watermarking_config": (None,),
    "dola_layers": (None,),
    "prompt_lookup_num_tokens": (None,),
    "token_healing": (None, False),
}
"""What search here does not have, with the values that ask for nothing."""
OF_SAMPLES: dict[str, tuple[Any, ...]] = {
    "typical_p": (None, 1),
    "min_p": (None, 0),
    "top_h": (None,),
    "epsilon_cutoff": (None, 0),
    "eta_cutoff": (None, 0),
}
"""The same, where outputs are drawn at random."""
DELETE = "Delete it from generation_config.json to convert the model without it"


class GenerationSettings(NamedTuple):
    """search: keys of [search]. never, never_first: ids. notes: what is to be told."""

    search: dict[str, Any]
    never: tuple[int, ...]
    never_first: tuple[int, ...]
    notes: tuple[str, ...]


def generation_settings(
    folder: ForeignFolder, end: int, size: int, opening: int = 0, positions: int | None = None
) -> GenerationSettings:
    """Those of a translator.

    Args:
        end: id of the token that ends outputs. size: of the vocabulary.
        opening: how many tokens an output begins with behind the start.
        positions: how many the decoder has; None = any number.

    Raises:
        InputError: a setting has a wrong value, or search here does not have it. All problems are told at once.
    """
    read = _Reader(folder)
    beams, samples = read.whole("num_beams", 1, least=1), read.value("do_sample") is True
    search = _method(read, beams, samples) | _lengths(read, opening, positions)
    if repeats := read.whole("no_repeat_ngram_size", 0):
        search["no_repeat_ngram"] = repeats
    if _forces_end(read, end):
        search["at_limit"] = "end"
    never = sorted({*read.ids("suppress_tokens", size), *_bad_words(read, size)} - {end})
    first = sorted({*read.ids("begin_suppress_tokens", size)} - {*never})
    notes = list(_notes(read, end, samples))
    if read.problems:
        raise InputError(read.problems)
    return GenerationSettings(search, tuple(never), tuple(first), tuple(notes))


class _Reader:
    """The settings of a folder, with what is wrong with them."""

    def __init__(self, folder: ForeignFolder) -> None:
        self.folder, self.problems = folder, list[str]()
        self.file = folder.path / (GENERATION if folder.has_generation else "config.json")
        for key, idle in IDLE.items():
            self.refuse(key, idle)

    def value(self, key: str) -> Any:
        """None = it is not there."""
        return self.folder.generation_setting(key)

    def refuse(self, key: str, idle: tuple[Any, ...]) -> None:
        """Unless the value asks for nothing."""
        if (value := self.value(key)) not in idle:
            self.problems.append(f"{self.file}: {key} = {value!r:.80}: search here has no such setting. {DELETE}.")

    def wrong(self, key: str, wanted: str) -> None:
        self.problems.append(f"{self.file}: {key}: expected {wanted}; got {self.value(key)!r:.80}.")

    def whole(self, key: str, default: int, least: int = 0) -> int:
        value = self.value(key)
        value = default if value is None else value
        if type(value) is not int or not least <= value <= 10_000:
            self.wrong(key, f"a whole number from {least} to 10,000")
            return default
        return value

    def number(self, key: str, default: float, name: str) -> float:
        """As the key `name` of search takes it."""
        value, bounds = self.value(key), KEYS[name].bounds
        value = default if value is None else value
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        fits = fits and bounds.get("ge", value) <= value <= bounds.get("le", value) and value > bounds.get("gt", -1)
        if not fits:
            least = f"above {bounds['gt']:g}" if "gt" in bounds else f"of at least {bounds['ge']:g}"
            self.wrong(key, f"a number {least}" + (f" and at most {bounds['le']:g}" if "le" in bounds else ""))
            return default
        return float(value)

    def ids(self, key: str, size: int) -> list[int]:
        value = self.value(key)
        value = [] if value is None else value
        if not isinstance(value, list) or not all(type(each) is int for each in value):
            self.wrong(key, "a list of ids")
            return []
        return [each for each in value if 0 <= each < size]


def _method(read: _Reader, beams: int, samples: bool) -> dict[str, Any]:
    if samples:
        for key, idle in OF_SAMPLES.items():
            read.refuse(key, idle)
        if beams > 1:
            read.problems.append(
                f"{read.file}: do_sample with num_beams = {beams}: beams are not drawn here. {DELETE}."
            )
        top_k = read.whole("top_k", TOP_K)
        chosen = {
            "temperature": read.number("temperature", 1.0, "temperature"),
            "top_p": read.number("top_p", 1.0, "top_p"),
        }
        return {"method": "sample", **chosen, **({"top_k": top_k} if top_k else {})}
    stopping = read.value("early_stopping")
    if not (stopping is None or isinstance(stopping, bool | str)) or stopping not in STOPPING:
        read.wrong("early_stopping", 'true, false or "never"')
        stopping = None
    ranked = {
        "length_rule": "power",
        "alpha": read.number("length_penalty", 1.0, "alpha"),
        "stopping": STOPPING[stopping],
    }
    if beams == 1:
        return {"method": "greedy", **ranked}
    listed = min(read.whole("num_return_sequences", 1, least=1), beams)
    return {"method": "beam", "beam": beams, "nbest": listed, **ranked}


def _lengths(read: _Reader, opening: int, positions: int | None) -> dict[str, Any]:
    """The limits of an output, without its start token."""
    most, new = read.value("max_length"), read.value("max_new_tokens")
    limit = read.whole("max_new_tokens", NEW_TOKENS, 1) if new is not None or most is None else 0
    limit = limit or max(1, read.whole("max_length", NEW_TOKENS + 1, 1) - 1)
    if positions is not None:
        limit = min(limit, positions)
    fewest = read.whole("min_new_tokens", 0) or max(0, read.whole("min_length", 0) - 1)
    fewest = max(0, min(fewest - opening, limit - opening - 1))
    return {"max_length_factor": 0.0, "max_length_offset": limit, **({"min_length": fewest} if fewest else {})}


def _forces_end(read: _Reader, end: int) -> bool:
    forced = read.value("forced_eos_token_id")
    if forced in (None, end, [end]):
        return forced is not None
    read.wrong("forced_eos_token_id", f"{end}, which ends outputs")
    return False


def _bad_words(read: _Reader, size: int) -> list[int]:
    value = read.value("bad_words_ids")
    words = [] if value is None else value
    if not isinstance(words, list) or not all(isinstance(each, list) for each in words):
        read.wrong("bad_words_ids", "a list of lists of ids")
        return []
    longer = [each for each in words if len(each) > 1]
    if longer:
        read.problems.append(
            f"{read.file}: bad_words_ids holds {longer[0]!r:.80}: only single tokens can be ruled out for good. "
            f"{DELETE}, and give such phrases as must_not."
        )
    return [each for [each] in (word for word in words if len(word) == 1) if type(each) is int and 0 <= each < size]


def _notes(read: _Reader, end: int, samples: bool) -> Iterator[str]:
    if read.value("max_length") is None and read.value("max_new_tokens") is None:
        yield (
            f"its settings name no longest output, so it stops after {NEW_TOKENS} tokens, as transformers does. "
            "Allow more with --max-new, or search.max_length_offset in a recipe."
        )
    ends = read.value("eos_token_id")
    if isinstance(ends, list) and len(ends) > 1:
        yield f"eos_token_id names {len(ends)} tokens; outputs end at {end} only."
    elif ends not in (None, end, [end]):
        read.wrong("eos_token_id", f"{end}, the tokenizer's token for the end")
    if samples:
        yield "its settings draw outputs at random, so outputs differ from the original's. --method greedy does not."
