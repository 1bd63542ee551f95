"""A plain Transformer of torch's own modules, as a course's laboratory builds it, on the files of a recipe.

    python benchmarks/plain_transformer.py recipes/tatoeba-en-zh.toml --folder /tmp/plain [--epochs 20] [KEY=VALUE ..]
    python benchmarks/plain_transformer.py recipes/tatoeba-en-zh.toml --folder /tmp/plain --against RUN [--record]

torch.nn.Transformer: 4 + 4 layers of width 128, feed-forward 512, 4 heads, sinusoidal positions, dropout 0.1, label
smoothing 0.1; Adam with 4,000 updates of warm-up and then the inverse square root; batches of 64 pairs, 20 epochs; the
weights of the last epoch; greedy search. Each side has a tokenizer of its own, learnt from the training files:
characters where words are not written apart, else BPE.

The same command goes on after the last whole epoch, with the same result, and trains nothing where all is done. The
folder has the outputs beside sources and references, one a line, for `transduce evaluate --outputs`, and a report of
scores, parameters, minutes, machine and versions. `--against` compares a training of the recipe with it, by a paired
bootstrap on the same sentences; `--record` writes that to benchmarks/results/plain_transformer/RECIPE.json, for
`python docs/make_results.py`.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn

import transduce
from transduce.core.errors import InputError
from transduce.data.corpus import read_pairs
from transduce.data.files import fingerprint, read_lines
from transduce.data.pairs.pair_data import PairData
from transduce.metrics.evaluate import evaluate, tallies
from transduce.metrics.paired import paired_bootstrap
from transduce.planning.facts import facts_of
from transduce.recipe.recipe import Recipe, load_recipe
from transduce.runtime.environment import library_versions, machine, source_commit

sys.path.insert(0, str(Path(__file__).parent))
from metric_headings import unnumbered
from plain_tables import in_words, table
from records import save_record

RECORDS = Path(__file__).with_name("results") / "plain_transformer"
PAD, START, END = 0, 1, 2
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
WIDTH, LAYERS, HIDDEN, HEADS, DROPOUT, SMOOTHING, WARM_UP, ROWS = 128, 4, 512, 4, 0.1, 0.1, 4000, 64
LONGEST = 256  # tokens of a training text
UNITS = ("bpe", "words", "characters")
Pairs = list[tuple[str, str]]
Rows = list[tuple[list[int], list[int]]]


class PlainTransformer(nn.Module):
    """Embeddings, positions, torch.nn.Transformer, output layer."""

    def __init__(self, sources: int, targets: int) -> None:
        super().__init__()
        self.source, self.target = (nn.Embedding(size, WIDTH, padding_idx=PAD) for size in (sources, targets))
        self.dropout = nn.Dropout(DROPOUT)
        self.transformer = nn.Transformer(WIDTH, HEADS, LAYERS, LAYERS, HIDDEN, DROPOUT, batch_first=True)
        self.output = nn.Linear(WIDTH, targets)

    def encode(self, source: Tensor) -> Tensor:
        """(B, S) -> (B, S, D)."""
        x = self._embedded(self.source, source)
        return self.transformer.encoder(x, src_key_padding_mask=source == PAD)

    def decode(self, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        """(B, T), (B, S, D), (B, S) -> logits (B, T, V)."""
        steps = target.shape[1]
        later = torch.ones(steps, steps, dtype=torch.bool).triu(1)
        x = self._embedded(self.target, target)
        x = self.transformer.decoder(x, memory, tgt_mask=later, memory_key_padding_mask=source == PAD)
        return self.output(x)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits of what follows each target token."""
        return self.decode(target, self.encode(source), source)

    def _embedded(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        return self.dropout(embedding(ids) * math.sqrt(WIDTH) + sinusoids(ids.shape[1]))


def sinusoids(length: int) -> Tensor:
    """(T, D)."""
    angles = torch.arange(length)[:, None] * 10_000 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)


# ---- texts -----------------------------------------------------------------------------------------------


