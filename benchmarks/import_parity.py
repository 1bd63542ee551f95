"""Whether converted models say what the originals say: random models of each architecture, beside transformers.

    python benchmarks/import_parity.py --lines ../shared/data/multi30k/raw/test_2016_flickr.en.gz --count 500
    python benchmarks/import_parity.py --lines FILE --sizes base --count 50 --only marian t5

Random weights are the hard case: next tokens are nearly equally likely, so that a wrong detail shows. Each model is
made by transformers' own class, with an output matrix of its own where the class allows it (a random model that reads
and writes with one matrix repeats itself), saved, converted, and compared on lines of text: the largest difference of
logits after the same prefixes, and greedy outputs token by token. Needs the extras `argos` (for SentencePiece) and
`huggingface`.
"""

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from records import save_measurement

from transduce.core.model_file import save_model_file
from transduce.core.padded import Padded
from transduce.data.files import text_lines
from transduce.interop.import_columns import M2M100_LANGUAGES
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.interop.original_engine import OriginalEngine
from transduce.interop.parity import Text, compare
from transduce.pipeline.pipeline import Pipeline, load

Sizes = dict[str, int]
SIZES: dict[str, Sizes] = {
    "tiny": {"width": 32, "hidden": 64, "heads": 4, "layers": 2},
    "base": {"width": 512, "hidden": 2048, "heads": 8, "layers": 6},
}
SHORT = {"max_length_factor": 0.5, "max_length_offset": 8, "at_limit": "stop"}
"""A random model rarely ends by itself."""
VOCABULARY = 2000
FEW = 16  # lines whose logits are compared
LIBRARIES = ("transformers", "torch", "tokenizers", "sentencepiece")


def spm(folder: Path, name: str, lines: Sequence[str], kind: str = "unigram") -> Any:
    """A SentencePiece model of `lines` in `folder`; its processor."""
    import sentencepiece

    prefix = folder / "made"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(prefix),
        vocab_size=VOCABULARY,
        model_type=kind,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    prefix.with_suffix(".vocab").unlink()
    path = prefix.with_suffix(".model").rename(folder / name)
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def scored(read: Any) -> list[tuple[str, float]]:
    """Pieces and scores behind <unk>, <s> and </s>."""
    return [(read.id_to_piece(index), read.get_score(index)) for index in range(3, read.get_piece_size())]


def common(sizes: Sizes) -> dict[str, Any]:
    """Settings of BART's family."""
    sides = ("encoder", "decoder")
    return {
        "d_model": sizes["width"],
        **{f"{side}_layers": sizes["layers"] for side in sides},
        **{f"{side}_attention_heads": sizes["heads"] for side in sides},
        **{f"{side}_ffn_dim": sizes["hidden"] for side in sides},
        "tie_word_embeddings": False,
    }


