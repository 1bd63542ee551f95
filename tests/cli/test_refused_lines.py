"""`transduce score` and `transduce predict` name file and line of what a model cannot read, and write nothing."""

from pathlib import Path
from typing import Any

import pytest

from drawn_models import GRAPH, file_of, graphs, nodes
from forked import transduce
from transduce.cli.refused_lines import naming_lines
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name, pipeline in (("nodes", nodes()), ("graphs", graphs())):
        save_model_file(folder / f"{name}.safetensors", file_of(pipeline))
    return folder


def test_predict_names_every_line_of_a_file(models: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("".join(f"{n}\n" if n not in (2, 7) else "x\n" for n in [*range(59)] * 40))
    wrong = [place for place, line in enumerate((tmp_path / "in.txt").read_text().split("\n"), 1) if line == "x"]
    options = ("--source", tmp_path / "in.txt", "--output", tmp_path / "out.txt")
    done = transduce(tmp_path, "predict", models / "nodes.safetensors", *options)
    assert (done.code, done.out) == (2, "")
    for line in wrong[:10]:
        assert f'in.txt, line {line}: expected the number of a node, from 0 to 59; got "x"' in done.err
    assert f"{len(wrong) - 10} more lines like these" in done.err
    assert not (tmp_path / "out.txt").exists()


def test_predict_names_lines_behind_the_first_block(models: Path, tmp_path: Path) -> None:
    done = transduce(tmp_path, "predict", models / "nodes.safetensors", given=b"5\n" * 3000 + b"60\n")
    assert (done.code, done.out) == (2, "")
    assert "standard input, line 3001: expected the number of a node" in done.err


def test_drawn_lines_are_named_too(models: Path, tmp_path: Path) -> None:
    given = f"{GRAPH}\n{{}}\n{GRAPH}\n".encode()
    done = transduce(tmp_path, "predict", models / "graphs.safetensors", "--draw", given=given)
    assert (done.code, done.out) == (2, "")
    assert "standard input, line 2: expected a graph as" in done.err


def test_score_names_the_side_that_is_wrong(models: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\nx\n4\n")
    (tmp_path / "b").write_text("0\n9\n1\n9\n")
    options = ("--source", tmp_path / "a", "--target", tmp_path / "b", "--output", tmp_path / "out")
    done = transduce(tmp_path, "score", models / "nodes.safetensors", *options)
    assert (done.code, done.out) == (2, "")
    for said in ("a, line 3: expected the number of a node", "b, line 2: expected one of the labels", "b, line 4: "):
        assert said in done.err
    assert "/a, line 1" not in done.err and not (tmp_path / "out").exists()
    (tmp_path / "a").write_text("1\n2\n3\n4\n")
    (tmp_path / "b").write_text("0\n1\n1\n2\n")
    done = transduce(tmp_path, "score", models / "nodes.safetensors", *options)
    assert done.code == 0 and len((tmp_path / "out").read_text().splitlines()) == 4


def test_lines_that_do_not_fit_each_other_are_found_by_doing_it_again() -> None:
    pairs: list[tuple[str, str]] = [("a", "a"), ("b", "c"), ("d", "d")]

    def use(some: list[Any]) -> None:
        if any(one != other for one, other in some):
            raise InputError("pair 1: they differ.")

    class Reads:
        def encode(self, texts: list[str]) -> list[str]:
            return texts

    from transduce.cli.refused_lines import GivenLines

    given: Any = GivenLines("b.txt, line", [other for _, other in pairs], Reads())  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"b.txt, line 2: pair 1: they differ"), naming_lines([given], pairs, use):
        use(pairs)
    with pytest.raises(InputError, match=r"^settings$"), naming_lines([given], pairs, lambda some: None):
        raise InputError("settings")
