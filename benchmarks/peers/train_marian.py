"""Hugging Face's MarianMTModel in a plain loop: python train_marian.py WORK PRECISION SECONDS."""

import torch
from marian import config
from transformers import MarianMTModel
from work import PAD, SMOOTHING, arguments, measure_training, plain_loop

if __name__ == "__main__":
    work, precision, seconds = arguments()
    model = MarianMTModel(config(work.vocabulary))

    def loss(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        logits = model(
            input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target[:, :-1], use_cache=False
        ).logits
        return torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
        )

    measure_training(work, seconds, plain_loop(model, loss, precision))
