"""Build a datastore out of a translation memory, and choose how search uses it.

What a datastore is: `transduce.search.datastore`. How search uses it: `transduce.search.knn`.

Shapes: N entries, D width, V vocabulary, Q places of tokens, K nearest entries.
"""

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.data.columns.tokens import Tokens
from transduce.data.tags import addressed, require_language
from transduce.inference.batches import by_length
from transduce.inference.decode import SearchPredictor
from transduce.inference.inputs import sources as as_read
from transduce.models.protocols import StepsWithHidden, stands_in
from transduce.pipeline.knn_choice import Choice, KnnExamination, choose
from transduce.pipeline.pipeline import Pipeline
from transduce.search.datastore import Datastore, KnnSettings, PackedTexts, save_datastore
from transduce.search.decoder_states import TargetStep, target_steps
from transduce.search.knn import Memory
from transduce.search.settings import Search

HELD_OUT = 500  # pairs that the settings are chosen on
KEPT = 1000  # sentences whose outputs should stay as they are
COMPARED = 2 * 10**10  # numbers of keys that are multiplied with states to choose the settings, at most
OWN = 32  # entries of a pair among those nearest to one of its own states, beyond which a few of them count

Bar = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
NumberedPairs = Iterable[tuple[int, str, str]]


class MemoryPairs(NamedTuple):
    """Pairs as token ids. dropped: how many were not taken, by why."""

    numbers: list[int]
    sources: list[str]
    targets: list[str]
    source_ids: list[Sequence[int]]
    target_ids: list[list[int]]
    dropped: dict[str, int]


@dataclass(frozen=True)
class BuildOptions:
    """How a datastore is built.

    validation: pairs like those that will be translated, on which the settings are chosen; empty: pairs of the memory,
        each without its own entries. keep: sources whose outputs should stay as they are. kept: the share of these that
        must. knn: settings that are not chosen. to: see `transduce.inference.options.PredictionOptions`.
    """

    validation: Sequence[tuple[str, str]] = ()
    keep: Sequence[str] = ()
    kept: float = 0.99
    knn: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int = 64
    to: str = ""


def build_datastore(
    pipeline: Pipeline,
    pairs: NumberedPairs,
    path: Path,
    options: BuildOptions = BuildOptions(),
    bar: Bar = lambda what, total: nullcontext(lambda done: None),
) -> Datastore:
    """Write the datastore of a memory, and return it. The file appears when it is whole.

    The states lie in an unnamed file beside it until then, so memory does not grow with their number.

    Args:
        pairs: numbered (source, target) pairs.
        bar: shows how far it is.

    Raises:
        InputError: the model gives no states, the memory has no usable pair, a setting is wrong.
        TransduceError: the disk is full.
    """
    check_model(pipeline)
    KnnSettings().changed(options.knn)
    memory = memory_pairs(pipeline, pairs, options.to)
    if not memory.numbers:
        raise InputError(
            f"datastore: the memory has no pair to take ({told_dropped(memory.dropped) or 'it is empty'})."
        )
    with _unnamed_file(path.parent) as file:
        keys_ND = _keys(pipeline, memory, file, options.batch_size, bar)
        count = torch.tensor([len(ids) for ids in memory.target_ids])
        store = Datastore(
            keys=keys_ND,
            values=torch.tensor([each for ids in memory.target_ids for each in ids], dtype=torch.int32),
            pairs=torch.arange(len(count), dtype=torch.int32).repeat_interleave(count),
            positions=torch.cat([torch.arange(each, dtype=torch.int32) for each in count.tolist()]),
            sources=PackedTexts.of(memory.sources),
            targets=PackedTexts.of(memory.targets),
            numbers=torch.tensor(memory.numbers),
            model=pipeline.identity,
        )
        choice = _chosen(pipeline, store, memory, options, bar)
        facts = {"dropped": memory.dropped, "chosen": choice.to_dict()}
        store = replace(store, settings=choice.settings, facts=facts)
        save_datastore(path, store)
    return store


