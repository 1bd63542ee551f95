"""Models of others, as they were imported, without torch: what their original's modules give, and torch with ours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="the originals are made with transformers")

import foreign_models
import transduce
from random_models import sentences
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.without_torch.translator import load

pytestmark = pytest.mark.usefixtures("kernels")

LAYOUTS: dict[str, tuple[Callable[..., Any], Languages]] = {
    "marian": (foreign_models.marian, Languages()),
    "bart": (foreign_models.bart, Languages()),
    "mbart": (foreign_models.mbart, Languages("en_XX", "fr_XX")),
    "nllb": (foreign_models.nllb, Languages("eng_Latn", "fra_Latn")),
    "m2m_100": (foreign_models.m2m_100, Languages("en", "fr")),
}
SEARCHES: list[dict[str, Any]] = [
    {},  # the original's own
    {"method": "greedy"},
    {"beam": 4, "nbest": 3, "stopping": "slots"},
    *({"beam": 4, "nbest": 4, "alpha": 1.5, "stopping": each} for each in ("heuristic", "complete", "never")),
    {"beam": 3, "nbest": 3, "stopping": "heuristic", "max_length_factor": 0.0, "max_length_offset": 7},
]


@pytest.fixture(scope="module", params=LAYOUTS)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The converted file."""
    folder = tmp_path_factory.mktemp("theirs")
    make, languages = LAYOUTS[request.param]
    make(folder)
    path = folder / "converted.safetensors"
    save_model_file(path, read_foreign(folder, languages, "x").file)
    return path


def test_an_imported_model_translates_without_torch(path: Path) -> None:
    lines = sentences(20, seed=6)
    without, with_torch = load(path, search={}), transduce.load(path, device="cpu")
    for search in SEARCHES:
        found = without.predict(lines, **search)
        assert found == with_torch.predict(lines, **search), "to the last bit"
        assert [without.predict(line, **search) for line in lines] == found
        steps: list[Any] = []  # a search that is looked at goes step by step
        slow = with_torch.predict(lines, **search, on_step=steps.append)
        assert steps
        assert [each.text for each in slow] == [each.text for each in found]
        assert [each.score for each in slow] == pytest.approx([each.score for each in found], abs=1e-4)
        tokens = [[each.tokens for each in one.alternatives] for one in slow]
        assert tokens == [[each.tokens for each in one.alternatives] for one in found]


def test_t5_is_declined_by_name(tmp_path: Path) -> None:
    foreign_models.t5(tmp_path)
    save_model_file(tmp_path / "converted.safetensors", read_foreign(tmp_path, Languages(), "x").file)
    with pytest.raises(
        InputError, match=r"model\.positions = 't5': without torch, it must be one of none, sinusoidal, .*"
    ):
        load(tmp_path / "converted.safetensors")
