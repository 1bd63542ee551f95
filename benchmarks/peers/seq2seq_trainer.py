"""Hugging Face's Seq2SeqTrainer with its defaults, on a Marian from scratch, for a given time.

    seq2seq_trainer.py TEXTS FOLDER --minutes 20 [--threads 1] [--unit pieces] [--size small] [KEY=VALUE ..]

TEXTS: {"train": [[source, target], ..], "test": [source, ..]}. What its defaults leave open: the model is Marian in the
fixed work's size (see `work`); one vocabulary of at most 8,000 pieces (unigram, as SentencePiece) or of characters. It
trains for as long as the time is, at whose end its learning rate has fallen to 0, in a straight line as by default;
translating the test does not count. KEY=VALUE: of Seq2SeqTrainingArguments.

Writes FOLDER/outputs, one a line, and then FOLDER/figures.json.
"""

import argparse
import json
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from marian import config
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch.optim.lr_scheduler import LambdaLR
from transformers import (
    DataCollatorForSeq2Seq,
    GenerationConfig,
    MarianMTModel,
    PreTrainedTokenizerFast,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
    set_seed,
)
from work import END, PAD, SIZES, START

SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
LONGEST, VOCABULARY, SEED = 512, 8000, 1
MANY, ROWS = 10**8, 64  # steps, which time ends; texts that are translated together


class Clock(TrainerCallback):
    """Ends a training in time."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.spent, self.steps = seconds, 0.0, 0
        self._begun = 0.0

    def on_train_begin(self, *given: Any, **named: Any) -> None:
        """From here on time counts."""
        self._begun = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        """After each update."""
        self.spent, self.steps = time.perf_counter() - self._begun, state.global_step
        control.should_training_stop |= self.spent >= self.seconds


class Trainer(Seq2SeqTrainer):
    """Whose learning rate falls with time, as nobody knows before how many steps fit into it."""

    def __init__(self, *given: Any, clock: Clock, **named: Any) -> None:
        super().__init__(*given, callbacks=[clock], **named)
        self._clock = clock

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> LambdaLR:
        """Linear, to 0."""
        clock = self._clock
        self.lr_scheduler = LambdaLR(optimizer or self.optimizer, lambda _: max(0.0, 1 - clock.spent / clock.seconds))
        return self.lr_scheduler


def made_tokenizer(texts: list[str], unit: str) -> PreTrainedTokenizerFast:
    """One for both sides."""
    if unit == "pieces":
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        trainer: Any = trainers.UnigramTrainer(
            vocab_size=VOCABULARY, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
        )
    else:
        tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated"), decoders.Fuse()
        trainer = trainers.WordLevelTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", END)])
    named = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=LONGEST, **named)


def model_of(vocabulary: int, size: str) -> MarianMTModel:
    """At its random start; it translates greedily."""
    model = MarianMTModel(config(vocabulary, SIZES[size]))
    model.generation_config = GenerationConfig(
        max_new_tokens=256,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
        decoder_start_token_id=START,
        bad_words_ids=[[PAD]],
    )
    return model


def trained(
    model: MarianMTModel,
    data: list[dict[str, Any]],
    tokenizer: PreTrainedTokenizerFast,
    seconds: float,
    **settings: Any,
) -> Clock:
    """The clock of a training of `model`."""
    clock, quiet = Clock(seconds), {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "save_strategy": "no"}
    trainer = Trainer(
        model=model,
        args=Seq2SeqTrainingArguments(**{**quiet, "seed": SEED, "max_steps": MANY, **settings}),
        train_dataset=data,
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        clock=clock,
    )
    trainer.train()
    return clock


@torch.inference_mode()
def translated(model: MarianMTModel, tokenizer: PreTrainedTokenizerFast, sources: list[str]) -> list[str]:
    """In the order of the sources."""
    model.eval()
    outputs, order = [""] * len(sources), sorted(range(len(sources)), key=lambda place: len(sources[place]))
    for first in range(0, len(order), ROWS):
        places = order[first : first + ROWS]
        rows = tokenizer([sources[place] for place in places], truncation=True, padding=True, return_tensors="pt")
        found = model.generate(input_ids=rows["input_ids"], attention_mask=rows["attention_mask"])
        for place, text in zip(places, tokenizer.batch_decode(found, skip_special_tokens=True), strict=True):
            outputs[place] = text.strip().replace("\n", " ")
        print(f"{first + len(places):,} of {len(order):,} translated", flush=True)
    return outputs


def main() -> None:
    """Measure, train, translate, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--unit", choices=("pieces", "characters"), default="pieces")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    asked = parser.parse_intermixed_args()
    torch.set_num_threads(asked.threads)
    set_seed(SEED)
    texts = json.loads(asked.texts.read_text(encoding="utf-8"))
    tokenizer = made_tokenizer([text for pair in texts["train"] for text in pair], asked.unit)
    sources, targets = (tokenizer([pair[side] for pair in texts["train"]], truncation=True) for side in (0, 1))
    data = [
        {"input_ids": source, "labels": target}
        for source, target in zip(sources["input_ids"], targets["input_ids"], strict=True)
    ]
    model = model_of(len(tokenizer), asked.size)
    settings = dict(_setting(each) for each in asked.settings) | {"output_dir": str(asked.folder / "checkpoints")}
    clock = trained(model, data, tokenizer, 60 * asked.minutes, **settings)
    begun = time.perf_counter()
    outputs = translated(model, tokenizer, texts["test"])
    (asked.folder / "outputs").write_text("".join(f"{text}\n" for text in outputs), encoding="utf-8")
    figures = {
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "vocabulary": len(tokenizer),
        "steps": clock.steps,
        "training_seconds": round(clock.spent, 1),
        "search_seconds": round(time.perf_counter() - begun, 1),
        "settings": asked.settings,
        "versions": {name: version(name) for name in ("torch", "transformers", "tokenizers")},
    }
    (asked.folder / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")


def _setting(text: str) -> tuple[str, Any]:
    key, _, value = text.partition("=")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


if __name__ == "__main__":
    main()
