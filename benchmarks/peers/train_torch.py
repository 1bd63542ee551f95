"""torch.nn.Transformer in a plain loop: python train_torch.py WORK PRECISION SECONDS."""

import math

import torch
from torch import nn
from work import DROPOUT, HEADS, HIDDEN, LAYERS, PAD, SMOOTHING, WIDTH, arguments, measure_training, plain_loop


class Model(nn.Module):
    """As torch's tutorials write it, with tied embeddings."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH, padding_idx=PAD)
        self.transformer = nn.Transformer(
            WIDTH, HEADS, LAYERS, LAYERS, HIDDEN, DROPOUT, activation="relu", batch_first=True
        )
        self.dropout = nn.Dropout(DROPOUT)
        self.output = nn.Linear(WIDTH, vocabulary, bias=False)
        self.output.weight = self.embedding.weight
        self.register_buffer("positions", sinusoids(512), persistent=False)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Logits (B, T, V)."""
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        hidden = self.transformer(
            self._embedded(source),
            self._embedded(target),
            tgt_mask=causal,
            tgt_is_causal=True,
            src_key_padding_mask=source == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return self.output(hidden)

    def _embedded(self, ids: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.embedding(ids) * math.sqrt(WIDTH) + self.positions[: ids.shape[1]])


def sinusoids(length: int) -> torch.Tensor:
    """(T, D)."""
    angle = torch.arange(length)[:, None] * 10_000 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)


if __name__ == "__main__":
    work, precision, seconds = arguments()
    model = Model(work.vocabulary)

    def loss(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        logits = model(source, target[:, :-1])
        return nn.functional.cross_entropy(
            logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
        )

    measure_training(work, seconds, plain_loop(model, loss, precision))
