"""The labelled F1 of right-branching trees, which know nothing of the sentence: what a parser has to beat.

    python benchmarks/right_branching.py                             # the test part of recipes/parsing.toml
    python benchmarks/right_branching.py --write FOLDER              # also FOLDER/words, trees and right_branching
    transduce evaluate runs/parsing --source FOLDER/words --reference FOLDER/trees --outputs FOLDER/right_branching

Every word opens a phrase that reaches to the end, (S the (VP cat (VP sees (VP the dog)))); a mark that ends the
sentence stands in the root. The root and the others have the label that such phrases have most often in the training
trees.
"""

import argparse
from collections import Counter
from pathlib import Path

from transduce.data.structures.trees import WORD, Bracket, ParseTree, read_trees
from transduce.metrics.evaluate import TREE_METRICS, evaluate

DATA = Path(__file__).parents[1] / "../shared/data/ptb_treebank_sample"
MARKS = (".", "?", "!")


def main() -> None:
    """Build the trees, print their scores, write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, default=DATA / "train.mrg.gz", help="trees that the labels are taken of")
    parser.add_argument("--test", type=Path, default=DATA / "test.mrg.gz", help="trees to compare with")
    parser.add_argument("--write", type=Path, help="a folder for sentences, their trees and the right-branching ones")
    options = parser.parse_args()
    root, inner = usual_labels([tree.simplified() for _, tree in read_trees(options.train)])
    trees = [tree.simplified() for _, tree in read_trees(options.test)]
    found = [str(right_branching(tree.words, root, inner)) for tree in trees]
    print(f"{len(trees)} sentences; the root is {root}, every other phrase {inner}")
    for score in evaluate(list(TREE_METRICS), found, [str(tree) for tree in trees]):
        print(score)
    if options.write:
        options.write.mkdir(parents=True, exist_ok=True)
        words = [" ".join(tree.words) for tree in trees]
        for name, lines in (("words", words), ("trees", map(str, trees)), ("right_branching", found)):
            (options.write / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def usual_labels(trees: list[ParseTree]) -> tuple[str, str]:
    """Of roots, and of other phrases that reach to the end of the sentence or to its last mark."""
    roots = Counter(tree.brackets[0].label for tree in trees)
    others = Counter(
        label for tree in trees for label, start, end in tree.brackets if start > 0 and end == end_of(tree.words)
    )
    return roots.most_common(1)[0][0], others.most_common(1)[0][0]


def right_branching(words: tuple[str, ...], root: str, inner: str) -> ParseTree:
    """A phrase from every word but the last to the end; all within the root."""
    end = end_of(words)
    phrases = (Bracket(inner, start, end) for start in range(1, end - 1))
    return ParseTree(words, (WORD,) * len(words), (Bracket(root, 0, len(words)), *phrases))


def end_of(words: tuple[str, ...]) -> int:
    """Where the last mark stands, or the end."""
    return len(words) - (len(words) > 1 and words[-1] in MARKS)


if __name__ == "__main__":
    main()
