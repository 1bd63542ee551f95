"""`query_BHTD` has four axes, and within one function a letter has one size: names are compared with shapes."""

import itertools
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch import Tensor

import transduce
from transduce.attention import capture
from transduce.attention.pooling import AttentionPooling
from transduce.attention.reinforce import choices, surrogate
from transduce.core.padded import Padded
from transduce.core.registry import known, resolve
from transduce.data.columns import Specs
from transduce.layers.cross_entropy import smoothed_cross_entropy
from transduce.layers.ctc import ids_of, log_likelihood, log_probabilities_of, token_log_probabilities, written
from transduce.models.convolution import Convolution, ConvolutionConfig
from transduce.models.ctc import Ctc, CtcConfig
from transduce.models.non_autoregressive import NonAutoregressive, NonAutoregressiveConfig
from transduce.models.rnn import Rnn, RnnConfig
from transduce.models.rnn_decoder import RnnDecoder, RnnDecoderConfig
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.models.transformer_decoder import TransformerDecoder, TransformerDecoderConfig

PACKAGE = Path(transduce.__file__).parent
ROOMS = tuple(str(PACKAGE / room) for room in ("kernels/native", "attention", "layers", "models"))
LETTERS = re.compile(r"_([A-Z][A-Z0-9]*)$")


def problems_in(frame: FrameType) -> Iterator[str]:
    """The local tensors of a function that returns, whose shapes are not what their names say."""
    sizes: dict[str, int] = {}
    where = f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}"
    for name, value in frame.f_locals.items():
        letters = LETTERS.search(name)
        if letters is None or not isinstance(value, Tensor):
            continue
        if len(letters[1]) != value.ndim:
            yield f"{where}: {name} is {tuple(value.shape)}"
            continue
        for letter, size in zip(letters[1], value.shape, strict=True):
            expected = int(letter) if letter.isdigit() else sizes.setdefault(letter, size)
            if size != expected:
                yield f"{where}: {name} is {tuple(value.shape)}, but {letter} is {expected}"


@contextmanager
def watched() -> Iterator[tuple[set[str], set[str]]]:
    """(problems, names seen) of every function of the model rooms that returns inside."""
    problems: set[str] = set()
    seen: set[str] = set()

    def at(frame: FrameType, event: str, argument: Any) -> None:
        if event == "return" and frame.f_code.co_filename.startswith(ROOMS):
            problems.update(problems_in(frame))
            seen.update(name for name in frame.f_locals if LETTERS.search(name))

    sys.setprofile(at)
    try:
        yield problems, seen
    finally:
        sys.setprofile(None)


