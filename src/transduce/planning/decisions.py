"""Facts about a corpus -> the keys of a recipe, each with its value and the reason in a sentence.

Nothing here looks at a file or a clock: the same facts give the same decisions. Where the figures come from is said in
docs/planning.md.
"""

import math
from typing import Any, NamedTuple

from transduce.planning.facts import FEW_NEW, SAMPLED, Facts, SideFacts
from transduce.search.keys import DEFAULTS

HELD_OUT = (0.05, 1000)  # the share of the pairs in validation, and in the test; at most so many
PIECES = 1.3  # tokens for a word, where words are cut into pieces
PIECES_A_CHARACTER = 0.3  # of long words such as CITYalias0.STATE_NAME; more than most, as room is left for all
SIZES = (  # positions of an epoch from which a model is so wide and deep
    (0, 64, 2),
    (5_000, 128, 3),
    (300_000, 128, 4),
    (5_000_000, 256, 4),
    (50_000_000, 512, 6),
)
VALIDATIONS, FEWEST, FEWEST_BETWEEN = 12, 2, 20  # of a training, usually and at least; updates between two
COPY_LEARNT = 20_000  # pairs of like languages from which a model learns to copy without a pointer
VALIDATING = 0.15  # share of a training's time for validations, from which they become fewer
MANY_CHARACTERS = 300  # from so many on, an alphabet is of signs for words or syllables


class Decision(NamedTuple):
    """One key of a recipe."""

    key: str
    value: Any
    reason: str


class Size(NamedTuple):
    """Of a model."""

    width: int
    layers: int

    @property
    def work(self) -> int:
        """Between that of few positions, which grows with the layers, and that of many, with the squared width."""
        return self.width * self.layers


def decide(facts: Facts, validation: bool = False, test: bool = False, size: Size | None = None) -> list[Decision]:
    """All but the number of updates, which `schedule` decides.

    Args:
        validation: whether there are files for it; else pairs are drawn.
        test: the same of the test.
        size: of the model, where the time is too short for the usual one.
    """
    return [
        *_task(facts),
        *_held_out(facts, validation, test),
        *_filters(facts),
        *_tokenizer(facts),
        *_batch(facts),
        *_model(facts, size),
        *_optimizer(facts, size),
        *_search(facts),
    ]


def affordable_validations(seconds: float, each: float) -> int:
    """How many validations of `each` seconds a training of so many seconds has."""
    return max(FEWEST, min(VALIDATIONS, int(VALIDATING * seconds / each))) if each else VALIDATIONS