def marian(folder: Path, lines: Sequence[str], sizes: Sizes) -> Any:
    """Swish, a bias of the logits."""
    import transformers

    sides = [scored(spm(folder, f"{side}.spm", text)) for side, text in (("source", lines), ("target", lines[1::2]))]
    names = dict.fromkeys(piece for side in sides for piece, _ in side)
    ids = {name: index for index, name in enumerate(["</s>", "<unk>", *names, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "MarianTokenizer"}', encoding="utf-8")
    pad = ids["<pad>"]
    special = {"pad_token_id": pad, "decoder_start_token_id": pad, "bad_words_ids": [[pad]]}
    config = transformers.MarianConfig(
        vocab_size=len(ids), scale_embedding=True, activation_function="swish", **special, **common(sizes)
    )
    return transformers.MarianMTModel(config)


def t5(folder: Path, lines: Sequence[str], sizes: Sizes, first: bool = False) -> Any:
    """T5 1.1, or T5 as it was first."""
    import transformers

    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *scored(spm(folder, "made.spm", lines))]
    tokenizer = transformers.T5Tokenizer(vocab=pieces)
    tokenizer.save_pretrained(str(folder))
    config = transformers.T5Config(
        vocab_size=len(tokenizer) + 28,
        d_model=sizes["width"],
        d_kv=sizes["width"] // sizes["heads"],
        d_ff=sizes["hidden"],
        num_layers=sizes["layers"],
        num_heads=sizes["heads"],
        decoder_start_token_id=0,
        feed_forward_proj="relu" if first else "gated-gelu",
        **({} if first else {"tie_word_embeddings": False}),
    )
    return transformers.T5ForConditionalGeneration(config)


def first_t5(folder: Path, lines: Sequence[str], sizes: Sizes) -> Any:
    """One matrix for everything, ReLU."""
    return t5(folder, lines, sizes, first=True)


def bart(folder: Path, lines: Sequence[str], sizes: Sizes) -> Any:
    """BPE over bytes."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    inner.train_from_iterator(lines, trainer)
    model = json.loads(inner.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    transformers.BartTokenizer(vocab=model["vocab"], merges=merges).save_pretrained(str(folder))
    config = transformers.BartConfig(vocab_size=len(model["vocab"]), forced_bos_token_id=0, **common(sizes))
    return transformers.BartForConditionalGeneration(config)


def m2m_100(folder: Path, lines: Sequence[str], sizes: Sizes) -> Any:
    """BPE of SentencePiece, from English into French."""
    import transformers

    read = spm(folder, "sentencepiece.bpe.model", lines, "bpe")
    names = ["<s>", "<pad>", "</s>", "<unk>", *(piece for piece, _ in scored(read))]
    vocabulary = folder / "vocab.json"
    vocabulary.write_text(json.dumps({name: index for index, name in enumerate(names)}), encoding="utf-8")
    model_file = str(folder / "sentencepiece.bpe.model")
    codes = [f"__{code}__" for code in M2M100_LANGUAGES]
    tokenizer = transformers.M2M100Tokenizer(
        str(vocabulary), model_file, src_lang="en", tgt_lang="fr", additional_special_tokens=codes
    )
    tokenizer.save_pretrained(str(folder))
    config = transformers.M2M100Config(
        vocab_size=len(names) + 108, scale_embedding=True, activation_function="relu", **common(sizes)
    )
    return transformers.M2M100ForConditionalGeneration(config)


MAKES: dict[str, Callable[[Path, Sequence[str], Sizes], Any]] = {
    "marian": marian,
    "bart": bart,
    "t5": first_t5,
    "t5 1.1": t5,
    "m2m_100": m2m_100,
}


def randomized(model: Any) -> Any:
    """Nothing is left at 0 or 1, and logits are far from each other."""
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
            elif "lm_head" in name:
                parameter.normal_(std=0.2)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_(std=0.5 if type(model).__name__.startswith("Marian") else 0.0)
    return model.eval()


@torch.inference_mode()
def largest_difference(model: Any, pipeline: Pipeline, lines: Sequence[str]) -> float:
    """Of logits, after each prefix of a line as target, with that line as source."""
    columns: Any = pipeline.task.columns
    source, target = columns["source"], columns["target"]
    apart = 0.0
    for one, other in zip(source.encode(lines), target.encode(lines), strict=True):
        rows = [source.closed(one), [target.start, *target.opening, *other]]
        read, written = (torch.tensor([ids]) for ids in rows)
        theirs = model(input_ids=read, decoder_input_ids=written).logits
        ours = pipeline.model(*(Padded(torch.tensor([ids]), torch.tensor([len(ids)])) for ids in rows))
        apart = max(apart, float((ours[..., : theirs.shape[-1]] - theirs).abs().max()))
    return apart


def measured(name: str, size: str, lines: Sequence[str], count: int) -> dict[str, Any]:
    """A row of the table."""
    began = time.perf_counter()
    languages = Languages("en", "fr") if name == "m2m_100" else Languages()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        model = randomized(MAKES[name](folder, lines, SIZES[size]))
        model.save_pretrained(str(folder))
        path = folder / "ours.safetensors"
        save_model_file(path, read_foreign(folder, languages, name).file)
        pipeline = load(path, device="cpu")
        search = pipeline.recipe.search.model_copy(update=SHORT)
        pipeline.recipe = pipeline.recipe.model_copy(update={"search": search})
        apart = largest_difference(model, pipeline, lines[:FEW])
        found = compare(pipeline, OriginalEngine(pipeline, folder), Text("lines", list(lines[:count])))
    for line in found.report():
        print(f"    {line}", flush=True)
    parameters = sum(each.numel() for each in model.parameters())
    print(f"    {time.perf_counter() - began:.0f} s", flush=True)
    row = {"model": name, "size": size, "parameters": parameters, "apart": apart}
    return {**row, "equal": found.equal, "lines": found.lines}


def shown(row: dict[str, Any]) -> str:
    """As a row of the table."""
    equal = f"{row['equal']} of {row['lines']}"
    return f"| {row['model']} | {row['size']} | {row['parameters'] / 1e6:.1f} M | {row['apart']:.1e} | {equal} |"


def main() -> None:
    """Print a row for each architecture and size, as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=Path, required=True, help="a text, one sentence a line")
    parser.add_argument("--count", type=int, default=500, help="lines that are translated")
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--only", nargs="+", choices=list(MAKES), default=list(MAKES))
    parser.add_argument("--record", action="store_true", help="write results/parity/import.json")
    asked = parser.parse_args()
    began, rows = time.monotonic(), []
    lines = list(text_lines(asked.lines))
    libraries = ", ".join(f"{each} {version(each)}" for each in LIBRARIES)
    print(f"Python {platform.python_version()}, {libraries}; {platform.machine()}, {torch.get_num_threads()} threads")
    print("| architecture | size | parameters | largest difference of logits | equal greedy outputs |")
    print("|---|---|---|---|---|")
    for size in asked.sizes:
        for name in asked.only:
            rows.append(measured(name, size, lines, asked.count))
            print(shown(rows[-1]), flush=True)
    if asked.record:
        print(save_measurement("parity/import", time.monotonic() - began, LIBRARIES, text=asked.lines.name, rows=rows))


if __name__ == "__main__":
    main()
