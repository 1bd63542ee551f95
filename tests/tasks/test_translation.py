"""Text pairs as a task."""

import itertools
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from random_models import translator
from transduce.core.errors import InputError
from transduce.data.batches import BatchConfig
from transduce.data.pairs.pair_data import PairData
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.search.settings import Search
from transduce.tasks.translation import Translation, TranslationConfig


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a").write_text("ba de\n\nfi go ku\nla\n" + "me " * 9 + "\n")
    (tmp_path / "b").write_text("ni\npo\nra\n\nsu\n")
    return tmp_path


def task(root: Path, **more: object) -> Translation:
    files = {"source": "a", "target": "b"}
    data = {"root": str(root), "train": [files], "validation": files, "test": {"t": files}, **more}
    read = PairData.model_validate(data)
    config = TokenizerConfig(kind="whitespace", min_frequency=1)
    return Translation(TranslationConfig(metrics=("exact_match",)), read, Translation.learn_columns(config, read))


def test_what_is_dropped_is_told_and_counted(root: Path, tmp_path: Path) -> None:
    told: list[str] = []
    data = task(root, filters={"max_tokens": 5}).open(tmp_path / "cache", told.append)
    said = "Dropped 3 of 5 pairs: 1 empty source (line 2); 1 empty target (line 4); 1 too long (line 5)."
    assert told[0] == f"{root / 'a'}, {root / 'b'}: {said}"
    [(store, weight)] = data.corpora
    assert (len(store), weight) == (2, 1.0)
    assert store.metadata["dropped"]["counts"] == {"empty source": 1, "empty target": 1, "too long": 1}


def test_held_out_pairs_are_never_dropped_for_their_length(root: Path, tmp_path: Path) -> None:
    told: list[str] = []
    data = task(root, filters={"max_tokens": 5}).open(tmp_path / "cache", told.append)
    assert data.validation is not None
    assert len(data.validation.store) == 3
    assert len(data.validation.texts) == len(data.tests["t"].texts) == 5
    assert data.validation.texts[3] == ("la", "")
    assert any(line.startswith("validation: the loss leaves out what has an empty side. Dropped 2") for line in told)


def test_provenance_names_files_by_what_they_hold(root: Path, tmp_path: Path) -> None:
    provenance = task(root).open(tmp_path / "cache", lambda line: None).provenance
    assert set(provenance) == {"train", "validation", "t"}
    assert provenance["train"][0]["source"] == "a"
    assert str(root) not in json.dumps(provenance)
    assert all(len(digest) == 64 for digest in provenance["t"]["sha256"])


def test_a_request_ends_its_source_and_grows_with_it(root: Path) -> None:
    made = task(root)
    request = made.request(made.source.encode(["ba de"])[0], Search(max_length_factor=2, max_length_offset=3))
    assert request.source == [*made.source.encode(["ba de"])[0], made.source.end]
    assert (request.prefix, request.limit) == ([], 7)


def test_metrics_are_the_recipes_unless_named(root: Path) -> None:
    made = task(root)
    assert list(made.evaluate(["ni"], ["ni"])) == ["exact_match"]
    assert list(made.evaluate(["ni"], ["ni"], ["chrf"])) == ["chrf"]
    with pytest.raises(InputError, match="bleuu"):
        made.evaluate(["ni"], ["ni"], ["bleuu"])


def test_separate_vocabularies_know_their_own_side_alone(root: Path) -> None:
    config = TokenizerConfig(kind="whitespace", min_frequency=1, joint=False)
    sides = Translation.learn_columns(config, task(root).data)
    assert sides["source"].encode(["ni"])[0] == [sides["source"].tokenizer.unknown]
    assert sides["target"].encode(["ni"])[0] != [sides["target"].tokenizer.unknown]


def test_readable_is_what_training_let_through() -> None:
    data = {"train": [{"source": "a", "target": "b"}], "filters": {"max_tokens": 4}}
    assert translator(data=data).task.max_source_length == 4


