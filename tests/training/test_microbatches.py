"""A batch that does not fit: the same gradient in pieces, the same bytes repeated, a name for what cannot be."""

import io
import json
import sys
from pathlib import Path

import pytest
import torch
from rich.console import Console
from torch import Tensor, nn

from forked import Fate, transduce
from hungry import ask_for_too_much, make_hungry
from random_models import translator
from trained import sha256
from transduce.core.errors import TransduceError
from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.objectives.text import text_objective
from transduce.recipe.recipe import load_recipe
from transduce.recipe.training import TrainingConfig
from transduce.runtime.event_log import read_log
from transduce.training.display import Display
from transduce.training.memory import is_out_of_memory
from transduce.training.microbatches import MicrobatchPlan, add_gradients, uncut
from transduce.training.run import run_training

TRANSFORMER = {"d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 24, "tied": "none"}
PLAIN = TrainingConfig()
FILLS = {"kind": "non_autoregressive", "tied": "none", "d_model": 16, "heads": 2, "feed_forward": 24}


def batches() -> list[Batch]:
    """Two, of 7 and 3 rows of different lengths; the second fits."""
    drawn = torch.Generator().manual_seed(3)

    def side(rows: int, longest: int, least: int) -> Padded:
        values = torch.randint(4, 60, (rows, longest), generator=drawn)
        lengths = torch.randint(least, longest + 1, (rows,), generator=drawn)
        lengths[-1] = longest
        return Padded(values, lengths)

    found = []
    for rows in (7, 3):
        source, target = side(rows, 6, 1), side(rows, 9, 3)
        found.append(Batch(source, target, int(target.lengths.sum()) - rows))
    return found


def made(table: dict[str, object], dropout: float, norm_kind: str = "layer") -> nn.Module:
    settings = {"dropout": dropout, "norm_kind": norm_kind}
    return translator(model={**table, **settings}).model.double().train()


def gradients(
    model: nn.Module, cuts: MicrobatchPlan | None, config: TrainingConfig = PLAIN
) -> tuple[float, MicrobatchPlan, dict[str, Tensor]]:
    torch.manual_seed(5)
    given = batches()
    loss, cuts = add_gradients(model, text_objective(model, config), given, cuts or uncut(given), "fp32")
    return loss, cuts, {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}


def test_the_allocators_own_error_is_known_and_no_other() -> None:
    with pytest.raises(RuntimeError) as failure:
        ask_for_too_much()
    assert is_out_of_memory(failure.value)
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory."))
    with pytest.raises(RuntimeError) as other:
        torch.ones(2, 3) @ torch.ones(2, 3)
    assert not is_out_of_memory(other.value)


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize(
    ("table", "config"),
    [
        (TRANSFORMER, PLAIN),
        (TRANSFORMER, TrainingConfig(r_drop=5.0)),
        (TRANSFORMER, TrainingConfig(sampled_words=7)),
        (FILLS, PLAIN),
    ],
    ids=["tokens", "twice", "sampled", "fills"],
)
def test_pieces_have_the_gradient_of_the_whole(table: dict[str, object], config: TrainingConfig, where: str) -> None:
    loss, cuts, expected = gradients(made(table, 0.0), None, config)
    assert cuts == [[7], [3]]
    hungry = made(table, 0.0)
    make_hungry(hungry, 3 * (2 if config.r_drop else 1), where)
    found_loss, cuts, found = gradients(hungry, None, config)
    assert cuts == [[3, 2, 2], [3]]
    assert found_loss == pytest.approx(loss, rel=1e-6)
    assert set(found) == set(expected)
    scale = max(float(each.abs().max()) for each in expected.values())
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-6, atol=1e-6 * scale, msg=name)


