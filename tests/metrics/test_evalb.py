"""Labelled brackets against EVALB's own sample, and against a slow reference written from its README."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from transduce.core.errors import InputError
from transduce.data.structures.trees import parse_tree, read_trees
from transduce.metrics.evalb import counts, evalb_tally
from transduce.metrics.evaluate import evaluate
from transduce.metrics.paired import paired_bootstrap

TREEBANK = Path("../shared/data/ptb_treebank_sample/test.mrg.gz")
TEST = "(S (A (P this)) (B (Q is) (A (R a) (T test))))"
SAMPLE = [  # sample.gld and sample.tst of EVALB, and what it prints for them with COLLINS.prm: matched, gold, test
    (TEST, TEST, (4, 4, 4)),
    (TEST, "(S (A (P this)) (B (Q is) (C (R a) (T test))))", (3, 4, 4)),
    (TEST, "(S (A (P this)) (B (Q is) (A (R a) (U test))))", (4, 4, 4)),
    (TEST, "(S (C (P this)) (B (Q is) (A (R a) (U test))))", (3, 4, 4)),
    (TEST, "(S (A (P this)) (B (Q is) (R a) (A (T test))))", (3, 4, 4)),
    (TEST, "(S (A (P this) (Q is)) (A (R a) (T test)))", (2, 4, 3)),
    (TEST, "(S (P this) (Q is) (R a) (T test))", (1, 4, 1)),
    (TEST, "(P this) (Q is) (R a) (T test)", (0, 4, 0)),
    (TEST, "(S (A (P this)) (B (Q is) (A (A (R a) (T test)))))", (4, 4, 5)),
    (TEST, "(S (A (P this)) (B (Q is) (A (A (A (A (A (R a) (T test))))))))", (4, 4, 8)),
    (TEST, "", None),
    (TEST, "(S (A (P this)) (B (Q was) (A (A (R a) (T test)))))", None),
    (TEST, "(S (A (P this)) (B (Q is) (U not) (A (A (R a) (T test)))))", None),
    (TEST, "", None),
    (TEST, f"(TOP {TEST})", (4, 4, 4)),
    (TEST, "(S (A (P this)) (NONE *) (B (Q is) (A (R a) (T test))))", None),
    (TEST, "(S (A (P this)) (S (NONE abc) (A (NONE *))) (B (Q is) (A (R a) (T test))))", None),
    (TEST, "(S (A (P this)) (B (Q is) (A (R a) (TT test))))", (4, 4, 4)),
    (TEST, "(S (A (P This)) (B (Q is) (A (R a) (T test))))", None),
    (TEST, "(S (A (P That)) (B (Q is) (A (R a) (T test))))", None),
    ("(S (A-SBJ-1 (P this)) (B-WHATEVER (Q is) (A (R a) (T test))))", TEST, (4, 4, 4)),
    *[(f"(S {' '.join([TEST[3:-1]] * 11)})",) * 2 + ((34, 34, 34),)],
    *[(f"{TEST[:-1]} (-NONE- *))",) * 2 + ((4, 4, 4),)],
    *[(f"{TEST[:-1]} (: *))",) * 2 + ((4, 4, 4),)],
]


def test_the_sample_of_evalb_itself() -> None:
    for gold, test, printed in SAMPLE:
        matched, said, true, complete, valid = counts(test, parse_tree(gold))
        assert (matched, true, said) == (printed or (0, 0, 0)), test
        assert (bool(valid), bool(complete)) == (printed is not None, printed is not None and len(set(printed)) == 1)
    names = ["evalb_recall", "evalb_precision", "evalb_f1", "evalb_complete"]
    scores = evaluate(names, [test for _, test, _ in SAMPLE], [gold for gold, _, _ in SAMPLE])
    assert [f"{score.value:.2f}" for score in scores] == ["87.23", "90.11", "88.65", "50.00"]
    assert all("8 of 24 sentences left out" in score.note for score in scores)


# ---- a slow reference ----------------------------------------------------------------------------------------

DELETED = ["TOP", "-NONE-", ",", ":", "``", "''", "."]
Node = tuple[str, Any]


def node(text: str) -> Node:
    """Recursive."""
    tokens = text.replace("(", " ( ").replace(")", " ) ").split()

    def read() -> Node:
        tokens.pop(0)
        label, below = tokens.pop(0), []
        while tokens[0] != ")":
            below.append(read() if tokens[0] == "(" else tokens.pop(0))
        tokens.pop(0)
        return label, below

    return read()


def without_deleted(tree: Node) -> Node | None:
    """README, 7.1: nodes of a deleted label, and those that dominate nothing else. A phrase's label alone goes."""
    label, below = tree
    if isinstance(below[0], str):
        return None if label in DELETED else tree
    left = [each for one in below if (each := without_deleted(one))]
    return (label, left) if left else None


