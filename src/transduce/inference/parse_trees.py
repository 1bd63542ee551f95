"""From sentences to their likeliest trees, by a model that scores spans; and what any parser predicts.

Words are what stands between white space; a bracket within a word is read and written as -LRB- or -RRB-.

Shapes: B sentences of a batch, N words, C labels, G tags, H width of a word's state.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transduce.core.errors import InputError
from transduce.data.columns import Columns
from transduce.data.columns.binary_trees import BinaryTrees
from transduce.data.structures.binary_trees import binarised, unbinarised
from transduce.data.structures.trees import ESCAPED, Bracket, ParseTree, parse_tree
from transduce.inference.batches import by_length
from transduce.inference.likelihood import Likelihood
from transduce.inference.prediction import Prediction
from transduce.inference.protocols import Advance
from transduce.inference.word_windows import read_windows
from transduce.layers.tree_crf import best_trees, node_log_probabilities, node_marginals
from transduce.objectives.tree_crf import tag_log_probabilities
from transduce.search.settings import Search

MOST_WORDS = 512  # of a sentence: the work grows with the cube of their number


class ParsedPhrase(NamedTuple):
    """A phrase over the words [start, end), and the probability that the sentence has it."""

    label: str
    start: int
    end: int
    probability: float


@dataclass(frozen=True, repr=False)
class ParsePrediction(Prediction):
    """The tree over a sentence's words; `text` is the tree in brackets.

    phrases: of a chart parser, each with its probability, in the order of the tree; () of others.
    """

    phrases: tuple[ParsedPhrase, ...] = ()

    @property
    def tree(self) -> ParseTree:
        """The tree. Raises InputError for that of an empty sentence."""
        return parse_tree(self.text)

    def details(self) -> dict[str, Any]:
        """The phrases."""
        phrases = {"phrases": [each._asdict() for each in self.phrases]} if self.phrases else {}
        return {**super().details(), **phrases}


@dataclass(frozen=True)
class ChartPredictor:
    """Each sentence its likeliest tree; see `transduce.inference.protocols.Predictor`.

    longest: the most pieces of words that are read at once; longer sentences are read in windows.
    """

    columns: Columns
    longest: int = 1 << 24

    def predict(
        self,
        model: Any,
        texts: Sequence[str],
        settings: Search | None = None,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> list[ParsePrediction]:
        """One a sentence, in their order; there is nothing to search, so `settings` mean nothing.

        An empty sentence is answered by an empty text.

        Raises:
            InputError: a sentence has more than `MOST_WORDS` words.
        """
        words = [_words(text) for text in texts]
        found: dict[int, ParsePrediction] = {}
        for places, scores_BNNC, tags in self._charts(model, words, batch_size, advance):
            length_B = torch.tensor([len(words[place]) for place in places])
            labels_BNN = best_trees(scores_BNNC, length_B)
            terms = node_log_probabilities(scores_BNNC, labels_BNN, length_B).tolist()
            shares = node_marginals(scores_BNNC, labels_BNN, length_B).tolist()
            for row, place in enumerate(places):
                tree = self._tree(words[place], labels_BNN[row].tolist(), tags[row])
                found[place] = self._prediction(texts[place], tree, terms[row], shares[row], tags[row])
        return [found.get(place, ParsePrediction(text, "", 0.0, 0.0, (), ())) for place, text in enumerate(texts)]

    def score(
        self, model: Any, pairs: Sequence[tuple[str, str]], batch_size: int = 64, advance: Advance | None = None
    ) -> list[Likelihood]:
        """The probability of each (sentence, tree in brackets) with its tags, node by node.

        A label or a tag that training did not have may be any.

        Raises:
            InputError: what is no tree, or one over other words; a sentence of too many words.
        """
        words, trees = [_words(text) for text, _ in pairs], [_parsed(tree) for _, tree in pairs]
        problems = [
            f"pair {number}: expected a tree over the sentence's {len(said)} words; got {str(tree)[:60]}"
            for number, (said, tree) in enumerate(zip(words, trees, strict=True), 1)
            if (tree.words if tree else ()) != tuple(said)
        ]
        if problems:
            raise InputError(problems)
        found = dict.fromkeys(range(len(pairs)), Likelihood(0.0, 0, unit="tree"))
        for places, scores_BNNC, tags in self._charts(model, words, batch_size, advance):
            given = [tree for place in places if (tree := trees[place])]
            labels_BNN = self._written.collate([np.asarray(self._written.row_of(tree)) for tree in given]).labels
            length_B = torch.tensor([len(tree.words) for tree in given])
            terms = node_log_probabilities(scores_BNNC, labels_BNN, length_B).tolist()
            for row, (place, tree) in enumerate(zip(places, given, strict=True)):
                pieces, each = self._tokens(tree, terms[row], tags[row])
                found[place] = Likelihood(sum(each), 1, pieces, each, "tree")
        return [found[place] for place in range(len(pairs))]

    @property
    def _written(self) -> BinaryTrees:
        trees = self.columns["target"]
        assert isinstance(trees, BinaryTrees)
        return trees

    def _charts(
        self, model: Any, words: Sequence[Sequence[str]], batch_size: int, advance: Advance | None
    ) -> Iterator[tuple[list[int], Tensor, list[Tensor]]]:
        """Of sentences that have words, some at a time: their places, scores (B, N, N, C), and of tags (N, G) each."""
        lengths = [len(each) for each in words]
        if max(lengths, default=0) > MOST_WORDS:
            raise InputError(
                f"sentence {place}: {length:,} words; this parser reads {MOST_WORDS} at most. Give it one sentence at "
                "a time."
                for place, length in enumerate(lengths, 1)
                if length > MOST_WORDS
            )
        weight, texts = next(model.parameters()), [" ".join(each) for each in words]
        states = read_windows(model, self.columns, texts, model.word_states, self.longest, batch_size, advance)
        for batch in by_length([length**2 for length in lengths], batch_size):
            if not (places := [place for place in batch if lengths[place]]):
                continue
            states_BNH = pad_sequence([states[place] for place in places], batch_first=True).to(weight)
            length_B = torch.tensor([lengths[place] for place in places], device=weight.device)
            with torch.inference_mode():
                scores_BNNC = model.span_scores(states_BNH, length_B).double().cpu()
                tags_BNG = model.tag_scores(states_BNH).double().log_softmax(2).cpu()
            yield places, scores_BNNC, [each[: lengths[place]] for each, place in zip(tags_BNG, places, strict=True)]

    def _tree(self, words: Sequence[str], labels_NN: list[list[int]], tags_NG: Tensor) -> ParseTree:
        names, tags = ("", *self._written.labels), self._written.word_tags
        nodes = (
            Bracket(names[label], first, last + 1)
            for first, row in enumerate(labels_NN)
            for last, label in enumerate(row)
            if label >= 0
        )
        return unbinarised(words, [tags[each] for each in tags_NG.argmax(1).tolist()], nodes)

    def _prediction(
        self, text: str, tree: ParseTree, terms: list[list[float]], shares: list[list[float]], tags_NG: Tensor
    ) -> ParsePrediction:
        tokens, each = self._tokens(tree, terms, tags_NG)
        phrases = tuple(ParsedPhrase(*bracket, shares[bracket.start][bracket.end - 1]) for bracket in tree.brackets)
        return ParsePrediction(text, str(tree), sum(each), sum(each), tokens, each, phrases=phrases)

    def _tokens(
        self, tree: ParseTree, terms: list[list[float]], tags_NG: Tensor
    ) -> tuple[tuple[str, ...], tuple[float, ...]]:
        """Of the row of a tree, and the log-probability of each: of a tag, and of a node given what it is part of."""
        row = self._written.row_of(tree)
        targets = self._written.collate([np.asarray(row, np.int32)])
        of_tags, found = iter(tag_log_probabilities(tags_NG[None], targets)[0].tolist()), list[float]()
        for _, start, end in binarised(tree):
            if end - start == 1:
                found.append(next(of_tags))
            found.append(terms[start][end - 1])
        return tuple(self._written.tokens(row)), tuple(found)


def _words(text: str) -> list[str]:
    return text.translate(ESCAPED).split()


def _parsed(text: str) -> ParseTree | None:
    return parse_tree(text).simplified() if text.strip() else None
