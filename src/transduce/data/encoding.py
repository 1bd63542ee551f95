"""Examples -> stores of token ids, or of frames: encoded once, then opened from the cache."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from transduce.core.errors import InputError
from transduce.data.augmentation import Augmenter
from transduce.data.columns import Column, Columns
from transduce.data.columns.packed import pack
from transduce.data.corpus import LINES_NAMED, TextFile, read_tagged_pairs, read_text
from transduce.data.files import fingerprint
from transduce.data.filters import Dropped, FilterConfig, reason_to_drop
from transduce.data.hold_out import digest, part_of
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.pairs.pair_groups import Parts
from transduce.data.store import Field, Store, cache_key, cached_store, write_store
from transduce.data.tokenizers.resegment import cut_anew
from transduce.data.tokenizers.tokenizer import Tokenizer

CHUNK = Column.encoded_at_once
Progress = Callable[[int], None]
"""Called with the number of lines encoded so far."""
Item = TypeVar("Item")


class Encoder(Protocol):
    """Text to ids: a tokenizer, or one that cuts words anew; or to frames."""

    @property
    def unknown(self) -> int: ...

    def encode(self, texts: Sequence[str]) -> Sequence[Any]:
        """The ids of each text, without start and end."""
        ...


def open_pairs_store(
    files: PairFiles,
    root: Path,
    tokenizers: tuple[Tokenizer, Tokenizer],
    filters: FilterConfig,
    cache: Path,
    *,
    resegment: tuple[float, int] | None = None,
    augment: Augmenter | None = None,
    progress: Progress | None = None,
    held_out: tuple[Parts, int] | None = None,
) -> Store:
    """The pairs as token ids, fields "source" and "target"; tokenised once, later opened from `cache`.

    Args:
        held_out: where each pair belongs, and the part that is opened; None = all pairs.
        resegment: rate and seed of BPE-dropout, see `cut_anew`; None = the tokenizers' own pieces.
        augment: changes each pair; None = nothing does.

    metadata["dropped"] is a `Dropped` as a dict, metadata["unknown"] the number of unknown tokens by field.

    Raises:
        InputError: what `read_pairs` refuses, or no pair is left after filtering.
    """
    source, target = tokenizers
    encoders: tuple[Encoder, Encoder] = cut_anew(source, target, *resegment) if resegment else tokenizers

    def read() -> Iterator[tuple[int, str, str]]:
        pairs = read_tagged_pairs(files, root, augment.begun() if augment else None)
        return part_of(pairs, *held_out) if held_out else pairs

    parts = _pairs_parts(files, root, tokenizers, filters, resegment, augment, held_out)
    return _open_pairs(files.paths(root), parts, read, encoders, (source.size, target.size), filters, cache, progress)


def pairs_store_key(
    files: PairFiles,
    root: Path,
    tokenizers: tuple[Tokenizer, Tokenizer],
    filters: FilterConfig,
    resegment: tuple[float, int] | None = None,
    augment: Augmenter | None = None,
    held_out: tuple[Parts, int] | None = None,
) -> str:
    """The key in the cache of what `open_pairs_store` opens."""
    return cache_key(_pairs_parts(files, root, tokenizers, filters, resegment, augment, held_out))


def _pairs_parts(
    files: PairFiles,
    root: Path,
    tokenizers: tuple[Tokenizer, Tokenizer],
    filters: FilterConfig,
    resegment: tuple[float, int] | None,
    augment: Augmenter | None,
    held_out: tuple[Parts, int] | None,
) -> dict[str, Any]:
    settings: dict[str, Any] = {"filters": filters.model_dump(), "columns": files.columns, **files.read_as}
    if files.tags:
        settings["tags"] = files.tags
    if resegment:
        settings["resegment"] = list(resegment)
    if augment and augment.decides:
        settings["augment"] = augment.decides
    if held_out:
        settings["part"] = digest(*held_out)
    return _parts("pairs", files.paths(root), tokenizers, settings)


def open_examples(
    paths: Sequence[Path],
    read: Callable[[], Iterator[tuple[int, str, str]]],
    columns: Columns,
    filters: FilterConfig,
    cache: Path,
    settings: Mapping[str, Any] = MappingProxyType({}),
    progress: Progress | None = None,
) -> Store:
    """What `read` gives of the files, as (line number from 1, source, target), encoded once, later opened from `cache`.

    Args:
        paths: the files that it reads.
        columns: "source" and "target".
        settings: whatever else decides what it gives, for JSON.

    Raises:
        InputError: what `read` or a column refuses, or nothing is left after filtering.
    """
    parts = _example_parts(paths, columns, {**settings, "filters": filters.model_dump()})
    source, target = columns["source"], columns["target"]
    stored = source.stored, target.stored
    return _open_pairs(paths, parts, read, (source, target), stored, filters, cache, progress, source.encoded_at_once)


def open_rows(
    paths: Sequence[Path],
    read: Callable[[dict[str, Any]], Iterator[dict[str, list[int]]]],
    columns: Columns,
    cache: Path,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Store:
    """What `read` gives of the files, as ids by field already, opened from `cache` when it is there.

    Args:
        paths: the files that it reads.
        read: given the store's metadata, into which it may write until its last row.
        columns: "source" and "target", whose ids they are.
        settings: whatever else decides what it gives, for JSON.

    Raises:
        InputError: what `read` refuses, or it gives nothing.
    """
    parts = _example_parts(paths, columns, settings)

    def build(path: Path) -> None:
        metadata = dict(parts)
        write_store(path, read(metadata), {side: column.stored for side, column in columns.items()}, metadata)

    store = cached_store(cache, cache_key(parts), build)
    if not len(store):
        raise InputError(f"{', '.join(map(str, paths))}: there is nothing to learn from: every example was left out.")
    return store


def _example_parts(paths: Sequence[Path], columns: Columns, settings: Mapping[str, Any]) -> dict[str, Any]:
    """All that decides a store of examples."""
    texts, tables = pack(columns)
    return {
        "kind": "examples",
        "fingerprints": [fingerprint(path) for path in paths],
        "tokenizers": {side: hashlib.sha256(text.encode()).hexdigest() for side, text in texts.items()},
        "columns": tables,
        "settings": dict(settings),
    }


def _open_pairs(
    paths: Sequence[Path],
    parts: dict[str, Any],
    read: Callable[[], Iterator[tuple[int, str, str]]],
    encoders: tuple[Encoder, Encoder],
    sizes: tuple[Field, Field],
    filters: FilterConfig,
    cache: Path,
    progress: Progress | None = None,
    chunk: int = CHUNK,
) -> Store:
    """parts: all that decides the content of the store."""
    named = ", ".join(map(str, paths))

    def build(path: Path) -> None:
        metadata = {**parts, "unknown": {"source": 0, "target": 0}, "dropped": {}}
        examples = _encoded(read(), encoders, filters, metadata, progress, named, chunk)
        write_store(path, examples, dict(zip(("source", "target"), sizes, strict=True)), metadata)

    store = cached_store(cache, cache_key(parts), build)
    if not len(store):
        what = Dropped.from_dict(store.metadata["dropped"]).report()
        raise InputError(f"{named}: there is no pair to learn from. {what}")
    return store


def open_text_store(
    file: TextFile,
    root: Path,
    tokenizer: Tokenizer,
    context: int,
    cache: Path,
    *,
    start: int | None = None,
    progress: Progress | None = None,
) -> Store:
    """The text as rows of context + 1 token ids (see `windows`), field "target"; later opened from `cache`.

    metadata["lines"] counts the lines, metadata["unknown"] the unknown tokens, metadata["predicted"] the
    tokens that the rows predict: all of the text, and in unit "line" an </s> for each line.

    start: the id before each line, or in unit "stream" before the text. None = the end token of the line before.

    Raises:
        InputError: a missing file, text that is not UTF-8, or no text at all.
    """
    [path] = file.paths(root)
    parts = _text_parts(file, root, tokenizer, context, start)

    def build(destination: Path) -> None:
        metadata = {**parts, "unknown": {"target": 0}, "lines": 0, "predicted": 0}
        rows = windows(_tokenised_stream(file, root, tokenizer, metadata, progress, start), context)
        write_store(destination, _as_targets(rows, metadata), {"target": tokenizer.size}, metadata)

    store = cached_store(cache, cache_key(parts), build)
    if not len(store):
        raise InputError(f"{path}: there is no text to learn from: the file is empty.")
    return store


def text_store_key(file: TextFile, root: Path, tokenizer: Tokenizer, context: int, start: int | None = None) -> str:
    """The key in the cache of what `open_text_store` opens."""
    return cache_key(_text_parts(file, root, tokenizer, context, start))


def _text_parts(file: TextFile, root: Path, tokenizer: Tokenizer, context: int, start: int | None) -> dict[str, Any]:
    settings: dict[str, Any] = {"context": context, "unit": file.unit, "part": file.part, "column": file.column}
    if tokenizer.right_to_left:
        settings["direction"] = "right_to_left"
    if start not in (None, tokenizer.end):
        settings["start"] = start
    if tokenizer.roles:
        settings["roles"] = tokenizer.roles
    return _parts("text", file.paths(root), (tokenizer,), settings)


def _parts(kind: str, paths: list[Path], tokenizers: Sequence[Tokenizer], settings: dict[str, Any]) -> dict[str, Any]:
    """All that decides a store's content."""
    return {
        "kind": kind,
        "fingerprints": [fingerprint(path) for path in paths],
        "tokenizers": [_hashed(each) for each in tokenizers],
        "settings": settings,
    }


