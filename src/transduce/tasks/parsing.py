"""Sentences to phrase-structure trees: written as text (Vinyals et al. 2015), or by a chart (Stern et al. 2017)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator
from torch import nn

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.core.registry import resolve
from transduce.data.columns import Columns
from transduce.data.columns.binary_trees import BinaryTrees
from transduce.data.columns.tokens import Tokens
from transduce.data.columns.trees import Trees
from transduce.data.columns.words import Words
from transduce.data.corpus import provenance
from transduce.data.encoding import open_examples
from transduce.data.filters import NO_LIMITS, Dropped, FilterConfig
from transduce.data.remote import located
from transduce.data.store import Store
from transduce.data.structures.trees import WORD, of_sequence, parse_tree, read_trees, right_branching
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.inference.parse_trees import ChartPredictor, ParsePrediction
from transduce.inference.prediction import Prediction
from transduce.metrics.score import References
from transduce.metrics.tally import Tally
from transduce.models.protocols import Aligns, Fills, ScoresSpans
from transduce.objectives.protocols import Objective
from transduce.objectives.text import LossConfig
from transduce.objectives.tree_crf import TreeLikelihood
from transduce.search.grammar import BracketTokens, TreeGrammar
from transduce.search.request import Request
from transduce.search.settings import Search
from transduce.tasks.base import ExampleFile, Task, TextTask, check_model, named_files
from transduce.tasks.protocols import Baseline, Dataset, TaskData, Tell

SEQUENCES = TokenizerConfig(kind="whitespace", vocabulary=1_000_000, min_frequency=1)  # brackets and tags are tokens
TOKENS_A_WORD, TOKENS_MORE = 4, 20  # of an output; no tree of the Penn Treebank's sample has more than 4 a word


class TreebankFile(ExampleFile):
    """Trees in brackets, as the Penn Treebank has them; a tree may take several lines."""

    file: str
    """The file, compressed or not."""
    weight: float = Field(default=1.0, gt=0)
    """How often an epoch shows each tree."""


class ParsingConfig(Config):
    """What a parser is judged by."""

    kind: Literal["parsing"] = "parsing"
    metrics: tuple[str, ...] = ("evalb_f1", "evalb_precision", "evalb_recall", "evalb_complete")
    """What validation, the final tests and `evaluate` report: evalb_f1, evalb_precision, evalb_recall (of labelled
    brackets), evalb_complete (sentences whose brackets all match)."""
    language: str = ""
    """Language code of the sentences, such as en."""


class ParsingData(Config):
    """The files of a parser; paths are relative to `root`, `root` to the working directory."""

    root: str = "."
    """Where the files lie."""
    train: tuple[TreebankFile, ...]
    """One file or several, each with its weight."""
    validation: TreebankFile | None = None
    """Picks the best weights."""
    test: dict[str, TreebankFile] = Field(default_factory=dict)
    """By name; scored once, at the end."""
    filters: FilterConfig = FilterConfig()
    """Which training trees are dropped."""

    @model_validator(mode="after")
    def _has_training_text(self) -> "ParsingData":
        if not self.train:
            raise ValueError('name at least one file of trees: [[data.train]] file = "train.mrg"')
        return self


class Treebank(Task):
    """What parsers of every kind share: files of trees, how trees are judged and drawn, and the baseline."""

    Config = ParsingConfig
    Data = ParsingData
    fingerprints = staticmethod(named_files)
    never_split = True
    drawing = "tree_drawing"

    @classmethod
    def of_model(cls, model: Any) -> "type[Treebank]":
        """By a chart where the model scores spans; else the brackets are written as text."""
        return ChartParsing if issubclass(resolve("models", model.kind), ScoresSpans) else Parsing

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Encode the recipe's files, or find them in the cache; dropped trees are told."""
        data = self.data
        corpora = [(self._store(file, self._filters, cache), file.weight) for file in data.train]
        for file, (store, _) in zip(data.train, corpora, strict=True):
            tell(f"{located(self.root, file.file)}: {Dropped.from_dict(store.metadata['dropped']).report()}")
        found = {name: self._held_out(file, cache, tell) for name, file in self.held_out.items()}
        made_from = provenance(data.train, self.held_out, self.root)
        return TaskData(corpora, found.pop("validation", None), found, made_from)

    @property
    def _filters(self) -> FilterConfig:
        """Which training trees are dropped."""
        filters: FilterConfig = self.data.filters
        return filters

    @property
    def _held_out_filters(self) -> FilterConfig:
        """Of which held-out trees there is no likelihood."""
        return NO_LIMITS

    def tallies(
        self,
        hypotheses: Sequence[str],
        references: References,
        names: Sequence[str] | None = None,
        language: str | None = None,
    ) -> dict[str, Tally]:
        """What the metrics count; which words are punctuation is said by the tags of the reference."""
        return super().tallies(list(map(_untagged, hypotheses)), references, names, language)

    def baseline(self, data: TaskData, tell: Tell) -> Baseline:
        """Right-branching trees, with the labels that training trees have most often at the same places."""
        roots: Counter[str] = Counter()
        phrases: Counter[str] = Counter()
        for file in self.data.train:
            for _, _, text in read_treebank(file, self.root):
                tree = parse_tree(text)
                last = max((each.end for each in tree.brackets[1:]), default=0)
                roots[tree.brackets[0].label] += 1
                phrases.update(each.label for each in tree.brackets[1:] if each.end == last)
        labels = {"root": roots.most_common(1)[0][0], "phrase": (phrases or roots).most_common(1)[0][0]}
        return Baseline(
            "right-branching",
            lambda sentences: [
                str(right_branching(each.split(), **labels)) if each.split() else "" for each in sentences
            ],
            labels,
        )

    def _store(self, file: TreebankFile, filters: FilterConfig, cache: Path) -> Store:
        return open_examples(
            file.paths(self.root), partial(read_treebank, file, self.root), self.columns, filters, cache
        )

    def _held_out(self, file: TreebankFile, cache: Path, tell: Tell) -> Dataset:
        texts = [(words, tree) for _, words, tree in read_treebank(file, self.root)]
        store = self._store(file, self._held_out_filters, cache)
        dropped = Dropped.from_dict(store.metadata["dropped"])
        if dropped.total:
            tell(f"{located(self.root, file.file)}: of the likelihood alone: {dropped.report()}")
        return Dataset(store, texts)


