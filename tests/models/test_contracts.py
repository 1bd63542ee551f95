"""What every model promises to training, search, serving and exploring; run over every name there is.

A new architecture needs one line in `TINY`, and nothing else here. A model that fills, all words at once, has no next
token: for the contracts of steps it is in `EXCUSED`, with the reason; those of filling stand at the end.
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn

from text_columns import loss_of
from transduce.attention import capture
from transduce.core.model_file import ModelFile, lasting_tensors, load_model_file, save_model_file
from transduce.core.padded import Padded
from transduce.core.registry import known, resolve
from transduce.data.collate import Batch
from transduce.data.columns import Specs
from transduce.fused.pack import pack_all
from transduce.layers.embedding import Embedding
from transduce.layers.feedforward import Activation
from transduce.layers.norms import NormKind
from transduce.layers.stack import StackConfig
from transduce.models.protocols import (
    Aligns,
    Classifies,
    Embeds,
    Encodes,
    Fills,
    Points,
    Predicts,
    PredictsByProduct,
    PredictsMasked,
    Processes,
    Reorders,
    ScoresSpans,
    Steps,
    StepsWithHidden,
    map_tree,
    select,
    writes_at_once,
)
from transduce.pipeline.outline import load_weights
from transduce.recipe.training import TrainingConfig
from transduce.search.dispatch import only_method


@dataclass(frozen=True)
class Tiny:
    """How to build a tiny instance of a model.

    settings: of its Config; variants: more settings to try, each on top of these.
    """

    reads_source: bool
    settings: dict[str, Any]
    variants: list[dict[str, Any]] = field(default_factory=list)


STACK: dict[str, Any] = {"d_model": 8, "heads": 2, "feed_forward": 12}
RNN: dict[str, Any] = {"d_model": 8, "hidden": 12}
ATTENTIONS = itertools.cycle(["bahdanau", "luong", "none"])  # one a cell: neither knows anything of the other
RNN_VARIANTS: list[dict[str, Any]] = [
    {"pointer": True},
    *({"cell": cell, "attention": kind} for cell, kind in zip(known("layers.recurrent"), ATTENTIONS, strict=False)),
    *({"cell": "lstm", "attention": kind} for kind in ("bahdanau", "none")),  # whose state is two tensors
    *({"attention": "luong", "feeding": False, "score": score} for score in known("attention.scores")),
    *({"attention": "bahdanau", "normalizer": normalizer, "heads": 2} for normalizer in known("attention.normalizers")),
    {"attention": "none", "cell": "lstm", "feeding": False, "bridge": "copy", "direction": "backward"},
    {"cell": "lstm", "encoder_layers": 3, "decoder_layers": 2, "residual": True, "direction": "forward"},
    {"cell": "lstmn", "encoder_layers": 2, "decoder_layers": 2, "bridge": "copy", "residual": True},
    {
        "encoder_layers": 2,
        "decoder_layers": 2,
        "attention": "luong",
        "bridge": "copy",
        "score": "location_aware",
        "heads": 2,
    },
    {"readout": "maxout", "tied": "output"},
    {"attention": "none", "pooling": 2},
    {"attention": "luong", "score": "bilinear", "normalizer": "entmax", "pooling": 1},
    {"tied": "none"},
]
WRITERS = [
    name
    for name in known("models")
    if not issubclass(resolve("models", name), Classifies | Embeds | Points | PredictsMasked | Processes | ScoresSpans)
]
"""Classifiers, encoders, models that point, fill in or score spans, and models of vectors write nothing; their
contracts are in tests/tasks/test_classification.py and test_chart_parsing.py, and in
tests/models/test_{classifier,tree_models,pointing,processing}.py."""

TINY = {
    "convolution": Tiny(
        reads_source=True,
        settings={"d_model": 8, "encoder_layers": 2, "decoder_layers": 2, "kernel": 5},  # sees every token before
        variants=[
            {"tied": "output"},
            {"tied": "none"},
            {"positions": "sinusoidal"},
            {"kernel": 3, "decoder_layers": 3},
            {"score": "additive", "heads": 2},
            {"score": "location_aware"},
            {"pointer": True},
        ],
    ),
    "transformer": Tiny(
        reads_source=True,
        settings={**STACK, "encoder_layers": 2, "decoder_layers": 2},
        variants=[{"tied": "output"}, {"tied": "none"}, {"pointer": True}, {"zero_start": True}],
    ),
    "ssru_transformer": Tiny(
        reads_source=True,
        settings={**STACK, "encoder_layers": 2, "decoder_layers": 2},
        variants=[
            {"tied": "none"},
            {"norm": "post"},
            {"positions": "rotary"},
            {"score": "additive"},
            {"zero_start": True},
            {"positions": "tensor2tensor", "decoder_positions": True},
        ],
    ),
    "rnn": Tiny(reads_source=True, settings=RNN, variants=RNN_VARIANTS),
    "rnn_decoder": Tiny(
        reads_source=False,
        settings={"d_model": 8},
        variants=[{"cell": cell} for cell in known("layers.recurrent")] + [{"tied": False, "residual": True}],
    ),
    "linear_transformer": Tiny(
        reads_source=True,
        settings={**STACK, "encoder_layers": 2, "decoder_layers": 2},
        variants=[{"tied": "none"}, {"norm": "post"}, {"positions": "learned"}, {"positions": "none"}],
    ),
    "linear_transformer_decoder": Tiny(
        reads_source=False,
        settings={**STACK, "layers": 2},
        variants=[{"tied": False}, {"norm": "post"}, {"positions": "learned"}, {"positions": "none"}],
    ),
    "transformer_decoder": Tiny(
        reads_source=False,
        settings={**STACK, "layers": 2},
        variants=[
            {"tied": False},
            {"pattern": "local", "stride": 3},
            {"pattern": "strided", "stride": 2},
            {"pattern": "fixed", "stride": 2},
            {
                "positions": "rotary",
                "rotary_base": 100.0,
                "rotary_scaling": {"kind": "llama3", "factor": 4.0, "original_length": 64},
                "query_key_norm": True,
                "scale_embeddings": False,
            },
        ],
    ),
    "non_autoregressive": Tiny(
        reads_source=True,
        settings={**STACK, "encoder_layers": 2, "decoder_layers": 2, "reach": 3},
        variants=[{"tied": "output"}, {"tied": "none"}],
    ),
    "ctc": Tiny(
        reads_source=True,
        settings={**STACK, "encoder_layers": 2, "decoder_layers": 2},
        variants=[{"tied": "output"}, {"tied": "none"}, {"places": 1}],
    ),
}
EXCUSED = {  # from the contracts of steps
    "non_autoregressive": "every word may look at every other: there is no future to hide, no next token, no state",
    "ctc": "every place may look at every other, and no word is read: there is no future, no next token, no state",
}

SOURCE_IDS, TARGET_IDS = 11, 13
SOURCE_LENGTHS, TARGET_LENGTHS = [5, 2, 4], [4, 6, 3]  # the longest differ, so that sides are told by their length
ROWS = len(SOURCE_LENGTHS)
PADDED_ROWS = (1, 2)  # in the source alone, and on both sides
FEW = 4  # tokens of a target, where steps are much the same
OVERALL = {"norm": ["pre", "post"] * 2, "positions": ["none", "sinusoidal", "learned", "rotary"]}


def at_once(room: str) -> list[str]:
    """The names of `room` that can serve all queries at the same time, as stacks need it."""
    return [name for name in known(room) if not resolve(room, name).sequential]


GATES = ["geglu", "swiglu", "glu"]  # glu is third, with batch norm: running statistics hold down no products or squares
# Of models of stacks every part there is, in as few models as that takes: the first of each row, the second, ..
PARTS: dict[str, list[Any]] = {
    "score": at_once("attention.scores"),
    "normalizer": at_once("attention.normalizers"),
    "positions": known("attention.relative"),
    "norm_kind": list(get_args(NormKind)),
    "activation": [*GATES, *(name for name in get_args(Activation) if name not in GATES)],
    "heads": [4, 4, 2],
    "key_value_heads": [1, 2],
}
READ_ALL = {"softmax"}  # other normalizers leave some keys at exactly 0
CHOOSE = {"hard", "gumbel"}  # one key, by scores that rounding may bring into another order


@dataclass(frozen=True)
class Case:
    """One model in one of its variants."""

    name: str
    variant: dict[str, Any]

    def __str__(self) -> str:
        return "-".join([self.name, *map(str, self.variant.values())])

    @property
    def reads_source(self) -> bool:
        return TINY[self.name].reads_source

    @property
    def reads_all(self) -> bool:
        """Every prediction depends on every position that it may see."""
        return self.variant.get("normalizer", "softmax") in READ_ALL and not self.variant.get("zero_start")

    def build(self, seed: int = 0) -> nn.Module:
        """In evaluation mode; biases, gains and statistics are random as well, so that one that leaks shows."""
        torch.manual_seed(seed)
        kind = resolve("models", self.name)
        config = kind.Config.model_validate({**TINY[self.name].settings, **self.variant})
        source_ids = TARGET_IDS if self.variant.get("pointer") else SOURCE_IDS  # copying takes one vocabulary
        model: nn.Module = kind(config, Specs.of_tokens(source_ids if self.reads_source else None, TARGET_IDS))
        with torch.no_grad():
            for tensor in lasting_tensors(model).values():
                tensor.add_(0.1 * torch.randn_like(tensor))
        return model.eval()

    def inputs(self, seed: int = 1) -> tuple[Padded | None, Padded]:
        """A source, if the model reads one, and a target; random ids, also behind the ends."""
        generator = torch.Generator().manual_seed(seed)

        def padded(ids: int, lengths: list[int]) -> Padded:
            values_BT = torch.randint(ids, (len(lengths), max(lengths)), generator=generator)
            return Padded(values_BT, torch.tensor(lengths))

        source, target = padded(SOURCE_IDS, SOURCE_LENGTHS), padded(TARGET_IDS, TARGET_LENGTHS)
        return (source if self.reads_source else None), target


def variants(name: str) -> list[dict[str, Any]]:
    """The table's own; for models of stacks every norm, positions and part too."""
    if name not in TINY:
        return []
    stacked = issubclass(resolve("models", name).Config, StackConfig)
    overall = [dict(zip(OVERALL, each, strict=True)) for each in zip(*OVERALL.values(), strict=True)]
    columns = itertools.zip_longest(*PARTS.values())
    parts = [{key: value for key, value in zip(PARTS, column, strict=True) if value} for column in columns]
    return (overall + parts if stacked else [{}]) + TINY[name].variants


