"""What a foreign model reads before and behind a text, what its outputs begin with, and with which tokenizers.

| model_type | a source is | an output begins with |
|---|---|---|
| `marian` | `x </s>`, a tag such as `>>fr<<` may stand in front | `<pad>` |
| `t5`, `mt5`, `pegasus` | `x </s>` | `<pad>` |
| `bart` | `<s> x </s>` | `</s>`, and `<s>` where that is forced |
| `m2m_100` | `__en__ x </s>` | `</s> __fr__` |
| NLLB (`m2m_100`) | `eng_Latn x </s>` | `</s> fra_Latn` |
| mBART-50 (`mbart`) | `en_XX x </s>` | `</s> fr_XX` |
| mBART (`mbart`) | `x </s> en_XX` | `fr_XX` |
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.printable import listed
from transduce.core.registry import suggest
from transduce.data.columns.tokens import Tokens
from transduce.data.tags import LANGUAGE
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.interop.foreign_folder import ForeignFolder
from transduce.interop.import_tokenizer import (
    ImportedTokenizer,
    filled,
    named_ids,
    of_bytes,
    of_sentencepiece,
    tokenizer_file,
)
from transduce.interop.model_card import Languages
from transduce.interop.sentencepiece import read_sentencepiece

M2M100_LANGUAGES = """
af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu
hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt
ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu
""".split()  # noqa: SIM905

TARGET = "target"  # a folder with the tokenizer of outputs
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
HOW = (
    "Save the tokenizer beside the model as tokenizer.json, with the library transformers: "
    'python -c "from transformers import AutoTokenizer as T; '
    "T.from_pretrained('{folder}').save_pretrained('{folder}')\""
)


@dataclass(frozen=True)
class ColumnPair:
    """Both sides of a translator. further: how many tokens the tokenizers have besides those of the original, whose
    unknown token is `unknown`."""

    source: Tokens
    target: Tokens
    further: int = 0

    @property
    def unknown(self) -> int:
        return self.source.tokenizer.unknown

    def never_writing(self, never: Sequence[int], never_first: Sequence[int]) -> "ColumnPair":
        """The same, whose search never chooses these tokens besides, nor those as the first one."""
        ids = {*self.target.unwritten, *never}
        target = replace(
            self.target,
            never=tuple(self.target.tokens(sorted(ids))),
            never_first=tuple(self.target.tokens(never_first)),
        )
        return replace(self, target=target)


def columns_of(folder: ForeignFolder, kind: str, sizes: tuple[int, int], languages: Languages) -> ColumnPair:
    """The columns of a folder's model, whose embeddings of source and target have as many rows as `sizes` says.

    Raises:
        InputError: a file of the tokenizer is missing or wrong; the model needs languages that were not given.
    """
    if kind == "marian" and not (folder.path / "tokenizer.json").is_file():
        return _marian(folder, sizes)
    two = folder.path / TARGET / "tokenizer.json"  # of an export of ours, whose sides have a vocabulary each
    tokenizer = tokenizer_file(two, sizes[1]) if two.is_file() else _tokenizer(folder, kind, sizes[1])
    reads = _tokenizer(folder, kind, sizes[0]) if two.is_file() else tokenizer
    if problems := tokenizer.problems("pad", "unknown"):
        raise InputError(f"{folder.path}: {problem}" for problem in problems)
    before, after, begins = _around(folder, kind, tokenizer, languages)
    if list(begins) == tokenizer.tokens([tokenizer.start]):
        begins = ()
    source = Tokens(reads, ends=True, before=before, after=after)
    return ColumnPair(source, Tokens(tokenizer, starts=True, ends=True, before=begins, never=()))


def _marian(folder: ForeignFolder, sizes: tuple[int, int]) -> ColumnPair:
    """Two SentencePiece models, and one table of ids, or one for each side."""
    path, two = folder.path, folder.path / "target_vocab.json"
    ids = named_ids(path / "vocab.json")
    target_ids = named_ids(two) if two.is_file() else ids
    start = folder.token("decoder_start_token_id")
    columns = marian_columns(path / "source.spm", path / "target.spm", ids, target_ids, sizes, start)
    return replace(columns, target=replace(columns.target, never=()))  # unlike Marian, transformers may write padding


def marian_columns(
    source_file: Path,
    target_file: Path,
    ids: dict[str, int],
    target_ids: dict[str, int],
    sizes: tuple[int, int],
    start: int | None,
) -> ColumnPair:
    """The columns of a Marian model, from its SentencePiece files and its tables of ids.

    sizes: rows of the embeddings of source and target.
    start: what an output begins with; None = padding. With two vocabularies, transformers has one id of padding for
        both, the source's, and outputs begin with it, whatever it is in the target.

    Raises:
        InputError: the tables have more tokens than the embeddings rows; the start is none of the target's.
    """
    joint = ids == target_ids
    special = [name for name in SPECIAL if name not in ("<s>", "<mask>")]
    tags = [name for name in ids if LANGUAGE.fullmatch(name)]
    read = of_sentencepiece(read_sentencepiece(source_file), ids, special, tags, extends=joint)
    written = of_sentencepiece(read_sentencepiece(target_file), target_ids, special, tags if joint else [])
    further = read.further if joint else 0
    source, target = (_fitted(each, size + further) for each, size in zip((read, written), sizes, strict=True))
    begins: tuple[str, ...] = ()
    if start is not None and start != target.start:
        if joint or start >= sizes[1]:
            raise InputError(f"{source_file.parent}: outputs begin with token {start}; expected padding, {target.pad}.")
        begins = tuple(target.tokens([start]))
    never = tuple(target.tokens([target.pad]))
    written_column = Tokens(target, starts=True, ends=True, before=begins, never=never)
    return ColumnPair(Tokens(source, ends=True), written_column, further)


def _fitted(cut: ImportedTokenizer, size: int) -> Tokenizer:
    return filled(cut.tokenizer, size, "vocab.json")


def _tokenizer(folder: ForeignFolder, kind: str, size: int) -> Tokenizer:
    path = folder.path
    if (path / "tokenizer.json").is_file():
        return tokenizer_file(path / "tokenizer.json", size, further_tokens(folder))
    if kind == "m2m_100" and (path / "sentencepiece.bpe.model").is_file() and not (path / "vocab.json").is_file():
        return _nllb(folder, size)
    if kind in ("t5", "mt5", "pegasus") and (path / "spiece.model").is_file():
        model = read_sentencepiece(path / "spiece.model")
        ids = {piece.text: index for index, piece in enumerate(model.pieces)}
        return filled(of_sentencepiece(model, ids, SPECIAL).tokenizer, size, "spiece.model")
    if kind == "m2m_100" and (path / "sentencepiece.bpe.model").is_file() and (path / "vocab.json").is_file():
        model, ids = read_sentencepiece(path / "sentencepiece.bpe.model"), named_ids(path / "vocab.json")
        if (named := folder.tokenizer.get("language_codes", "m2m100")) != "m2m100":
            raise InputError(f'{path}: language_codes: expected "m2m100"; got {named!r:.80}.')
        codes = [f"__{code}__" for code in M2M100_LANGUAGES]
        ids |= {code: len(ids) + place for place, code in enumerate(codes)}
        return filled(of_sentencepiece(model, ids, [*SPECIAL, *codes]).tokenizer, size, "vocab.json")
    if kind == "bart" and (path / "merges.txt").is_file():
        return of_bytes(path, size)
    raise InputError(f"{path}: there is no tokenizer that can be read. {HOW.format(folder=path)}")


def further_tokens(folder: ForeignFolder) -> list[str]:
    """Special tokens that tokenizer_config.json names besides those of the vocabulary, such as codes of languages."""
    for key in ("extra_special_tokens", "additional_special_tokens"):
        value = folder.tokenizer.get(key)
        if value and isinstance(value, list):
            names: list[Any] = [each.get("content") if isinstance(each, dict) else each for each in value]
            if not all(isinstance(name, str) for name in names):
                raise InputError(f"{folder.path / 'tokenizer_config.json'}: {key}: expected a list of tokens.")
            return names
    return []


def _nllb(folder: ForeignFolder, size: int) -> Tokenizer:
    """A SentencePiece model as fairseq numbers it: special tokens, the pieces, the codes of languages, `<mask>`."""
    codes = [name for name in further_tokens(folder) if name != "<mask>"]
    if not codes:
        raise InputError(
            f"{folder.path}: there is no tokenizer.json, and tokenizer_config.json has no extra_special_tokens that "
            f"name the languages of this model. {HOW.format(folder=folder.path)}"
        )
    model = read_sentencepiece(folder.path / "sentencepiece.bpe.model")
    names = ["<s>", "<pad>", "</s>", "<unk>", *(piece.text for piece in model.pieces[3:]), *codes, "<mask>"]
    ids = {name: index for index, name in enumerate(names)}
    return filled(of_sentencepiece(model, ids, [*SPECIAL, *codes]).tokenizer, size, "sentencepiece.bpe.model")


def _around(
    folder: ForeignFolder, kind: str, tokenizer: Tokenizer, languages: Languages
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """What stands before a source and behind it, and what an output begins with."""
    end = tuple(tokenizer.tokens([tokenizer.end]))
    name = str(folder.tokenizer.get("tokenizer_class") or folder.config.get("tokenizer_class") or "")
    if kind in ("m2m_100", "mbart"):
        codes = [name for name in further_tokens(folder) if tokenizer._inner.token_to_id(name) is not None]
        source, target = (language_token(tokenizer, side, code, codes) for side, code in languages._asdict().items())
        if kind == "mbart" and not name.startswith("MBart50"):
            return (), (*end, source), (target,)
        if name.startswith("Nllb") and folder.tokenizer.get("legacy_behaviour") is True:
            return (), (*end, source), (*end, target)
        return (source,), (), (*end, target)
    start, forced = folder.token("decoder_start_token_id"), folder.token("forced_bos_token_id", strict=True)
    begins = tuple(tokenizer.tokens(index for index in (start, forced) if index is not None))
    if start is None:
        begins = (*tokenizer.tokens([tokenizer.pad]), *begins)
    before = tuple(tokenizer.tokens([tokenizer.start])) if kind == "bart" else ()
    return before, (), begins


def language_token(tokenizer: Tokenizer, side: str, code: str, codes: Sequence[str] = ()) -> str:
    """The token of a language: its code as it is, or as M2M-100 or mBART writes it.

    codes: those that other files than the tokenizer's name.

    Raises:
        InputError: no code was given, or there is no such token.
    """
    vocabulary: dict[str, int] = tokenizer._inner.get_vocab(with_added_tokens=True)
    added = sorted(tokenizer._inner.get_added_tokens_decoder().items())
    names = list(dict.fromkeys([*(token.content for _, token in added if token.special), *codes]))
    names = [name for name in names if name not in SPECIAL and not name.startswith("<")]
    what = f"this model has many languages: give the code of the {side} as --{side}-language"
    if not code:
        raise InputError(f"{what}, one of {listed(names)}.")
    begin = [name for name in names if name.startswith(f"{code}_")]
    found = [name for name in (code, f"__{code}__") if name in vocabulary and name in names] or begin
    if len(found) != 1:
        raise InputError(f'{what}; got "{code}".{suggest(code, names)} Known: {listed(found or names)}.')
    return found[0]


def never_of(folder: ForeignFolder, tokenizer: Tokenizer) -> tuple[str, ...]:
    """The tokens that the settings of generation rule out."""
    listed: list[Any] = [folder.generated(key) for key in ("suppress_tokens", "bad_words_ids")]
    flat: list[int] = []
    for each in listed:
        for one in each if isinstance(each, list) else []:
            flat += [one] if type(one) is int else one if isinstance(one, list) and len(one) == 1 else []
    known = sorted({index for index in flat if type(index) is int and 0 <= index < tokenizer.size} - {tokenizer.end})
    return tuple(tokenizer.tokens(known))