def spans(tree: Node, start: int) -> Iterator[tuple[int, int, str] | str]:
    label, below = tree
    if isinstance(below[0], str):
        yield below[0]
        return
    end = start
    for one in below:
        for found in spans(one, end):
            yield found
            end_of_one = found if isinstance(found, str) else None
            if end_of_one is not None:
                end += 1
    for mark in "-=":
        label = label.split(mark)[0]
    if label not in DELETED:
        yield start, end, label


def slowly(gold_text: str, test_text: str) -> tuple[int, int, int] | None:
    gold, test = without_deleted(node(gold_text)), without_deleted(node(test_text))
    if gold is None or test is None:
        return None
    sides = [list(spans(each, 0)) for each in (gold, test)]
    words = [[each for each in side if isinstance(each, str)] for side in sides]
    if words[0] != words[1]:
        return None
    golds, tests = ([each for each in side if not isinstance(each, str)] for side in sides)
    free, matched = list(tests), 0
    for start, end, label in golds:
        for other in free:
            same = label == other[2] or {label, other[2]} == {"ADVP", "PRT"}
            if (start, end) == other[:2] and same:
                free.remove(other)
                matched += 1
                break
    return matched, len(golds), len(tests)


def drawn(random_: random.Random, words: list[tuple[str, str]]) -> str:
    """A random tree over tagged words."""
    if len(words) == 1 and random_.random() < 0.6:
        return f"({words[0][0]} {words[0][1]})"
    label = random_.choice(["S", "NP", "NP-SBJ", "VP=2", "ADVP", "PRT", "TOP", "PRT-LOC"])
    if len(words) == 1 or random_.random() < 0.1:
        return f"({label} {drawn(random_, words)})"
    cut = random_.randrange(1, len(words))
    return f"({label} {drawn(random_, words[:cut])} {drawn(random_, words[cut:])})"


def test_random_trees_count_as_in_the_slow_reference() -> None:
    random_, seen = random.Random(1), 0
    for _ in range(600):
        tags = ["NN", "-NONE-", ",", ":", "``", "''", ".", "VB", "DT", "RP"]
        words = [(random_.choice(tags), random_.choice("abc")) for _ in range(random_.randrange(1, 9))]
        other = [each for each in words if each[0] != "-NONE-" or random_.random() < 0.5]
        if not other:
            continue
        gold, test = drawn(random_, words), drawn(random_, other)
        wanted = slowly(gold, test)
        matched, said, true, _, valid = counts(test, parse_tree(gold))
        assert ((matched, true, said) if valid else None) == wanted, (gold, test)
        seen += wanted is not None and 0 < wanted[0] < wanted[1]
    assert seen > 100


def test_an_output_without_tags_has_those_of_the_reference() -> None:
    gold = "(S (NP-SBJ (NN it) (-NONE- *)) (VP (VBZ is)) (. .))"
    said = "(S (NP (XX it)) (VP (XX is) (XX .)))"
    assert counts(said, parse_tree(gold)) == (3, 3, 3, 1, 1)
    assert counts(said.replace("XX .", "YY ."), parse_tree(gold)) == (0, 0, 0, 0, 0)
    assert counts("(S (XX it) (XX is) (XX .) (XX .))", parse_tree(gold)) == (0, 0, 0, 0, 0)


def test_intervals_and_paired_comparison() -> None:
    golds, worse = [TEST] * 20, [TEST] * 10 + ["(S (A (P this) (Q is)) (A (R a) (T test)))"] * 10
    tally = evalb_tally(worse, golds)
    score = tally.score()
    assert score.interval is not None
    assert score.interval[0] < score.value < score.interval[1]
    assert score.value == pytest.approx(200 * 60 / (80 + 70))
    difference = paired_bootstrap(tally, evalb_tally(golds, golds))
    assert difference.better == "second"
    assert score.signature == "nrefs:1|EVALB:COLLINS|case:mixed|figure:f1"
    assert score.note == ""


def test_wrong_references_are_named() -> None:
    with pytest.raises(InputError, match=r"reference 2: expected a tree such as .*; got no tree"):
        evalb_tally([TEST, TEST], [TEST, "no tree"])
    with pytest.raises(InputError, match=r"several \(line 2\)"):
        evalb_tally([TEST, TEST], [[TEST], [TEST, TEST]])


def test_nothing_counted_is_zero() -> None:
    assert [score.value for score in evaluate(["evalb_f1", "evalb_complete"], [""], [TEST])] == [0, 0]


@pytest.mark.skipif(not TREEBANK.is_file(), reason=f"{TREEBANK} is not there")
def test_the_treebank_against_itself() -> None:
    trees = [tree for _, tree in read_trees(TREEBANK)]
    scores = evaluate(["evalb_f1", "evalb_complete"], [str(tree.simplified()) for tree in trees], list(map(str, trees)))
    assert [(score.value, score.note) for score in scores] == [(100, ""), (100, "")]
    for tree in trees:
        named = str(tree).replace("( (", "(TOP (", 1)
        assert counts(str(tree.simplified()), tree)[:3] == slowly(named, named)
