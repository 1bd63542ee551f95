"""The labelled F1 of a probabilistic grammar that is counted, not trained: what a parser on these trees has to beat.

    python benchmarks/counted_grammar.py                     # the test part of recipes/parsing.toml
    python benchmarks/counted_grammar.py --write FOLDER      # also FOLDER/words, trees and counted_grammar
    transduce evaluate runs/parsing-chart --source FOLDER/words --reference FOLDER/trees \
        --outputs FOLDER/counted_grammar

A context-free grammar with the relative frequencies of the training trees (Charniak 1996, Tree-bank Grammars). Chains
of phrases over the same words are one symbol. Phrases of three parts and more are binary to the right; what is left is
named by the phrase and the part before it. A word has p(word | tag). A word that training did not have is counted as
those that it had once and that look alike: by their last two letters, capitals, digits and hyphens. The best tree is
found by CKY over all spans, splits and rules.
"""

import argparse
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transduce.data.structures.binary_trees import binarised, unbinarised
from transduce.data.structures.trees import WORD, Bracket, ParseTree, read_trees, right_branching
from transduce.metrics.evaluate import TREE_METRICS, evaluate

DATA = Path(__file__).parents[1] / "../shared/data/ptb_treebank_sample"
REST = "\n"  # in the symbol of what is left of a phrase, and in no name
PHRASE = "\t"  # before the name of a phrase, which may be that of a tag
NEVER = -1e9