_hashes: WeakKeyDictionary[Tokenizer, str] = WeakKeyDictionary()  # writing a tokenizer out takes milliseconds


def _hashed(tokenizer: Tokenizer) -> str:
    if tokenizer not in _hashes:
        _hashes[tokenizer] = hashlib.sha256(tokenizer.to_json().encode()).hexdigest()
    return _hashes[tokenizer]


def _encoded(
    pairs: Iterable[tuple[int, str, str]],
    encoders: tuple[Encoder, Encoder],
    filters: FilterConfig,
    metadata: dict[str, Any],
    progress: Progress | None,
    named: str,
    chunk_size: int,
) -> Iterator[dict[str, Any]]:
    """The kept pairs; what was dropped and what was unknown goes into `metadata`."""
    dropped, unknown = Dropped(), metadata["unknown"]
    for chunk in _chunks(pairs, chunk_size):
        numbers, sources, targets = zip(*chunk, strict=True)
        given = (
            _ids(encoder, numbers, side, named) for encoder, side in zip(encoders, (sources, targets), strict=True)
        )
        sides = zip(*given, strict=True)
        for number, (source, target) in zip(numbers, sides, strict=True):
            reason = reason_to_drop(filters, source, target)
            dropped.add(reason, number)
            if reason is None:
                for side, ids, encoder in zip(("source", "target"), (source, target), encoders, strict=True):
                    unknown[side] += ids.count(encoder.unknown) if encoder.unknown >= 0 else 0
                yield {"source": source, "target": target}
        if progress:
            progress(numbers[-1])
    metadata["dropped"] = dropped.to_dict()


