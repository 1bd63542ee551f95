"""Text pairs: one line in, one line out. Translation, transliteration, pronunciation, dates, queries."""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.augmentation import Augmenter
from transduce.data.columns import Columns
from transduce.data.columns.tokens import Tokens
from transduce.data.corpus import about_pairs, provenance, read_pairs, read_tagged_pairs, train_pair_tokenizers
from transduce.data.encoding import open_examples, open_pairs_store, pairs_store_key
from transduce.data.filters import NO_LIMITS, Dropped, FilterConfig
from transduce.data.hold_out import TEST, TRAIN, VALIDATION, Split, digest, part_of
from transduce.data.input_file import InputFile
from transduce.data.pairs.copied import COPIED, copied
from transduce.data.pairs.known_columns import Known, read_pair_inputs
from transduce.data.pairs.pair_data import PairData, held_out_names
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.pairs.pair_groups import Parts
from transduce.data.shards import grouped_shards
from transduce.data.store import Store, is_cached
from transduce.data.tags import leading_tags, tags_of
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.data.tokenizers.unknown_tokens import unknown_report
from transduce.data.word_alignment import MOST_PAIRS, WordAligner
from transduce.search.request import Request
from transduce.search.settings import Search
from transduce.tasks.base import TextTask, named_files
from transduce.tasks.encoding_processes import Encoding, opened
from transduce.tasks.protocols import Baseline, Dataset, TaskData, Tell

Corpus = tuple[PairFiles, Parts | None]  # and where its pairs belong
ASKED = 200  # training pairs that tell which baseline is better


class _Version(NamedTuple):
    """What becomes of a training pair: rate and seed of BPE-dropout, and what changes its texts."""

    cut: tuple[float, int] | None = None
    augment: Augmenter | None = None

    def learn(self) -> None:
        """Learn what is needed before processes encode side by side."""
        if self.augment:
            _ = self.augment.aligner


class TranslationConfig(Config):
    """What the two sides are called, and what a translation is judged by."""

    kind: Literal["translation"] = "translation"
    source: str = Field(default="")
    """Language code of the source, such as en."""
    target: str = Field(default="")
    """Language code of the target, by which BLEU and TER split words (zh, ja, ko ..); chooses the Moses tokenizer."""
    metrics: tuple[str, ...] = ("bleu", "chrf")
    """What validation, the final tests and `evaluate` report: bleu, bleu-lc-moses, chrf, chrf++, ter, cer, wer, per,
    exact_match, length_match, rouge1, rouge2, rougeL. per is the error rate of phonemes with spaces between them; the
    word error rate of pronunciations is 100 - exact_match. length_match is the share of outputs with as many characters
    as their reference, for verse. bleu-notes, rouge1-notes and rouge2-notes are the formulas of textbooks."""
    baseline: bool = True
    """At the end, also test a baseline that answers with the target of the nearest training source, or with the source
    itself where that is closer to the training targets."""