class Parsing(Treebank, TextTask):
    """Words between spaces -> the brackets of a tree over them, through an encoder-decoder."""

    kinds: ClassVar[dict[str, str]] = {"source": "tokens", "target": "trees"}
    columns_version = 3

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: ParsingData) -> Columns:
        """A tokenizer of the words, as the recipe has it; each bracket and tag of the training trees is a token."""
        root = Path(data.root)
        words = (words for file in data.train for _, words, _ in read_treebank(file, root))
        sequences = (
            " ".join(parse_tree(tree).sequence()) for file in data.train for _, _, tree in read_treebank(file, root)
        )
        return {
            "source": Tokens(train_tokenizer(config, words, root), ends=True),
            "target": Trees(train_tokenizer(SEQUENCES, sequences), starts=True, ends=True),
        }

    @property
    def context(self) -> str:
        """The whole pair so far."""
        return "the sentence and all brackets before"

    def objective(self, model: nn.Module, config: LossConfig | None = None) -> Objective:
        """Next token. Raises InputError for a model that writes all tokens at once."""
        if isinstance(model, Fills | Aligns):
            raise InputError(
                f"[model] kind: {type(model).__name__} writes all tokens at once, so its brackets need not balance; "
                'expected a model that writes token by token, such as "transformer" or "rnn".'
            )
        return super().objective(model, config)

    def request(self, ids: Sequence[int], search: Search) -> Request:
        """The sentence's ids. Raises InputError for settings under which brackets might not balance."""
        wrong = [name for name in ("min_length", "no_repeat_ngram", "shortlist") if getattr(search, name)]
        if wrong:
            raise InputError(
                f"search.{name}: a tree has the length and the tokens it needs; leave it out." for name in wrong
            )
        source = self.columns["source"]
        return Request(search.limit(len(ids)), source.closed(ids))

    def grammar_for(self, request: Request, text: str) -> Request:
        """One tree over the words of `text`, with room for as many brackets as trees have."""
        words = len(text.split())
        limit = max(request.limit, TOKENS_A_WORD * words + TOKENS_MORE)
        return replace(request, limit=limit, grammar=TreeGrammar(self._brackets, words))

    def postprocess(self, prediction: Prediction) -> ParsePrediction:
        """The tree over the sentence's own words, in brackets."""
        text = str(of_sequence(prediction.tokens, prediction.source.split())) if prediction.tokens else ""
        alternatives = tuple(self.postprocess(each) for each in prediction.alternatives)
        return ParsePrediction(**{**vars(prediction), "text": text, "alternatives": alternatives})

    @cached_property
    def _brackets(self) -> BracketTokens:
        tokenizer = self._written.tokenizer
        special = tuple(index for role, index in tokenizer.special.items() if role != "end")
        return BracketTokens(tokenizer.tokens(range(tokenizer.size)), self.end, special)