def made_tokenizer(texts: Sequence[str], unit: str, vocabulary: int) -> Tokenizer:
    """BPE over bytes, words between spaces, or characters."""
    if unit == "bpe":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer: Any = trainers.BpeTrainer(
            vocab_size=vocabulary, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
        )
    else:
        tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
        characters = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        tokenizer.pre_tokenizer = characters if unit == "characters" else pre_tokenizers.WhitespaceSplit()
        if unit == "characters":
            tokenizer.decoder = decoders.Fuse()
        trainer = trainers.WordLevelTrainer(vocab_size=vocabulary, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def encoded(pairs: Pairs, source: Tokenizer, target: Tokenizer) -> Rows:
    """x .. </s> and <s> y .. </s>."""
    sources, targets = ([each[side] for each in pairs] for side in (0, 1))
    both = zip(source.encode_batch(sources), target.encode_batch(targets), strict=True)
    return [([*one.ids, END], [START, *other.ids, END]) for one, other in both]


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """(B, T)."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


# ---- training and search ---------------------------------------------------------------------------------


def train(model: PlainTransformer, rows: Rows, epochs: int, seed: int, folder: Path) -> dict[str, float]:
    """To the end, from the last whole epoch if there is one; how many updates and seconds it took."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
    loss_of = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=SMOOTHING)
    done = restored(model, optimizer, folder / "checkpoint.safetensors")
    model.train()
    while done["epoch"] < epochs:
        begun = time.perf_counter()
        torch.manual_seed(1000 * seed + int(done["epoch"]) + 1)  # the order and the dropout of this epoch
        losses = []
        for chosen in torch.randperm(len(rows)).split(ROWS):
            source, target = (padded([rows[place][side] for place in chosen.tolist()]) for side in (0, 1))
            done["updates"] += 1
            for group in optimizer.param_groups:
                group["lr"] = WIDTH**-0.5 * min(done["updates"] ** -0.5, done["updates"] * WARM_UP**-1.5)
            loss = loss_of(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        done["epoch"] += 1
        done["seconds"] += time.perf_counter() - begun
        mean = sum(losses) / len(losses)
        print(f"epoch {done['epoch']:.0f} of {epochs}: loss {mean:.3f}, {done['seconds'] / 60:.1f} minutes", flush=True)
        keep(model, optimizer, done, folder / "checkpoint.safetensors")
    return done


def keep(model: nn.Module, optimizer: torch.optim.Optimizer, done: dict[str, float], path: Path) -> None:
    """Weights and Adam's averages, written whole or not at all."""
    tensors = {f"weight {name}": weight.detach() for name, weight in model.named_parameters()}
    for name, weight in model.named_parameters():
        tensors |= {f"{key} {name}": optimizer.state[weight][key] for key in ("exp_avg", "exp_avg_sq")}
    save_file(tensors, path.with_suffix(".new"), {key: repr(value) for key, value in done.items()})
    path.with_suffix(".new").replace(path)


def restored(model: nn.Module, optimizer: torch.optim.Optimizer, path: Path) -> dict[str, float]:
    """What `keep` wrote last; where it stands."""
    if not path.is_file():
        return {"epoch": 0.0, "updates": 0.0, "seconds": 0.0}
    with safe_open(path, "pt") as file, torch.no_grad():
        done = {key: float(value) for key, value in file.metadata().items()}
        for name, weight in model.named_parameters():
            weight.copy_(file.get_tensor(f"weight {name}"))
            state = {key: file.get_tensor(f"{key} {name}") for key in ("exp_avg", "exp_avg_sq")}
            optimizer.state[weight] = {"step": torch.tensor(done["updates"]), **state}
    return done


@torch.inference_mode()
def greedy(model: PlainTransformer, sources: Sequence[list[int]]) -> list[list[int]]:
    """The likeliest token again and again, until </s> or three times the source and 20 tokens."""
    model.eval()
    outputs: list[list[int]] = [[]] * len(sources)
    order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
    for first in range(0, len(order), ROWS):
        places = order[first : first + ROWS]
        source = padded([sources[place] for place in places])
        memory, found = model.encode(source), torch.full((len(places), 1), START)
        ended = torch.zeros(len(places), dtype=torch.bool)
        for _ in range(3 * source.shape[1] + 20):
            token = model.decode(found, memory, source)[:, -1].argmax(-1)
            found = torch.cat((found, token[:, None]), 1)
            ended |= token == END
            if ended.all():
                break
        for place, row in zip(places, found[:, 1:].tolist(), strict=True):
            outputs[place] = row[: row.index(END)] if END in row else row
        print(f"\r{first + len(places):,} of {len(order):,} translated", end="", flush=True)
    print()
    return outputs


# ---- the whole -------------------------------------------------------------------------------------------


def main() -> None:
    """Train, translate the tests, write texts and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--folder", type=Path, required=True, help="for outputs, report and checkpoint")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--vocabulary", type=int, default=8000, help="tokens of each side at most")
    parser.add_argument("--source-unit", choices=UNITS, help="by default by the script")
    parser.add_argument("--target-unit", choices=UNITS, help="by default by the script")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--against", type=Path, metavar="RUN", help="a finished training of the recipe, to compare with"
    )
    parser.add_argument("--record", action="store_true", help="with --against: put both on record for docs/results.md")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="of the recipe, such as data.root=FOLDER")
    asked = parser.parse_intermixed_args()
    torch.set_num_threads(asked.threads)
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        recipe = load_recipe(asked.recipe, asked.overrides)
        if not isinstance(recipe.data, PairData) or not recipe.data.test:
            parser.error(f"{asked.recipe}: expected a recipe for translation with files for its tests")
        train_pairs, tests = pairs_of(recipe)
        settings = settings_of(recipe, asked)
    except InputError as error:
        parser.error(str(error))
    if asked.record and not asked.against:
        parser.error("--record: expected --against RUN, the training that it is compared with")
    noted, finished = asked.folder / "settings.json", asked.folder / "report.json"
    if noted.is_file() and json.loads(noted.read_text()) != settings:
        parser.error(f"{asked.folder}: holds a training with other settings or files; expected another --folder")
    asked.folder.mkdir(parents=True, exist_ok=True)
    noted.write_text(json.dumps(settings, indent=1))
    if not finished.is_file():
        report = trained(recipe, asked, settings, train_pairs, tests)
        save_record(finished, report)
    report = json.loads(finished.read_text(encoding="utf-8"))
    tell(report, asked.folder)
    if asked.against:
        record = {**report, "scores": compared(report, asked.folder, asked.against)}
        print(f"\n{table([record], unnumbered(record['scores']))}")
        if asked.record:
            save_record(RECORDS / f"{recipe.name}.json", record)


def pairs_of(recipe: Recipe) -> tuple[Pairs, dict[str, Pairs]]:
    """Training and tests, as the recipe's own files have them; pairs with an empty side are no training pairs."""
    data: Any = recipe.data

    def read(files: Any) -> Pairs:
        return [(source, target) for _, source, target in read_pairs(files, Path(data.root))]

    pairs = [pair for files in data.train for pair in read(files) if all(text.strip() for text in pair)]
    return pairs, {name: read(files) for name, files in data.test.items()}


def settings_of(recipe: Recipe, asked: argparse.Namespace) -> dict[str, Any]:
    """All that decides the result."""
    data: Any = recipe.data
    facts = facts_of(data.train, Path(data.root))
    units = [
        unit or ("characters" if side.kind == "unspaced" else "bpe")
        for unit, side in ((asked.source_unit, facts.source), (asked.target_unit, facts.target))
    ]
    files = [path for each in (*data.train, *data.test.values()) for path in each.paths(Path(data.root))]
    return {
        "recipe": recipe.name,
        **{key: getattr(asked, key) for key in ("epochs", "seed", "vocabulary", "threads")},
        "units": units,
        "files": {path.name: fingerprint(path) for path in files},
    }


def trained(
    recipe: Recipe, asked: argparse.Namespace, settings: dict[str, Any], pairs: Pairs, tests: dict[str, Pairs]
) -> dict[str, Any]:
    """The report; and the texts beside it."""
    sides = [[pair[side] for pair in pairs] for side in (0, 1)]
    tokenizers = [
        made_tokenizer(texts, unit, asked.vocabulary) for texts, unit in zip(sides, settings["units"], strict=True)
    ]
    rows = encoded(pairs, *tokenizers)
    short = [row for row in rows if max(map(len, row)) <= LONGEST]
    print(f"{len(short):,} pairs; {len(rows) - len(short):,} with more than {LONGEST} tokens are left out", flush=True)
    torch.manual_seed(1000 * asked.seed)
    model = PlainTransformer(*(each.get_vocab_size() for each in tokenizers))
    done = train(model, short, asked.epochs, asked.seed, asked.folder)
    scores, begun = {}, time.perf_counter()
    for name, test in tests.items():
        ids = [source for source, _ in encoded(test, *tokenizers)]
        outputs = [text.strip() for text in tokenizers[1].decode_batch(greedy(model, ids))]
        outputs = [text.replace("\n", " ") for text in outputs]
        for part, texts in zip(("source", "reference", "outputs"), (*zip(*test, strict=True), outputs), strict=True):
            lines = "".join(f"{text}\n" for text in texts)
            (asked.folder / f"{name}.{part}").write_text(lines, encoding="utf-8")
        task: Any = recipe.task
        found = evaluate(task.metrics, outputs, [[target] for _, target in test], task.target or None)
        scores[name] = {metric: score.to_dict() for metric, score in zip(task.metrics, found, strict=True)}
    return {
        "settings": settings,
        "metrics": list(recipe.task.metrics),  # type: ignore[attr-defined]
        "language": recipe.task.target,  # type: ignore[attr-defined]
        "finished": date.today().isoformat(),
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "vocabularies": [each.get_vocab_size() for each in tokenizers],
        "pairs": len(short),
        "updates": int(done["updates"]),
        "training_minutes": round(done["seconds"] / 60, 2),
        "search_minutes": round((time.perf_counter() - begun) / 60, 2),
        "machine": machine(),
        "versions": library_versions(),
        "commit": source_commit(),
        "tests": scores,
    }


def tell(report: dict[str, Any], folder: Path) -> None:
    """What a reader wants to know, and how to compare."""
    print(f"{report['settings']['recipe']}: {in_words(report)}")
    for test, scores in report["tests"].items():
        for score in scores.values():
            interval = " [{:.2f}, {:.2f}]".format(*score["interval"]) if score["interval"] else ""
            print(f"{test}: {score['name']} {score['value']:.2f}{interval}  {score['signature']}")
    metrics = " ".join(f"--metric {name}" for name in report["metrics"])
    language = f" --language {report['language']}" if report["language"] else ""
    for test in report["tests"]:
        files = " ".join(f"--{part} {folder / test}.{part}" for part in ("source", "reference", "outputs"))
        print(f"To compare: transduce evaluate RUN {files} {metrics}{language}")


def compared(report: dict[str, Any], folder: Path, run: Path) -> list[dict[str, Any]]:
    """By test and metric: the scores of the training in `run`, with its own search, and of the plain one."""
    pipeline, found = transduce.load(run), []
    for test in report["tests"]:
        sources, references, plain = (
            list(read_lines(folder / f"{test}.{part}")) for part in ("source", "reference", "outputs")
        )
        ours = [each.text for each in pipeline.predict(sources, split="none")]
        several, language = [[each] for each in references], report["language"] or None
        both = [tallies(report["metrics"], texts, several, language) for texts in (ours, plain)]
        for metric, one, other in zip(report["metrics"], *both, strict=True):
            found.append(
                {
                    "test": test,
                    "metric": metric,
                    "name": one.name,
                    "signature": one.signature,
                    "lower_is_better": one.lower_is_better,
                    "model": one.score().to_dict(),
                    "plain": other.score().to_dict(),
                    "difference": paired_bootstrap(other, one).to_dict(),
                }
            )
    return found


if __name__ == "__main__":
    main()
