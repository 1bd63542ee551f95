"""What is wrong with files and keys is said as such, whatever reads them first."""

import sys
from pathlib import Path

import pytest
from rich.console import Console

from transduce.core.errors import InputError
from transduce.core.overrides import apply_overrides
from transduce.data.pairs.inputs import Named, resolve_inputs
from transduce.planning.plan import make_plan
from transduce.training.display import Display


def planned(path: Path, *overrides: str) -> None:
    make_plan(Named(path), apply_overrides({}, overrides), None, Display(Console(quiet=True)))


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"a{n} b c.\td{n} e f.\n" for n in range(60)), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("training=5", "training=5: expected a key of this section"),
        ("training.start=5", "training.start=5: expected the name of a model file"),
        ("training.updates=none", "training.updates=none: expected a whole number"),
        ("data.hold_out.validation=inf", "data.hold_out.validation: expected a finite number; got inf"),
        ("data.hold_out.test=nan", "data.hold_out.test: expected a finite number; got nan"),
    ],
)
def test_wrong_values_are_named(pairs: Path, given: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        planned(pairs, given)


def test_a_start_that_is_unset_is_none(pairs: Path) -> None:
    """It goes on to what is wrong with the next key, and looks for no model."""
    with pytest.raises(InputError, match=r"training\.learning_rate: expected a number; got 'x'"):
        planned(pairs, "training.start=none", "training.learning_rate=x")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are UTF-8")
def test_a_name_that_is_not_utf8_is_refused(pairs: Path) -> None:
    """A recipe could not be written that names the file."""
    odd = pairs.with_name("b\udcff.tsv")
    odd.write_bytes(pairs.read_bytes())
    with pytest.raises(InputError, match=r"b\\udcff\.tsv' is not UTF-8.*Rename the file"):
        resolve_inputs(Named(odd))