class Translation(TextTask):
    """Source text -> target text, through an encoder-decoder."""

    Config = TranslationConfig
    Data = PairData
    kinds: ClassVar[dict[str, str]] = {"source": "tokens", "target": "tokens"}
    fingerprints = staticmethod(named_files)
    columns_version = 2
    of_sentences = True

    def __init__(self, config: TranslationConfig, data: PairData, columns: Columns) -> None:
        super().__init__(config, data, columns)
        tokenizers = self.tokenizers
        self.source, self.target = tokenizers["source"], tokenizers["target"]

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: PairData) -> Columns:
        """One tokenizer for both sides when `config.joint`, else one each."""
        split, corpora = data.split(), data.corpora()

        def read(files: PairFiles, root: Path) -> Iterator[tuple[int, str, str]]:
            pairs = read_pairs(files, root)
            return part_of(pairs, split.parts[corpora.index(files)], TRAIN) if split else pairs

        source, target = train_pair_tokenizers(config, corpora, Path(data.root), read, data.augmented)
        return {"source": Tokens(source, ends=True), "target": Tokens(target, starts=True, ends=True)}

    @property
    def context(self) -> str:
        """The whole pair so far."""
        return "the source and all target tokens before"

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Encode the recipe's files, or find them in the cache; dropped pairs are told."""
        data = self.data
        self._check_tags()
        split = data.split()
        if split:
            tell(split.report())
        groups = grouped_shards(data.train, self.root)
        train = [files for group in groups for files in group]
        drawn = iter(split.parts if split else (None,) * len(train))
        kept = [[(files, parts) for files, parts in zip(group, drawn, strict=False)] for group in groups]
        corpora = self._training_stores(kept, cache, tell)
        validation = self._held_out("validation", data.validation, cache, tell) if data.validation else None
        tests = {name: self._held_out(name, files, cache, tell) for name, files in data.test.items()}
        if split and split.count(VALIDATION):
            validation = self._drawn(split, VALIDATION, cache)
        if split and split.count(TEST):
            tests |= self._drawn_tests(split, cache)
        made_from = provenance(train, self.held_out, self.root)
        return TaskData(corpora, validation, tests, made_from, cuts=data.versions)

    def read_inputs(self, path: Path) -> InputFile | None:
        """The pairs of a .csv, .jsonl, .tmx or .tsv; see `transduce.data.pairs.known_columns`."""
        data, languages = self.data, (self.config.source, self.config.target)
        files = [*data.test.values(), *([data.validation] if data.validation else []), *data.train]
        return read_pair_inputs(path, Known(files, self.root, languages))

    def baseline(self, data: TaskData, tell: Tell) -> Baseline | None:
        """The target of the training pair whose source is the nearest; the source itself where that is nearer."""
        from transduce.inference.nearest_examples import MOST_TOKENS, NearestTexts

        if not self.config.baseline:
            return None
        sources, targets = data.examples(MOST_TOKENS)
        if self._is_nearer_itself(sources, targets):
            return Baseline("source as it is", lambda texts: list(map(self._untagged, texts)))
        model = NearestTexts.of(sources, self.source.size)

        def answers(texts: Sequence[str]) -> list[str]:
            return [self.target.decode(targets[each].tolist()) for each in model.nearest(self.source.encode(texts))]

        return Baseline("nearest source", answers, {"ngrams": [1, 2], "of": "tokens", "examples": len(sources)})

    def _is_nearer_itself(self, sources: Sequence[Any], targets: Sequence[Any]) -> bool:
        """Whether training sources are more like their own targets than the target of the nearest other source is."""
        from transduce.inference.nearest_examples import NearestTexts
        from transduce.metrics.span import bag_f1

        asked = range(0, len(sources), max(2, len(sources) // ASKED))
        own = [self._untagged(self.source.decode(sources[each].tolist())) for each in asked]
        wanted = [self.target.decode(targets[each].tolist()) for each in asked]
        others = sorted(set(range(len(sources))) - set(asked))
        if not others or copied(zip(own, wanted, strict=True)) < COPIED:
            return False
        nearest = NearestTexts.of([sources[each] for each in others], self.source.size)
        found = nearest.nearest([sources[each] for each in asked])
        answers = [self.target.decode(targets[others[each]].tolist()) for each in found]

        def likeness(texts: Sequence[str]) -> float:
            return sum(bag_f1(text.split(), target.split()) for text, target in zip(texts, wanted, strict=True))

        return likeness(own) > likeness(answers)

    def _untagged(self, text: str) -> str:
        return text[len(leading_tags(self.source, text)) :]

    def request(self, ids: Sequence[int], search: Search) -> Request:
        """The source's ids; the output may grow with the source's length."""
        opening = self._written.opening
        limit, least = self._written.roomy(search.limit(len(ids))), search.min_length + len(opening)
        source = self.columns["source"].closed(ids)
        return Request(limit, source, opening, least if search.min_length else 0)

    def _training_stores(
        self, groups: Sequence[Sequence[Corpus]], cache: Path, tell: Tell
    ) -> list[tuple[Store, float]]:
        """Each entry's: the pairs as they are, and other versions of them."""
        data = self.data
        versions = self._versions(groups)
        encodings = [
            self._encoding(files, parts, version, cache)
            for group in groups
            for files, parts in group
            for version in versions
        ]
        if data.augmented and not all(each.exists() for each in encodings):
            tell("Learning which words translate each other, for data.placeholders and data.terms.")
            versions[-1].learn()
        stores, found = iter(opened(encodings, data.workers, tell)), list[list[Store]]()
        for entry, group in zip(data.train, groups, strict=True):
            found.append(list(islice(stores, len(group) * len(versions))))
            name = ", ".join(str(path) for path in group[0][0].paths(self.root))
            if len(group) > 1:
                name = f"{', '.join(entry.names.values())}: {len(group):,} files each"
            own = found[-1][:: len(versions)]
            tell(f"{name}: {Dropped.of_all([Dropped.from_dict(each.metadata['dropped']) for each in own]).report()}")
            if unknown := unknown_report(own):
                tell(f"{name}: {unknown}")
            if data.bpe_dropout:
                tell(f"{name}: cut into pieces in {data.segmentations} ways.")
            elif data.augmented:
                tell(f"{name}: {data.segmentations} versions of each pair.")
        weights = temperature_weights([sum(map(len, each)) for each in found], data.temperature)
        shares = [entry.weight * weight for entry, weight in zip(data.train, weights, strict=True)]
        return [(store, share) for each, share in zip(found, shares, strict=True) for store in each]

    def _versions(self, groups: Sequence[Sequence[Corpus]]) -> "list[_Version]":
        """What becomes of each training pair: first nothing."""
        data = self.data
        if data.versions == 1:
            return [_Version()]
        learn = cache(lambda: WordAligner.learnt(self._pairs_to_align(groups)))
        learnt_from = self._aligned(groups) if data.augmented else ""
        return [
            _Version(
                (data.bpe_dropout, seed) if data.bpe_dropout and seed else None,
                Augmenter(learn, learnt_from, data.augmented, seed) if data.augmented else None,
            )
            for seed in range(data.segmentations)
        ]

    def _pairs_to_align(self, groups: Sequence[Sequence[Corpus]]) -> Iterator[tuple[str, str]]:
        """Training pairs out of all files, as many of each, evenly spread over its lines."""
        corpora = [corpus for group in groups for corpus in group]
        for files, parts in corpora:
            step = max(1, about_pairs(files, self.root) * len(corpora) // MOST_PAIRS)
            pairs = read_pairs(files, self.root)
            trained = part_of(pairs, parts, TRAIN) if parts is not None else pairs
            yield from ((source, target) for _, source, target in islice(trained, 0, None, step))

    def _aligned(self, groups: Sequence[Sequence[Corpus]]) -> str:
        """What the words are aligned in."""
        parts = hashlib.sha256()
        for files, held_out in (corpus for group in groups for corpus in group):
            key = pairs_store_key(files, self.root, (self.source, self.target), NO_LIMITS)
            parts.update(f"{key} {None if held_out is None else digest(held_out, TRAIN)}".encode())
        return parts.hexdigest()

    def _encoding(self, files: PairFiles, parts: Parts | None, version: "_Version", cache: Path) -> Encoding:
        filters, held_out = self.data.filters, None if parts is None else (parts, TRAIN)
        both = (self.source, self.target)
        key = partial(pairs_store_key, files, self.root, both, filters, version.cut, version.augment, held_out)
        return Encoding(lambda: is_cached(cache, key()), lambda: self._store(files, filters, cache, version, held_out))

    def _store(
        self,
        files: PairFiles,
        filters: FilterConfig,
        cache: Path,
        version: "_Version | None" = None,
        held_out: tuple[Parts, int] | None = None,
    ) -> Store:
        both, version = (self.source, self.target), version or _Version()
        return open_pairs_store(
            files, self.root, both, filters, cache, resegment=version.cut, augment=version.augment, held_out=held_out
        )

    def _drawn_tests(self, split: Split, cache: Path) -> dict[str, Dataset]:
        """A test set for each language that is written, as their words are not counted alike."""
        corpora = self.data.corpora()
        drawn = {files.to for files, parts in zip(corpora, split.parts, strict=True) if TEST in parts}
        names = held_out_names(corpora)
        return {name: self._drawn(split, TEST, cache, {to}) for to, name in names.items() if to in drawn}

    def _drawn(self, split: Split, part: int, cache: Path, languages: set[str | None] | None = None) -> Dataset:
        """A part that was drawn, of all training files, or of those in some languages."""
        root, chosen = self.root, list[tuple[PairFiles, Parts]]()
        for files, parts in zip(self.data.corpora(), split.parts, strict=True):
            if part in parts and (languages is None or files.to in languages):
                chosen.append((files, parts))
        train = [files for files, _ in chosen]

        def read() -> Iterator[tuple[int, str, str]]:
            for files, parts in chosen:
                yield from part_of(read_tagged_pairs(files, root), parts, part)

        paths = [path for files in train for path in files.paths(root)]
        drawn = [hashlib.sha256(parts.tobytes()).hexdigest() for _, parts in chosen]
        kept = [[files.columns, files.read_as, files.tags] for files in train]
        settings = {"pairs": kept, "drawn": drawn, "part": part}
        store = open_examples(paths, read, self.columns, NO_LIMITS, cache, settings)
        texts = [(source, target) for _, source, target in read()]
        if len({files.to for files in train}) == 1:
            return Dataset(store, texts, language=train[0].to)
        spoken = [files.to for files, parts in chosen for _ in range(np.count_nonzero(parts == part))]
        return Dataset(store, texts, languages=spoken)

    def _held_out(self, name: str, files: PairFiles, cache: Path, tell: Tell) -> Dataset:
        store = self._store(files, NO_LIMITS, cache)
        dropped = Dropped.from_dict(store.metadata["dropped"])
        if dropped.total:
            tell(f"{name}: the loss leaves out what has an empty side. {dropped.report()}")
        texts = [(source, target) for _, source, target in read_tagged_pairs(files, self.root)]
        return Dataset(store, texts, language=files.to)

    def _check_tags(self) -> None:
        """Raises InputError for tags of files that are no tokens of this model."""
        data, known = self.data, tags_of(self.source)
        held_out = {
            "data.validation": data.validation,
            **{f"data.test.{name}": test for name, test in data.test.items()},
        }
        named = {**{f"data.train, file {place}": files for place, files in enumerate(data.train, 1)}, **held_out}
        problems = [
            f'{where}: the tag "{tag}" is no token of the model. Its tags: {", ".join(known) or "none"}. A model that '
            "writes a language must be trained on files with its tag."
            for where, files in named.items()
            for tag in (files.tags if files else [])
            if tag not in known
        ]
        if problems:
            raise InputError(problems)


def temperature_weights(sizes: Sequence[int], temperature: float) -> list[float]:
    """Weights by which a corpus of n pairs has a share in proportion to n^(1 / temperature); the largest has 1."""
    return [(size / max(sizes)) ** (1 / temperature - 1) for size in sizes]
