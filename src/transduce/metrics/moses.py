"""Text as the Moses scripts write it: lower-cased, with normalised punctuation, tokenised.

Published lower-cased tokenised BLEU, such as the Multi30k figures, was computed on such text. With these
flags sacremoses turns every raw line of Multi30k's val, test_2016 and test_2017 (cs, de, en, fr) into the
very line of its tokenised files.
"""

from collections.abc import Callable


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
