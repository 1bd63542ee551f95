"""The training loop against a plain one in torch: they share the model's start and the plan of batches, no more."""

import copy
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from rich.console import Console
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from transduce.core.model_file import load_model_file
from transduce.core.padded import Padded
from transduce.core.tensor_file import read_tensors
from transduce.data.batches import Batches, Rows
from transduce.data.store import Store
from transduce.recipe.recipe import parse_recipe
from transduce.runtime.event_log import read_log
from transduce.tasks.base import Task
from transduce.training.display import Display
from transduce.training.initialization import new_training
from transduce.training.run import open_task, run_training

UPDATES, PEAK, WARMUP, CLIP, SMOOTHING, DECAY, AVERAGE = 24, 0.02, 5, 2.0, 0.1, 0.05, 0.8
EVERY = 4  # updates between lines of the log, and between validations


def numbers(seed: int, count: int) -> tuple[str, str]:
    """Sources of 1 to 7 words, and their targets, which are at random: they can only be learnt by heart."""
    drawn = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 8, (count,), generator=drawn).tolist()
    lines = [[torch.randint(9, (size,), generator=drawn).tolist() for size in lengths] for _ in range(2)]
    source, target = ("".join(" ".join(f"w{word}" for word in line) + "\n" for line in side) for side in lines)
    return source, target


