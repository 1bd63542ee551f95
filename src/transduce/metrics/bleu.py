"""BLEU: the share of the hypotheses' n-grams that are in the references, with a penalty for short output.

`bleu_tally` is the score to report: sacrebleu on plain text, 0 to 100, with its signature. `moses_bleu_tally` is for
comparison with papers that scored lower-cased tokenised text. The formulas of textbooks are in `bleu_formula`.
They differ in smoothing, brevity and weights: compare a figure only with figures of the same signature.

Source: Papineni et al. 2002; Post 2018 on why the signature matters.

Text as the Moses scripts write it: lower-cased, with normalised punctuation, tokenised.

Published lower-cased tokenised BLEU, such as the Multi30k figures, was computed on such text. With these
flags sacremoses turns every raw line of Multi30k's val, test_2016 and test_2017 (cs, de, en, fr) into the
very line of its tokenised files.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from transduce.metrics.score import References, checked_references
from transduce.metrics.tally import Tally
from transduce.metrics.writing import Kind, Writing, writing

TOKENIZERS: dict[Kind, str] = {
    "spaces": "13a",
    "chinese": "zh",
    "japanese": "ja-mecab",
    "korean": "ko-mecab",
    "unspaced": "char",
}
EXTRAS: dict[Kind, str] = {"japanese": "ja", "korean": "ko"}  # of sacrebleu


def bleu_tally(
    hypotheses: Sequence[str],
    references: References,
    *,
    lowercase: bool = False,
    tokenize: str | None = None,
    smooth: str = "exp",
    max_order: int = 4,
    language: str | None = None,
) -> Tally:
    """Corpus BLEU, 0 to 100, of plain (detokenised) sentences.

    Args:
        hypotheses: one a sentence.
        references: one a hypothesis, or several, in the same order; the closest length counts for brevity.
        lowercase: compare in lower case (`case:lc`).
        tokenize: how sacrebleu splits words: 13a, intl, char, zh, ja-mecab, ko-mecab, none. None: as the target's
            language wants it, zh for Chinese, ja-mecab and ko-mecab where they are installed, else char; 13a for those
            that write spaces.
        smooth: what an n-gram order without any match counts: exp, floor, add-k, none.
        max_order: the longest n-grams counted.
        language: the target's code (zh, zh-CN, zho_Hans); None: the references' script decides.

    Raises:
        InputError: no sentences, not equally many, or one without a reference.
    """
    from sacrebleu.metrics.bleu import BLEU

    from transduce.metrics.sacrebleu_score import sacrebleu_tally

    note = ""
    if tokenize is None:
        tokenize, note = tokenizer_for(writing(language, checked_references(hypotheses, references)))
    metric = BLEU(lowercase=lowercase, tokenize=tokenize, smooth_method=smooth, max_ngram_order=max_order)
    return sacrebleu_tally(metric, hypotheses, references, name="BLEU", note=note)


def tokenizer_for(written: Writing) -> tuple[str, str]:
    """sacrebleu's tokenizer for such a text, and a note where that is not plain from the language."""
    name, fallback = TOKENIZERS[written.kind], ""
    extra = EXTRAS.get(written.kind)
    if extra is not None and not _installed(name):
        fallback = f'to count words, as papers do (tok:{name}): pip install "sacrebleu[{extra}]"'
        name = "char"
    elif written.kind == "unspaced":
        fallback = "sacreBLEU splits no words of a script without spaces"
    if fallback:
        return name, f"BLEU counts characters (tok:{name}): {fallback}.{_because(written)}"
    return name, f"BLEU splits words with tok:{name}.{_because(written)}" if written.reason else ""


def _because(written: Writing) -> str:
    return f" {written.reason[:1].upper()}{written.reason[1:]}" if written.reason else ""


@cache
def _installed(tokenizer: str) -> bool:
    from sacrebleu.metrics.bleu import BLEU

    try:
        BLEU(tokenize=tokenizer)
    except (ImportError, RuntimeError, AssertionError):  # AssertionError: with another dictionary
        return False
    return True


def moses_bleu_tally(hypotheses: Sequence[str], references: References, language: str, lowercase: bool = True) -> Tally:
    """BLEU of Moses-tokenised text, as older papers report it; a point or two away from `bleu_tally`.

    Both sides come as plain text and are lower-cased, normalised and tokenised here.

    Raises:
        InputError: no sentences, not equally many, or one without a reference.
    """
    from importlib.metadata import version

    from sacrebleu.metrics.bleu import BLEU

    from transduce.metrics.sacrebleu_score import sacrebleu_tally

    listed = checked_references(hypotheses, references)
    tokenize = moses_tokenizer(language, lowercase=lowercase)
    tally = sacrebleu_tally(
        BLEU(tokenize="none", force=True),  # force: it is tokenised on purpose, no warning wanted
        [tokenize(sentence) for sentence in hypotheses],
        [[tokenize(sentence) for sentence in several] for several in listed],
        name="BLEU",
        changes={"case": "lc" if lowercase else "mixed", "tok": f"moses-{language}"},
    )
    kind = writing(language, listed).kind
    whole = "the Moses tokenizer splits no words of a script without spaces: use bleu or chrf."
    note = "" if kind in ("spaces", "korean") else f"BLEU of whole sentences, near 0: {whole}"
    return replace(tally, signature=f"{tally.signature}|sacremoses:{version('sacremoses')}", note=note)


def moses_tokenizer(language: str, *, lowercase: bool = True) -> Callable[[str], str]:
    """A function from a sentence to its tokens, joined by spaces.

    Args:
        language: a two-letter code; it decides apostrophes, quotes and abbreviations.
        lowercase: lower-case first, as Multi30k's scripts do: abbreviations are then looked up in lower case.
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    normalizer = MosesPunctNormalizer(language, perl_parity=True)
    tokenizer = MosesTokenizer(language)

    def tokenize(sentence: str) -> str:
        text = sentence.lower() if lowercase else sentence
        # The Perl script sees the line end, and its rule for `."` in German and French matches against it.
        normalized = normalizer.normalize(text + "\n")
        # Escaped (`&quot;`), as in the published files; one token either way, so BLEU is the same.
        return str(tokenizer.tokenize(normalized, escape=True, return_str=True)).strip()

    return tokenize
