"""The paired bootstrap against theory, sacrebleu's own, and systems whose order is known."""

import math
import random

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from transduce.core.errors import InputError
from transduce.metrics.bleu import bleu_tally
from transduce.metrics.bootstrap import SEED
from transduce.metrics.paired import mean_interval, paired_bootstrap
from transduce.metrics.sacrebleu_score import chrf_tally, ter_tally
from transduce.metrics.tally import Tally, mean_tally

WORDS = [f"w{number}" for number in range(50)]


def corpus(size: int) -> list[list[str]]:
    draw = random.Random(0)
    return [draw.choices(WORDS, k=draw.randint(6, 14)) for _ in range(size)]


def system(references: list[list[str]], wrong: float, seed: int) -> list[str]:
    """The references with a share of wrong words."""
    draw = random.Random(seed)
    return [" ".join(draw.choice(WORDS) if draw.random() < wrong else word for word in line) for line in references]


def normal_p(value: float, deviation: float) -> float:
    return math.erfc(abs(value) / deviation / math.sqrt(2))


def test_the_p_value_of_a_mean_is_the_textbooks() -> None:
    draw = np.random.default_rng(1)
    first = draw.normal(0.5, 0.2, 400)
    for shift in (0.0, 0.01, 0.02, 0.04):
        second = first + draw.normal(shift, 0.15, 400)
        found = paired_bootstrap(mean_tally("m", "s", list(first)), mean_tally("m", "s", list(second)), resamples=4000)
        gains = 100 * (second - first)
        deviation = gains.std() / math.sqrt(400)
        assert found.value == pytest.approx(gains.mean())
        assert found.p_value == pytest.approx(normal_p(gains.mean(), deviation), abs=0.03)
        assert found.interval is not None
        assert found.interval == pytest.approx(
            (gains.mean() - 1.96 * deviation, gains.mean() + 1.96 * deviation), abs=0.1
        )


def test_without_a_difference_one_is_claimed_no_more_often_than_said() -> None:
    draw = np.random.default_rng(2)
    claimed = 0
    for _ in range(200):
        one, other = draw.normal(0, 1, (2, 60))
        found = paired_bootstrap(mean_tally("m", "s", list(one)), mean_tally("m", "s", list(other)), resamples=200)
        claimed += found.better != ""
    assert claimed / 200 <= 0.1


def test_the_better_system_is_found_and_the_worse_one_is_not() -> None:
    references = corpus(200)
    plain = [" ".join(line) for line in references]
    good, bad = system(references, 0.15, 1), system(references, 0.3, 2)
    for measure in (bleu_tally, chrf_tally, ter_tally):
        forward = paired_bootstrap(measure(bad, plain), measure(good, plain))
        backward = paired_bootstrap(measure(good, plain), measure(bad, plain))
        assert (forward.better, backward.better) == ("second", "first")
        assert forward.value == pytest.approx(-backward.value)
        assert forward.p_value == backward.p_value
        assert forward.wins == 1.0
        assert backward.wins == 0.0
        assert forward.interval is not None
        assert forward.interval[0] < forward.value < forward.interval[1]


def test_pairing_tells_apart_what_two_separate_intervals_cannot() -> None:
    references = corpus(150)
    plain = [" ".join(line) for line in references]
    base = system(references, 0.3, 1)
    better = [plain[line] if line % 12 == 0 else text for line, text in enumerate(base)]
    one, other = bleu_tally(base, plain), bleu_tally(better, plain)
    first, second = one.score().interval, other.score().interval
    assert first is not None
    assert second is not None
    assert first[1] > second[0]  # the intervals overlap
    assert paired_bootstrap(one, other).better == "second"


def test_sacrebleus_own_test_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", str(SEED))
    references = corpus(100)
    plain = [" ".join(line) for line in references]
    for wrong in (0.2, 0.25, 0.4):
        one, other = system(references, 0.2, 1), system(references, wrong, 2)
        test = PairedTest([("one", one), ("other", other)], {"BLEU": BLEU()}, [plain], test_type="bs", n_samples=1000)
        theirs = test()[1]["BLEU"][1]
        ours = paired_bootstrap(bleu_tally(one, plain), bleu_tally(other, plain))
        # Theirs counts one side only, and drops the signs first: where they are mixed its p comes out too small
        # (0.20 for two samples of one system, of which the textbook's test makes 0.6). Where they are not:
        assert theirs.p_value <= ours.p_value
        if ours.wins in {0.0, 1.0}:
            assert ours.p_value <= 2 * theirs.p_value + 0.01
    assert ours.wins == 0.0  # the last of them is such a case


def test_a_system_is_not_better_than_itself() -> None:
    references = corpus(30)
    tally = bleu_tally(system(references, 0.2, 1), [" ".join(line) for line in references])
    found = paired_bootstrap(tally, tally)
    assert (found.value, found.p_value, found.better) == (0.0, 1.0, "")


def test_several_trainings_are_averaged_and_widen_the_interval() -> None:
    references = corpus(300)
    plain = [" ".join(line) for line in references]
    runs = [bleu_tally(system(references, wrong, 7), plain) for wrong in (0.1, 0.2, 0.3)]
    middle = [runs[1]] * 3
    assert paired_bootstrap(middle, runs).value == pytest.approx(np.mean([run.value for run in runs]) - runs[1].value)
    narrow, wide = mean_interval(middle), mean_interval(runs)
    assert narrow is not None
    assert wide is not None
    assert wide[1] - wide[0] > 2 * (narrow[1] - narrow[0])
    assert mean_interval([runs[1]]) == runs[1].score().interval


def test_everything_is_the_same_every_time_and_json() -> None:
    references = corpus(20)
    plain = [" ".join(line) for line in references]
    one, other = bleu_tally(system(references, 0.2, 1), plain), bleu_tally(system(references, 0.2, 2), plain)
    found = paired_bootstrap(one, other)
    assert found == paired_bootstrap(one, other)
    told = found.to_dict()
    assert told["resamples"] == 1000
    assert told["test"] == "paired bootstrap"


def test_one_sentence_decides_nothing() -> None:
    found = paired_bootstrap(bleu_tally(["a b"], ["a b c d"]), bleu_tally(["a b c d"], ["a b c d"]))
    assert found.value > 0
    assert (found.interval, found.p_value, found.wins, found.better) == (None, None, None, "")


def test_what_cannot_be_compared_is_refused() -> None:
    one = bleu_tally(["a b", "c"], ["a b", "c"])
    with pytest.raises(InputError, match="different signatures"):
        paired_bootstrap(one, chrf_tally(["a b", "c"], ["a b", "c"]))
    with pytest.raises(InputError, match="same sentences"):
        paired_bootstrap(one, bleu_tally(["a b"], ["a b"]))
    assert isinstance(one, Tally)