class Grammar:
    """Log-probabilities of symbols at the root, of rules, and of words."""

    def __init__(self, trees: list[ParseTree]) -> None:
        self.words = Counter(word for tree in trees for word in tree.words)
        roots, rules, above, self.tagged = Counter[str](), Counter[tuple[str, str, str]](), Counter[str](), Counter()
        unary, tags = Counter[tuple[str, str]](), Counter[str]()
        for tree in trees:
            *_, top = named_nodes(tree)
            roots[top[0]] += 1
            for symbol, parts in named_nodes(tree):
                above[symbol] += 1
                if len(parts) == 2:
                    rules[symbol, *parts] += 1
                elif parts[0] != symbol:
                    unary[symbol, parts[0]] += 1
            for word, tag in zip(tree.words, tree.tags, strict=True):
                tags[tag] += 1
                self.tagged[word, tag] += 1
                if self.words[word] == 1:
                    self.tagged[looks(word), tag] += 1
        self.symbols = sorted({*above, *tags})
        self.place = {symbol: place for place, symbol in enumerate(self.symbols)}
        self.tags, self.tag_counts = sorted(tags), tags
        self.root_S = np.full(len(self.symbols), NEVER)
        for symbol, count in roots.items():
            self.root_S[self.place[symbol]] = math.log(count / len(trees))
        known = sorted(rules)
        self.rules_R3 = np.array([[self.place[each] for each in rule] for rule in known])
        self.log_R = np.array([math.log(rules[rule] / above[rule[0]]) for rule in known])
        self.begins = np.flatnonzero(np.diff(self.rules_R3[:, 0], prepend=-1))  # of the rules of each symbol
        self.unary = [(self.place[s], self.place[t], math.log(count / above[s])) for (s, t), count in unary.items()]

    def word(self, word: str) -> NDArray[np.float64]:
        """(S,): log p of a word by each symbol, through its tag."""
        found_S = np.full(len(self.symbols), NEVER)
        for shape in (word, looks(word), ""):
            seen = {tag: self.tagged[shape, tag] if shape else count for tag, count in self.tag_counts.items()}
            if any(seen.values()) and (shape != word or self.words[word]):
                for tag, count in seen.items():
                    if count:
                        found_S[self.place[tag]] = math.log(count / self.tag_counts[tag])
                break
        for symbol, tag, log in self.unary:
            found_S[symbol] = max(found_S[symbol], log + found_S[tag])
        return found_S

    def parse(self, words: tuple[str, ...]) -> ParseTree:
        """The likeliest tree; where the grammar has none, a right-branching one."""
        count, symbols = len(words), len(self.symbols)
        best = np.full((count + 1, count + 1, symbols), NEVER)
        how: dict[tuple[int, int], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        for place, word in enumerate(words):
            best[place, place + 1] = self.word(word)
        above = self.rules_R3[self.begins, 0]
        for width in range(2, count + 1):
            for start in range(count - width + 1):
                end = start + width
                one_MR = best[start, start + 1 : end][:, self.rules_R3[:, 1]]
                other_MR = best[start + 1 : end, end][:, self.rules_R3[:, 2]]
                split_R = (sum_MR := one_MR + other_MR).argmax(0)
                score_R = sum_MR.max(0) + self.log_R
                best[start, end, above] = np.maximum.reduceat(score_R, self.begins)
                how[start, end] = split_R, score_R
        top = int((best[0, count] + self.root_S).argmax())
        if best[0, count, top] + self.root_S[top] < NEVER / 2:
            return right_branching(words, "S", "VP")
        return self._built(words, best, how, top)  # without tags: those of the reference count

    def _built(self, words: tuple[str, ...], best: NDArray[np.float64], how: dict, top: int) -> ParseTree:
        nodes, waiting = [], [(0, len(words), top)]
        while waiting:
            start, end, symbol = waiting.pop()
            name = self.symbols[symbol]
            if end - start == 1:
                nodes += [Bracket(name.removeprefix(PHRASE), start, end)] if name.startswith(PHRASE) else []
                continue
            split_R, score_R = how[start, end]
            rule = int(np.where(self.rules_R3[:, 0] == symbol, score_R, -np.inf).argmax())
            middle = start + 1 + int(split_R[rule])
            nodes.append(Bracket("" if REST in name else name.removeprefix(PHRASE), start, end))
            waiting += [(start, middle, self.rules_R3[rule, 1]), (middle, end, self.rules_R3[rule, 2])]
        return unbinarised(words, [WORD] * len(words), nodes)


def named_nodes(tree: ParseTree) -> list[tuple[str, tuple[str, ...]]]:
    """(symbol, symbols of its parts, or a word's tag) of the binary tree's nodes, each behind its parts."""
    nodes = binarised(tree)
    parts: dict[int, list[int]] = {}
    waiting: list[int] = []
    for place, node in enumerate(nodes):
        parts[place] = [waiting.pop(), waiting.pop()][::-1] if node.end - node.start > 1 else []
        waiting.append(place)
    names = {len(nodes) - 1: f"{PHRASE}{nodes[-1].label}"}
    for place in range(len(nodes) - 1, -1, -1):
        for number, part in enumerate(parts[place]):
            node = nodes[part]
            if node.label:
                names[part] = f"{PHRASE}{node.label}"
            elif number == 0 or node.end - node.start == 1:
                names[part] = tree.tags[node.start]
            else:
                names[part] = f"{names[place].partition(REST)[0]}{REST}{names[parts[place][0]]}"
    found = []
    for place, node in enumerate(nodes):
        found.append((names[place], tuple(names[part] for part in parts[place]) or (tree.tags[node.start],)))
    return found


def looks(word: str) -> str:
    """How a word looks, which is no word itself."""
    marks = [bool(re.search(mark, word)) for mark in ("^[A-Z]", r"\d", "-")]
    return f"\n{word[-2:].lower()} {marks}" if not marks[1] else f"\n{marks}"


def main() -> None:
    """Count the grammar, print its scores, write its trees if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, default=DATA / "train.mrg.gz", help="trees that are counted")
    parser.add_argument("--test", type=Path, default=DATA / "test.mrg.gz", help="trees to compare with")
    parser.add_argument("--write", type=Path, help="a folder for sentences, their trees and the grammar's")
    options = parser.parse_args()
    grammar = Grammar([tree.simplified() for _, tree in read_trees(options.train)])
    trees = [tree.simplified() for _, tree in read_trees(options.test)]
    found = [str(grammar.parse(tree.words)) for tree in trees]
    print(f"{len(trees)} sentences; {len(grammar.symbols):,} symbols, {len(grammar.log_R):,} rules of two parts")
    for score in evaluate(list(TREE_METRICS), found, [str(tree) for tree in trees]):
        print(score)
    if options.write:
        options.write.mkdir(parents=True, exist_ok=True)
        words = [" ".join(tree.words) for tree in trees]
        for name, lines in (("words", words), ("trees", map(str, trees)), ("counted_grammar", found)):
            (options.write / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
