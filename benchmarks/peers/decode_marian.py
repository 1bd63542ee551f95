"""Hugging Face's generate on the weights of a Transduce model file (post-norm); arguments in `decoding`."""

from pathlib import Path

import model_file
import torch
from decoding import ALPHA, END, LONGEST, Rows, arguments, in_batches, measure
from marian import config, renamed
from transformers import MarianMTModel
from work import PAD, padded


def load(path: Path) -> MarianMTModel:
    """Our weights in their model, nothing missing."""
    weights, table = model_file.read(path)
    ours = {name: torch.from_numpy(weight) for name, weight in weights.items()}
    model = MarianMTModel(config(len(ours["target_embedding.weight"])))
    positions = torch.from_numpy(model_file.sinusoids(512, table["d_model"]))
    model.load_state_dict(renamed(ours, positions), strict=True)
    return model.eval()


if __name__ == "__main__":
    asked = arguments()
    model = load(asked.model)
    if asked.batch == 1:
        torch.set_num_threads(1)

    @torch.inference_mode()
    def translate(sources: Rows) -> Rows:
        ids = padded([[*source, END] for source in sources])
        generated = model.generate(
            input_ids=ids,
            attention_mask=(ids != PAD).long(),
            num_beams=asked.beam,
            length_penalty=ALPHA,
            max_new_tokens=LONGEST,
            do_sample=False,
            bad_words_ids=[[PAD]],
        )
        return [row[: row.index(END)] if END in row else row for row in generated[:, 1:].tolist()]

    measure(asked, lambda sources: in_batches(sources, asked.batch, translate))
