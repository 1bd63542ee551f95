"""Tags before a source, which say what is wanted of it: >>fr<< for the language of the output (Johnson et al. 2017).

A tag is one token of the vocabulary, which nothing cuts. It stands before the text, with a space behind it. It begins
and ends with a symbol, as >>fr<< and <BT> do, so that no word is mistaken for one.
"""

import re
from collections.abc import Iterable

from transduce.core.errors import InputError
from transduce.core.registry import suggest
from transduce.data.placeholders import RESERVED
from transduce.data.tokenizers.text_ids import SPECIAL, Tokenizer

LANGUAGE = re.compile(r">>(\S+)<<")


def language_tag(language: str) -> str:
    """The tag for outputs in `language`."""
    return f">>{language}<<"


def with_tags(tokenizer: Tokenizer, tags: Iterable[str]) -> Tokenizer:
    """The tokenizer with each of `tags` as one further token; the same object if it has all of them."""
    return tokenizer.with_added(tags)


def checked_tag(tag: str) -> str:
    """The same. Raises ValueError for what cannot be a tag."""
    if not _is_tag(tag):
        raise ValueError(
            f'expected one word that begins and ends with a symbol, such as <BT>; got "{tag}". A plain word would '
            "be taken for the tag wherever a text has it"
        )
    return tag


def _is_tag(token: str) -> bool:
    return len(token.split()) == 1 and token == token.strip() and not (token[0].isalnum() or token[-1].isalnum())


def tags_of(tokenizer: Tokenizer) -> list[str]:
    """The tags that it has, in the order of their ids; `tokenizer.symbols` that are words are none."""
    return [token for token in tokenizer.added if token not in SPECIAL and token not in RESERVED and _is_tag(token)]


def languages_of(tokenizer: Tokenizer) -> list[str]:
    """The languages that its tags name."""
    found = (LANGUAGE.fullmatch(tag) for tag in tags_of(tokenizer))
    return [match[1] for match in found if match]


def leading_tags(tokenizer: Tokenizer, text: str) -> str:
    """The tags before a text, with the white space behind them; "" where there are none."""
    tags = tags_of(tokenizer)
    if not tags:
        return ""
    known = "|".join(map(re.escape, tags))
    found = re.match(rf"(?:\s*(?:{known}))+\s*", text)
    return found[0] if found else ""


def addressed(tokenizer: Tokenizer | None, texts: Iterable[str], language: str) -> list[str]:
    """The texts with the tag for outputs in `language`, each but those that say their language already.

    Raises:
        InputError: there is no such tag.
    """
    known = languages_of(tokenizer) if tokenizer else []
    if tokenizer is None or language not in known:
        what = f"this model writes {', '.join(known)}" if known else "this model was trained without language tags"
        raise InputError(f'to = "{language}": {what}.{suggest(language, known)}')
    tag = language_tag(language)
    return [f"{tag} {text}" if text.strip() and not _says_language(tokenizer, text) else text for text in texts]


def _says_language(tokenizer: Tokenizer, text: str) -> bool:
    return any(LANGUAGE.fullmatch(tag) for tag in leading_tags(tokenizer, text).split())


def require_language(tokenizer: Tokenizer | None, texts: Iterable[str]) -> None:
    """Raises InputError where a model writes several languages, and none of the texts says by its tag which."""
    known = languages_of(tokenizer) if tokenizer else []
    if tokenizer and known and not any(_says_language(tokenizer, text) for text in texts):
        raise InputError(f"this model writes {', '.join(known)}: say which, as in --to {known[0]}.")
