"""Hugging Face's Marian trained by its Seq2SeqTrainer until it is good; arguments in `quality`, and --precision.

AdamW (fused) with a peak of 1e-3, cosine, label smoothing, dropout 0.25, and batches of like lengths, of 4,096
padded target tokens each: those of the Trainer's own `group_by_length` have a fixed number of sentences and come from
long to short.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from marian import config
from quality import LONGEST, Curve, Validation, arguments
from torch.utils.data import DataLoader
from transformers import (
    EvalPrediction,
    GenerationConfig,
    MarianMTModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    set_seed,
)
from transformers.trainer_utils import get_last_checkpoint
from work import BETAS, END, PAD, SIZES, SMOOTHING, START, Work, padded

DROPOUT, LEARNING_RATE, WARM_UP, SEED = 0.25, 1e-3, 400, 1
BATCH_TOKENS, IGNORED = 4096, -100
Example = dict[str, list[int]]


class LikeLengths:
    """Row numbers of batches of about equal padded size, cut and shuffled anew in each epoch."""

    def __init__(self, lengths: list[int]) -> None:
        self._lengths, self._epoch = np.array(lengths), 0

    def set_epoch(self, epoch: int) -> None:
        """The loader says where it is."""
        self._epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.epoch(self._epoch))

    def __len__(self) -> int:
        return len(self.epoch(self._epoch))

    def epoch(self, number: int) -> list[list[int]]:
        """All batches of an epoch."""
        random = np.random.default_rng((SEED, number))
        batches: list[list[int]] = [[]]
        for row in np.lexsort((random.random(len(self._lengths)), self._lengths)):
            if (len(batches[-1]) + 1) * self._lengths[row] > BATCH_TOKENS:
                batches.append([])
            batches[-1].append(int(row))
        return [batches[place] for place in random.permutation(len(batches))]

    def tokens(self, updates: int) -> int:
        """Target tokens of the first so many batches."""
        count, epoch = 0, 0
        while updates > 0:
            batches = self.epoch(epoch)[:updates]
            count += sum(int(self._lengths[rows].sum()) for rows in batches)
            updates, epoch = updates - len(batches), epoch + 1
        return count


class Trainer(Seq2SeqTrainer):
    """With batches of like lengths, and a curve of its validations."""

    def __init__(self, plan: LikeLengths, curve: Curve, **settings: Any) -> None:
        super().__init__(**settings)
        self._plan, self._curve = plan, curve

    def get_train_dataloader(self) -> DataLoader[Example]:
        """The loader of an epoch's batches."""
        loader = DataLoader(self.train_dataset, batch_sampler=self._plan, collate_fn=self.data_collator)
        return self.accelerator.prepare(loader)

    def evaluate(self, *given: Any, **named: Any) -> dict[str, float]:
        """A point of the curve."""
        self._curve.begin()
        metrics = super().evaluate(*given, **named)
        update = self.state.global_step
        self._curve.end(update, self._plan.tokens(update), metrics["eval_bleu"])
        return metrics


def model_of(vocabulary: int, sizes: str) -> MarianMTModel:
    """A model at its random start, which translates greedily."""
    made = config(vocabulary, SIZES[sizes])
    made.dropout = DROPOUT
    model = MarianMTModel(made)
    model.generation_config = GenerationConfig(
        max_length=LONGEST + 1,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
        decoder_start_token_id=START,
        bad_words_ids=[[PAD]],
    )
    return model


def settings(folder: Path, updates: int, every: int, precision: str) -> Seq2SeqTrainingArguments:
    """The recipe."""
    return Seq2SeqTrainingArguments(
        output_dir=str(folder / "checkpoints"),
        max_steps=updates,
        use_cpu=True,
        bf16=precision == "bf16",
        optim="adamw_torch_fused",
        learning_rate=LEARNING_RATE,
        adam_beta1=BETAS[0],
        adam_beta2=BETAS[1],
        lr_scheduler_type="cosine",
        warmup_steps=WARM_UP,
        max_grad_norm=1.0,
        label_smoothing_factor=SMOOTHING,
        per_device_eval_batch_size=64,
        predict_with_generate=True,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=1,
        logging_steps=50,
        disable_tqdm=True,
        report_to="none",
        remove_unused_columns=False,
        seed=SEED,
    )


def main() -> None:
    """Train to the end, from the last checkpoint if there is one."""
    asked = arguments(("--precision", "fp32"))
    torch.set_num_threads(asked.threads)
    set_seed(SEED)
    work, validation = Work(asked.work), Validation(asked.work)
    model = model_of(work.vocabulary, asked.sizes)
    last = get_last_checkpoint(asked.folder / "checkpoints") if (asked.folder / "checkpoints").is_dir() else None
    order = sorted(range(len(validation.sources)), key=lambda place: -len(validation.sources[place]))

    def collate(examples: list[Example]) -> dict[str, torch.Tensor]:
        source, labels = (padded([example[side] for example in examples]) for side in ("source", "target"))
        labels = labels.masked_fill(labels == PAD, IGNORED)
        return {
            "input_ids": source,
            "attention_mask": (source != PAD).long(),
            "labels": labels,
            "decoder_input_ids": model.prepare_decoder_input_ids_from_labels(labels),
        }

    def score(found: EvalPrediction) -> dict[str, float]:
        outputs: list[list[int]] = [[]] * len(order)
        for place, row in zip(order, found.predictions[:, 1:].tolist(), strict=True):
            outputs[place] = row[: row.index(END)] if END in row else [token for token in row if token > PAD]
        return {"bleu": validation.bleu(outputs)}

    trainer = Trainer(
        plan=LikeLengths([len(row) + 1 for row in work.target]),
        curve=Curve(asked.folder / "curve.jsonl", int(last.rpartition("-")[2]) if last else 0),
        model=model,
        args=settings(asked.folder, asked.updates, asked.every, asked.precision),
        data_collator=collate,
        train_dataset=[
            {"source": [*source, END], "target": [*target, END]}
            for source, target in zip(work.source, work.target, strict=True)
        ],
        eval_dataset=[
            {"source": [*validation.sources[place], END], "target": [*validation.targets[place], END]}
            for place in order
        ],
        compute_metrics=score,
    )
    trainer.train(resume_from_checkpoint=last)


if __name__ == "__main__":
    main()
