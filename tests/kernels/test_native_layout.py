"""Kernels of other sources are left out; and what Python writes is as long as what C++ reads."""

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch

import transduce.kernels.native
from transduce.core.errors import InputError
from transduce.data.columns import Specs
from transduce.fused.pack import pack_all
from transduce.fused.stack import in_one_call
from transduce.kernels.matmul import Linear
from transduce.kernels.native import TYPES, VARIANTS, beam, decoder, kernels, layout
from transduce.kernels.native.linear import Packed
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.search import one_call

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.fixture
def loaded_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """What is changed by it is there when the kernels are looked for, as in a new process; undone afterwards."""
    monkeypatch.delenv("TRANSDUCE_NATIVE", raising=False)
    transduce.kernels.native._found.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    transduce.kernels.native._found.cache_clear()


DOCTORED = {
    "one field more": ("STRUCTS", "Weight", "panels scale_O above_O bias_O inputs outputs zero"),
    "one field less": ("STRUCTS", "Wanted", "start end beam nbest barred:Barred"),
    "two fields in another order": ("STRUCTS", "Places", layout.STRUCTS["Places"].replace("key value", "value key")),
    "a struct more": ("STRUCTS", "Edge", "source target"),
    "one argument more": ("FUNCTIONS", "linear", "pppiii"),
    "an argument of another kind": ("FUNCTIONS", "layer_norm", "pppppppif"),
    "a function more": ("FUNCTIONS", "softmax", "pi"),
}


@pytest.mark.parametrize(("table", "name", "text"), DOCTORED.values(), ids=DOCTORED)
def test_kernels_that_read_something_else_are_left_out_with_one_warning(
    table: str, name: str, text: str, loaded_anew: pytest.MonkeyPatch
) -> None:
    loaded_anew.setitem(getattr(layout, table), name, text)
    with pytest.warns(RuntimeWarning, match=rf"compiled from other .*\({name}.* Rebuild them with .*build_ext") as told:
        assert kernels() is None
    x, layer = torch.randn(3, 5), Linear(5, 7).requires_grad_(False)
    with torch.no_grad():
        layer.pack()
        torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))
    assert kernels() is None
    assert len(told) == 1


@pytest.mark.parametrize("name", ["VERSION", "WIDEST", "ROWS", "LOG_ROUNDING"])
def test_another_number_counts_as_much(name: str, loaded_anew: pytest.MonkeyPatch) -> None:
    loaded_anew.setattr(layout, name, 99)
    with pytest.warns(RuntimeWarning, match=rf"\({name} is [\d.]+ in C\+\+, 99 in Python\)"):
        assert kernels() is None


def _old(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if modules of before there was a layout stood in the folder."""
    for variant in VARIANTS:
        name = f"transduce.kernels.native.{variant}"
        monkeypatch.setitem(sys.modules, name, ModuleType(name))


def test_kernels_of_before_there_was_a_layout(loaded_anew: pytest.MonkeyPatch) -> None:
    _old(loaded_anew)
    with pytest.warns(RuntimeWarning, match="it does not describe its layout"):
        assert kernels() is None


def test_kernels_that_were_chosen_are_no_choice_then(loaded_anew: pytest.MonkeyPatch) -> None:
    _old(loaded_anew)
    loaded_anew.setenv("TRANSDUCE_NATIVE", "plain")
    with pytest.raises(InputError, match=r"TRANSDUCE_NATIVE=plain: .*compiled from other sources .* Rebuild them"):
        kernels()


def test_every_kernel_is_compared() -> None:
    module = kernels()
    there = {name for name in dir(module) if not name.startswith("_")} - {"layout"}
    assert {layout._without_types(name, TYPES) for name in there} == set(layout.FUNCTIONS)
    assert layout.differences(module, TYPES) == []


def test_what_python_writes_is_as_long_as_what_is_read() -> None:
    model = Transformer(
        TransformerConfig(d_model=8, heads=2, encoder_layers=1, decoder_layers=2), Specs.of_tokens(9, 9)
    ).eval()
    pack_all(model)
    blocks = in_one_call(list(model.decoder.blocks), model.decoder)
    assert blocks
    packed, norm = Packed(torch.randn(9, 8)), decoder.Norm(torch.ones(8), torch.zeros(8))
    keys = torch.zeros(1, 2, 3, 4)
    writer = beam.Writer(torch.zeros(9, 8), torch.zeros(3, 8), None, blocks.decoder, norm, packed)
    assert len(packed.struct) == len(decoder.NO_WEIGHT) == layout.words("Weight")
    assert len(blocks.decoder.weights) == 2 * layout.words("BlockWeights")
    assert len(decoder.places(keys, keys)) == layout.words("Places")
    assert len(beam._fields(writer)) == layout.words("Writer")
    assert layout.words("BlockMemory") == 2 * layout.words("Places")


def test_what_is_no_log_probability_is_the_same_on_both_sides() -> None:
    assert one_call.ROUNDING == layout.LOG_ROUNDING
