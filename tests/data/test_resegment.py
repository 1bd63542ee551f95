"""BPE-dropout against the tokenizer's own pieces, and against the library's."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from transduce.core.errors import InputError
from transduce.data.files import read_lines
from transduce.data.tokenizers.resegment import Resegmenter, cut_anew
from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer

TEXTS = ["Two dogs run, and two cats sleep.", "the newest, widest, lowest  dogs", "", "Größe: 3 €"]


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    words = ["low", "lower", "lowest", "new", "newer", "newest", "wide", "wider", "widest", "dogs", "cats", "run"]
    drawn = random.Random(1)
    return train_tokenizer(TokenizerConfig(vocabulary=120), (" ".join(drawn.choices(words, k=8)) for _ in range(500)))


def test_without_dropout_it_is_the_tokenizer(bpe: Tokenizer) -> None:
    assert Resegmenter(bpe, 0.0, 1).encode(TEXTS) == bpe.encode(TEXTS)


def test_on_real_text_too(data_root: Path) -> None:
    lines = list(read_lines(data_root / "multi30k" / "raw" / "val.de.gz"))
    bpe = train_tokenizer(TokenizerConfig(vocabulary=1000), lines)
    assert Resegmenter(bpe, 0.0, 1).encode(lines) == bpe.encode(lines)


def test_bytes_in_which_a_foreign_tokenizer_spells_a_character_stay_whole() -> None:
    """As in the tokenizers of Llama and of SentencePiece with byte_fallback."""
    from tokenizers import Tokenizer as Inner
    from tokenizers import decoders, models, pre_tokenizers

    names = ["<pad>", "<s>", "</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *"▁abcx<>0C3A9", "ab", "▁a"]
    vocabulary = {name: index for index, name in enumerate(dict.fromkeys(names))}
    merges = [("a", "b"), ("▁", "a")]
    inner = Inner(models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", byte_fallback=True))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    foreign = Tokenizer.from_json(inner.to_str())
    texts = ["ab é cab", "abé", "<0xC3>"]
    assert Resegmenter(foreign, 0.0, 1).encode(texts) == foreign.encode(texts)
    cut = Resegmenter(foreign, 0.9, 1).encode(["ab é cab"] * 20)
    assert {foreign.decode(ids) for ids in cut} == {foreign.decode(foreign.encode(["ab é cab"])[0])}
    assert len(set(map(tuple, cut))) > 1


def test_a_run_without_spaces_that_is_very_long_keeps_its_pieces(bpe: Tokenizer) -> None:
    """Cutting it anew would take time by the square of its length; 200,000 characters end in no time."""
    run, short = "low" * 67_000, "lowest" * 60
    long, brief = Resegmenter(bpe, 0.5, 1).encode([run, short])
    assert long == bpe.encode([run])[0] and brief != bpe.encode([short])[0]


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.99])
def test_whatever_the_pieces_they_spell_the_text(bpe: Tokenizer, rate: float) -> None:
    cut = Resegmenter(bpe, rate, 7).encode(TEXTS)
    assert [bpe.decode(ids) for ids in cut] == [bpe.decode(ids) for ids in bpe.encode(TEXTS)]


def test_the_seed_decides(bpe: Tokenizer) -> None:
    texts = TEXTS * 5
    assert Resegmenter(bpe, 0.3, 1).encode(texts) == Resegmenter(bpe, 0.3, 1).encode(texts)
    assert Resegmenter(bpe, 0.3, 1).encode(texts) != Resegmenter(bpe, 0.3, 2).encode(texts)


def test_each_way_of_cutting_is_as_frequent_as_with_the_librarys_dropout(bpe: Tokenizer) -> None:
    from tokenizers import Tokenizer as Inner

    table = json.loads(bpe.to_json())
    table["model"]["dropout"] = 0.3
    library = Inner.from_str(json.dumps(table))
    draws = 20_000
    theirs = Counter(tuple(each.ids) for each in library.encode_batch(["lowest"] * draws, add_special_tokens=False))
    ours = Counter(map(tuple, Resegmenter(bpe, 0.3, 3).encode(["lowest"] * draws)))
    assert len(theirs) > 3
    for cut in theirs | ours:
        share = (theirs[cut] + ours[cut]) / (2 * draws)
        deviation = (2 * share * (1 - share) / draws) ** 0.5
        assert abs(theirs[cut] - ours[cut]) / draws < 5 * deviation + 1e-9


@pytest.mark.parametrize("kind", ["character", "unigram", "whitespace"])
def test_another_kind_of_tokenizer_is_refused(kind: Any) -> None:
    other = train_tokenizer(TokenizerConfig(kind=kind, vocabulary=40), ["some text and some more text"] * 4)
    with pytest.raises(InputError, match="bpe_dropout"):
        cut_anew(other, other, 0.1, 1)


@pytest.mark.parametrize("side", [0, 1])
def test_only_the_side_that_has_merges_is_cut_anew(bpe: Tokenizer, side: int) -> None:
    characters = train_tokenizer(TokenizerConfig(kind="character", vocabulary=40), TEXTS * 2)
    tokenizers = (bpe, characters) if side == 0 else (characters, bpe)
    encoders = cut_anew(*tokenizers, rate=0.9, seed=1)
    assert encoders[1 - side] is characters
    assert encoders[side].encode(TEXTS) == Resegmenter(bpe, 0.9, 2 + side).encode(TEXTS) != bpe.encode(TEXTS)


def test_symbols_survive_wherever_they_stand() -> None:
    texts = ["lower the sail; <b> lowest price </b>", "<b> newer", "no symbol here"]
    config = TokenizerConfig(vocabulary=120, min_frequency=1, symbols="</?b>")
    marked = train_tokenizer(config, [*TEXTS, *texts])
    assert Resegmenter(marked, 0.0, 1).encode(texts) == marked.encode(texts)
    [opened, closed] = marked.ids(["<b>", "</b>"])
    cut = Resegmenter(marked, 0.9, 1).encode(texts)
    assert [(ids.count(opened), ids.count(closed)) for ids in cut] == [(1, 1), (1, 0), (0, 0)]
    assert [marked.decode(ids) for ids in cut] == [marked.decode(ids) for ids in marked.encode(texts)]