class ChartParsing(Treebank):
    """Words between spaces -> a tree over them, by a model that scores spans (Stern et al. 2017)."""

    kinds: ClassVar[dict[str, str]] = {"source": "words", "target": "binary_trees"}
    default_model = "chart_parser"

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: ParsingData) -> Columns:
        """A tokenizer of the words, as the recipe has it; all chains of labels, and all tags, of the training trees."""
        root = Path(data.root)
        trees = [parse_tree(tree) for file in data.train for _, _, tree in read_treebank(file, root)]
        tokenizer = train_tokenizer(config, (" ".join(tree.words) for tree in trees), root)
        return {"source": Words(tokenizer, spaced=tokenizer.spaces_words), "target": BinaryTrees.of(trees)}

    @property
    def predictor(self) -> ChartPredictor:
        """The likeliest tree."""
        return ChartPredictor(self.columns, self.max_source_length)

    @property
    def context(self) -> str:
        """The whole sentence."""
        return "the sentence"

    def objective(self, model: nn.Module, config: LossConfig | None = None) -> TreeLikelihood:
        """The likelihood of trees with their tags, which knows no label smoothing.

        Raises:
            InputError: the model scores no spans; R-Drop or sampled words.
        """
        wanted = 'score spans; expected one that does, such as "chart_parser"'
        check_model(model, isinstance(model, ScoresSpans), wanted, config)
        return TreeLikelihood()

    @property
    def _filters(self) -> FilterConfig:
        """No sentence is longer than the model has positions for."""
        return self.data.filters.model_copy(update={"max_tokens": self.max_source_length})

    @property
    def _held_out_filters(self) -> FilterConfig:
        """Longer ones are predicted in windows, and have no likelihood."""
        room = self.columns["source"].room
        return NO_LIMITS if room is None else NO_LIMITS.model_copy(update={"max_tokens": room})


def read_treebank(file: TreebankFile, root: Path) -> Iterator[tuple[int, str, str]]:
    """(line number from 1, words between spaces, tree with its tags on one line) of each tree.

    Trees are simplified: no empty elements, no function tags.

    Raises:
        InputError: a missing file, text that is not UTF-8, or what is no tree.
    """
    [path] = file.paths(root)
    for number, tree in read_trees(path):
        try:
            plain = tree.simplified()
        except InputError as error:
            raise InputError(f"{path}, line {number}: {problem}" for problem in error.problems) from None
        yield number, " ".join(plain.words), str(plain)


def _untagged(tree: str) -> str:
    """Without the tags of words; what is no tree as it is."""
    try:
        parsed = parse_tree(tree)
    except InputError:
        return tree
    return str(replace(parsed, tags=(WORD,) * len(parsed.words)))