def check_model(pipeline: Pipeline) -> None:
    """Raises InputError for a model that has no datastores."""
    model = pipeline.model
    if not isinstance(model, StepsWithHidden) or not stands_in(model, "step_hidden", "step"):
        raise InputError(
            f"datastore: {type(model).__name__} does not give its states step by step "
            "(transduce.models.protocols.StepsWithHidden), so there is nothing to store."
        )
    if "source" not in pipeline.task.tokenizers or not isinstance(pipeline.task.predictor, SearchPredictor):
        raise InputError("datastore: a translation memory is for models that read a text and write another.")


def memory_pairs(pipeline: Pipeline, pairs: NumberedPairs, to: str = "") -> MemoryPairs:
    """The pairs that a datastore is made of, as the model reads and writes them; each pair once."""
    dropped = {"empty": 0, "repeated": 0, "too long": 0}
    kept: dict[tuple[str, str], int] = {}
    for number, source, target in pairs:
        if not source.strip() or not target.strip():
            dropped["empty"] += 1
        elif (source, target) in kept:
            dropped["repeated"] += 1
        else:
            kept[source, target] = number
    texts = [source for source, _ in kept]
    targets, longest = [target for _, target in kept], pipeline.task.max_source_length
    source_ids, target_ids = _ids(pipeline, texts, to), _target_ids(pipeline, targets)
    fitting = [
        place
        for place, ids in enumerate(zip(source_ids, target_ids, strict=True))
        if max(map(len, ids)) <= longest + 1 and all(ids)
    ]
    dropped["too long"] = len(kept) - len(fitting)
    every: tuple[Sequence[Any], ...] = (list(kept.values()), texts, targets, source_ids, target_ids)
    return MemoryPairs._make((*([each[place] for place in fitting] for each in every), dropped))


def told_dropped(dropped: Mapping[str, int]) -> str:
    """How many pairs were not taken, in words; "" = all were."""
    words = {
        "empty": "with an empty side",
        "repeated": "that stand there already",
        "too long": "too long for the model",
    }
    return ", ".join(f"{count:,} {words.get(why, why)}" for why, count in dropped.items() if count)


def _ids(pipeline: Pipeline, texts: Sequence[str], to: str = "") -> list[Any]:
    """Sources as the model reads them."""
    reads = pipeline.task.tokenizers["source"]
    if not to:
        require_language(reads, texts)
    joined = pipeline.source_columns.joined(texts)
    addressed_texts = addressed(reads, joined, to) if to else joined
    task, column = pipeline.searched.task, pipeline.task.columns["source"]
    return [task.request(ids, Search()).source for ids in column.encode(addressed_texts)]


def _target_ids(pipeline: Pipeline, texts: Sequence[str]) -> list[list[int]]:
    """Targets as the model writes them, with their ends."""
    column = pipeline.task.columns["target"]
    assert isinstance(column, Tokens)
    return [column.closed(ids) for ids in column.encode(texts)]


def _unnamed_file(folder: Path) -> IO[bytes]:
    """A file that is gone when it is closed, however this process ends. Raises InputError where none can be made."""
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        raise InputError(f"{folder}: nothing can be written there: {error.strerror}.") from None


def _keys(pipeline: Pipeline, memory: MemoryPairs, file: IO[bytes], batch_size: int, bar: Bar) -> Tensor:
    """(N, D) fp16 in a file, in the order of the pairs and of their tokens."""
    lengths = [len(ids) for ids in memory.target_ids]
    offsets, keys_ND = [0, *accumulate(lengths)], None
    with bar("reading the memory", len(lengths)) as advance:
        for places, step in steps_of(pipeline, memory.source_ids, memory.target_ids, batch_size, advance):
            key_ND = step.hidden.half().cpu()
            if not bool(key_ND.isfinite().all()):
                raise InputError("datastore: the model's states are too large for fp16, in which they are stored.")
            if keys_ND is None:
                mapped = np.memmap(file, np.float16, "w+", shape=(offsets[-1], key_ND.shape[1]))
                keys_ND = torch.from_numpy(mapped)
            row_N = torch.tensor([offsets[places[row]] + step.time for row in step.rows.tolist()])
            keys_ND[row_N] = key_ND
    assert keys_ND is not None
    return keys_ND