def test_bpe_dropout_cuts_the_training_pairs_in_several_ways_of_one_weight(tmp_path: Path) -> None:
    lines = "".join(f"{'lower newest widest ' * (1 + n % 3)}\n" for n in range(50))
    (tmp_path / "a").write_text(lines)
    files = {"source": "a", "target": "a", "weight": 2.0}
    read = PairData.model_validate(
        {"root": str(tmp_path), "train": [files], "validation": files, "bpe_dropout": 0.5, "segmentations": 4}
    )
    tokenizers = Translation.learn_columns(TokenizerConfig(vocabulary=60), read)
    data = Translation(TranslationConfig(), read, tokenizers).open(tmp_path / "cache", lambda line: None)
    rows = np.arange(50)
    cuts = [[list(ids) for ids in store.read("source", rows)] for store, _ in data.corpora]
    assert [weight for _, weight in data.corpora] == [2.0] * 4
    shown = Counter(int(row) for batch in data.batches(BatchConfig(tokens=200), 1).epoch(0) for row in batch.rows)
    assert shown == dict.fromkeys(range(50), 2)
    assert cuts[0] == tokenizers["source"].encode(lines.splitlines())
    assert all(one != other for one, other in itertools.combinations(cuts, 2))
    texts = [tokenizers["source"].decode(ids) for ids in cuts[0]]
    assert all([tokenizers["source"].decode(ids) for ids in cut] == texts for cut in cuts)
    again = Translation(TranslationConfig(), read, tokenizers).open(tmp_path / "other", lambda line: None)
    assert [[list(ids) for ids in store.read("source", rows)] for store, _ in again.corpora] == cuts
    assert data.validation is not None
    assert [list(ids) for ids in data.validation.store.read("source", rows)] == cuts[0]


ANIMALS = {f"animal{chr(97 + n)}": f"tier{chr(97 + n)}" for n in range(26)}
COLOURS = {f"colour{chr(97 + n)}": f"farbe{chr(97 + n)}" for n in range(26)}


@pytest.mark.parametrize("joint", [True, False])
def test_training_pairs_teach_placeholders_and_terms_in_their_further_versions(tmp_path: Path, joint: bool) -> None:
    for part in (0, 1):  # two files, encoded by two processes
        pairs = [(f"the {c} {a} 12", f"das {COLOURS[c]} {ANIMALS[a]} 12") for a in ANIMALS for c in COLOURS][part::2]
        for side, texts in zip("ab", zip(*pairs, strict=True), strict=True):
            (tmp_path / f"{side}{part}").write_text("".join(f"{text}\n" for text in texts))
    table = {
        "root": str(tmp_path),
        "train": [{"source": "a0", "target": "b0"}, {"source": "a1", "target": "b1"}],
        "placeholders": 0.3,
        "terms": 0.3,
        "segmentations": 3,
    }
    read = PairData.model_validate(table)
    columns = Translation.learn_columns(TokenizerConfig(vocabulary=150, joint=joint), read)

    def texts_in(cache: str, workers: int) -> list[list[tuple[str, str]]]:
        data = PairData.model_validate({**table, "workers": workers})
        opened = Translation(TranslationConfig(), data, columns).open(tmp_path / cache, lambda line: None)
        rows = np.arange(338)
        sides = [
            [[columns[side].decode(ids) for ids in store.read(side, rows)] for side in ("source", "target")]
            for store, _ in opened.corpora
        ]
        return [[*zip(*both, strict=True)] for both in sides]

    found = texts_in("cache", 2)
    assert found == texts_in("other", 1)
    assert len(found) == 6
    for own in (found[0], found[3]):
        assert not any("⟦" in text for pair in own for text in pair)
    assert len({str(each) for each in found}) == 6
    for pairs in (found[1], found[2], found[4], found[5]):
        sources, targets = zip(*pairs, strict=True)
        assert 0.2 < np.mean(["⟦as⟧" in source for source in sources]) < 0.4
        assert all(re.findall(r"⟦\d⟧", target) for target in targets)  # "12" stands in both, and is copied always
        assert all(
            sorted(re.findall(r"⟦\d⟧", source)) == sorted(re.findall(r"⟦\d⟧", target)) for source, target in pairs
        )
        assert 0.2 < np.mean([len(re.findall(r"⟦\d⟧", target)) > 1 for target in targets]) < 0.45
