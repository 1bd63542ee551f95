"""What the loop decides: which random numbers an update draws, when it ends, and which validation was the best."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from random_models import translator
from text_columns import PAIRS
from transduce.core.errors import TransduceError
from transduce.core.model_file import lasting_tensors
from transduce.data.batches import BatchConfig, Batches
from transduce.data.collate import Batch, collate
from transduce.data.store import Store, write_store
from transduce.objectives.text import text_objective
from transduce.recipe.training import TrainingConfig
from transduce.runtime.event_log import Log, read_log
from transduce.runtime.process_group import ProcessGroup
from transduce.training import loop
from transduce.training.average import MovingAverage
from transduce.training.checkpoint import Checkpoints, TrainingState
from transduce.training.loop import Callbacks, make_update, train
from transduce.training.optimizer import Optimizers
from transduce.training.progress import Progress
from transduce.training.signals import StopRequest

SMALL = {"d_model": 8, "heads": 2, "feed_forward": 8, "encoder_layers": 1, "decoder_layers": 1, "tied": "none"}


def new(config: TrainingConfig, dropout: float = 0.0) -> TrainingState:
    model = translator(model={**SMALL, "dropout": dropout}).model
    return TrainingState(
        model,
        text_objective(model, config),
        Optimizers(model, config),
        MovingAverage(model, config.average),
        Progress(),
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    drawn = np.random.default_rng(1)
    sides = [[drawn.integers(4, 12, 3).tolist() for _ in range(12)] for _ in range(2)]
    rows = [{"source": source, "target": target} for source, target in zip(*sides, strict=True)]
    write_store(tmp_path / "s.arrow", rows, {"source": 12, "target": 12}, {})
    return Store(tmp_path / "s.arrow")


class Ran:
    """A training of `new(config)`, whose validations say what they are told."""

    def __init__(self, folder: Path, store: Store, config: TrainingConfig, validations: list[dict[str, float]]) -> None:
        said: Iterator[dict[str, float]] = iter(validations)
        self.trained, self.checkpoints = new(config), Checkpoints(folder, config.keep)
        self.speeds: list[float] = []
        self.losses: list[float] = []
        self.counts: list[int] = []  # target tokens of each batch
        self.validated: list[dict[str, Tensor]] = []
        log = Log(folder, 0, False)

        def validate() -> dict[str, float]:
            weights = lasting_tensors(self.trained.model)
            self.validated.append({name: each.detach().clone() for name, each in weights.items()})
            return next(said)

        def show(progress: Progress, loss: float, rate: float, speed: float) -> None:
            self.speeds.append(speed)
            self.losses.append(loss)

        def load(rows: Any) -> Batch:
            batch = collate([store], rows, PAIRS)
            self.counts.append(batch.units)
            return batch

        callbacks = Callbacks(
            validate if validations else None, show, pytest.fail, lambda store, row: "", config.best == "loss"
        )
        batches = Batches([(store, 1.0)], BatchConfig(tokens=20), 1)
        self.reason = train(
            config, self.trained, batches, load, self.checkpoints, log, callbacks, StopRequest(), "fp32"
        )
        log.close()
        self.progress, self.log = self.trained.progress, read_log(log.path)


def settings(**given: Any) -> TrainingConfig:
    return TrainingConfig.model_validate({"updates": 5, "validate_every": 1, "average": 0.5, "log_every": 1, **given})


@pytest.mark.parametrize(
    ("best", "bleu", "expected"),
    [("loss", [9, 1, 2, 3, 9], 3), ("bleu", [1, 7, 3, 7, 6], 2), ("bleu", [5, 4, 3, 2, 1], 1)],
)
def test_the_best_validation_is_kept_and_of_equal_ones_the_first(
    best: str, bleu: list[float], expected: int, tmp_path: Path, store: Store
) -> None:
    losses = [4.0, 3.0, 2.0, 2.0, 5.0]
    said = [{"loss": loss, "bleu": float(value)} for loss, value in zip(losses, bleu, strict=True)]
    ran = Ran(tmp_path, store, settings(best=best), said)
    assert ran.progress.best == {"update": expected, **said[expected - 1]}
    assert ran.progress.stale == 5 - expected
    kept = ran.checkpoints.load_best(ran.progress)
    assert all(torch.equal(kept[name], each) for name, each in ran.validated[expected - 1].items())
    own = lasting_tensors(ran.trained.model)
    assert any(not torch.equal(own[name], each) for name, each in ran.validated[-1].items()), (
        "averaged ones are validated"
    )


def test_patience_is_so_many_validations_without_a_better_one(tmp_path: Path, store: Store) -> None:
    losses = [4.0, 5.0, 3.0, 3.0, 6.0, 1.0]
    ran = Ran(tmp_path, store, settings(updates=6, patience=2), [{"loss": loss} for loss in losses])
    assert (ran.reason, ran.progress.update, ran.progress.stale) == ("no better validation in 2", 5, 2)
    assert ran.progress.best == {"update": 3, "loss": 3.0}


def test_a_validation_that_is_no_number_is_no_best(tmp_path: Path, store: Store) -> None:
    with pytest.raises(TransduceError, match="validation loss after update 2 is nan"):
        Ran(tmp_path, store, settings(), [{"loss": 1.0}, {"loss": float("nan")}])


def test_what_is_due_every_so_often_is_done_at_the_end_as_well(tmp_path: Path, store: Store) -> None:
    asked = settings(validate_every=2, log_every=3, checkpoint_every=4)
    ran = Ran(tmp_path, store, asked, [{"loss": 1.0}] * 3)
    events = [(event["event"], event["update"]) for event in ran.log]
    assert events == [("validation", 2), ("train", 3), ("validation", 4), ("validation", 5)]
    saved = sorted(path.name for path in ran.checkpoints.folder.glob("update-*"))
    assert saved == ["update-00000004.safetensors", "update-00000005.safetensors"]
    assert [event["tokens"] for event in ran.log if event["event"] == "validation"][-1] == ran.progress.tokens
    assert ran.reason == "all 5 updates done"


def test_a_loss_that_is_no_number_ends_it(store: Store) -> None:
    batch = collate([store], next(Batches([(store, 1.0)], BatchConfig(tokens=60), 1).epoch(0)), PAIRS)
    trained = new(settings())
    before = [weight.detach().clone() for weight in trained.model.parameters()]
    torch.nn.init.constant_(next(trained.model.parameters()), math.nan)
    with pytest.raises(TransduceError, match=r"The loss of update 1 is nan\. A lower training\.learning_rate"):
        make_update(settings(), trained, [batch], "fp32")
    assert all(map(torch.equal, before[1:], list(trained.model.parameters())[1:])), "nothing was updated"


def clock(monkeypatch: pytest.MonkeyPatch, step: float) -> None:
    """A clock that goes on by `step` seconds each time that the loop looks at it: an update, or a validation."""
    now = iter(range(10_000))
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: step * next(now)))


def test_minutes_are_of_sixty_seconds_of_updates_and_validations(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(monkeypatch, 10.0)
    ran = Ran(tmp_path, store, settings(updates=50, minutes=2), [])
    assert (ran.reason, ran.progress.update, ran.progress.seconds) == ("2 minutes used", 12, 120.0)
    assert sum(10 * speed for speed in ran.speeds) == ran.progress.tokens, "target tokens a second"
    clock(monkeypatch, 10.0)
    (tmp_path / "validated").mkdir()
    ran = Ran(tmp_path / "validated", store, settings(updates=50, minutes=2), [{"loss": 1.0}] * 50)
    assert (ran.progress.update, ran.progress.seconds) == (6, 120.0)
    assert [event["seconds"] for event in ran.log if event["event"] == "train"] == [10, 30, 50, 70, 90, 110]


def test_the_loss_that_is_shown_is_a_mean_over_the_last_updates_also_just_behind_a_line_of_the_log(
    tmp_path: Path, store: Store
) -> None:
    ran = Ran(tmp_path, store, settings(updates=4, average=0.0, validate_every=4, log_every=1), [{"loss": 1.0}])
    lines = [event for event in ran.log if event["event"] == "train"]
    nats = [line["loss"] * count for line, count in zip(lines, ran.counts, strict=True)]
    assert len(set(nats)) == 4
    two = [sum(nats[max(0, at - 1) : at + 1]) / sum(ran.counts[max(0, at - 1) : at + 1]) for at in range(4)]
    assert ran.losses == pytest.approx(two, abs=1e-6)


def test_random_numbers_of_an_update_follow_seed_update_and_rank(store: Store) -> None:
    """Dropout differs between updates and between processes, so that none of them is the other's copy."""
    rows = next(Batches([(store, 1.0)], BatchConfig(tokens=60), 1).epoch(0))
    batch = collate([store], rows, PAIRS)

    def loss(seed: int = 1, update: int = 0, rank: int = 0) -> float:
        config = settings(seed=seed)
        trained = replace(new(config, dropout=0.5), group=ProcessGroup(rank))
        trained.progress.update = update
        return make_update(config, trained, [batch], "fp32")[0]

    assert loss() == loss()
    assert len({loss(), loss(seed=2), loss(update=1), loss(rank=1)}) == 4
