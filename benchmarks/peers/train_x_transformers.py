"""x-transformers in a plain loop: python train_x_transformers.py WORK PRECISION SECONDS."""

import torch
from work import DROPOUT, HEADS, HIDDEN, LAYERS, PAD, SMOOTHING, WIDTH, arguments, measure_training, plain_loop
from x_transformers import XTransformer

if __name__ == "__main__":
    work, precision, seconds = arguments()
    sizes = {
        "num_tokens": work.vocabulary,
        "depth": LAYERS,
        "heads": HEADS,
        "max_seq_len": 512,
        "attn_dim_head": WIDTH // HEADS,
        "ff_mult": HIDDEN // WIDTH,
        "attn_flash": True,
        "layer_dropout": 0.0,
        "ff_dropout": DROPOUT,
        "attn_dropout": 0.0,
        "emb_dropout": DROPOUT,
    }
    both = {f"{side}_{key}": value for side in ("enc", "dec") for key, value in sizes.items()}
    model = XTransformer(dim=WIDTH, tie_token_emb=True, pad_value=PAD, ignore_index=PAD, **both)

    def loss(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        mask = source != PAD
        encoded = model.encoder(source, mask=mask, return_embeddings=True)
        logits = model.decoder.net(target[:, :-1], context=encoded, context_mask=mask)
        return torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
        )

    measure_training(work, seconds, plain_loop(model, loss, precision))