CASES = [Case(name, variant) for name in WRITERS for variant in variants(name)]
every_model = pytest.mark.parametrize("case", CASES, ids=str)
plain_models = pytest.mark.parametrize("case", [Case(name, {}) for name in WRITERS if name in TINY], ids=str)
every_stepper = pytest.mark.parametrize("case", [case for case in CASES if case.name not in EXCUSED], ids=str)
every_product = pytest.mark.parametrize(
    "case", [each for each in CASES if hasattr(resolve("models", each.name), "before_logits")], ids=str
)
every_filler = pytest.mark.parametrize("case", [case for case in CASES if case.name == "non_autoregressive"], ids=str)
every_reader = pytest.mark.parametrize("case", [case for case in CASES if case.reads_source], ids=str)


def logits(model: Any, source: Padded | None, target: Padded) -> Tensor:
    """(B, T, V): what a model says of each position.

    One that fills is asked for every second word, and says 0 else; one that aligns for as many places as there are
    words.
    """
    if isinstance(model, Aligns):
        assert source is not None
        return model.align(source, target.lengths).values[:, : target.values.shape[1]]
    if not isinstance(model, Fills):
        answer_BTV: Tensor = model(source, target)
        return answer_BTV
    assert source is not None
    hidden_BT = every_second(target)
    filled_NV = model.fill(target, hidden_BT, model.remember(source))
    logits_BTV = filled_NV.new_zeros(*target.values.shape, TARGET_IDS)
    return logits_BTV.masked_scatter(hidden_BT[..., None], filled_NV)


