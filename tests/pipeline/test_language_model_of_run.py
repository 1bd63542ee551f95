"""A translation recipe with search.lm_weight: its n-grams are counted, stored, and used by every search."""

from pathlib import Path

import pytest

import transduce
from forked import transduce as command
from shared_folders import trained_once
from tiny_recipe import TINY_RECIPE

LINES = ["1 2 3", "4 4", "9 0 7 1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, tiny_corpus: Path) -> Path:
    text = TINY_RECIPE.replace("[data]", f'[data]\nroot = "{tiny_corpus}"')
    return trained_once(tmp_path_factory, "with-ngrams", text.replace("beam = 3", "beam = 3\nlm_weight = 0.5"))


def test_its_outputs_have_the_probability_of_both(run: Path) -> None:
    model = transduce.load(run)
    ngrams = model.task.ngrams
    assert ngrams is not None
    tokens = model.task.tokenizers["target"]
    for found in model.predict(LINES, max_length_offset=40):
        assert found.ended
        [ids] = tokens.encode([found.text])
        alone = model.score([found.source], [found.text])[0].log_probability
        likely = float(ngrams.log_probabilities([*ids, tokens.end]).sum())
        assert found.log_probability == pytest.approx(alone + 0.5 * likely, abs=1e-3)


def test_it_can_be_left_out_and_asked_for(run: Path, tiny_run: Path, tmp_path: Path) -> None:
    model, plain = transduce.load(run), transduce.load(tiny_run)
    with_it, without = model.predict(LINES), model.predict(LINES, lm_weight=0.0)
    assert [each.log_probability for each in with_it] != [each.log_probability for each in without]
    assert [each.text for each in without] == [each.text for each in plain.predict(LINES)]
    refused = command(tmp_path, "predict", tiny_run, "--text", LINES[0], "--lm-weight", 0.5)
    assert refused.code == 2
    assert "this model has no n-grams" in refused.err
    both = transduce.load([run, run]).predict(LINES)
    assert [each.log_probability for each in both] == pytest.approx(
        [each.log_probability for each in with_it], abs=1e-3
    )