def schedule(updates: int, reason: str, expected: int | None = None, validations: int = VALIDATIONS) -> list[Decision]:
    """What follows from the number of updates.

    expected: how many of them the time allows; None: all.
    """
    made = updates if expected is None else expected
    warmup = max(1, min(400, made // 20))
    often, every = (max(FEWEST_BETWEEN, made // parts) for parts in (VALIDATIONS, validations))
    kept = f"{validations} validations, of which the best weights are kept"
    average = 0.999 if made >= 3000 else 0.995 if made >= 1000 else 0.99
    return [
        Decision("training.updates", updates, reason),
        Decision("training.warmup", warmup, "a twentieth of the updates, at most 400"),
        Decision(
            "training.average", average, "the moving average of the weights covers a third of the updates at most"
        ),
        Decision("training.validate_every", every, kept),
        Decision("training.checkpoint_every", often, "a killed training loses a twelfth of its time at most"),
    ]


def deserved_updates(facts: Facts) -> int:
    """As many as the data deserves: 6,000 for 500,000 positions of an epoch, growing with the cube root of the data."""
    updates = 6000 * (positions(facts) / 500_000) ** 0.35
    return rounded(min(200_000.0, max(300.0, updates)))


def positions(facts: Facts) -> int:
    """Tokens of the longer side in all pairs, about."""
    return max(1, round(facts.pairs * max(tokens(facts, facts.source), tokens(facts, facts.target))))


def tokens(facts: Facts, side: SideFacts) -> float:
    """Of a text of this side, on average, with its end."""
    unit, _ = _unit(facts, side)
    each = {"character": side.characters, "whitespace": side.words}.get(unit)
    if each is None:
        each = side.characters * 0.7 if side.kind == "unspaced" else PIECES * side.words
    return each + 1


def usual_size(facts: Facts) -> Size:
    """By the amount of data."""
    amount = positions(facts)
    width, layers = [(width, layers) for least, width, layers in SIZES if amount >= least][-1]
    return Size(width, layers)


def smaller(size: Size) -> Size | None:
    """The next smaller model; None: there is none."""
    found = [Size(width, layers) for _, width, layers in SIZES]
    return found[found.index(size) - 1] if size in found[1:] else None


def _task(facts: Facts) -> list[Decision]:
    source, target = facts.languages
    named = [
        Decision(
            f"task.{key}", code, "chosen by you" if facts.languages_named else f"the {key}'s file or column says so"
        )
        for key, code in (("source", source), ("target", target))
        if code
    ]
    metrics: tuple[str, ...]
    if facts.of_words or facts.target.kind in ("symbols", "closed"):
        unit = _unit(facts, facts.target)[0]
        rate = "per" if facts.target.kind == "symbols" else "cer" if unit == "character" else "wer"
        metrics, best = ("exact_match", rate), "exact_match"
        reason = "the target has a right answer: one word, or symbols of a small set"
    elif facts.compresses:
        metrics, best = ("rouge1", "rouge2", "rougeL"), "rougeL"
        reason = "targets are summaries; to start from a pretrained model, such as BART: `transduce convert`"
    else:
        metrics, best = ("bleu", "chrf"), "bleu"
        reason = "the target is running text"
    few = _validation(facts) < 50
    return [
        *named,
        Decision("task.metrics", list(metrics), reason),
        Decision("training.best", "loss" if few else best, "few validation pairs make scores jump" if few else reason),
        Decision("training.decode_sentences", 500, "enough to tell weights apart, and quickly translated"),
    ]


def _validation(facts: Facts) -> int:
    share, most = HELD_OUT
    return max(1, min(most, round(share * facts.pairs)))


def _held_out(facts: Facts, validation: bool, test: bool) -> list[Decision]:
    count, reason = _validation(facts), "a twentieth of the pairs, at most 1,000; near-duplicates stay on one side"
    return [
        Decision(f"data.hold_out.{key}", count, reason)
        for key, named in (("validation", validation), ("test", test))
        if not named
    ]


def _filters(facts: Facts) -> list[Decision]:
    sides = (facts.source, facts.target)
    longest = max(side.longest * tokens(facts, side) / max(1.0, side.characters) for side in sides)
    most = 2 ** math.ceil(math.log2(max(256.0, min(1024.0, longest))))
    found = []
    if most != 256:
        reason = (
            f"the longest texts have about {rounded(longest):,} tokens; what is longer than this is dropped and told"
        )
        found.append(Decision("data.filters.max_tokens", most, reason))
    means = sorted(tokens(facts, side) for side in sides)
    ratio = max(facts.ratio, 1.5 * means[1] / means[0])
    if ratio > 5:
        told = "one side is much longer than the other by nature: texts and their titles, for example"
        if facts.source.of_signs != facts.target.of_signs:
            told = "a character of one side is a syllable or a word, one of the other a letter, so their lengths differ"
        found.append(Decision("data.filters.max_ratio", float(math.ceil(2 * ratio)), told))
    return found


def _unit(facts: Facts, side: SideFacts) -> tuple[str, str]:
    """The kind of tokenizer of a side, and why."""
    if side.kind == "symbols":
        return "whitespace", f"symbols with spaces between, {side.types} different ones, such as phones"
    if facts.of_words and side.characters <= 60:
        return "character", "single words are spelt letter by letter"
    if side.kind == "closed" and side.new < FEW_NEW:
        return "whitespace", f"only {side.types:,} different words"
    if side.kind == "unspaced" and facts.pairs < 300_000:
        return "character", "no spaces between words, and too little text to learn words from"
    return "bpe", "running text is cut into pieces of words"


def _vocabulary(facts: Facts, side: SideFacts, unit: str) -> tuple[int, int, str]:
    """The size, the least frequency of a token, and why."""
    if unit == "character" and side.composed:
        return max(16, side.letters + 16), 1, f"all {side.letters:,} letters"
    if unit == "character":
        least = 2 if side.alphabet > MANY_CHARACTERS else 1
        return max(16, side.alphabet + 16), least, _characters(side, least)
    if unit == "whitespace":
        further = round(side.new * max(0, facts.pairs - SAMPLED))  # new words in the pairs that are not sampled
        return max(16, side.types + further + 16), 1, f"all {side.types:,} words"
    size = 8000 * math.sqrt(positions(facts) / 500_000)
    least_size = 4 * side.alphabet if side.kind == "unspaced" else 2 * side.alphabet + 100
    size = max(500, least_size, min(32_000, 500 * round(size / 500)))
    return size, 2, "grows with the root of the text, 8,000 for 500,000 tokens"


def _characters(side: SideFacts, min_frequency: int) -> str:
    if min_frequency == 1:
        return f"all {side.alphabet:,} characters"
    return f"the {side.repeated:,} characters that occur twice, of {side.alphabet:,}"


def _tokenizer(facts: Facts) -> list[Decision]:
    sides = {"source": facts.source, "target": facts.target}
    units = {name: _unit(facts, side) for name, side in sides.items()}
    sizes = {name: _vocabulary(facts, side, units[name][0]) for name, side in sides.items()}
    apart = {name: unit == "character" and sides[name].composed for name, (unit, _) in units.items()}
    tags = facts.tags.different if facts.tags else 0
    if _is_joint(facts):
        kind, why = units["source"]
        most, least, reason = _joint_vocabulary(sizes, kind, tags)
        share = f"{facts.shared:.0%} of the letters are common to both sides, so one vocabulary serves both"
        return [
            Decision("tokenizer.kind", kind, why),
            Decision("tokenizer.vocabulary", most, reason),
            Decision("tokenizer.min_frequency", least, _often(least)),
            Decision("tokenizer.joint", True, share),
            *_letters("tokenizer", apart["source"]),
            *_tags("tokenizer", facts),
        ]
    return [
        decision
        for name in sides
        for decision in (
            Decision(f"tokenizer.{name}.kind", units[name][0], units[name][1]),
            Decision(
                f"tokenizer.{name}.vocabulary", sizes[name][0] + (tags if name == "source" else 0), sizes[name][2]
            ),
            Decision(f"tokenizer.{name}.min_frequency", sizes[name][1], _often(sizes[name][1])),
            *_letters(f"tokenizer.{name}", apart[name]),
            *(_tags(f"tokenizer.{name}", facts) if name == "source" else ()),
        )
    ]


def _is_joint(facts: Facts) -> bool:
    """Whether one vocabulary serves both sides: they are cut alike, and have letters in common."""
    cut = [(_unit(facts, side)[0], side.composed) for side in (facts.source, facts.target)]
    alike = [(unit, composed and unit == "character") for unit, composed in cut]
    return alike[0] == alike[1] and facts.shared >= 0.5


def _joint_vocabulary(sizes: dict[str, tuple[int, int, str]], kind: str, tags: int) -> tuple[int, int, str]:
    """Of both sides, as `_vocabulary` gives that of one: with room for what only one side has, and for the tags."""
    if kind == "bpe":
        return max(sizes.values())
    (most, least, reason), (further, often, other) = sizes.values()
    both = f"{reason} of the source, {other} of the target"
    return most + further + tags, min(least, often), both


def _letters(table: str, decomposed: bool) -> list[Decision]:
    reason = "its characters are syllables of few letters, which are learnt one by one"
    return [Decision(f"{table}.normalization", "NFD", reason)] if decomposed else []


def _tags(table: str, facts: Facts) -> list[Decision]:
    """Of the tokenizer that cuts the source."""
    if not facts.tags:
        return []
    return [Decision(f"{table}.symbols", facts.tags.pattern, f"the {facts.tags.different} tags are one token each")]


def _often(min_frequency: int) -> str:
    return "what occurs once teaches nothing" if min_frequency > 1 else "each is needed, however rare"


def _batch(facts: Facts) -> list[Decision]:
    sides = (facts.source, facts.target)
    longest = max(side.longest * tokens(facts, side) / max(1.0, side.characters) for side in sides)
    wanted = max(positions(facts) / 60, 2 * min(1024.0, longest), 512.0)
    size = 2 ** round(math.log2(min(8192.0 if positions(facts) > 20_000_000 else 4096.0, wanted)))
    return [Decision("batch.tokens", size, "about 60 updates see all pairs; 512 at least, 4,096 usually at most")]


def _model(facts: Facts, size: Size | None) -> list[Decision]:
    usual, amount = usual_size(facts), positions(facts)
    width, layers = size or usual
    reason = f"for about {rounded(amount):,} tokens" + (
        "; smaller than usual, as the time is short" if size and size != usual else ""
    )
    dropout = 0.3 if amount < 150_000 else 0.2 if amount < 5_000_000 else 0.1
    return [
        Decision("model.kind", "transformer", "the best of the architectures on Multi30k, see docs/results.md"),
        Decision("model.d_model", width, reason),
        Decision("model.heads", max(2, width // 32), "heads of 32 numbers"),
        Decision("model.encoder_layers", layers, reason),
        Decision("model.decoder_layers", layers, reason),
        Decision("model.feed_forward", 2 * width, "twice the width"),
        Decision("model.positions", "rotary", "learns faster than sinusoidal positions"),
        Decision("model.dropout", dropout, "the less text, the more dropout"),
        *_pointer(facts),
    ]


def _pointer(facts: Facts) -> list[Decision]:
    near = facts.is_near and facts.pairs <= COPY_LEARNT
    if not _is_joint(facts) or not (facts.compresses or near):
        return []
    reason = "a summary has names and rare words of its source, which a pointer copies"
    if not facts.compresses:
        share = f"{facts.copied:.0%} of the target words occur in their sources"
        reason = f"{share}, and a pointer copies them; model.pointer=false if it is to be exported"
    return [Decision("model.pointer", True, reason)]


def _optimizer(facts: Facts, size: Size | None) -> list[Decision]:
    width = (size or usual_size(facts)).width
    rate = round(4e-3 * math.sqrt(128 / max(128, width)), 5)
    found = [
        Decision("training.optimizer", "muon", "reaches the same loss in fewer updates than AdamW"),
        Decision("training.learning_rate", rate, "0.004, less for wider models"),
    ]
    if facts.target.kind == "closed":
        found.append(
            Decision("training.label_smoothing", 0.0, "targets of few different words: the next is mostly certain")
        )
    units = {_unit(facts, side)[0] for side in (facts.source, facts.target)}
    if units == {"bpe"} and facts.pairs >= 1000:
        reason = "words begin near those of similar use and near their translations"
        found.append(Decision("training.embeddings", "cooccurrence", reason))
    sizes = [_vocabulary(facts, side, _unit(facts, side)[0])[0] for side in (facts.source, facts.target)]
    if max(sizes) > 6000 and not _pointer(facts):
        found.append(Decision("training.sampled_words", 1000, "the loss over a sample of a large vocabulary is faster"))
    return found


def _search(facts: Facts) -> list[Decision]:
    """More room than nearly all targets need. It costs time where outputs do not end by themselves, as after a short
    training on running text; those of a formal language may have to be longer than in training.
    """
    source, target = facts.source, facts.target
    unit, _ = _unit(facts, target)
    pieces = tokens(facts, target) / target.characters
    each = max(pieces, PIECES_A_CHARACTER) if unit == "bpe" else pieces
    ratio = facts.expansion * each * source.characters / tokens(facts, source)
    if ratio <= DEFAULTS["max_length_factor"]:
        return []
    reason = f"one target in a hundred has more than {ratio:.1f} tokens for each token of its source"
    more = 1.25 if source.kind == target.kind == "sentences" else 2.0
    return [Decision("search.max_length_factor", float(math.ceil(more * ratio)), reason)]


def rounded(number: float) -> int:
    """To two digits."""
    digits = max(0, int(math.log10(max(1.0, number))) - 1)
    return int(round(number, -digits))