def table(folder: Path, accumulate: int, schedule: str) -> dict[str, Any]:
    for name, (seed, count) in {"train": (1, 12), "valid": (2, 8)}.items():
        for side, text in zip(("a", "b"), numbers(seed, count), strict=True):
            (folder / f"{name}.{side}").write_text(text)
    files = {name: {"source": f"{name}.a", "target": f"{name}.b"} for name in ("train", "valid")}
    sizes = {"d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 24}
    return {
        "task": {"kind": "translation"},
        "data": {"root": str(folder), "train": [files["train"]], "validation": files["valid"]},
        "tokenizer": {"kind": "whitespace"},
        "batch": {"tokens": 24},
        "model": {"kind": "transformer", "dropout": 0.0, "tied": "none", **sizes},
        "training": {
            "updates": UPDATES,
            "learning_rate": PEAK,
            "warmup": WARMUP,
            "schedule": schedule,
            "betas": [0.9, 0.98],
            "weight_decay": DECAY,
            "clip": CLIP,
            "label_smoothing": SMOOTHING,
            "average": AVERAGE,
            "accumulate": accumulate,
            "precision": "fp32",
            "threads": 1,
            "validate_every": EVERY,
            "decode_sentences": 0,
            "checkpoint_every": UPDATES,
            "log_every": EVERY,
        },
    }


def rate_of(schedule: str, update: int) -> float:
    """By the papers: half a cosine down to 0 (Loshchilov & Hutter 2017, equation 5), or the root of the update (Vaswani
    et al. 2017, equation 3, whose factor is chosen so that the peak is PEAK)."""
    if schedule == "inverse_sqrt":
        return PEAK * WARMUP**0.5 * min(update**-0.5, update * WARMUP**-1.5)
    if update < WARMUP:
        return PEAK * update / WARMUP
    return PEAK / 2 * (1 + math.cos(math.pi * (update - WARMUP) / (UPDATES - WARMUP)))


def nats(model: nn.Module, task: Task, store: Store, rows: Any, smoothing: float) -> tuple[Tensor, int]:
    """The cross-entropy of these rows of a store, summed over their target tokens, and how many these are."""
    source = [torch.tensor([*ids.tolist(), task.end]) for ids in store.read("source", rows)]
    target = [torch.tensor([task.start, *ids.tolist(), task.end]) for ids in store.read("target", rows)]
    asked, said, right = (pad_sequence(each, True) for each in (source, [y[:-1] for y in target], target))
    lengths = [torch.tensor([len(each) for each in side]) for side in (source, target)]
    logits = model(Padded(asked, lengths[0]), Padded(said, lengths[1] - 1))
    for row, length in enumerate(lengths[1]):
        right[row, length:] = -100
    loss = F.cross_entropy(logits.mT, right[:, 1:], reduction="sum", label_smoothing=smoothing)
    return loss, int((lengths[1] - 1).sum())


def plainly(
    model: nn.Module, task: Task, train: Store, valid: Store, plan: list[Rows], accumulate: int, schedule: str
) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[int, float], list[dict[str, float]]]:
    """The weights in the end, the averaged ones of the best validation, all validations and all updates."""
    named = dict(model.named_parameters())
    decayed, plain = ([each for each in named.values() if (each.ndim >= 2) == matrix] for matrix in (True, False))
    groups = [{"params": decayed, "weight_decay": DECAY}, {"params": plain, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, betas=(0.9, 0.98), foreach=False)
    average = {name: each.detach().clone() for name, each in named.items()}
    best, validations, updates = dict(average), {}, []
    for update in range(1, UPDATES + 1):
        losses = [nats(model, task, train, rows.rows, SMOOTHING) for rows in plan[:accumulate]]
        plan = plan[accumulate:]
        tokens = sum(count for _, count in losses)
        loss = sum(each for each, _ in losses) / tokens
        adam.zero_grad()
        loss.backward()
        norm = math.sqrt(sum(each.grad.double().square().sum().item() for each in named.values()))
        for each in named.values():
            each.grad *= min(1.0, CLIP / norm)
        for group in adam.param_groups:
            group["lr"] = rate_of(schedule, update)
        adam.step()
        updates.append({"loss": loss.item(), "tokens": tokens, "norm": norm})
        keep = min(AVERAGE, (1 + update) / (10 + update))
        average = {name: keep * old + (1 - keep) * named[name].detach() for name, old in average.items()}
        if update % EVERY == 0:
            averaged = copy.deepcopy(model)
            averaged.load_state_dict(average, strict=False)
            with torch.no_grad():
                total, count = nats(averaged, task, valid, torch.arange(len(valid)).numpy(), 0.0)
            if not validations or total.item() / count < min(validations.values()):
                best = average
            validations[update] = total.item() / count
    return {name: each.detach() for name, each in named.items()}, best, validations, updates


def assert_equal(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """To rounding. A bias of keys changes no softmax: its gradient is rounding alone, of which Adam makes updates."""
    assert set(found) == set(expected)
    for name, weight in expected.items():
        first = len(weight) // 2 if name.endswith("key_value.bias") else 0
        torch.testing.assert_close(
            found[name][first:], weight[first:], rtol=1e-3, atol=1e-3, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize(("accumulate", "schedule"), [(1, "cosine"), (2, "inverse_sqrt")])
def test_it_ends_with_the_weights_of_a_plain_loop(accumulate: int, schedule: str, tmp_path: Path) -> None:
    recipe, run = parse_recipe(table(tmp_path, accumulate, schedule), "reference"), tmp_path / "run"
    display = Display(Console(file=io.StringIO()))
    task, data = open_task(recipe, display)
    [(store, _)], validation = data.corpora, data.validation
    assert validation is not None
    batches = Batches(data.corpora, recipe.batch, recipe.training.seed)
    planned = [(epoch, place, rows) for epoch in range(30) for place, rows in enumerate(batches.epoch(epoch))]
    plan = [rows for *_, rows in planned]
    model = new_training(recipe, task).model
    weights, best, validations, updates = plainly(model, task, store, validation.store, plan, accumulate, schedule)
    run_training(recipe, run, display)

    # The comparison can see what it is for.
    assert batches.count(0) < UPDATES * accumulate / 3, "several epochs"
    assert len({each["tokens"] for each in updates}) > 3, "updates of different sizes"
    assert min(each["norm"] for each in updates) < CLIP < max(each["norm"] for each in updates), "some are clipped"
    chosen = min(validations, key=lambda update: validations[update])
    assert EVERY < chosen < UPDATES, "the best is neither the first nor the last"

    tensors, metadata = read_tensors(run / "checkpoints" / f"update-{UPDATES:08d}.safetensors")
    assert_equal({name.removeprefix("model/"): each for name, each in tensors.items() if "model/" in name}, weights)
    shipped = load_model_file(run)
    assert_equal(shipped.weights, best)
    assert shipped.metrics["update"] == chosen
    progress, (epoch, place, _) = json.loads(metadata["progress"]), planned[UPDATES * accumulate - 1]
    assert progress["tokens"] == sum(each["tokens"] for each in updates)
    assert (progress["epoch"], progress["batch"]) == (epoch, place + 1)

    log = read_log(run / "log.jsonl")
    found = {event["update"]: event["loss"] for event in log if event["event"] == "validation"}
    assert found == pytest.approx(validations, rel=1e-4)
    told = [event for event in log if event["event"] == "train"]
    assert [event["update"] for event in told] == list(range(EVERY, UPDATES + 1, EVERY))
    for event in told:
        window = updates[event["update"] - EVERY : event["update"]]
        mean = sum(each["loss"] * each["tokens"] for each in window) / sum(each["tokens"] for each in window)
        assert event["loss"] == pytest.approx(mean, rel=1e-4)
        assert event["learning_rate"] == pytest.approx(rate_of(schedule, event["update"]), abs=1e-12)