@torch.inference_mode()
def steps_of(
    pipeline: Pipeline,
    source_ids: Sequence[Any],
    target_ids: Sequence[Sequence[int]],
    batch_size: int,
    advance: Callable[[int], None] = lambda done: None,
) -> Iterator[tuple[list[int], TargetStep]]:
    """Each step of all pairs, with the places of the pairs that its rows stand for."""
    model = pipeline.model.eval()
    device = next(model.parameters()).device
    lengths = [max(map(len, ids)) for ids in zip(source_ids, target_ids, strict=True)]
    for places in by_length(lengths, batch_size):
        source = as_read([[source_ids[place] for place in places]], device)
        targets = [target_ids[place] for place in places]
        for step in target_steps(model, source, targets, pipeline.searched.task.start):
            yield places, step
        advance(len(places))


def _chosen(pipeline: Pipeline, store: Datastore, memory: MemoryPairs, options: BuildOptions, bar: Bar) -> Choice:
    """The settings by validation. Those that are given stay."""
    searched = Memory(store, pipeline.device)
    most = max(1, COMPARED // (store.width * len(store) * 16))  # pairs of 16 tokens
    if options.validation:
        own, held_out = False, memory_pairs(pipeline, ((0, *pair) for pair in options.validation), options.to)
    else:
        own, held_out = True, memory
    if not held_out.numbers:
        raise InputError("datastore: the validation has no pair that the model can read.")
    places = _spread(len(held_out.numbers), min(most, HELD_OUT))
    sources = [held_out.source_ids[place] for place in places]
    targets = [held_out.target_ids[place] for place in places]
    with bar("choosing the settings", len(places)) as advance:
        said = examined(pipeline, searched, sources, targets, options.batch_size, advance, places if own else None)
    keep = [options.keep[place] for place in _spread(len(options.keep), min(most, KEPT))]
    kept = _kept(pipeline, searched, keep, options, bar) if keep else None
    return choose(said, kept, options.kept, options.knn)


def _kept(
    pipeline: Pipeline, searched: Memory, texts: Sequence[str], options: BuildOptions, bar: Bar
) -> KnnExamination | None:
    """What the memory says along the model's own outputs for some sources, found greedily."""
    column = pipeline.task.columns["target"]
    assert isinstance(column, Tokens)
    sources = [text for text in texts if text.strip()]
    how: dict[str, Any] = {"method": "greedy", "beam": 1, "nbest": 1, "split": "none", "batch_size": options.batch_size}
    found = pipeline.predict(sources, to=options.to, long="truncate", **how)
    written = [column.closed(column.ids(each.tokens)[len(column.opening) :]) for each in found]
    read = [place for place, each in enumerate(found) if each.tokens and each.ended]
    if not read:
        return None
    ids = _ids(pipeline, [sources[place] for place in read], options.to)
    outputs = [written[place] for place in read]
    with bar("comparing outputs", len(read)) as advance:
        return examined(pipeline, searched, ids, outputs, options.batch_size, advance)


def examined(
    pipeline: Pipeline,
    searched: Memory,
    source_ids: Sequence[Any],
    target_ids: Sequence[Sequence[int]],
    batch_size: int,
    advance: Callable[[int], None],
    own_pairs: Sequence[int] | None = None,
) -> KnnExamination:
    """What model and memory say of each token of some targets.

    Args:
        own_pairs: the pair of the memory that each is; its entries are left out. None = they are not in the memory.
    """
    parts = []
    pair_N = searched.store.pairs.to(searched.values_N.device)
    for places, step in steps_of(pipeline, source_ids, target_ids, batch_size, advance):
        sentence_Q = torch.tensor([places[row] for row in step.rows.tolist()])
        left_out_Q = None if own_pairs is None else torch.tensor([own_pairs[place] for place in sentence_Q.tolist()])
        parts.append(KnnExamination.of_step(searched, step, sentence_Q, pair_N, left_out_Q, OWN))
    return KnnExamination(*(torch.cat(each) for each in zip(*parts, strict=True)))


def _spread(count: int, wanted: int) -> list[int]:
    """At most so many of the places 0 .. count - 1, evenly spread."""
    return list(range(count)) if count <= wanted else [place * count // wanted for place in range(wanted)]


def keep_of(sources: Collection[str]) -> list[str]:
    """Those of many sources that `BuildOptions.keep` reads."""
    listed = list(sources)
    return [listed[place] for place in _spread(len(listed), KEPT)]
