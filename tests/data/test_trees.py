"""Trees in brackets and as sequences: back and forth, and what is refused."""

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.core.errors import InputError
from transduce.data.structures.trees import ParseTree, of_sequence, parse_tree, read_trees, right_branching

TREEBANK = Path("../shared/data/ptb_treebank_sample")
names = st.text(string.ascii_letters + string.punctuation.replace("(", "").replace(")", ""), min_size=1, max_size=4)
labels = st.text(string.ascii_uppercase, min_size=1, max_size=3).filter(lambda label: label != "TOP")
Node = tuple[str, str | list["Node"]]
leaves = st.tuples(names, names)
nodes = st.recursive(leaves, lambda below: st.tuples(labels, st.lists(below, min_size=1, max_size=4)), max_leaves=12)
trees = st.tuples(labels, st.lists(nodes, min_size=1, max_size=4))


def brackets(node: Node) -> str:
    """Slow and recursive."""
    label, below = node
    return f"({label} {below if isinstance(below, str) else ' '.join(map(brackets, below))})"


def sequence(node: Node) -> str:
    label, below = node
    return label if isinstance(below, str) else f"({label} {' '.join(map(sequence, below))} ){label}"


def words(node: Node) -> list[str]:
    below = node[1]
    return [below] if isinstance(below, str) else [word for each in below for word in words(each)]


@given(trees)
def test_brackets_come_back(node: Node) -> None:
    tree = parse_tree(brackets(node))
    assert str(tree) == brackets(node)
    assert list(tree.words) == words(node)
    assert parse_tree(str(tree)) == tree


@given(trees)
def test_a_sequence_comes_back_over_its_words(node: Node) -> None:
    tree = parse_tree(brackets(node))
    assert " ".join(tree.sequence()) == sequence(node)
    again = of_sequence(sequence(node).split(), words(node))
    assert again == tree


@given(nodes, st.text(" \n\t", min_size=1))
def test_white_space_and_an_unnamed_root_mean_nothing(node: Node, space: str) -> None:
    text = f"( {brackets(node)})".replace(" ", space)
    assert parse_tree(text).simplified() == parse_tree(brackets(node)).simplified()


@pytest.mark.parametrize(
    ("given_text", "wanted"),
    [
        ("( (S (NP-SBJ-1 (DT the) (-NONE- *T*)) (VP=2 (VBD ran))))", "(S (NP (DT the)) (VP (VBD ran)))"),
        ("(S (NP (NN it)) (SBAR (-NONE- 0) (S (-NONE- *T*-1))))", "(S (NP (NN it)))"),
        ("(TOP (S (NP (NN it))))", "(S (NP (NN it)))"),
        ("( (S (NN it)) (. .))", "(TOP (S (NN it)) (. .))"),
        ("(NN it)", "(TOP (NN it))"),
        ("(TOP (NN it))", "(TOP (NN it))"),
        ("(S (-LRB- -LRB-) (X (NN a-b)))", "(S (-LRB- -LRB-) (X (NN a-b)))"),
    ],
)
def test_what_is_simplified(given_text: str, wanted: str) -> None:
    assert str(parse_tree(given_text).simplified()) == wanted


@pytest.mark.parametrize(
    "wrong", ["", "word", "(S", "(S)", "()", "(S (NN a)))", "(NN a) (NN b)", "(S a b)", "(S (NN a) b)"]
)
def test_what_is_no_tree_is_refused(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected"):
        parse_tree(wrong)
    if wrong not in ("", "(NN a) (NN b)"):
        (tmp_path / "trees").write_text(f"(NN a)\n{wrong}\n")
        with pytest.raises(InputError, match=r"trees, line 2"):
            list(read_trees(tmp_path / "trees"))


@pytest.mark.parametrize(
    "wrong", ["", "XX", "(S", "(S )S", "(S XX )NP", "(S XX )S XX", "(S XX )S (S XX )S", "(S XX XX )S", "(S )S XX"]
)
def test_what_is_no_sequence_is_refused(wrong: str) -> None:
    with pytest.raises(InputError, match="expected a tree"):
        of_sequence(wrong.split(), ["word"])


def test_a_tree_of_empty_elements_has_no_words() -> None:
    with pytest.raises(InputError, match="without words"):
        parse_tree("(S (-NONE- *))").simplified()


def test_a_deep_tree_is_read_and_written() -> None:
    text = "(A " * 5000 + "(B c)" + ")" * 5000
    tree = parse_tree(text)
    assert str(tree) == text
    assert of_sequence(tree.sequence(), ["c"]).brackets == tree.brackets


@pytest.mark.parametrize(
    ("sentence", "tree"),
    [
        ("the cat saw a dog .", "(S (XX the) (VP (XX cat) (VP (XX saw) (VP (XX a) (XX dog)))) (XX .))"),
        ("so it is", "(S (XX so) (VP (XX it) (XX is)))"),
        ("it is", "(S (XX it) (XX is))"),
        ("! ?", "(S (XX !) (XX ?))"),
        ("no", "(S (XX no))"),
    ],
)
def test_right_branching_trees(sentence: str, tree: str) -> None:
    assert str(right_branching(sentence.split(), "S", "VP")) == tree


def test_brackets_within_words_are_spelled_out() -> None:
    assert str(ParseTree((":)",), ("XX",), ())) == "(XX :-RRB-)"


@pytest.mark.skipif(not TREEBANK.is_dir(), reason=f"{TREEBANK} is not there")
def test_the_treebank_comes_back() -> None:
    counts = {}
    for part in ("train", "dev", "test"):
        found = [tree for _, tree in read_trees(TREEBANK / f"{part}.mrg.gz")]
        counts[part] = (len(found), sum(len(tree.words) for tree in found))
        for tree in found:
            plain = tree.simplified()
            assert plain.is_rooted
            assert of_sequence(plain.sequence(), plain.words).brackets == plain.brackets
            assert parse_tree(str(tree)) == tree
    assert counts == {"train": (3396, 87514), "dev": (273, 6772), "test": (245, 6390)}  # of the sample's README
