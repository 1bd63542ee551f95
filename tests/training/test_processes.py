"""Several processes that train together, beside one process with the whole batches.

Most are forked and told what torchrun would tell them; torchrun itself starts those of which it stops or restarts some.
"""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from safetensors.numpy import load_file

import forked
from random_models import translator
from trained import sha256
from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.objectives.text import text_objective
from transduce.recipe.training import TrainingConfig
from transduce.runtime.process_group import started_group
from transduce.training.average import MovingAverage
from transduce.training.checkpoint import TrainingState
from transduce.training.finished import read_report
from transduce.training.loop import make_update
from transduce.training.microbatches import add_gradients, uncut
from transduce.training.optimizer import Optimizers
from transduce.training.progress import Progress
from transduce.training.sharding import gathered_weights, sharded

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with POSIX signals")

SHARDED = "training.parallel=fsdp"
GENTLE = ("training.optimizer=sgd", "training.learning_rate=0.2")
STEADY = ("model.dropout=0", "training.average=0.9", "training.updates=12")
WITHOUT_GRADIENT = "key_value.bias"  # its keys' half: softmax forgets what all keys have in common


def command(processes: int, *arguments: object) -> list[str]:
    together = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "-m", "--"]
    return [sys.executable, "-m", *(together if processes > 1 else []), "transduce", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", **more}


def train(processes: int, recipe: Path, run: Path, *overrides: str) -> forked.Ended:
    return forked.together(processes, recipe.parent, "train", recipe, *overrides, "--run", run)


def trained(processes: int, recipe: Path, run: Path, *overrides: str) -> Path:
    done = train(processes, recipe, run, *overrides)
    assert done.code == 0, done.shown
    return run


def difference(one: Path, other: Path, leave_out: str = " ") -> float:
    """Of the tensors of two models, the largest, relative to the tensor."""
    ours, theirs = (load_file(run / "model.safetensors") for run in (one, other))
    assert ours.keys() == theirs.keys()
    kept = [(ours[name].astype(float), theirs[name]) for name in ours if leave_out not in name]
    return max(float(np.linalg.norm(a - b) / max(np.linalg.norm(a), 1e-12)) for a, b in kept)


@pytest.mark.parametrize(
    ("count", "optimizer", "leave_out"),
    [
        (2, ("training.optimizer=sgd", "training.learning_rate=0.5"), " "),
        pytest.param(4, ("training.optimizer=adamw",), WITHOUT_GRADIENT, marks=pytest.mark.slow),
    ],
    ids=["two, sgd", "four, adamw"],
)
def test_several_processes_learn_what_one_does(
    count: int, optimizer: tuple[str, ...], leave_out: str, tiny_recipe: Path, tmp_path: Path
) -> None:
    one, several = (trained(each, tiny_recipe, tmp_path / str(each), *STEADY, *optimizer) for each in (1, count))
    assert difference(one, several, leave_out) < 1e-6
    alone, report = read_report(one), read_report(several)
    assert alone and report
    assert report["training"]["target_tokens"] == alone["training"]["target_tokens"]
    assert report["tests"]["held_out"]["scores"] == alone["tests"]["held_out"]["scores"]


@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_sharded_processes_learn_what_one_does(count: int, tiny_recipe: Path, tmp_path: Path) -> None:
    """Batches of one row among them, for which the other processes have none."""
    small = (*STEADY, *GENTLE, "batch.tokens=12", "training.accumulate=2")
    alone = trained(1, tiny_recipe, tmp_path / "alone", *small)
    shared = trained(count, tiny_recipe, tmp_path / str(count), *small, SHARDED)
    assert difference(alone, shared) < 1e-6
    ours, theirs = read_report(shared), read_report(alone)
    assert ours and theirs
    assert ours["tests"]["held_out"]["scores"] == theirs["tests"]["held_out"]["scores"]
    assert ours["validation"]["loss"] == pytest.approx(theirs["validation"]["loss"], rel=1e-5)


@pytest.mark.parametrize("parallel", ["ddp", pytest.param("fsdp", marks=pytest.mark.slow)])
def test_processes_that_recompute_learn_the_same_weights(parallel: str, tiny_recipe: Path, tmp_path: Path) -> None:
    """With dropout, whose noise must be the same the second time."""
    common = (f"training.parallel={parallel}", "training.optimizer=adamw", "model.inner_dropout=0.1")
    common += ("training.updates=6",)
    kept = trained(2, tiny_recipe, tmp_path / "kept", *common)
    again = trained(2, tiny_recipe, tmp_path / "again", *common, "training.activation_checkpointing=true")
    assert difference(kept, again) == 0


def test_each_process_keeps_a_part_of_every_tensor() -> None:
    forked.warm()
    context = multiprocessing.get_context("forkserver")
    processes = [context.Process(target=keep_parts, args=(told,)) for told in forked.ranks(2)]
    for each in processes:
        each.start()
    for each in processes:
        each.join(300)
    assert [each.exitcode for each in processes] == [0, 0]


def keep_parts(told: dict[str, str]) -> None:
    """In a process that torchrun told this: shards a model, makes an update, and looks at what is kept."""
    os.environ.update(told)
    with started_group() as group:
        model, config = translator(model={"dropout": 0.0}).model, TrainingConfig()
        optimizers, average = Optimizers(model, config), MovingAverage(model, 0.9)
        state = TrainingState(model, text_objective(model), optimizers, average, Progress(), group=group)
        before = {name: each.detach().clone() for name, each in model.named_parameters()}
        state = sharded(state, config)
        for name, each in model.named_parameters():
            assert each.to_local().numel() <= each.numel() // 2 + each.numel() / len(each), name
            assert torch.equal(each.full_tensor(), before[name]), name
        ids = Padded(torch.arange(4, 12).view(2, 4) % 9, torch.tensor([4, 4]))
        make_update(config, state, [Batch(ids, ids, 6)], "fp32")
        kept = state.optimizers.tensors()
        for name, each in model.named_parameters():
            assert kept[f"{name}/exp_avg"].to_local().shape == each.to_local().shape, name
        with gathered_weights(model):
            assert not any(hasattr(each, "to_local") for each in model.parameters())
        assert all(hasattr(each, "to_local") for each in model.parameters())


def test_what_cannot_be_sharded_is_refused(tiny_recipe: Path, tmp_path: Path) -> None:
    done = train(1, tiny_recipe, tmp_path / "run", SHARDED, "training.optimizer=muon", "model.kind=ctc")
    assert done.code == 2
    told = " ".join(done.err.split())
    assert "models that predict the next token" in told
    assert 'training.optimizer = "muon"' in told
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.mark.parametrize("world", [2, 16])
def test_gradients_of_all_shares_add_up_to_those_of_the_whole(world: int) -> None:
    """Simulated processes: each has its share of the rows, and divides by the units of all."""
    drawn = torch.Generator().manual_seed(3)
    source, target = (
        Padded(torch.randint(4, 60, (24, 9), generator=drawn), torch.randint(3, 10, (24,), generator=drawn))
        for _ in "st"
    )
    batch = Batch(source, target, int(target.lengths.sum()) - 24)

    def gradients(parts: list[Batch]) -> tuple[float, dict[str, torch.Tensor]]:
        model = translator(model={"dropout": 0.0}).model.double().train()
        objective = text_objective(model)
        losses = [add_gradients(model, objective, [each], uncut([each]), "fp32", units=batch.units) for each in parts]
        found = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
        return sum(loss for loss, _ in losses), found

    loss, expected = gradients([batch])
    shared, found = gradients([batch.rows(slice(rank, None, world)) for rank in range(world)])
    assert shared == pytest.approx(loss, rel=1e-6)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert float((found[name] - gradient).norm()) <= 1e-6 * float(gradient.norm()) + 1e-12, name


@pytest.fixture
def carrying(tmp_path: Path) -> Path:
    """A recipe of a language model that carries its state from row to row."""
    words = [f"w{number * 7 % 13}" for number in range(4000)]
    (tmp_path / "text").write_text("".join(" ".join(words[at : at + 20]) + "\n" for at in range(0, 4000, 20)))
    recipe = tmp_path / "carried.toml"
    recipe.write_text(
        f'[task]\nkind = "language_modelling"\ncontext = 10\ncarry_state = true\n[data]\nroot = "{tmp_path}"\n'
        'train = [{ text = "text" }]\nvalidation = { text = "text" }\n[tokenizer]\nkind = "whitespace"\n'
        '[batch]\ntokens = 70\n[model]\nkind = "rnn_decoder"\nd_model = 8\nlayers = 1\ndropout = 0\n'
        '[training]\nupdates = 30\nschedule = "constant"\nwarmup = 0\nthreads = 1\nprecision = "fp32"\n'
        'optimizer = "sgd"\nlearning_rate = 0.1\n'
        "validate_every = 10\ncheckpoint_every = 10\naverage = 0\nlabel_smoothing = 0\n"
    )
    return recipe


def test_state_is_carried_by_each_process_for_its_streams(carrying: Path, tmp_path: Path) -> None:
    alone = trained(1, carrying, tmp_path / "alone", "training.updates=10")
    both = trained(2, carrying, tmp_path / "both", "training.updates=10")
    assert difference(alone, both) < 1e-6
    refused = train(1, carrying, both, "training.updates=20")
    assert refused.code == 2
    assert re.search(r"trained by 2 processes so far; got 1\..*--resize", refused.err.replace("\n", " "))


@pytest.mark.slow
def test_state_is_carried_on_by_more_or_fewer_processes(carrying: Path, tmp_path: Path) -> None:
    alone, half = (
        trained(1, carrying, tmp_path / "alone"),
        trained(2, carrying, tmp_path / "half", "training.updates=10"),
    )
    trained(1, carrying, half, "training.updates=20", "--resize")
    trained(2, carrying, half, "--resize")
    assert difference(alone, half) < 1e-6


def trainers(process: subprocess.Popen[Any], run: Path, update: int = 1) -> list[psutil.Process]:
    """The processes that train, by rank, once there is a checkpoint of this update or a later one."""
    deadline = time.monotonic() + 120
    while not any(int(path.stem[-8:]) >= update for path in (run / "checkpoints").glob("update-*.safetensors")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    children = psutil.Process(process.pid).children()
    return sorted(children, key=lambda each: int(each.environ()["RANK"]))


LONG = ("training.updates=3000", "training.validate_every=3000", "training.checkpoint_every=5")


@pytest.mark.parametrize(
    ("rank", "parallel"),
    [(1, "ddp"), *(pytest.param(rank, kind, marks=pytest.mark.slow) for rank, kind in [(0, "ddp"), (1, "fsdp")])],
)
def test_a_killed_process_ends_all_and_the_same_command_goes_on_to_the_same_bytes(
    rank: int, parallel: str, tiny_recipe: Path, tmp_path: Path
) -> None:
    short = ("training.updates=12", "training.optimizer=adamw", f"training.parallel={parallel}")
    wanted = sha256(trained(2, tiny_recipe, tmp_path / "whole", *short))
    run, dies = tmp_path / "run", {rank: forked.Fate(signal=signal.SIGKILL, at=6)}
    done = forked.together(2, tmp_path, "train", tiny_recipe, *short, "--run", run, fates=dies)
    assert "Another process of this training has gone" in done.err
    assert "The last checkpoint is intact; the same command goes on from there." in done.err
    assert [path.name for path in (run / "checkpoints").glob("update-*")] == ["update-00000004.safetensors"]
    assert not (run / "model.safetensors").exists()
    assert sha256(trained(2, tiny_recipe, run, *short)) == wanted


@pytest.mark.slow
def test_torchrun_ends_all_with_one(tiny_recipe: Path, tmp_path: Path) -> None:
    rank, run = 1, tmp_path / "run"
    started = command(2, "train", tiny_recipe, *LONG, "--run", run)
    with subprocess.Popen(started, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        trainers(process, run)[rank].kill()
        _, told = process.communicate(timeout=120)
    assert process.returncode != 0
    assert f"rank      : {rank}" in told
    assert re.search(rf"process {rank} of 2, on \S+, is not there any more. Where it stood last:\n +File ", told), told
    assert not (run / "model.safetensors").exists()


@pytest.mark.slow
def test_torchrun_restarts_go_on_to_the_same_bytes(tiny_recipe: Path, tmp_path: Path) -> None:
    restarted = ("training.updates=60", "training.checkpoint_every=5", "training.optimizer=adamw")
    wanted = sha256(trained(2, tiny_recipe, tmp_path / "whole", *restarted))
    run = tmp_path / "run"
    started = command(2, "train", tiny_recipe, *restarted, "--run", run)
    started[3:3] = ["--max-restarts", "3"]
    with subprocess.Popen(started, env=environment(), stderr=subprocess.DEVNULL) as process:
        trainers(process, run)[1].kill()
        try:
            assert process.wait(timeout=240) == 0
        finally:
            process.kill()
    assert sha256(run) == wanted


@pytest.mark.slow
def test_a_process_that_hangs_is_named_with_its_stack(tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    started, hang = command(2, "train", tiny_recipe, *LONG, "--run", run), environment(TRANSDUCE_HANG_SECONDS="6")
    with subprocess.Popen(started, env=hang, stderr=subprocess.PIPE, text=True) as process:
        found = trainers(process, run, 300)  # seconds, so that it has told where it stands
        found[1].send_signal(signal.SIGSTOP)
        gone, _ = psutil.wait_procs([found[0]], timeout=60)
        assert gone, "the other one leaves"
        found[1].kill()  # as torchrun does in half a minute
        _, told = process.communicate(timeout=120)
    assert re.search(r"process 1 of 2, on \S+, has not moved for \d+ s, so all leave", told)
    assert "loop.py" in told, told
    assert not (run / "model.safetensors").exists()
    assert list((run / "checkpoints").glob("update-*"))


def test_what_is_wrong_is_said_once(tiny_recipe: Path, tmp_path: Path) -> None:
    done = train(2, tiny_recipe, tmp_path / "run", "training.best=nothing")
    assert done.code != 0
    assert done.err.count("transduce: ") == 1
    assert "training.best=nothing" in done.err
    assert not (tmp_path / "run" / "model.safetensors").exists()
