"""Whether converted models translate as the originals do, both run by default: with a beam, and greedily.

    python benchmarks/imported_models.py --lines ../shared/data/multi30k/raw/test_2016_flickr.en.gz --count 500
    python benchmarks/imported_models.py --lines FILE --only marian t5 --trained en-fr-marian/

Models of each layout are made by transformers' own classes with random weights, as `import_parity.py` makes them, and
taught to end: the logit of the end token is raised until most outputs end by themselves. Each is saved as
transformers saves it, with settings of generation that models of its kind have, converted by `transduce convert`, and
run on both sides as anybody would: `model.generate(**tokenizer(lines))` there, `transduce.load(path).predict(lines)`
here. `--trained` names folders of Hugging Face, such as an export of a run, that are compared in the same way. Needs
the extras `argos` (for SentencePiece) and `huggingface`.
"""

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import import_parity as made
import torch
from records import save_measurement

from transduce.core.model_file import save_model_file
from transduce.data.files import text_lines
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.interop.original_engine import OriginalEngine
from transduce.interop.parity import Text
from transduce.interop.run_parity import RunParity, compare_runs
from transduce.pipeline.pipeline import load

BEAM: dict[str, Any] = {"num_beams": 4, "max_length": 60}


class Layout(NamedTuple):
    """make: a model in a folder with its tokenizer. generation: what its generation_config.json says besides."""

    make: Callable[[Path, Sequence[str], made.Sizes], Any]
    generation: dict[str, Any]
    languages: Languages = Languages()


def mbart(folder: Path, lines: Sequence[str], sizes: made.Sizes) -> Any:
    """mBART-50, from English into French."""
    import transformers

    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), *made.scored(made.spm(folder, "made.spm", lines))]
    tokenizer = transformers.MBart50Tokenizer(vocab=pieces, src_lang="en_XX", tgt_lang="fr_XX")
    tokenizer.save_pretrained(str(folder))
    (folder / "made.spm").unlink()
    config = transformers.MBartConfig(vocab_size=len(tokenizer), scale_embedding=True, **made.common(sizes))
    config.decoder_start_token_id = 2
    return transformers.MBartForConditionalGeneration(config)


