"""Transduce's own training step on its own batches: python train_transduce.py WORK PRECISION SECONDS.

WORK names the same batches as everyone's; the update is the one that `transduce train` runs.
"""

import torch
from work import HEADS, HIDDEN, LAYERS, SMOOTHING, WIDTH, Work, arguments, measure_training

from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.data.columns import Specs
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.objectives.text import text_objective
from transduce.recipe.training import TrainingConfig
from transduce.runtime.allocator import keep_freed_memory
from transduce.runtime.devices import resolve_device
from transduce.training.average import MovingAverage
from transduce.training.checkpoint import TrainingState
from transduce.training.loop import make_update
from transduce.training.optimizer import Optimizers
from transduce.training.progress import Progress


def model_of(work: Work) -> Transformer:
    """The fixed work's model."""
    config = TransformerConfig(
        d_model=WIDTH,
        heads=HEADS,
        feed_forward=HIDDEN,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        norm="post",
        dropout=0.1,
    )
    return Transformer(config, Specs.of_tokens(work.vocabulary, work.vocabulary))


if __name__ == "__main__":
    keep_freed_memory()
    work, precision, seconds = arguments()
    config = TrainingConfig(label_smoothing=SMOOTHING, learning_rate=3e-4)
    device = resolve_device()
    model = model_of(work).to(device)
    trained = TrainingState(
        model,
        text_objective(model, config),
        Optimizers(model, config),
        MovingAverage(model, config.average),
        Progress(),
    )

    def step(source: torch.Tensor, target: torch.Tensor) -> None:
        source_rows = Padded(source, (source != 0).sum(1))
        target_rows = Padded(target, (target != 0).sum(1))
        count = int(target_rows.lengths.sum()) - len(target)
        make_update(config, trained, [Batch(source_rows, target_rows, count).to(device)], precision)

    measure_training(work, seconds, step)
