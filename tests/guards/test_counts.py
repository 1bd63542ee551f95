"""A guard against slow-downs that no clock is needed for: what a step asks of torch, counted at tiny width.

The numbers are upper bounds and what is true today: who needs fewer lowers them, who needs more says here why. They
hold for the work "small" of benchmarks/ in all but width: 3 + 3 layers, 4 heads, dropout and label smoothing 0.1.
"A pair" below is an encoder's block and a decoder's; what two more layers add is what 3 + 3 have over 2 + 2.
"""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from counting import Counts, counted
from torch import Tensor, nn

from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.data.columns import Specs
from transduce.models.protocols import select
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.objectives.text import text_objective
from transduce.recipe.training import TrainingConfig
from transduce.search.dispatch import search
from transduce.search.request import Request
from transduce.search.settings import Search
from transduce.training.average import MovingAverage
from transduce.training.checkpoint import TrainingState
from transduce.training.loop import make_update
from transduce.training.optimizer import Optimizers
from transduce.training.progress import Progress

pytestmark = pytest.mark.skipif(
    not torch.__version__.startswith("2.13."), reason="counted with torch 2.13; others take operators apart otherwise"
)
VOCABULARY, WIDTH, HIDDEN = 101, 32, 64


def model_of(layers: int) -> Transformer:
    torch.manual_seed(1)
    config = TransformerConfig(
        d_model=WIDTH, heads=4, feed_forward=HIDDEN, encoder_layers=layers, decoder_layers=layers, dropout=0.1
    )
    return Transformer(config, Specs.of_tokens(VOCABULARY, VOCABULARY))