def nllb(folder: Path, lines: Sequence[str], sizes: made.Sizes) -> Any:
    """NLLB, whose codes stand in tokenizer_config.json."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    inner.train_from_iterator(
        lines, trainers.BpeTrainer(vocab_size=made.VOCABULARY, special_tokens=special, show_progress=False)
    )
    model = json.loads(inner.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    tokenizer = transformers.NllbTokenizer(vocab=model["vocab"], merges=merges)
    tokenizer.save_pretrained(str(folder))
    config = transformers.M2M100Config(vocab_size=len(tokenizer), scale_embedding=True, **made.common(sizes))
    return transformers.M2M100ForConditionalGeneration(config)


LAYOUTS = {
    "bart": Layout(made.bart, {**BEAM, "no_repeat_ngram_size": 3, "early_stopping": True, "min_length": 4}),
    "marian": Layout(made.marian, {**BEAM, "num_beams": 6, "renormalize_logits": None}),
    "mbart": Layout(mbart, {**BEAM, "num_beams": 5, "early_stopping": True}, Languages("en_XX", "fr_XX")),
    "t5": Layout(made.first_t5, {}),
    "t5 1.1": Layout(made.t5, {"max_new_tokens": 40, "length_penalty": 0.6, "num_beams": 3}),
    "m2m_100": Layout(made.m2m_100, {**BEAM, "num_beams": 5, "early_stopping": True}, Languages("en", "fr")),
    "nllb": Layout(nllb, {"max_length": 60}, Languages("eng_Latn", "fra_Latn")),
}


@torch.inference_mode()
def taught_to_end(model: Any, rows: int = 8, longest: int = 24) -> Any:
    """The model, some two thirds of whose greedy outputs end within `longest` tokens, found on random sources.

    The row of the end token in the output matrix gets more of the mean of the states that it is multiplied by.
    """
    torch.manual_seed(2)
    read_BS = torch.randint(5, model.config.vocab_size, (rows, 12))
    end, output = model.config.eos_token_id, model.get_output_embeddings()
    states: list[torch.Tensor] = []
    hook = output.register_forward_hook(lambda module, given, made: states.append(given[0].flatten(0, 1)))
    model(input_ids=read_BS, decoder_input_ids=read_BS)
    hook.remove()
    mean_D, row_D = states[0].mean(0), output.weight[end].clone()
    low, high = 0.0, 2**6
    for _ in range(8):
        middle = (low + high) / 2
        output.weight[end] = row_D + mean_D * middle / mean_D.square().sum()
        settings = {"max_new_tokens": longest, "num_beams": 1, "forced_eos_token_id": None}
        ended = (model.generate(read_BS, **settings)[:, 2:] == end).any(1).float().mean()
        low, high = (low, middle) if ended > 2 / 3 else (middle, high)
    return model


def saved(layout: Layout, folder: Path, lines: Sequence[str], size: str) -> None:
    """A model of this layout in `folder`, as transformers saves it, with settings of generation."""
    torch.manual_seed(0)
    model = taught_to_end(made.randomized(layout.make(folder, lines, made.SIZES[size])))
    model.save_pretrained(str(folder))
    path = folder / "generation_config.json"
    settings = {**json.loads(path.read_text(encoding="utf-8")), **layout.generation}
    path.write_text(json.dumps(settings), encoding="utf-8")


def compared(folder: Path, languages: Languages, lines: Sequence[str]) -> tuple[RunParity, float]:
    """What `transduce convert --check` finds of a folder, and the share of our outputs that end."""
    path = folder / "ours.safetensors"
    save_model_file(path, read_foreign(folder, languages, folder.name).file)
    pipeline = load(path, device="cpu")
    path.unlink()
    found = compare_runs(pipeline, OriginalEngine(pipeline, folder), Text("lines", list(lines)))
    ended = [each.ended for each in pipeline.predict(lines[:50])]
    return found, sum(ended) / len(ended)


def rows_of(name: str, found: RunParity, ended: float) -> list[dict[str, Any]]:
    """A row for each search."""
    return [
        {
            "model": name,
            "search": each.how,
            "lines": found.lines,
            "same_text": each.same_text,
            "same_tokens": each.same_tokens,
            "ended": ended,
            "speed": each.speed,
        }
        for each in found.searches
    ]


def shown(row: dict[str, Any]) -> str:
    """As a row of the table."""
    ours, theirs = row["speed"]
    return (
        f"| {row['model']} | {row['search']} | {row['same_text']} of {row['lines']} | {row['same_tokens']} "
        f"| {row['ended']:.0%} | {ours:.0f} | {theirs:.0f} |"
    )


def main() -> None:
    """Print rows for each model, as soon as they are known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=Path, required=True, help="a text, one sentence a line")
    parser.add_argument("--count", type=int, default=500, help="lines that are translated")
    parser.add_argument("--size", choices=list(made.SIZES), default="tiny")
    parser.add_argument("--only", nargs="*", choices=list(LAYOUTS), default=list(LAYOUTS))
    parser.add_argument("--trained", nargs="*", type=Path, default=[], help="folders of Hugging Face")
    parser.add_argument("--record", action="store_true", help="write results/parity/imported_models.json")
    asked = parser.parse_args()
    began, rows = time.monotonic(), list[dict[str, Any]]()
    lines = list(text_lines(asked.lines))
    libraries = ", ".join(f"{each} {version(each)}" for each in made.LIBRARIES)
    print(f"Python {platform.python_version()}, {libraries}; {platform.machine()}, {torch.get_num_threads()} threads")
    print("| model | search | equal texts | equal tokens | ended | lines a second, Transduce | transformers |")
    print("|---|---|---|---|---|---|---|")
    for name in [*asked.only, *asked.trained]:
        with tempfile.TemporaryDirectory() as folder:
            if isinstance(name, str):
                saved(LAYOUTS[name], Path(folder), lines, asked.size)
            where, languages = (Path(folder), LAYOUTS[name].languages) if isinstance(name, str) else (name, Languages())
            found, ended = compared(where, languages, lines[: asked.count])
        rows += rows_of(name if isinstance(name, str) else name.name, found, ended)
        for row in rows[-2:]:
            print(shown(row), flush=True)
        if not found.holds:
            print("\n".join(found.report()), flush=True)
    if asked.record:
        text = asked.lines.name
        print(
            save_measurement("parity/imported_models", time.monotonic() - began, made.LIBRARIES, text=text, rows=rows)
        )


if __name__ == "__main__":
    main()
