"""`transduce convert MODEL OUTPUT`."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

EXTRAS = {"transformers": "huggingface", "ctranslate2": "ctranslate2"}

if TYPE_CHECKING:
    from transduce.interop.imports import Imported
    from transduce.interop.model_card import Languages
    from transduce.interop.parity import Text


def convert(
    model: Annotated[
        Path,
        typer.Argument(help="A folder of Hugging Face, or of CTranslate2 with Whisper, or Marian's .npz or .bin."),
    ],
    output: Annotated[Path, typer.Argument(help="The model file to write, which must not exist yet.")],
    check: Annotated[
        Path | None, typer.Option(help="Lines of text of your own on which both models must say the same.")
    ] = None,
    references: Annotated[
        Path | None, typer.Option(help="Translations of --check, line by line, for BLEU of both models.")
    ] = None,
    source_language: Annotated[
        str, typer.Option(help="Code of the source language, such as en. M2M-100, NLLB and mBART need both codes.")
    ] = "",
    target_language: Annotated[str, typer.Option(help="Code of the target language, such as fr.")] = "",
    language: Annotated[
        str, typer.Option(help="Of Whisper: code of the language that is spoken, such as de. By default English.")
    ] = "",
    translate: Annotated[
        bool, typer.Option("--translate", help="Of Whisper: write in English what is said in --language.")
    ] = False,
    source_spm: Annotated[
        Path | None,
        typer.Option(
            "--source-spm",
            "--spm",
            help="Of an .npz or .bin: the SentencePiece model of the source. By default found beside it.",
        ),
    ] = None,
    target_spm: Annotated[
        Path | None,
        typer.Option(help="Of an .npz or .bin: the SentencePiece model of the target. By default the source's."),
    ] = None,
    shortlist: Annotated[
        Path | None,
        typer.Option(help="Of a .bin: its shortlist, lex.*.bin. By default found beside it."),
    ] = None,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs",
            help="Of a classifier, that it reads pairs of texts, as one of entailment does; --check then has two texts "
            "with a tab between in each line.",
        ),
    ] = False,
    base: Annotated[
        Path | None,
        typer.Option(help="Of a folder with an adapter (LoRA) alone: the folder of the model that it changes."),
    ] = None,
    allow_differences: Annotated[
        bool, typer.Option("--allow-differences", help="Exit with 0 even if the converted model says something else.")
    ] = False,
) -> None:
    """Convert a Hugging Face, Whisper or Marian model, and check that outputs match.

        transduce convert opus-mt-en-fr en-fr.safetensors

    Reads folders of Hugging Face with safetensors (Marian, BART, mBART, T5, mT5, M2M-100, NLLB, Pegasus; BERT,
    DistilBERT, RoBERTa, XLM-R, CamemBERT, ELECTRA; GPT-2, Llama, SmolLM, Mistral, Qwen2, Qwen3, Gemma; Whisper),
    folders of CTranslate2 with Whisper, Marian's .npz, and the .bin of Firefox and Bergamot. Both models read the lines
    of --check in fp32: translators as each is run by default, greedily and with a beam; encoders for their labels or
    vectors; language models for the probability of a line and its greedy continuation; for Whisper each line names a
    recording. If any output differs, this is told and the exit code is 1; the model file stays. Other commands take
    such a folder as it is, and convert it into the cache.
    """
    from transduce.cli.text import tell
    from transduce.core.model_file import save_model_file
    from transduce.interop.import_marian_npz import SentencePieceFiles
    from transduce.interop.imports import read_foreign
    from transduce.interop.model_card import Languages

    _check(output, check, references)
    text = _text(check, references) if check else None
    languages = _languages(Languages(source_language, target_language), language, translate)
    read = read_foreign(
        model, languages, output.stem, SentencePieceFiles(source_spm, target_spm, shortlist), pairs, base
    )
    save_model_file(output, read.file)
    for line in (f"written, from {read.kind}.", *read.notes):
        tell(f"{output}: {line}")
    if not _compared(read, output, text) and not allow_differences:
        raise typer.Exit(1)


def _languages(languages: "Languages", spoken: str, translate: bool) -> "Languages":
    """Of what is read and what is written; what is spoken is read."""
    from transduce.core.errors import InputError
    from transduce.interop.model_card import Languages

    if languages.source and spoken and languages.source != spoken:
        raise InputError(f'--language {spoken}: --source-language says "{languages.source}"; leave out one of them.')
    if translate and not (spoken or languages.source):
        raise InputError("--translate: say which language is spoken, as in --language de.")
    return Languages(spoken or languages.source, "en" if translate else languages.target)


def _check(output: Path, check: Path | None, references: Path | None) -> None:
    from transduce.core.errors import InputError

    problems = []
    if output.exists() or output.is_symlink():
        problems.append(f"{output}: this is there already. Delete it, or choose another name.")
    if output.suffix != ".safetensors":
        problems.append(f"{output}: a model file is called .safetensors: {output.stem}.safetensors.")
    if references and not check:
        problems.append("--references goes with --check, whose lines they translate.")
    if problems:
        raise InputError(problems)


def _text(check: Path, references: Path | None) -> "Text":
    from transduce.cli.text import read_source
    from transduce.interop.parity import Text

    return Text(str(check), read_source(check), read_source(references) if references else None)


def _compared(read: "Imported", output: Path, text: "Text | None") -> bool:
    """Whether nothing was found to differ; what was compared, and what was not, is told."""
    from transduce.cli.text import tell, tell_red
    from transduce.core.errors import InputError
    from transduce.core.extras import library
    from transduce.interop.decoder_parity import DecoderParity, compare_decoder
    from transduce.interop.encoder_parity import EncoderParity, compare_encoder
    from transduce.interop.original_engine import OriginalEngine
    from transduce.interop.run_parity import RunParity, compare_runs
    from transduce.interop.speech_parity import SpeechParity, compare_speech, engine_of
    from transduce.pipeline.pipeline import load

    if not read.compares:
        tell_red(f"nothing was compared. To compare it with Marian itself: transduce export {output} --to marian")
        return True
    if text is None:
        tell_red("nothing was compared: name lines of text with --check.")
        return True
    if read.adapter and read.adapter != read.path and read.compares != "translator":
        tell_red("nothing was compared: an adapter elsewhere than in the model's folder.")
        return True
    engine = engine_of(read.path) if read.compares == "speech" else "transformers"
    try:
        library(engine, f"comparing with {engine}", EXTRAS[engine])
        if read.adapter and find_spec("peft") is None:
            raise InputError("without peft, transformers leaves the adapter out: pip install peft.")
    except InputError as error:
        tell_red(f"nothing was compared: {error}")
        return True
    pipeline = load(output, device="cpu")
    found: RunParity | EncoderParity | DecoderParity | SpeechParity
    if read.compares == "speech":
        found = compare_speech(pipeline, read.path, text)
    elif read.compares == "encoder":
        found = compare_encoder(pipeline, read.path, text)
    elif read.compares == "decoder":
        found = compare_decoder(pipeline, read.path, text)
    else:
        found = compare_runs(
            pipeline, OriginalEngine(pipeline, read.path, read.adapter), text, read.languages.target or None
        )
    for line in found.report():
        tell(line)
    if not found.holds:
        tell_red(found.failure)
    return found.holds