def batch(rows: int = 4) -> Batch:
    """Rows of 8 source and 8 target positions, some of them padding."""
    source = Padded(torch.randint(4, VOCABULARY, (rows, 8)), torch.tensor([8, 6, 8, 7] * (rows // 4)))
    target = Padded(torch.randint(4, VOCABULARY, (rows, 9)), torch.tensor([9, 7, 8, 9] * (rows // 4)))
    return Batch(source, target, int(target.lengths.sum()) - rows)


def update(layers: int, precision: str, batches: int = 1, change: Callable[[nn.Module], None] | None = None) -> Counts:
    """A whole update: forward, loss, backward, clipping, AdamW, moving average."""
    model, config = model_of(layers), TrainingConfig()
    if change:
        change(model)
    trained = TrainingState(
        model,
        text_objective(model, config),
        Optimizers(model, config),
        MovingAverage(model, config.average),
        Progress(),
    )
    step = partial(make_update, config, trained, [batch()] * batches, precision)
    return counted(step, dict(model.named_parameters()))


UPDATE = {
    # 13 matrix products forward, 26 backward, 15 of biases' gradients; what kernels in C++ do is no operator of torch's
    # the loss in parts: one of 512 rows here, in bf16 of a multiple of 64
    ("fp32", "operators"): (134, 79),
    # the joined gradient of keys and values, for each of 3 attentions
    ("fp32", "copies"): (3, 1),
    ("fp32", "bytes"): (444_744, 158_960),
    # 52 more: each of the 26 weights and biases to bf16 and its gradient back
    ("bf16", "operators"): (186, 83),
    ("bf16", "copies"): (55, 3),
    ("bf16", "bytes"): (381_512, 161_912),
}


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(("precision", "what"), UPDATE)
def test_an_update_asks_for_no_more_than_it_did(precision: str, what: str) -> None:
    of_pair, of_rest = UPDATE[precision, what]
    two, three = (getattr(update(layers, precision), what) for layers in (2, 3))
    assert three - two <= of_pair, f"{what} that two more layers add"
    assert three <= 3 * of_pair + of_rest, f"{what} of an update"


@pytest.mark.usefixtures("kernels")
def test_one_more_operator_in_each_layer_is_noticed() -> None:
    def add_one(model: nn.Module) -> None:
        def double_nothing(module: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> Tensor:
            return out + 0.0

        for name, module in model.named_modules():
            if name.endswith("feed_forward"):
                module.register_forward_hook(double_nothing)

    of_pair, of_rest = UPDATE["fp32", "operators"]
    assert update(3, "fp32", change=add_one).operators > 3 * of_pair + of_rest


def test_weights_are_cast_once_a_batch_not_once_a_use() -> None:
    assert not update(3, "fp32").copied, "in fp32 no weight is copied at all"
    once = update(3, "bf16").copied
    assert set(once.values()) == {1}, "autocast remembers a weight's cast until the batch is done"
    assert len(once) == 3 * 26 + 1, "weights and biases of 13 products a pair, and the one matrix of all embeddings"
    assert set(update(3, "bf16", batches=2).copied.values()) == {2}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_logits_are_held_twice_and_a_dense_target_never(precision: str) -> None:
    model, config, given = model_of(1), TrainingConfig(label_smoothing=0.1), batch(48)
    trained = TrainingState(
        model, text_objective(model, config), Optimizers(model, config), MovingAverage(model, 0.0), Progress()
    )
    counts = counted(partial(make_update, config, trained, [given], precision))
    whole = given.targets.values[:, 1:].numel() * VOCABULARY
    made = {shape: count for shape, count in counts.made.items() if torch.Size(shape[0]).numel() == whole}
    assert sum(made.values()) <= 2, "the logits, and their gradient, which the loss writes in the same pass"
    assert {kind for _, kind in made} == {torch.float32 if precision == "fp32" else torch.bfloat16}


def decoding_step(layers: int) -> Counts:
    """The sixth token of four hypotheses."""
    model = model_of(layers).eval()
    token_B = torch.ones(4, dtype=torch.int64)
    with torch.no_grad():
        memory, state = model.start(batch().inputs, 4)
        for _ in range(5):
            _, state = model.step(token_B, memory, state)
        with Counts(dict(model.named_parameters())) as counts:  # once: going on twice from one state takes a copy of it
            model.step(token_B, memory, state)
        return counts


STEP = {
    # 7 matrix products and 4 of attention, 3 norms, 3 residuals, 2 softmaxes with their masks, 2 scales, 1 activation;
    # besides the layers: embedding, its scale and position, the last norm, logits, log-softmax, whose past is what
    "operators": (28, 13),
    # key and value of the one new position into the room behind those of the old ones
    "copies": (2, 2),
    "bytes": (13_184, 5_388),
}


@pytest.mark.parametrize("what", STEP)
def test_a_decoding_step_asks_for_no_more_than_it_did(what: str) -> None:
    of_layer, of_rest = STEP[what]
    two, three = (getattr(decoding_step(layers), what) for layers in (2, 3))
    assert three - two <= of_layer, f"{what} that one more layer adds"
    assert three <= 3 * of_layer + of_rest, f"{what} of a step"


def test_reordering_a_beam_moves_no_keys_and_values() -> None:
    model = model_of(3).eval()
    with torch.no_grad():
        memory, state = model.start(batch().inputs, 4)
        _, state = model.step(torch.ones(4, dtype=torch.int64), memory, state)
        counts = counted(lambda: select((memory, state), torch.tensor([0, 0, 1, 2, 3, 3])))
    heads, width = 4, WIDTH // 4
    assert not [shape for shape, _ in counts.made if shape[1:2] == (heads,) or shape[-1:] == (width,)]
    assert max(len(shape) for shape, _ in counts.made) == 2, "who is whose, and nothing else"


@pytest.mark.parametrize(("method", "beam", "allowed"), [("greedy", 1, 3), ("beam", 5, 2)])
def test_log_probabilities_are_made_once_a_step(method: str, beam: int, allowed: int) -> None:
    model, steps = model_of(1).eval(), []
    model.step = _noting(model.step, steps)  # type: ignore[method-assign]
    settings = Search(method=method, beam=beam)  # type: ignore[arg-type]
    with Counts() as counts:
        search(model, batch().inputs, [Request(9)] * 4, settings, start=1, end=2, forbidden=[0, 1])
    made = sum(count for (shape, _), count in counts.made.items() if shape[-1:] == (VOCABULARY,))
    assert made <= allowed * len(steps), (
        "logits, log-probabilities, and where one path is followed these without what is forbidden"
    )


def _noting(step: Callable[..., tuple[Tensor, object]], steps: list[int]) -> Callable[..., tuple[Tensor, object]]:
    def noted(token: Tensor, memory: object, state: object) -> tuple[Tensor, object]:
        steps.append(len(token))
        return step(token, memory, state)

    return noted