def every_second(target: Padded) -> Tensor:
    """(B, T) bool: the first, third, .. word of each row."""
    return (torch.arange(target.values.shape[1]) % 2 == 0) & target.mask()


def looked_at(model: nn.Module, target: Padded) -> Tensor:
    """(B, T) bool: the target tokens that `logits` may depend on."""
    return target.mask() & ~every_second(target) if isinstance(model, Fills) else target.mask()


def alone(padded: Padded | None, row: int) -> Padded | None:
    """One sequence without its padding."""
    if padded is None:
        return None
    length = int(padded.lengths[row])
    return Padded(padded.values[row : row + 1, :length], padded.lengths[row : row + 1])


def behind_the_end_changed(padded: Padded, ids: int) -> Padded:
    """Other ids where nothing is, the same ones where something is."""
    return Padded(torch.where(padded.mask(), padded.values, (padded.values + 1) % ids), padded.lengths)


@contextmanager
def embedded_inputs(model: nn.Module) -> Iterator[list[Tensor]]:
    """Collects what enters the model as vectors; each (B, S, D) or (B, T, D), a leaf that gradients are taken of."""
    leaves: list[Tensor] = []

    def cut(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        leaves.append(output.detach().requires_grad_())
        return leaves[-1]

    hooks = [module.register_forward_hook(cut) for module in model.modules() if isinstance(module, Embedding)]
    try:
        yield leaves
    finally:
        for hook in hooks:
            hook.remove()


def leaf_of_length(leaves: list[Tensor], length: int) -> Tensor:
    """The one that is `length` positions long."""
    (leaf,) = [leaf for leaf in leaves if leaf.shape[1] == length]
    return leaf


def steps(model: Any, source: Padded | None, target_BT: Tensor) -> Tensor:
    """(B, T, V): the log-probabilities after each token, one step at a time."""
    memory, state = model.start(source, len(target_BT))
    found = []
    for token_B in target_BT.unbind(1):
        log_probability_BV, state = model.step(token_B, memory, state)
        found.append(log_probability_BV)
    return torch.stack(found, 1)


# ---- the table ---------------------------------------------------------------------------------------------


def test_every_model_is_in_the_table() -> None:
    missing = sorted(set(WRITERS) - set(TINY))
    assert not missing, f"no contract is tested for {missing}: add a line for each to TINY in {__file__}"
    gone = sorted(set(TINY) - set(known("models")))
    assert not gone, f"TINY in {__file__} has lines for models that are not there: {gone}"


@pytest.mark.parametrize("name", sorted(TINY))
def test_a_models_kind_is_its_file_name(name: str) -> None:
    assert resolve("models", name).Config().kind == name


# ---- the contracts -----------------------------------------------------------------------------------------


@plain_models
def test_protocols(case: Case) -> None:
    model = case.build()
    assert isinstance(model, Encodes) == case.reads_source
    assert writes_at_once(model) == (case.name in EXCUSED)
    if case.name not in EXCUSED:
        assert isinstance(model, Predicts)
        assert isinstance(model, Steps)


def test_who_is_excused_is_there_and_writes_all_at_once() -> None:
    assert all(name in known("models") and only_method(resolve("models", name)) for name in EXCUSED)


@every_model
def test_logits_have_a_row_a_position_and_a_column_a_token(case: Case) -> None:
    logits_BTV = logits(case.build(), *case.inputs())
    assert logits_BTV.shape == (ROWS, max(TARGET_LENGTHS), TARGET_IDS)
    assert logits_BTV.isfinite().all()


@every_product
def test_what_stands_before_the_logits_makes_them(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    assert isinstance(model, PredictsByProduct)
    found = model.before_logits(source, target)
    assert (found is None) == case.variant.get("pointer", False)
    if found is not None:
        hidden_BTD, weight_VD = found
        torch.testing.assert_close(hidden_BTD @ weight_VD.T, logits(model, source, target))


@every_model
def test_batched_equals_alone(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    logits_BTV = logits(model, source, target)
    for row in PADDED_ROWS:
        length = TARGET_LENGTHS[row]
        by_itself_1TV = logits(model, alone(source, row), alone(target, row))
        torch.testing.assert_close(logits_BTV[row : row + 1, :length], by_itself_1TV, rtol=1e-5, atol=1e-5)


@every_model
def test_what_stands_behind_the_end_changes_nothing(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    other_source = behind_the_end_changed(source, SOURCE_IDS) if source else None
    other_target = behind_the_end_changed(target, TARGET_IDS)
    assert not torch.equal(other_target.values, target.values)
    real_BT = target.mask()
    other_BTV = logits(model, other_source, other_target)
    assert torch.equal(logits(model, source, target)[real_BT], other_BTV[real_BT])


@every_model
def test_padding_has_no_gradient_at_all(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    with embedded_inputs(model) as leaves:
        logits_BTV = logits(model, source, target)
    logits_BTV.log_softmax(-1)[target.mask()].square().sum().backward()
    for side in (source, None if isinstance(model, Aligns) else target):
        if side is not None:
            gradient_BTD = leaf_of_length(leaves, side.values.shape[1]).grad
            seen_BT = looked_at(model, side) if side is target else side.mask()
            assert gradient_BTD is not None
            assert (gradient_BTD[~seen_BT] == 0).all()
            assert (gradient_BTD[seen_BT].abs().sum(-1) > 0).all() or not case.reads_all


@every_stepper
def test_the_future_has_no_gradient_at_all(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    with embedded_inputs(model) as leaves:
        logits_BTV = model(source, target)
    target_BTD = leaf_of_length(leaves, max(TARGET_LENGTHS))
    for t in range(max(TARGET_LENGTHS)):
        (gradient_BTD,) = torch.autograd.grad(logits_BTV[:, t].square().sum(), target_BTD, retain_graph=True)
        assert (gradient_BTD[:, t + 1 :] == 0).all()
        assert (gradient_BTD[:, : t + 1].abs().sum(-1) > 0).all() or not case.reads_all


@every_stepper
def test_step_by_step_equals_the_full_pass(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    whole_BTV = model(source, target).log_softmax(-1)
    stepped_BTV = steps(model, source, target.values)
    assert stepped_BTV.dtype == torch.float32
    torch.testing.assert_close(stepped_BTV, whole_BTV, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(stepped_BTV.exp().sum(-1), torch.ones(target.values.shape))


@every_stepper
def test_hidden_states_of_steps_are_those_of_the_full_pass(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    if not isinstance(model, StepsWithHidden):
        return
    whole = model.before_logits(source, target) if isinstance(model, PredictsByProduct) else None
    memory, state = model.start(source, len(target.values))  # type: ignore[attr-defined]
    for time, token_B in enumerate(target.values[:, :FEW].unbind(1)):
        plain_BV, _ = model.step(token_B, memory, state)  # type: ignore[attr-defined]
        hidden_BD, log_probabilities_BV, state = model.step_hidden(token_B, memory, state)
        assert torch.equal(log_probabilities_BV, plain_BV)
        if whole is not None:
            torch.testing.assert_close(hidden_BD, whole[0][:, time], rtol=1e-5, atol=1e-5)


@every_stepper
def test_steps_in_a_batch_equal_steps_alone(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    target_BT = target.values[:, :FEW]
    together_BTV = steps(model, source, target_BT)
    for row in (0, 1):  # the longest source and the shortest
        by_itself_1TV = steps(model, alone(source, row), target_BT[row : row + 1])
        torch.testing.assert_close(together_BTV[row : row + 1], by_itself_1TV, rtol=1e-5, atol=1e-5)


@every_stepper
def test_memory_and_state_can_be_reordered_by_selecting_rows(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    memory, state = model.start(source, ROWS)
    order = torch.tensor([2, 0, 0, 1, 2])  # reversed, repeated, and more of them than before
    for token_B in target.values[:, :FEW].unbind(1):
        map_tree((memory, state), has_rows)
        log_probability_BV, after = model.step(token_B, memory, state)
        chosen_BV, _ = model.step(token_B[order], select(memory, order), select(state, order))
        torch.testing.assert_close(chosen_BV, log_probability_BV[order], rtol=1e-5, atol=1e-5)
        state = after


def has_rows(leaf: Tensor | Reorders) -> None:
    assert isinstance(leaf, Reorders) or leaf.shape[0] == ROWS


@every_stepper
def test_a_step_leaves_the_state_before_it_as_it_was(case: Case) -> None:
    # State is returned, never kept: two hypotheses may go on from one state.
    model, (source, target) = case.build(), case.inputs()
    memory, state = model.start(source, ROWS)
    _, state = model.step(target.values[:, 0], memory, state)
    first_BV, _ = model.step(target.values[:, 1], memory, state)
    model.step(target.values[:, 2], memory, state)
    again_BV, _ = model.step(target.values[:, 1], memory, state)
    assert torch.equal(first_BV, again_BV)


@every_model
def test_a_capture_is_handed_weights_and_changes_nothing(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    expected_BTV = logits(model, source, target)
    with capture(model) as record:
        watched_BTV = logits(model, source, target)
    torch.testing.assert_close(watched_BTV, expected_BTV, rtol=1e-5, atol=1e-5)
    looks = {"attention": "bahdanau", "pooling": 0, "cell": "gru", **case.variant}
    alone_with_itself = case.name == "rnn_decoder" or (looks["attention"] == "none" and not looks["pooling"])
    blind = case.name.startswith("rnn") and alone_with_itself and looks["cell"] not in ("lstmn", "ntm")
    assert bool(record) != blind
    for alpha_BHTS in itertools.chain.from_iterable(record.values()):
        assert alpha_BHTS.shape[0] == ROWS
        assert alpha_BHTS.ndim == 4
        assert (alpha_BHTS >= 0).all()
        assert (alpha_BHTS.sum(-1) < 1 + 1e-5).all()


@every_reader
def test_encoding_keeps_to_its_own_sentence(case: Case) -> None:
    model, (source, _) = case.build(), case.inputs()
    assert source is not None
    encoded = model.encode(source)
    assert len(encoded.values) == ROWS
    for row in range(ROWS):
        by_itself = model.encode(alone(source, row))
        length = int(encoded.lengths[row])
        assert by_itself.lengths.tolist() == [length]
        torch.testing.assert_close(encoded.values[row, :length], by_itself.values[0], rtol=1e-5, atol=1e-5)


@every_reader
def test_another_source_makes_another_prediction(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    other, _ = case.inputs(seed=2)
    assert (logits(model, source, target) - logits(model, other, target)).abs().amax((1, 2)).min() > 1e-3


@every_model
def test_gradients_reach_every_parameter(case: Case) -> None:
    model, (source, target) = case.build().train(), case.inputs()
    loss_of(model, Batch(source, target, 1), TrainingConfig(label_smoothing=0.1))[0].backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert (parameter.grad != 0).any(), name


@every_model
def test_save_and_load_give_the_same_bits(case: Case, tmp_path: Path) -> None:
    model, (source, target) = case.build(), case.inputs()
    weights = {name: weight.detach() for name, weight in lasting_tensors(model).items()}
    save_model_file(tmp_path / "model.safetensors", ModelFile(weights, {}, {}, {}, {}))
    other = case.build(seed=5)
    assert not torch.equal(logits(other, source, target), logits(model, source, target))
    load_weights(other, load_model_file(tmp_path / "model.safetensors").weights)
    mine, loaded = model.state_dict(), other.state_dict()
    assert list(mine) == list(loaded)
    assert all(torch.equal(mine[name], loaded[name]) for name in mine)
    assert torch.equal(logits(other, source, target), logits(model, source, target))


@every_model
def test_the_seed_decides_the_start(case: Case) -> None:
    first, second = case.build(seed=7).state_dict(), case.build(seed=7).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


@every_model
def test_bf16_is_finite_and_near_fp32(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    exact_BTV = logits(model, source, target)
    with torch.autocast("cpu", torch.bfloat16):
        rounded_BTV = logits(model, source, target).float()
    assert rounded_BTV.isfinite().all()
    if case.variant.get("normalizer") in CHOOSE:
        return
    far = (rounded_BTV - exact_BTV).square().mean().sqrt() / exact_BTV.std()
    assert 0 < far < 0.03


@every_stepper
def test_steps_in_bf16_are_finite_and_near_fp32(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    exact_BTV = model(source, target)
    with torch.autocast("cpu", torch.bfloat16):
        stepped_BTV = steps(model, source, target.values)
    assert stepped_BTV.isfinite().all()
    if case.variant.get("normalizer") in CHOOSE:
        return
    far = (stepped_BTV - exact_BTV.log_softmax(-1)).square().mean().sqrt() / exact_BTV.std()
    assert 0 < far < 0.03


# ---- the contracts, packed: as a loaded model predicts -----------------------------------------------------


def asked(model: Any, case: Case) -> list[Tensor]:
    """All that a model that only predicts can be asked for."""
    source, target = case.inputs()
    with torch.inference_mode():
        answers = [logits(model, source, target)]
        if source is not None:
            encoded = model.encode(source)
            answers.append(encoded.values[encoded.mask()])
        if case.name not in EXCUSED:
            answers.append(steps(model, source, target.values[:, :FEW]))
    return answers


@every_model
def test_packed_it_says_the_same_and_changed_what_its_new_weights_say(case: Case) -> None:
    model, other = case.build(), case.build(seed=5)
    expected = asked(model, case)
    pack_all(model)
    torch.testing.assert_close(asked(model, case), expected, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        for name, tensor in lasting_tensors(model).items():
            tensor.copy_(lasting_tensors(other)[name])
    torch.testing.assert_close(asked(model, case), asked(other, case), rtol=1e-4, atol=1e-4)


# ---- the contracts of models that fill ---------------------------------------------------------------------


@every_filler
def test_each_hidden_word_sees_the_visible_ones_before_and_behind_it_and_no_hidden_one(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    memory, hidden_BT = model.remember(source), every_second(target)
    with embedded_inputs(model) as leaves:
        filled_NV = model.fill(target, hidden_BT, memory)
    (target_BTD,) = leaves
    for number, (row, place) in enumerate(hidden_BT.nonzero().tolist()):
        (gradient_BTD,) = torch.autograd.grad(filled_NV[number].square().sum(), target_BTD, retain_graph=True)
        seen_T = looked_at(model, target)[row]
        assert (gradient_BTD[row, seen_T].abs().sum(-1) > 0).all() or not case.reads_all, place
        assert (gradient_BTD[row, ~seen_T] == 0).all()
        assert (gradient_BTD[torch.arange(ROWS) != row] == 0).all()


@every_filler
def test_nothing_hidden_nothing_said(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    filled_NV = model.fill(target, torch.zeros_like(target.mask()), model.remember(source))
    assert filled_NV.shape == (0, TARGET_IDS)


@every_filler
def test_lengths_are_a_distribution_over_all_lengths(case: Case) -> None:
    model, (source, _) = case.build(), case.inputs()
    memory = model.remember(source)
    far_BL = model.lengths(memory, 100)
    assert far_BL.shape == (ROWS, 101)
    assert far_BL.dtype == torch.float32
    assert far_BL.isfinite().all()
    torch.testing.assert_close(far_BL.exp().sum(1), torch.ones(ROWS))
    for longest in (0, 1, 7, 30):
        torch.testing.assert_close(model.lengths(memory, longest), far_BL[:, : longest + 1])


@every_filler
def test_lengths_in_a_batch_equal_lengths_alone(case: Case) -> None:
    model, (source, _) = case.build(), case.inputs()
    other_source = behind_the_end_changed(source, SOURCE_IDS)
    together_BL = model.lengths(model.remember(source), 20)
    assert torch.equal(together_BL, model.lengths(model.remember(other_source), 20))
    for row in range(ROWS):
        by_itself_1L = model.lengths(model.remember(alone(source, row)), 20)
        torch.testing.assert_close(together_BL[row : row + 1], by_itself_1L, rtol=1e-5, atol=1e-5)


@every_filler
def test_a_memory_can_be_reordered_by_selecting_rows(case: Case) -> None:
    model, (source, target) = case.build(), case.inputs()
    memory = model.remember(source)
    map_tree(memory, has_rows)
    order = torch.tensor([2, 0, 0, 1, 2])
    chosen = Padded(target.values[order], target.lengths[order])
    filled_NV = model.fill(chosen, every_second(chosen), select(memory, order))
    told_BTV = logits(model, source, target)[order]
    torch.testing.assert_close(filled_NV, told_BTV[every_second(chosen)], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(model.lengths(select(memory, order), 9), model.lengths(memory, 9)[order])
