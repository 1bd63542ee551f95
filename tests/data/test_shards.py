"""A corpus as many files: matched, in step, encoded side by side in the same bytes, resumed, and shown as one."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from random_models import sentences, translator
from transduce.core.errors import InputError
from transduce.data import store as stores
from transduce.data.batches import BatchConfig, Batches
from transduce.data.corpus import TextFile
from transduce.data.pairs.pair_data import PairData
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.shards import grouped_shards, shards_of
from transduce.data.store import Store, write_store
from transduce.tasks.encoding_processes import Encoding, opened
from transduce.tasks.translation import Translation

FILES = 5


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for number in range(FILES):
        lines = [line.strip() or "ba" for line in sentences(20 + number, seed=number)]
        turned = [" ".join(reversed(line.split())) for line in lines]
        for side, texts in (("en", lines), ("de", turned)):
            (tmp_path / f"train-{number:02}.{side}").write_text("".join(f"{line}\n" for line in texts))
    return tmp_path


def entry(**more: Any) -> PairFiles:
    return PairFiles(source="train-*.en", target="train-*.de", **more)


def test_a_pattern_stands_for_its_files_in_order_and_in_pairs(corpus: Path) -> None:
    found = shards_of([entry(weight=2.0, tag="<X>"), PairFiles(source="a", target="b")], corpus)
    assert [(each.source, each.target) for each in found] == [
        *((f"train-{number:02}.en", f"train-{number:02}.de") for number in range(FILES)),
        ("a", "b"),
    ]
    assert {(each.weight, each.tag) for each in found[:-1]} == {(2.0, "<X>")}
    assert len(shards_of([TextFile(text="train-?3.*")], corpus)) == 2
    absolute = shards_of([TextFile(text=f"{corpus.as_posix()}/*.en")], Path("elsewhere"))
    assert [Path(each.text).name for each in absolute] == [f"train-{number:02}.en" for number in range(FILES)]
    assert [len(group) for group in grouped_shards([entry(), PairFiles(tsv="train-0*.en")], corpus)] == [FILES, FILES]


def test_files_without_a_partner_are_named(corpus: Path) -> None:
    (corpus / "train-03.de").unlink()
    (corpus / "train-09.de").write_text("ba\n")
    with pytest.raises(InputError, match=r"5 files and train-\*\.de 5.*train-03\.en, train-09\.de") as error:
        shards_of([entry(), TextFile(text="nothing-*")], corpus)
    assert len(error.value.problems) == 2
    assert "no file" in error.value.problems[1]


def test_a_part_of_each_of_many_files_is_refused(corpus: Path) -> None:
    with pytest.raises(InputError, match="pairs is for one file"):
        shards_of([entry(pairs=3)], corpus)


def opened_task(corpus: Path, cache: Path, **data: Any) -> Any:
    told: list[str] = []
    model = translator()
    columns = model.task.columns
    task = Translation(model.task.config, PairData(root=str(corpus), **data), columns)  # type: ignore[arg-type]
    return task.open(cache, told.append), told


def digests(cache: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in cache.glob("*.arrow")}


def test_side_by_side_and_one_by_one_are_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    data, told = opened_task(corpus, tmp_path / "one", train=(entry(weight=1.5),), workers=1)
    several, said = opened_task(corpus, tmp_path / "two", train=(entry(weight=1.5),), workers=2)
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    assert len(digests(tmp_path / "one")) == FILES
    assert [(len(store), weight) for store, weight in several.corpora] == [(20 + n, 1.5) for n in range(FILES)]
    assert [store.metadata for store, _ in data.corpora] == [store.metadata for store, _ in several.corpora]
    assert told == [f"train-*.en, train-*.de: {FILES} files each: All {sum(range(20, 20 + FILES))} pairs kept."]
    assert said == ["Encoding 5 of 5 files, 2 at a time.", *told]


def test_files_named_one_by_one_are_the_same_corpus(corpus: Path, tmp_path: Path) -> None:
    listed = tuple(PairFiles(source=f"train-{n:02}.en", target=f"train-{n:02}.de") for n in range(FILES))
    data, _ = opened_task(corpus, tmp_path / "cache", train=listed)
    before = digests(tmp_path / "cache")
    pattern, _ = opened_task(corpus, tmp_path / "cache", train=(entry(),))
    assert digests(tmp_path / "cache") == before
    config = BatchConfig(tokens=64)
    plans = [Batches(each.corpora, config, seed=3).epoch(0) for each in (data, pattern)]
    for one, other in zip(*plans, strict=True):
        assert np.array_equal(one.stores, other.stores) and np.array_equal(one.rows, other.rows)


def test_a_stopped_encoding_goes_on_with_the_files_that_are_missing(corpus: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    opened_task(corpus, cache, train=(entry(),), workers=1)
    whole = digests(cache)
    for name in sorted(whole)[:3]:
        (cache / name).unlink()
    kept = {path: path.stat().st_mtime_ns for path in cache.glob("*.arrow")}
    _, told = opened_task(corpus, cache, train=(entry(),), workers=2)
    assert told[0] == "Encoding 3 of 5 files, 2 at a time."
    assert digests(cache) == whole
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())


def test_what_is_wrong_with_several_files_is_told_at_once() -> None:
    def refuse(name: str) -> Any:
        raise InputError(f"{name}: wrong")

    encodings = [Encoding(lambda: False, lambda name=name: refuse(name)) for name in "ab"]  # type: ignore[misc]
    with pytest.raises(InputError) as error:
        opened(encodings, 2, lambda line: None)
    assert error.value.problems == ["a: wrong", "b: wrong"]


def test_with_a_temperature_a_pattern_is_one_corpus(corpus: Path, tmp_path: Path) -> None:
    (corpus / "small.en").write_text("ba de\n" * 10)
    (corpus / "small.de").write_text("ba de\n" * 10)
    train = (entry(), PairFiles(source="small.en", target="small.de"))
    data, _ = opened_task(corpus, tmp_path / "cache", train=train, temperature=5.0)
    total = sum(range(20, 20 + FILES))
    assert [weight for _, weight in data.corpora] == [*[1.0] * FILES, pytest.approx((10 / total) ** (1 / 5 - 1))]


def test_few_files_are_open_at_a_time(tmp_path: Path) -> None:
    fields = {"source": 100, "target": 100}
    for number in range(60):
        write_store(tmp_path / f"{number}", [{"source": [number], "target": [1, 2]}] * 3, fields, {})
    corpora = [(Store(tmp_path / f"{number}"), 1.0) for number in range(60)]

    def held() -> int:
        return sum(store._held is not None for store, _ in corpora)

    assert held() == 0
    seen = []
    for rows in Batches(corpora, BatchConfig(tokens=4096, pool=8), seed=1).epoch(0):
        seen += [corpora[place][0].read("source", np.array([row]))[0] for place, row in zip(*rows[:2], strict=True)]
        assert held() <= 2 * 8
    assert sorted(int(ids[0]) for ids in seen) == sorted([*range(60)] * 3)  # views outlive their stores


def test_a_big_store_is_verified_once_and_then_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "REMEMBERED", 0)
    monkeypatch.setattr("transduce.core.cache.SETTLED", 0.0)
    verified: list[Path] = []
    verify = Store.verify
    monkeypatch.setattr(Store, "verify", lambda self: verified.append(self.path) or verify(self))  # type: ignore[func-returns-value]

    def build(path: Path) -> None:
        write_store(path, [{"target": [number]} for number in range(10)], {"target": 100}, {})

    for _ in range(3):
        opened = stores.cached_store(tmp_path, "key", build)
    assert len(verified) == 1
    assert opened.check_when_read
    assert opened.read("target", np.array([7]))[0].tolist() == [7]
    damaged = bytearray((tmp_path / "key.arrow").read_bytes())
    place = damaged.index(bytes([0, 0, 1, 0, 2, 0, 3, 0]))
    damaged[place + 2] ^= 1
    (tmp_path / "key.arrow").write_bytes(bytes(damaged))
    with pytest.raises(InputError, match="damaged: block 0"):
        damaged_store = Store(tmp_path / "key.arrow")
        damaged_store.check_when_read = True
        damaged_store.read("target", np.array([1]))
    assert stores.cached_store(tmp_path, "key", build).read("target", np.array([1]))[0].tolist() == [1]  # built again