@pytest.mark.parametrize("table", [TRANSFORMER, FILLS])
def test_with_dropout_the_same_pieces_have_the_same_bits(table: dict[str, object]) -> None:
    hungry = made(table, 0.3)
    make_hungry(hungry, 3, "backward")
    _, cuts, after_failing = gradients(hungry, None)
    _, _, at_once = gradients(made(table, 0.3), cuts)
    _, _, uncut = gradients(made(table, 0.3), None)
    assert all(torch.equal(after_failing[name], at_once[name]) for name in at_once)
    assert any(not torch.equal(uncut[name], at_once[name]) for name in at_once)


def test_a_failed_attempt_leaves_no_trace_in_running_statistics() -> None:
    hungry, plain = made(TRANSFORMER, 0.0, "batch"), made(TRANSFORMER, 0.0, "batch")
    make_hungry(hungry, 3, "backward")
    _, cuts, _ = gradients(hungry, None)
    gradients(plain, cuts)
    statistics = [name for name in plain.state_dict() if "variance" in name]
    assert statistics
    assert all(torch.equal(hungry.state_dict()[name], plain.state_dict()[name]) for name in statistics)


def test_other_errors_are_not_taken_for_too_little_memory() -> None:
    model, (given, _) = made(TRANSFORMER, 0.0), batches()
    wrong = given._replace(inputs=None)
    with pytest.raises(AssertionError):
        add_gradients(model, text_objective(model), [wrong], uncut([wrong]), "fp32")


HUNGRY = 'model.kind="hungry:Hungry"'


def run(recipe: Path, folder: Path, *overrides: str) -> tuple[dict[str, object], str]:
    shown = io.StringIO()
    report = run_training(load_recipe(recipe, [HUNGRY, *overrides]), folder, Display(Console(file=shown, width=400)))
    return report, shown.getvalue()


def test_pieces_are_told_logged_and_counted(tiny_recipe: Path, tmp_path: Path) -> None:
    report, shown = run(tiny_recipe, tmp_path / "run", "model.rows=12", "training.updates=6")
    assert "out of memory with" in shown
    events = [event for event in read_log(tmp_path / "run" / "log.jsonl") if event["event"] == "in_pieces"]
    cut = [rows for event in events for rows in event["rows"] if len(rows) > 1]
    assert cut
    assert all(max(rows) <= 12 for rows in cut)
    assert shown.count("out of memory") == 1
    assert report["training"]["batches_in_pieces"] == len(cut)  # type: ignore[index]


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with POSIX signals")
def test_a_resumed_run_cuts_what_was_cut_though_memory_suffices_now(tiny_recipe: Path, tmp_path: Path) -> None:
    times = tmp_path / "times"
    recipe = (tiny_recipe, HUNGRY, "model.rows=12", f"model.times={times}", "training.updates=8")
    found = {}
    for name, hunger in (("cut", 1), ("killed", 1), ("uncut", 0)):
        times.write_text(str(hunger))
        folder = tmp_path / name
        if name == "killed":  # while it writes its first checkpoint; it begins anew, and is not hungry any more
            assert transduce(tmp_path, "train", *recipe, "--run", folder, fate=Fate(dies_in_write=1)).code < 0
            assert times.read_text() == "0"
        ended = transduce(tmp_path, "train", *recipe, "--run", folder)
        assert ended.code == 0, ended.shown
        found[name] = sha256(folder)
        count = json.loads((folder / "report.json").read_text())["training"]["batches_in_pieces"]
        assert count == (0 if name == "uncut" else 1)
    assert found["cut"] == found["killed"] != found["uncut"]


def test_an_example_that_does_not_fit_alone_is_named(tiny_recipe: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    longest = max((tiny_corpus / "train.words").read_text().splitlines(), key=lambda line: len(line.split()))
    length = len(longest.split())
    with pytest.raises(TransduceError, match=r"train\.words, line \d+: An example of") as error:
        run(tiny_recipe, tmp_path / "run", f"model.longest={length}")
    line = int(str(error.value).split("line ")[1].split(":")[0])
    named = (tiny_corpus / "train.words").read_text().splitlines()[line - 1]
    assert len(named.split()) == length
    assert f"{length + 1} and {length + 2} positions" in str(error.value)
