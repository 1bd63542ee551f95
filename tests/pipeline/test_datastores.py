"""Datastores of pipelines: built, read, refused, and what they tell of outputs, beside slow ways to the same."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from pipelines import pipeline
from random_models import language_model, model_file, sentences, translator
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.core.tensor_file import read_tensors, write_tensors
from transduce.inference.memory_use import FuzzyIndex
from transduce.models.protocols import StepsWithHidden
from transduce.pipeline import opened_datastore
from transduce.pipeline.datastores import BuildOptions, build_datastore, examined, memory_pairs
from transduce.pipeline.knn_choice import choose
from transduce.pipeline.pipeline import EnsemblePipeline, Pipeline, load
from transduce.search.datastore import KnnSettings, load_datastore, read_facts
from transduce.search.knn import Memory

SOURCES = [text for text in sentences(14, seed=5) if text]
TARGETS = [text for text in sentences(40, seed=8) if text][: len(SOURCES)]
PAIRS = [(number, *pair) for number, pair in enumerate(zip(SOURCES, TARGETS, strict=True), 1)]
HOW: dict[str, Any] = {"method": "beam", "beam": 3, "max_length_factor": 0.5, "max_length_offset": 4}


def built(model: Pipeline, folder: Path, **options: Any) -> Path:
    path = folder / "memory.datastore"
    build_datastore(model, PAIRS, path, BuildOptions(**options))
    return path


@pytest.mark.parametrize(
    "name",
    ["transformer", "pointer", "ssru_transformer", "linear_transformer", "convolution", "bahdanau", "no_attention"],
)
def test_keys_are_the_states_of_each_pair_alone_for_any_architecture(name: str, tmp_path: Path) -> None:
    model = pipeline(name)
    path = built(model, tmp_path, knn={"weight": 0.6, "k": 4, "temperature": 1.0, "distance": 20.0}, batch_size=3)
    store, module = load_datastore(path), model.model
    assert isinstance(module, StepsWithHidden)
    task, entry = model.searched.task, 0
    for place, (_, source, target) in enumerate(PAIRS):
        [read], [ids] = task.columns["source"].encode([source]), task.columns["target"].encode([target])
        padded = task.columns["source"].collate_texts([torch.tensor(read).numpy()])  # type: ignore[attr-defined]
        with torch.inference_mode():
            memory, state = module.start(padded, 1)  # type: ignore[attr-defined]
            for position, (before, token) in enumerate(zip([task.start, *ids], [*ids, task.end], strict=True)):
                hidden_1D, _, state = module.step_hidden(torch.tensor([before]), memory, state)
                numbers = store.values[entry], store.pairs[entry], store.positions[entry]
                assert [int(each) for each in numbers] == [token, place, position]
                torch.testing.assert_close(store.keys[entry], hidden_1D[0].half(), rtol=2e-3, atol=2e-3)
                entry += 1
    assert entry == len(store)
    assert (store.sources[:], store.targets[:]) == (SOURCES, TARGETS)
    plain, with_it = (model.predict(SOURCES, **HOW, datastore=each) for each in (None, path))
    assert [each.text for each in plain] != [each.text for each in with_it]
    alone = [model.predict(text, **HOW, datastore=path) for text in SOURCES]
    assert [each.text for each in alone] == [each.text for each in with_it]


def test_what_the_file_says_and_the_same_bytes_again(tmp_path: Path) -> None:
    model = translator()
    path = built(model, tmp_path)
    first = path.read_bytes()
    built(model, tmp_path)
    assert path.read_bytes() == first
    assert not [each for each in tmp_path.iterdir() if each != path]
    facts = read_facts(path)
    assert facts["pairs"] == len(PAIRS)
    assert facts["model"]["fingerprint"] == model.identity.fingerprint
    chosen = facts["facts"]["chosen"]
    assert chosen["settings"] == facts["settings"]
    assert chosen["after"] <= chosen["before"]


@pytest.mark.parametrize("stage", ["reading the memory", "choosing the settings", "comparing outputs"])
def test_interrupted_it_leaves_nothing_behind_and_the_old_file_as_it_was(stage: str, tmp_path: Path) -> None:
    path = tmp_path / "memory.datastore"
    path.write_text("before", encoding="utf-8")

    @contextmanager
    def bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
        def advance(done: int) -> None:
            if what == stage:
                raise KeyboardInterrupt

        yield advance

    with pytest.raises(KeyboardInterrupt):
        build_datastore(translator(), PAIRS, path, BuildOptions(keep=SOURCES[:3]), bar)
    assert [each.name for each in tmp_path.iterdir()] == ["memory.datastore"]
    assert path.read_text(encoding="utf-8") == "before"


def test_pairs_that_are_not_taken_are_counted() -> None:
    given = [*PAIRS[:3], (90, " ", "ba"), (91, "ba", ""), PAIRS[0], (92, "ba " * 500, "ba")]
    found = memory_pairs(translator(), given)
    assert found.numbers == [1, 2, 3]
    assert found.dropped == {"empty": 2, "repeated": 1, "too long": 1}
    with pytest.raises(InputError, match=r"no pair to take .*1 with an empty side"):
        build_datastore(translator(), [(1, "", "ba")], Path("nowhere"))


def test_a_datastore_is_for_its_own_model(tmp_path: Path) -> None:
    path = built(translator(), tmp_path)
    with pytest.raises(InputError, match=r"was built for the model .* their states differ"):
        translator(seed=4).predict("ba", datastore=path)
    again = tmp_path / "model.safetensors"
    save_model_file(again, model_file(translator()))
    assert (
        load(again).predict("ba de", **HOW, datastore=path).text
        == translator().predict("ba de", **HOW, datastore=path).text
    )
    with pytest.raises(InputError, match="belongs to one model"):
        EnsemblePipeline([translator(), translator()]).predict("ba", datastore=path)
    with pytest.raises(InputError, match=r"reads? a text and writes? another|does not give its states"):
        build_datastore(language_model(), PAIRS, tmp_path / "other")
    with pytest.raises(InputError, match="are about a datastore"):
        translator().predict("ba", knn={"k": 2})
    with pytest.raises(InputError, match="knn"):
        translator().predict("ba", datastore=path, knn={"kk": 2})


def test_damage_is_told(tmp_path: Path) -> None:
    path = built(translator(), tmp_path)
    whole = path.read_bytes()
    tensors, metadata = read_tensors(path)
    bad: list[tuple[str, dict[str, Any], dict[str, str]]] = [
        ("not a datastore", {}, {"format": "transduce-model"}),
        ("newer Transduce", {}, {"format_version": "2"}),
        ("damaged: knn.k", {}, {"settings": '{"k": 0}'}),
        ('"pairs" has numbers', {"pairs": tensors["pairs"] + 1000}, {}),
        ('"source_ends" has numbers', {"source_ends": tensors["source_ends"].flip(0)}, {}),
        ("not finite", {"keys": tensors["keys"] * torch.inf}, {}),
        ("different lengths", {"values": tensors["values"][1:]}, {}),
        ('"keys" should be', {"keys": tensors["keys"].float()}, {}),
    ]
    for said, other, told in bad:
        write_tensors(path, {**tensors, **other}, {**metadata, **told})
        with pytest.raises(InputError, match=said):
            load_datastore(path)
    path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    with pytest.raises(InputError, match="damaged: its content does not match its checksum"):
        load_datastore(path)
    with pytest.raises(InputError, match="there is no such datastore"):
        translator().predict("ba", datastore=tmp_path / "none")


def test_a_file_is_opened_once_and_again_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, opened = translator(), list[Any]()
    path = built(model, tmp_path)
    real = opened_datastore.load_datastore
    monkeypatch.setattr(opened_datastore, "load_datastore", lambda each: opened.append(each) or real(each))
    first = model.predict("ba de fi", **HOW, datastore=path)
    model.predict("ba de fi", **HOW, datastore=path, knn={"weight": 0.1})
    assert model.predict("ba de fi", **HOW, datastore=path) == first
    assert len(opened) == 1
    build_datastore(model, PAIRS[:3], path)
    model.predict("ba", datastore=path)
    assert len(opened) == 2


def mixture(store: Any, settings: KnnSettings, hidden: Any, own: int | None) -> tuple[dict[int, float], float]:
    """p_knn by token, and lambda, from all distances."""
    distances = [
        (float(((key.double() - hidden.double()) ** 2).sum()), entry)
        for entry, key in enumerate(store.keys)
        if int(store.pairs[entry]) != own
    ]
    near = sorted(distances)[: settings.k]
    weights = [math.exp(-distance / settings.temperature) for distance, _ in near]
    share = settings.weight * (1.0 if settings.distance is None else max(0.0, 1 - near[0][0] / settings.distance))
    said: dict[int, float] = {}
    for (_, entry), weight in zip(near, weights, strict=True):
        token = int(store.values[entry])
        said[token] = said.get(token, 0.0) + weight / sum(weights)
    return said, share


@pytest.mark.parametrize("own", [True, False])
def test_likelihood_and_kept_outputs_are_those_of_loops(own: bool, tmp_path: Path) -> None:
    model = translator()
    path = built(model, tmp_path, knn={"k": 2})
    store, settings = load_datastore(path), KnnSettings(k=4, weight=0.7, temperature=2.0, distance=30.0)
    pairs, memory = memory_pairs(model, PAIRS), Memory(store, torch.device("cpu"))
    said = examined(
        model,
        memory,
        pairs.source_ids,
        pairs.target_ids,
        4,
        lambda done: None,
        list(range(len(PAIRS))) if own else None,
    )
    read = said.read(settings)
    total, changed, count, entry = 0.0, set[int](), 0, 0
    scored = model.score([(source, target) for _, source, target in PAIRS])
    module: Any = model.model
    for place, ids in enumerate(pairs.target_ids):
        source = model.task.columns["source"].collate_texts([torch.tensor(pairs.source_ids[place][:-1]).numpy()])  # type: ignore[attr-defined]
        with torch.inference_mode():
            inner, state = module.start(source, 1)
            for position, token in enumerate(ids):
                before = torch.tensor([ids[position - 1] if position else model.searched.task.start])
                hidden_1D, log_1V, state = module.step_hidden(before, inner, state)
                assert float(log_1V[0, token]) == pytest.approx(
                    scored[place].token_log_probabilities[position], abs=1e-4
                )
                knn, share = mixture(store, settings, hidden_1D[0], place if own else None)
                chances = [(1 - share) * math.exp(each) for each in log_1V[0].tolist()]
                for each, chance in knn.items():
                    chances[each] += share * chance
                total, count, entry = total + math.log(chances[token]), count + 1, entry + 1
                if max(range(len(chances)), key=chances.__getitem__) != int(log_1V[0].argmax()):
                    changed.add(place)
    assert said.likelihood(read, read.share) == pytest.approx(total / count, abs=1e-6)
    assert said.changed(read, read.chance, read.share) == pytest.approx(len(changed) / len(PAIRS))
    assert len(changed) > 0


def test_settings_are_chosen_for_likelihood_and_keep_what_is_wanted(tmp_path: Path) -> None:
    model = translator()
    path = built(model, tmp_path, kept=0.0)
    pairs, memory = memory_pairs(model, PAIRS), Memory(load_datastore(path), torch.device("cpu"))
    everything: tuple[Any, ...] = (model, memory, pairs.source_ids, pairs.target_ids, 4, lambda done: None)
    own, other = examined(*everything, list(range(len(PAIRS)))), examined(*everything)
    free, careful = choose(own, other, 0.0, {}), choose(own, other, 1.0, {})
    assert free.after <= careful.after
    assert free.kept is not None and careful.kept is not None and free.kept <= careful.kept
    given = choose(own, other, 0.0, {"k": 3, "weight": 0.25, "distance": None})
    assert (given.settings.k, given.settings.weight, given.settings.distance) == (3, 0.25, None)
    with pytest.raises(InputError, match="there is no depth"):
        choose(own, None, 0.0, {"depth": 3})


def test_validation_pairs_choose_with_all_entries(tmp_path: Path) -> None:
    model, validation = translator(), list(zip(SOURCES[:5], TARGETS[:5], strict=True))
    path = built(model, tmp_path, validation=validation, kept=0.0)
    pairs, memory = memory_pairs(model, PAIRS[:5]), Memory(load_datastore(path), torch.device("cpu"))
    wanted = choose(examined(model, memory, pairs.source_ids, pairs.target_ids, 64, lambda done: None), None, 0.0, {})
    assert read_facts(path)["facts"]["chosen"] == wanted.to_dict()
    assert wanted.settings.distance is not None or wanted.settings.weight == 0.9  # its own entries are at distance 0


def test_sources_are_read_with_the_tag_of_the_language(tmp_path: Path) -> None:
    model = translator(tags=[">>en<<", ">>fr<<"])
    with pytest.raises(InputError, match=r"--to|language"):
        built(model, tmp_path)
    path = built(model, tmp_path, to="fr", knn={"k": 1, "weight": 0.5, "temperature": 1.0})
    near, far = (model.predict(SOURCES[3], **HOW, to=to, datastore=path, origins=True) for to in ("fr", "en"))
    store = load_datastore(path)
    assert store.sources[3] == SOURCES[3]
    memory = Memory(store, torch.device("cpu"))
    distances = []
    for to in ("fr", "en"):
        ids = memory_pairs(model, [PAIRS[3]], to)
        said = examined(model, memory, ids.source_ids, ids.target_ids, 1, lambda done: None)
        distances.append(float(said.distance[:, 0].max()))
    assert distances[0] < 1e-3 < distances[1]
    assert near.origins[0].memory > far.origins[0].memory


def test_origins_name_pairs_that_say_the_token_and_their_share(tmp_path: Path) -> None:
    model = translator()
    path = built(model, tmp_path, knn={"k": 6, "weight": 0.8, "temperature": 5.0, "distance": None})
    store, settings, task = load_datastore(path), load_datastore(path).settings, model.searched.task
    several = model.predict(SOURCES[:4], **HOW, datastore=path, origins=True)
    module: Any = model.model
    for source, prediction in zip(SOURCES, several, strict=False):
        assert [each.token for each in prediction.origins] == list(prediction.tokens)
        ids = task.columns["target"].ids(prediction.tokens)  # type: ignore[attr-defined]
        read = task.columns["source"].collate_texts([torch.tensor(task.columns["source"].encode([source])[0]).numpy()])  # type: ignore[attr-defined]
        with torch.inference_mode():
            memory, state = module.start(read, 1)
            for place, (token, origin) in enumerate(zip(ids, prediction.origins, strict=True)):
                before = torch.tensor([ids[place - 1] if place else task.start])
                hidden_1D, log_1V, state = module.step_hidden(before, memory, state)
                knn, share = mixture(store, settings, hidden_1D[0], None)
                both = (1 - share) * math.exp(float(log_1V[0, token])) + share * knn.get(token, 0.0)
                assert origin.memory == pytest.approx(share)
                assert origin.share == pytest.approx(share * knn.get(token, 0.0) / both, abs=1e-5)
                assert math.log(both) == pytest.approx(prediction.token_log_probabilities[place], abs=1e-4)
                assert bool(origin.entries) == (token in knn)
                for each in origin.entries:
                    assert PAIRS[each.pair - 1] == (each.pair, each.source, each.target)
                    written = [*task.columns["target"].encode([each.target])[0], task.end]
                    assert written[each.position] == token
    told = json.loads(json.dumps(several[0].to_dict()))
    assert len(told["origins"]) == len(several[0].tokens)
    named = {str(each["pair"]) for one in told["origins"] for each in one["entries"]}
    assert named == told["origin_pairs"].keys()


def edit_distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def slow_matches(text: str, sources: Sequence[str], least: int) -> list[tuple[int, int]]:
    """(percent, number), the most similar first."""
    every = []
    for number, source in enumerate(sources, 1):
        longest = max(len(text), len(source))
        same = longest - edit_distance(text, source)
        if 100 * same >= least * longest:
            every.append((-same / longest, number, 100 * same // longest))
    return [(percent, number) for _, number, percent in sorted(every)]


def test_fuzzy_matches_are_those_of_edit_distances(tmp_path: Path) -> None:
    pytest.importorskip("rapidfuzz")
    sources = [*SOURCES, "Open the door.", "Open the doors.", "Open a door!", "OPEN THE DOOR."]
    index = FuzzyIndex(sources, sources, range(1, len(sources) + 1))
    for text in ("Open the door.", "Open the floor", SOURCES[0], SOURCES[3][2:], "门"):
        for least in (1, 50, 80, 100):
            wanted = slow_matches(text, sources, least)[:5]
            assert [(each.similarity, each.pair) for each in index.matches(text, least)] == wanted
    assert index.matches(" ", 1) == ()
    model = translator()
    path = built(model, tmp_path, knn={"k": 2})
    [found] = model.predict([SOURCES[2]], **HOW, datastore=path, matches=95)
    assert [(each.similarity, each.target) for each in found.matches] == [(100, TARGETS[2])]
    assert found.to_dict()["matches"][0]["pair"] == 3
    with pytest.raises(InputError, match="similarity in percent"):
        model.predict("ba", datastore=path, matches=101)