@pytest.mark.usefixtures("either_way")
def test_names_say_what_shapes_are() -> None:
    torch.manual_seed(0)
    sizes = {"d_model": 8, "heads": 2, "feed_forward": 12, "dropout": 0.1, "inner_dropout": 0.1}
    source = Padded(torch.randint(11, (3, 5)), torch.tensor([5, 2, 4]))
    target = Padded(torch.randint(13, (3, 6)), torch.tensor([6, 6, 6]))
    others = itertools.cycle(
        [
            {"norm": "pre", "score": "additive", "key_value_heads": 1},
            {"norm": "post", "norm_kind": "batch", "activation": "swiglu"},
            {"norm": "pre", "norm_kind": "rms", "key_value_heads": 1},
        ]
    )
    with watched() as (problems, seen):
        for positions in ("none", "sinusoidal", "learned", "rotary", "alibi", "shaw", "t5"):
            table = {**sizes, "positions": positions, **next(others)}
            both = Transformer(TransformerConfig.model_validate(table), Specs.of_tokens(11, 13))
            logits_BTV = both(source, target)
            smoothed_cross_entropy(logits_BTV.flatten(0, 1), target.values.flatten(), 0.1).backward()
            memory, state = both.start(source, 3)
            both.step(target.values[:, 0], memory, state)
            fills = NonAutoregressive(NonAutoregressiveConfig.model_validate(table), Specs.of_tokens(11, 13))
            fills.encode(source)
            read = fills.remember(source)
            fills.lengths(read, 40)
            fills.fill(target, target.mask() & (target.values % 2 == 0), read)
            aligns = Ctc(CtcConfig.model_validate(table), Specs.of_tokens(11, 13))
            aligns.encode(source)
            places = aligns.align(source, target.lengths)
            of_BPU, _ = log_probabilities_of(places.values, ids_of(target.values, places.values.shape[1], 0))
            of = written(of_BPU, places.lengths, *target)
            log_likelihood(of).sum().backward()
            token_log_probabilities(of)
            alone = TransformerDecoder(TransformerDecoderConfig.model_validate(table), Specs.of_tokens(None, 13))
            alone(None, target)
            alone.step(target.values[:, 0], *alone.start(None, 3))
        for score in ("dot", "location_aware"):
            config = ConvolutionConfig(d_model=8, score=score, pointer=True)
            copying = Convolution(config, Specs.of_tokens(13, 13))
            copying(source, target).sum().backward()
            copying.step(target.values[:, 0], *copying.start(source, 3))
        for attention, cell in (("none", "lstm"), ("bahdanau", "gru"), ("luong", "lstmn")):
            table = {"cell": cell, "attention": attention, "d_model": 7, "hidden": 8, "encoder_layers": 2}
            pooled = {"pooling": 2} if attention == "none" else {}
            recurrent = Rnn(RnnConfig.model_validate({**table, **pooled, "pointer": True}), Specs.of_tokens(13, 13))
            recurrent(source, target)
            recurrent.step(target.values[:, 0], *recurrent.start(source, 3))
        language = RnnDecoder(RnnDecoderConfig(d_model=7), Specs.of_tokens(None, 13))
        language(None, target)
        language.step(target.values[:, 0], *language.start(None, 3))
    assert not problems
    assert {"mass_N1"} <= seen or {"log_mass_N", "mask_B1TS", "dgain_PD"} <= seen
    assert {"query_BHTE", "alpha_BHTS", "alpha_B11L", "logits_NV", "table_TD", "token_B"} <= seen


def test_names_say_what_shapes_are_of_linear_attention() -> None:
    sizes = {"d_model": 8, "heads": 2, "feed_forward": 12}
    source = Padded(torch.randint(11, (3, 5)), torch.tensor([5, 2, 4]))
    target = Padded(torch.randint(13, (3, 70)), torch.tensor([70, 6, 6]))
    with watched() as (problems, seen):
        for kind, reads in (("linear_transformer", source), ("linear_transformer_decoder", None)):
            made = resolve("models", kind)
            model = made(made.Config.model_validate(sizes), Specs.of_tokens(11 if reads else None, 13))
            with capture(model):
                model(reads, target)
                model.step(target.values[:, 0], *model.start(reads, 3))
    assert not problems
    assert {"query_BHNCE", "values_BHMEF", "feature_BHSE", "alpha_BHTS", "length_B"} <= seen


def test_names_say_what_shapes_are_of_every_score_and_weighing() -> None:
    x_BSD, real_BS = torch.randn(3, 5, 6), torch.arange(5) < torch.tensor([[5], [2], [4]])
    with watched() as (problems, seen):
        for score in known("attention.scores"):
            for normalizer in known("attention.normalizers"):
                with choices() as made:
                    AttentionPooling(score, normalizer, 6, queries=2)(x_BSD, real_BS)
                if made.log_probability is not None:
                    surrogate(made.log_probability, torch.ones(3), torch.ones(3))
    assert not problems
    assert {"hidden_BHTSA", "near_BHTS", "choice_BHT1", "reached_BHTS", "read_BH1D", "baseline_B"} <= seen


def test_a_wrong_name_is_found() -> None:
    def function() -> FrameType:
        right_TD, wrong_BTD, other_TD = torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(5, 3)
        assert right_TD is not wrong_BTD is not other_TD
        return sys._getframe()

    found = sorted(problems_in(function()))
    assert len(found) == 2
    assert "wrong_BTD is (2, 3)" in found[1]
    assert "other_TD is (5, 3), but T is 2" in found[0]