def _ids(encoder: Encoder, lines: Sequence[int], texts: Sequence[str], named: str) -> Sequence[Any]:
    """The ids of each text. Raises InputError naming the lines of those that are refused."""
    try:
        return encoder.encode(texts)
    except InputError:
        problems = []
        for line, text in zip(lines, texts, strict=True):
            try:
                encoder.encode([text])
            except InputError as error:
                problems += [f"{named}, line {line}: {problem}" for problem in error.problems]
        more = (
            [f"{named}: {len(problems) - LINES_NAMED:,} more lines like these."] if len(problems) > LINES_NAMED else []
        )
        raise InputError([*problems[:LINES_NAMED], *more]) from None


def _tokenised_stream(
    file: TextFile,
    root: Path,
    tokenizer: Tokenizer,
    metadata: dict[str, Any],
    progress: Progress | None,
    start: int | None,
) -> Iterator[Sequence[int]]:
    def tokenised() -> Iterator[list[int]]:
        for chunk in _chunks(read_text(file, root)):
            for ids in tokenizer.encode(chunk):
                metadata["unknown"]["target"] += ids.count(tokenizer.unknown)
                yield ids
            metadata["lines"] += len(chunk)
            if progress:
                progress(metadata["lines"])

    end = tokenizer.end
    if file.unit == "stream":
        return running(tokenised(), end if start is None else start)
    return sentences(tokenised(), end, None if start == end else start)


def _as_targets(rows: Iterable[list[int]], metadata: dict[str, Any]) -> Iterator[dict[str, list[int]]]:
    for row in rows:
        metadata["predicted"] += len(row) - 1
        yield {"target": row}


def _chunks(items: Iterable[Item], size: int = CHUNK) -> Iterator[list[Item]]:
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk


def sentences(lines: Iterable[Sequence[int]], end: int, start: int | None = None) -> Iterator[Sequence[int]]:
    """A stream of lines, each followed by `end`; one more before the first, to predict it from.

    start: stands before each line, where that is another token.
    """
    if start is not None:
        return chain.from_iterable(([start], line, [end]) for line in lines)
    return chain([[end]], chain.from_iterable((line, [end]) for line in lines))


def running(lines: Iterable[Sequence[int]], start: int) -> Iterator[Sequence[int]]:
    """A stream of text that only begins with `start`; its lines hold their own newline tokens."""
    return chain([[start]], lines)


def windows(stream: Iterable[Sequence[int]], context: int) -> Iterator[list[int]]:
    """Rows of context + 1 ids, each beginning with the token that the one before ended with.

    A row's first token is only read, the others are predicted: every token of the stream but its very first
    is predicted exactly once. The last row may be shorter; one of a single token predicts nothing and is left
    out.
    """
    row: list[int] = []
    for piece in stream:
        taken = 0
        while len(row) + len(piece) - taken > context:
            more = context + 1 - len(row)
            row.extend(piece[taken : taken + more])
            taken += more
            yield row
            row = row[-1:]
        row.extend(piece[taken:])
    if len(row) >= 2:
        yield row
