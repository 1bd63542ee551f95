"""No key of any kind of model is accepted and ignored: another value makes another model or output, or is refused.

A key that another one switches on is turned where that is so (`WHERE`). Whatever names a part is turned to every part.
"""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, get_args, get_origin

import pytest
import torch
from pydantic import ValidationError
from test_contracts import TARGET_IDS, TINY, WRITERS, logits
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.core.registry import known, resolve
from transduce.data.columns import Specs
from transduce.recipe.recipe import parse_recipe

ROOMS = {
    "score": "attention.scores",
    "normalizer": "attention.normalizers",
    "positions": "attention.relative",
    "cell": "layers.recurrent",
}
WHERE: dict[str, dict[str, Any]] = {
    "max_length": {"positions": "learned"},
    "rotary_base": {"positions": "rotary"},
    "rotary_scaling": {"positions": "rotary"},
    "encoder_max_length": {"positions": "learned"},
    "pattern": {"stride": 3},  # blocks that a target is longer than
    "stride": {"stride": 3, "pattern": "local"},
    "decoder_positions": {"positions": "tensor2tensor"},
    "residual": {"layers": 2, "encoder_layers": 2, "decoder_layers": 2},
}
OTHERS: dict[str, list[Any]] = {  # values other than the default's neighbours
    "stride": [2],
    "rotary_base": [500.0],
    "rotary_scaling": [{"kind": "linear", "factor": 2.0}],
    "encoder_positions": ["learned", "rotary", "tensor2tensor"],
    "encoder_max_length": [40],
    "pattern": ["local", "strided", "fixed"],
    "kernel": [7],
    "key_value_heads": [1],
    "head_width": [3],
    "heads": [4],
    "d_model": [12],
    "hidden": [16],
}
FAR = 12  # tokens of a target: further than a convolution reaches, and than a block of a pattern


def turns(kind: str) -> Iterator[tuple[str, Any]]:
    """Every key of a kind of model with each value that it is turned to."""
    config = resolve("models", kind).Config
    tiny = config.model_validate(TINY[kind].settings)
    for key, field in config.model_fields.items():
        now = getattr(tiny, key)
        if key in OTHERS:
            values = OTHERS[key]
        elif get_origin(field.annotation) is Literal:
            values = [value for value in get_args(field.annotation) if value != now]
        elif key in ROOMS:
            values = [name for name in known(ROOMS[key]) if name != now]
        elif isinstance(now, bool):
            values = [not now]
        else:
            values = [now + 1] if isinstance(now, int) else [0.37]
        yield from ((key, value) for value in values)


def where(kind: str, key: str) -> dict[str, Any]:
    """Settings in which the key means something; none where this kind of model refuses them."""
    config = resolve("models", kind).Config
    settings = {name: value for name, value in WHERE.get(key, {}).items() if name in config.model_fields}
    try:
        config.model_validate({**TINY[kind].settings, **settings})
    except ValidationError:
        return {}
    return settings


CASES = [(kind, key, value) for kind in WRITERS for key, value in turns(kind)]


def made(kind: str, settings: dict[str, Any]) -> tuple[dict[str, Any], Tensor]:
    """The shapes of the parameters, and what the model says in training (dropout, choices) and otherwise."""
    torch.manual_seed(0)
    model = resolve("models", kind)(
        resolve("models", kind).Config.model_validate(settings),
        Specs.of_tokens(TARGET_IDS if TINY[kind].reads_source else None, TARGET_IDS),
    )
    generator = torch.Generator().manual_seed(1)
    values_BT = torch.randint(TARGET_IDS, (3, FAR), generator=generator)
    target = Padded(values_BT, torch.tensor([FAR, 4, 9]))
    source = Padded(values_BT.flip(1), torch.tensor([FAR, 10, 5])) if TINY[kind].reads_source else None
    shapes = {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
    with torch.no_grad():
        said = [logits(model.train(training), source, target) for training in (True, False)]
    return shapes, torch.cat([each.flatten() for each in said])


@lru_cache(maxsize=64)
def unturned(kind: str, where: str) -> tuple[dict[str, Any], Tensor]:
    """`made` of the tiny settings and these, which are JSON: once for all the keys that are turned from there."""
    return made(kind, {**TINY[kind].settings, **json.loads(where)})


@pytest.mark.parametrize(("kind", "key", "value"), CASES, ids=str)
def test_a_key_is_read_or_refused(kind: str, key: str, value: Any) -> None:
    base = {**TINY[kind].settings, **where(kind, key)}
    try:
        turned = made(kind, {**base, key: value})
    except (ValidationError, InputError) as error:
        assert key in str(error)
        return
    before = unturned(kind, json.dumps(where(kind, key)))
    assert turned[0] != before[0] or turned[1].shape != before[1].shape or not torch.equal(turned[1], before[1])


@pytest.mark.parametrize("kind", ["ctc", "non_autoregressive", "ssru_transformer"])
def test_a_pattern_is_refused_in_words_where_nothing_is_causal(kind: str) -> None:
    table = {"data": {"train": [{"source": "a", "target": "b"}]}, "model": {"kind": kind}}
    with pytest.raises(InputError) as caught:
        parse_recipe({**table, "model": {"kind": kind, "pattern": "local", "stride": 8}}, "here")
    said = "applies to causal self-attention, which this kind of model does not have: leave it out"
    for key in ("pattern", "stride"):
        assert f"here: model.{key}: {said}" in str(caught.value)
    told = parse_recipe(table, "here").to_table()
    assert told["model"]["pattern"] == "full"
    assert parse_recipe(told, "a model file") == parse_recipe(table, "here")  # those written before have the keys


HEADS, EVEN = "must be a multiple of heads (4)", "sinusoidal positions need an even d_model"
RECURRENT = {"encoder": "recurrent", "hidden": 50}


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        ("classifier", {"encoder": "transformer", "d_model": 50}, HEADS),
        ("classifier", {"encoder": "linear", "d_model": 50}, HEADS),
        ("classifier", {**RECURRENT, "d_model": 51}, ""),
        ("classifier", {**RECURRENT, "d_model": 50, "heads": 2}, "heads: not read"),
        ("classifier", {**RECURRENT, "d_model": 50, "positions": "rotary"}, "positions: not read"),
        ("classifier", {"encoder": "convolution", "d_model": 50}, ""),
        ("classifier", {"encoder": "convolution", "d_model": 51}, EVEN),
        ("classifier", {"encoder": "none", "d_model": 50}, ""),
        ("classifier", {"encoder": "none", "d_model": 51}, EVEN),
        ("vector_decoder", {"network": "recurrent", "d_model": 51}, ""),
        ("vector_decoder", {"network": "recurrent", "d_model": 51, "heads": 3}, "heads: not read"),
        ("vector_decoder", {"network": "transformer", "d_model": 50}, HEADS),
        ("vector_decoder", {"network": "transformer", "d_model": 51, "heads": 1}, EVEN),
    ],
)
def test_rules_are_for_keys_that_are_read(kind: str, settings: dict[str, Any], said: str) -> None:
    config = resolve("models", kind).Config
    try:
        config.model_validate({"kind": kind, **settings})
    except ValidationError as refused:
        assert said
        assert said in str(refused)
    else:
        assert not said
