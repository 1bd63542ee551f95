"""From which pairs of a memory each token of an output came; see `transduce.search.knn`.

Shapes: N tokens, K nearest entries.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch

from transduce.data.columns.tokens import Tokens
from transduce.inference.decode import SearchedModel
from transduce.inference.inputs import sources
from transduce.inference.memory_use import OriginEntry, TokenOrigin
from transduce.inference.prediction import Prediction
from transduce.inference.splitting import Pieces
from transduce.search.decoder_states import TargetStep, target_steps
from transduce.search.knn import Memory, mixed
from transduce.search.settings import Search

SHOWN = 3  # entries of a token


@torch.inference_mode()
def with_origins(
    searched: SearchedModel, pieces: Pieces, found: Sequence[Prediction], batch_size: int
) -> list[Prediction]:
    """The predictions of all pieces with their `origins`: the outputs are read once more."""
    told, memory = list(found), searched.memory
    target = searched.task.columns["target"]
    assert memory is not None and isinstance(target, Tokens)
    device = next(searched.model.parameters()).device
    for batch in pieces.batches(batch_size):
        places = [place for place in batch if found[place].tokens]
        if not places:
            continue
        ids = [target.ids(found[place].tokens) for place in places]
        source = sources([[searched.task.request(pieces.ids[place], Search()).source for place in places]], device)
        origins: list[list[TokenOrigin]] = [[] for _ in places]
        for step in target_steps(searched.model, source, ids, searched.task.start):
            for row, origin in zip(step.rows.tolist(), _origins(memory, step), strict=True):
                token = found[places[row]].tokens[step.time]
                origins[row].append(origin._replace(token=token))
        for place, each in zip(places, origins, strict=True):
            told[place] = replace(told[place], origins=tuple(each))
    return told


def _origins(memory: Memory, step: TargetStep) -> list[TokenOrigin]:
    """Of the tokens of one step, without their names."""
    read = memory.recall(step.hidden)
    token_N1 = step.tokens.to(read.value.device)[:, None]
    says_NK = read.value == token_N1
    log_N = mixed(step.log_probabilities, read).gather(1, token_N1)[:, 0].double()
    known_N = (read.weight * says_NK).sum(1)
    share_N = (read.share * known_N / log_N.exp()).clamp(max=1.0)
    rows = zip(
        *(each.tolist() for each in (read.share, share_N, says_NK, read.entry, read.weight, read.distance)), strict=True
    )
    found = []
    for weight, share, says, *entries in rows:
        kept = [each for each, said in zip(zip(*entries, strict=True), says, strict=True) if said and weight > 0]
        heaviest = sorted(kept, key=lambda each: -each[1])[:SHOWN]
        found.append(TokenOrigin("", weight, share, tuple(_entry(memory, *each) for each in heaviest)))
    return found


def _entry(memory: Memory, entry: int, weight: float, distance: float) -> OriginEntry:
    store = memory.store
    pair = int(store.pairs[entry])
    number, position = int(store.numbers[pair]), int(store.positions[entry])
    return OriginEntry(number, position, weight, distance, store.sources[pair], store.targets[pair])
