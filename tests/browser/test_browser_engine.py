"""The engine of the page, plain JavaScript, against the same models in torch: all settings of a Transformer."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page

import transduce
from random_models import _pipeline as pipeline_of
from random_models import model_file, translator
from transduce.core.model_file import lasting_tensors, save_model_file
from transduce.core.padded import Padded
from transduce.explore.page_file import FOLDER, scripts
from transduce.interpret.layers import one_pass
from transduce.pipeline.pipeline import Pipeline

SIZES = {"d_model": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "tied": "none", "feed_forward": 24}
TEXTS = ("ba de fi go ku", "ga", "du ba ba ti ne ka du ga ba")
LLAMA3 = {"kind": "llama3", "factor": 4.0, "original_length": 64}
MODELS: dict[str, dict[str, Any]] = {
    "pre": {},
    "post": {"norm": "post"},
    "tied": {"tied": "all"},
    "grouped heads": {"heads": 4, "key_value_heads": 2, "norm": "post"},
    "wide heads": {"head_width": 6},
    **{f"score {name}": {"score": name} for name in ("dot", "cosine", "bilinear", "additive")},
    **{f"normalizer {name}": {"normalizer": name} for name in ("sparsemax", "entmax", "hard", "gumbel")},
    **{f"normalizer {name}": {"normalizer": name} for name in ("local_monotonic", "local_predictive")},
    **{f"positions {name}": {"positions": name} for name in ("none", "learned", "tensor2tensor")},
    **{f"positions {name}": {"positions": name} for name in ("rotary", "alibi", "shaw", "t5")},
    **{f"activation {name}": {"activation": name} for name in ("gelu", "gelu_tanh", "swish", "squared_relu")},
    **{f"activation {name}": {"activation": name} for name in ("glu", "geglu", "geglu_tanh", "swiglu")},
    "rms": {"norm_kind": "rms", "norm_epsilon": 1e-3},
    "batch": {"norm_kind": "batch"},
    "norms of queries and keys": {"query_key_norm": True},
    "norm of embeddings": {"embedding_norm": True},
    "stretched": {"positions": "rotary", "rotary_base": 50.0, "rotary_scaling": LLAMA3},
    **{f"pattern {name}": {"pattern": name, "stride": 2} for name in ("local", "strided", "fixed")},
    "shared layers": {"shared_layers": True},
    "begins with zeros": {"zero_start": True},
    "a bias a word": {"output_bias": True},
    "unscaled": {"scale_embeddings": False},
    "other positions in the encoder": {"encoder_positions": "learned"},
    "positions from the third on": {"first_position": 2},
}
RECURRENT: dict[str, dict[str, Any]] = {
    "bahdanau": {},
    **{f"cell {name}": {"cell": name} for name in ("tanh", "lstm", "lstmn")},
    **{f"direction {name}": {"direction": name} for name in ("forward", "backward")},
    "layers": {"encoder_layers": 2, "decoder_layers": 2, "cell": "lstm", "residual": True},
    "luong": {"attention": "luong", "score": "bilinear"},
    "luong without feeding": {"attention": "luong", "feeding": False, "score": "dot"},
    "luong, heads": {"attention": "luong", "heads": 2, "encoder_layers": 2, "decoder_layers": 2},
    "no attention": {"attention": "none"},
    "no attention, copied": {"attention": "none", "feeding": False, "bridge": "copy", "cell": "lstm"},
    "copied, both ways": {"bridge": "copy", "encoder_layers": 2, "decoder_layers": 2},
    "pooled": {"pooling": 3, "attention": "none", "score": "dot"},
    "pooled in order": {"pooling": 2, "score": "location_aware"},
    "maxout": {"readout": "maxout"},
    "tied": {"tied": "all"},
    **{f"score {name}": {"score": name, "heads": 2} for name in ("scaled_dot", "cosine", "additive", "location_aware")},
    **{f"normalizer {name}": {"normalizer": name} for name in ("sparsemax", "entmax", "hard", "local_monotonic")},
    "normalizer local_predictive": {"normalizer": "local_predictive", "attention": "luong"},
    "normalizer monotonic": {"normalizer": "monotonic", "heads": 2},
}
CTC: dict[str, dict[str, Any]] = {
    "two places": {},
    "one place": {"places": 1, "norm": "post"},
    "three places": {"places": 3, "positions": "rotary"},
    "t5": {"positions": "t5", "normalizer": "entmax", "score": "additive", "tied": "all"},
}
READER = "decoder.reader"
CHANGES: dict[str, dict[str, Any]] = {
    "cut": {
        "cut": [
            {"name": "encoder.blocks.1.self_attention", "head": 1, "query": 2, "key": 0},
            {"name": "decoder.blocks.0.cross_attention", "query": 1, "key": 1},
            {"name": "decoder.blocks.1.self_attention", "head": 0},
        ]
    },
    "uniform": {"uniform": [{"name": "encoder.blocks.0.self_attention", "head": 0}]},
    "argmax": {"argmax": [{"name": "decoder.blocks.1.cross_attention"}]},
    "temperature": {"temperature": [{"name": "decoder.blocks.0.cross_attention", "head": 1, "value": 0.25}]},
    "no positions": {"positions": False},
}


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """A blank page with the engine in it."""
    opened = browser.new_page()
    opened.add_script_tag(content="window.Transduce = {}; window.problems = [];")
    for name in scripts("engine/"):
        opened.add_script_tag(content=(FOLDER / name).read_text(encoding="utf-8"))
    yield opened
    opened.close()


def drawn_at_random(pipeline: Pipeline) -> Pipeline:
    """With all vectors and statistics other than they begin."""
    torch.manual_seed(5)
    for name, tensor in lasting_tensors(pipeline.model).items():
        if tensor.ndim < 2:
            low = 0.5 if name.endswith("variance_D") else -0.2
            tensor.data.uniform_(low, low + 1)
    return pipeline


def saved(pipeline: Pipeline, path: Path) -> str:
    """The file of a model, in base64."""
    save_model_file(path, replace(model_file(pipeline), weights=dict(lasting_tensors(pipeline.model))))
    return base64.b64encode(path.read_bytes()).decode()


RUN = """([file, asked, column, settings, changes]) => {
    const E = Transduce.engine;
    const bytes = Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0));
    const model = E.model(E.readModelFile(bytes.buffer));
    return asked.map(({ids, target}) => {
        const run = {changes, record: {}};
        const { said } = model.extend(target, model.start(ids, run), run);
        const calls = Object.entries(run.record);
        const alpha = Object.fromEntries(calls.map(([name, [call]]) => [name, Array.from(call.data)]));
        const limit = E.limitOf(ids.length - 1, settings[0]);
        const found = settings.map((each) => E.search(
            model, model.start(ids, {changes, record: {}}), column, limit, each, {changes, record: {}}));
        return {said: said.map((row) => Array.from(row)), alpha, found};
    });
}"""
SEARCHES: tuple[dict[str, Any], ...] = (
    {"method": "greedy"},
    {"method": "beam", "beam": 4, "nbest": 3},
    {"method": "sample", "nbest": 4, "seed": 7},
    {"method": "sample", "nbest": 3, "seed": 2**40, "temperature": 0.7, "top_k": 9},
    {"method": "sample", "nbest": 3, "temperature": 1.5, "top_k": 30, "top_p": 0.8},
)


def compared(page: Page, pipeline: Pipeline, file: str, changes: dict[str, Any] | None = None) -> None:
    """Asks both for weights, log-probabilities and outputs, of a greedy search and of a beam."""
    source, target = pipeline.task.columns.get("source"), pipeline.task.columns["target"]
    tokenizer = target.tokenizer  # type: ignore[attr-defined]
    own = pipeline.recipe.search.model_dump()
    column = {"start": target.start, "tokenizer": {"end": tokenizer.end}, "forbiddenFirst": []}  # type: ignore[attr-defined]
    column["forbidden"] = [tokenizer.pad, tokenizer.start, tokenizer.unknown]
    ids = [[*source.encode([text])[0], tokenizer.end] for text in TEXTS] if source else [[] for _ in TEXTS]
    written = [[target.start, *target.encode([text])[0]] for text in TEXTS]  # type: ignore[attr-defined]
    asked = [{"ids": each, "target": said} for each, said in zip(ids, written, strict=True)]
    answers = page.evaluate(RUN, [file, asked, column, [{**own, **each} for each in SEARCHES], changes])
    with transduce.capture(pipeline, **in_python(changes or {})), torch.inference_mode():
        for text, each, answer in zip(TEXTS, asked, answers, strict=True):
            with transduce.capture(pipeline) as record:
                source_row = Padded(torch.tensor([each["ids"]]), torch.tensor([len(each["ids"])])) if source else None
                target_row = Padded(torch.tensor([each["target"]]), torch.tensor([len(each["target"])]))
                said = pipeline.model(source_row, target_row).log_softmax(-1)[0]
            torch.testing.assert_close(torch.tensor(answer["said"]), said, rtol=1e-4, atol=1e-4)
            assert {*answer["alpha"]} == {*record}
            for name, calls in record.items():
                found_weights = torch.tensor(answer["alpha"][name], dtype=torch.float32)
                torch.testing.assert_close(found_weights, one_pass(calls).flatten(), rtol=0, atol=1e-5)
            for settings, found in zip(SEARCHES, answer["found"] if source else (), strict=False):
                predicted = pipeline.predict(text, **settings)
                expected = predicted.alternatives or (predicted,)
                assert [tuple(one["tokens"][: len(one["tokens"]) - one["ended"]]) for one in found] == [
                    tuple(target.ids(list(one.tokens))) for one in expected
                ]
                assert [one["score"] for one in found] == pytest.approx([one.score for one in expected], abs=1e-4)


def in_python(changes: dict[str, Any]) -> dict[str, Any]:
    """The same interventions as `transduce.capture` takes them."""
    found: dict[str, Any] = {key: changes[key] for key in ("positions",) if key in changes}
    for key in ("cut", "uniform", "argmax"):
        found[key] = [transduce.Place(**each) for each in changes.get(key, ())]
    heated = [dict(each) for each in changes.get("temperature", ())]
    found["temperature"] = {
        transduce.Place(**{k: v for k, v in each.items() if k != "value"}): each["value"] for each in heated
    }
    return found


@pytest.mark.parametrize("table", MODELS.values(), ids=MODELS)
def test_the_engine_is_the_model(page: Page, table: dict[str, Any], tmp_path: Path) -> None:
    pipeline = drawn_at_random(translator(model={**SIZES, **table}, seed=3))
    compared(page, pipeline, saved(pipeline, tmp_path / "m.safetensors"))


@pytest.mark.parametrize("table", [{}, {"norm": "post", "positions": "shaw"}, {"positions": "rotary"}], ids=str)
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_interventions_are_those_of_python(
    page: Page, changes: dict[str, Any], table: dict[str, Any], tmp_path: Path
) -> None:
    pipeline = translator(model={**SIZES, **table}, seed=3)
    compared(page, pipeline, saved(pipeline, tmp_path / "m.safetensors"), changes)


@pytest.mark.parametrize("table", RECURRENT.values(), ids=RECURRENT)
def test_a_recurrent_model_is_the_model(page: Page, table: dict[str, Any], tmp_path: Path) -> None:
    pipeline = drawn_at_random(recurrent(table))
    compared(page, pipeline, saved(pipeline, tmp_path / "m.safetensors"))


def recurrent(table: dict[str, Any]) -> Pipeline:
    return translator(model={"kind": "rnn", "d_model": 12, "hidden": 16, "tied": "none", **table}, seed=3)


@pytest.mark.parametrize(
    "changes",
    [
        {"cut": [{"name": READER, "head": 1, "query": 2, "key": 0}, {"name": READER, "query": 1, "key": 1}]},
        {"cut": [{"name": READER, "head": 0}]},
        {"uniform": [{"name": READER, "head": 0}]},
        {"argmax": [{"name": READER}]},
        {"temperature": [{"name": READER, "head": 1, "value": 0.25}], "cut": [{"name": READER, "key": 2}]},
    ],
    ids="-".join,
)
@pytest.mark.parametrize(
    "table", [{}, {"attention": "luong"}, {"score": "location_aware"}, {"normalizer": "monotonic"}], ids=str
)
def test_interventions_in_a_recurrent_model_are_those_of_python(
    page: Page, changes: dict[str, Any], table: dict[str, Any], tmp_path: Path
) -> None:
    pipeline = drawn_at_random(recurrent({"heads": 2, **table}))
    compared(page, pipeline, saved(pipeline, tmp_path / "m.safetensors"), changes)


@pytest.mark.parametrize("cell", ["tanh", "gru", "lstm", "lstmn"])
def test_a_recurrent_language_model_is_the_model(page: Page, cell: str, tmp_path: Path) -> None:
    task, data = {"kind": "language_modelling", "context": 24}, {"train": [{"text": "a"}]}
    sizes = {"kind": "rnn_decoder", "cell": cell, "d_model": 16, "layers": 2, "tied": False, "residual": cell == "gru"}
    pipeline = drawn_at_random(pipeline_of({"task": task, "data": data, "model": sizes}, "whitespace", 1))
    compared(page, pipeline, saved(pipeline, tmp_path / "m.safetensors"))


ALIGN = """([file, asked, column, settings, changes]) => {
    const E = Transduce.engine;
    const bytes = Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0));
    const model = E.model(E.readModelFile(bytes.buffer));
    return asked.map(({ids, least}) => {
        const run = {changes, record: {}};
        const { places } = model.start(ids, run, least);
        const alpha = Object.fromEntries(
            Object.entries(run.record).map(([name, [call]]) => [name, Array.from(call.data)]));
        const limit = E.limitOf(ids.length - 1, settings[0]);
        const begun = model.start(ids, {changes, record: {}});
        const found = settings.map((each) => E.search(model, begun, column, limit, each, run));
        return {places: places.map((row) => Array.from(row)), alpha, found};
    });
}"""


@pytest.mark.parametrize("least", [0, 31])
@pytest.mark.parametrize("changes", [None, "cut", "temperature", "no positions"])
@pytest.mark.parametrize("table", CTC.values(), ids=CTC)
def test_a_ctc_model_is_the_model(
    page: Page, table: dict[str, Any], changes: str | None, least: int, tmp_path: Path
) -> None:
    made = CHANGES[changes] if changes else {}
    pipeline = drawn_at_random(translator(model={**SIZES, "kind": "ctc", **table}, seed=3))
    source, target = pipeline.task.columns["source"], pipeline.task.columns["target"]
    tokenizer = target.tokenizer  # type: ignore[attr-defined]
    forbidden = [tokenizer.pad, tokenizer.start, tokenizer.unknown]
    column = {"start": target.start, "tokenizer": {"end": tokenizer.end}, "forbidden": forbidden}  # type: ignore[attr-defined]
    searches = [{"method": "ctc", "beam": 1}, {"method": "ctc", "beam": 4, "nbest": 4}]
    settings = [{**pipeline.recipe.search.model_dump(), **each} for each in searches]
    texts = [*TEXTS, "ba ba ba ba ba ba"]
    ids = [[*source.encode([text])[0], tokenizer.end] for text in texts]
    file = saved(pipeline, tmp_path / "m.safetensors")
    asked = [{"ids": each, "least": least} for each in ids]
    answers = page.evaluate(ALIGN, [file, asked, column, settings, made])
    with transduce.capture(pipeline, **in_python(made)), torch.inference_mode():
        for text, each, answer in zip(texts, ids, answers, strict=True):
            with transduce.capture(pipeline) as record:
                row = Padded(torch.tensor([each]), torch.tensor([len(each)]))
                places = pipeline.model.align(row, torch.tensor([least]))
            said = places.values.log_softmax(-1)[0]
            torch.testing.assert_close(torch.tensor(answer["places"]), said, rtol=1e-4, atol=1e-4)
            assert {*answer["alpha"]} == {*record}
            for name, (alpha,) in record.items():
                found_weights = torch.tensor(answer["alpha"][name], dtype=torch.float32)
                torch.testing.assert_close(found_weights, alpha.flatten(), rtol=0, atol=1e-5)
            for search, found in zip(searches, answer["found"], strict=True):
                predicted = pipeline.predict(text, **search)
                expected = predicted.alternatives or (predicted,)
                assert [tuple(one["tokens"][: len(one["tokens"]) - one["ended"]]) for one in found] == [
                    tuple(target.ids(list(one.tokens))) for one in expected
                ]
                assert [one["score"] for one in found] == pytest.approx([one.score for one in expected], abs=1e-4)
                for one, other in zip(found, expected, strict=True):
                    assert one["values"] == pytest.approx(other.token_log_probabilities, abs=1e-3)


@pytest.mark.parametrize("positions", ["sinusoidal", "alibi"])
def test_a_decoder_alone_is_the_model(page: Page, positions: str, tmp_path: Path) -> None:
    sizes = {"kind": "transformer_decoder", "d_model": 16, "heads": 2, "layers": 2, "positions": positions}
    task, data = {"kind": "language_modelling", "context": 24}, {"train": [{"text": "a"}]}
    pipeline = pipeline_of({"task": task, "data": data, "model": sizes}, "whitespace", 1)
    compared(page, pipeline, saved(pipeline, tmp_path / "m.safetensors"))


@pytest.mark.parametrize("seeds", [[0, 0, 0], [7, 3, 1], [2**40 + 5, 1, 0], [2**63 - 1, 99, 2]], ids=str)
def test_random_numbers_are_those_of_numpy(page: Page, seeds: list[int]) -> None:
    given = [str(each) for each in seeds]  # of more bits than a number of JavaScript holds
    found = page.evaluate(
        """(seeds) => {
            const next = Transduce.engine.uniforms(...seeds.map(BigInt));
            return Array.from({ length: 50 }, next);
        }""",
        given,
    )
    assert found == np.random.default_rng(seeds).random(50).tolist()


PASS = """([file, ids, target, changes]) => {
    const E = Transduce.engine;
    const bytes = Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0));
    const model = new E.Transformer(E.readModelFile(bytes.buffer));
    const run = {changes, record: {}, states: {}};
    const { said } = model.extend(target, model.start(ids, run), run);
    const plain = (parts) => Object.fromEntries(Object.entries(parts).map(([key, x]) => [key, Array.from(x)]));
    return {said: said.map((row) => Array.from(row)),
            states: Object.fromEntries(Object.entries(run.states).map(([name, parts]) => [name, plain(parts)]))};
}"""
IDS, WRITTEN = [5, 9, 7, 2], [1, 6, 8]


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("left", [0, 1, 2])
def test_later_blocks_of_the_encoder_can_be_left_out(page: Page, norm: str, left: int, tmp_path: Path) -> None:
    """The state after some blocks goes to the decoder in the place of the last."""
    pipeline = drawn_at_random(translator(model={**SIZES, "norm": norm}, seed=3))
    file = saved(pipeline, tmp_path / "m.safetensors")
    answer = page.evaluate(PASS, [file, IDS, WRITTEN, {"encoder_layers": left}])
    for block in list(pipeline.model.encoder.blocks)[left:]:  # type: ignore[union-attr, arg-type]
        block.register_forward_hook(lambda _block, given, output: (given[0], *output[1:]))
    with torch.inference_mode():
        said = pipeline.model(one_row(IDS), one_row(WRITTEN)).log_softmax(-1)[0]
    torch.testing.assert_close(torch.tensor(answer["said"]), said, rtol=1e-4, atol=1e-4)
    blocks = {name.split(".")[2] for name in answer["states"] if name.startswith("encoder.")}
    assert blocks == {str(block) for block in range(left)}


def one_row(ids: list[int]) -> Padded:
    return Padded(torch.tensor([ids]), torch.tensor([len(ids)]))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_states_inside_the_blocks_are_those_of_python(page: Page, norm: str, tmp_path: Path) -> None:
    pipeline = drawn_at_random(translator(model={**SIZES, "norm": norm}, seed=3))
    answer = page.evaluate(PASS, [saved(pipeline, tmp_path / "m.safetensors"), IDS, WRITTEN, None])["states"]
    expected: dict[str, dict[str, torch.Tensor]] = {}

    def residual(name: str) -> Any:
        def note(_module: Any, given: tuple[Any, ...], output: torch.Tensor) -> None:
            expected.setdefault(name, {}).update(input=given[0], output=output)

        return note

    def part(name: str) -> Any:
        def note(_module: Any, given: tuple[Any, ...], output: Any) -> None:
            update = output[0] if isinstance(output, tuple) else output
            expected.setdefault(name, {}).update(read=given[0], update=update)

        return note

    for name, module in pipeline.model.named_modules():
        if name.endswith("_residual"):
            before = name.removesuffix("_residual")
            hidden = before if before.endswith("feed_forward") else f"{before}_attention"
            module.register_forward_hook(residual(hidden))
        elif ".blocks." in name and name.endswith(("self_attention", "cross_attention", "feed_forward")):
            module.register_forward_hook(part(name))
    with torch.inference_mode():
        pipeline.model(one_row(IDS), one_row(WRITTEN))
    assert {*answer} == {*expected}
    assert len(expected) == 2 * 2 + 2 * 3
    for name, states in expected.items():
        for key, value in states.items():
            torch.testing.assert_close(torch.tensor(answer[name][key]), value.flatten(), rtol=1e-4, atol=1e-4)
        added = torch.tensor(answer[name]["input"]) + torch.tensor(answer[name]["update"])
        torch.testing.assert_close(torch.tensor(answer[name]["sum"]), added, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_weights_of_fewer_bits_are_what_they_stand_for(page: Page, dtype: str, tmp_path: Path) -> None:
    from transduce.explore.live import in_int8

    weights = {"w": torch.randn(7, 5), "b": torch.tensor([0.0, -0.0, 6e-8, -3e-5, 65504.0, 1.5, -2.0])}
    stored = in_int8(weights) if dtype == "int8" else {name: each.half() for name, each in weights.items()}
    pipeline = translator(model=SIZES)
    save_model_file(tmp_path / "m", replace(model_file(pipeline), weights=stored))
    read = page.evaluate(
        """(file) => {
            const bytes = Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0));
            const { weights } = Transduce.engine.readModelFile(bytes.buffer);
            return Object.fromEntries(Object.entries(weights).map(([name, each]) => [name, Array.from(each.data)]));
        }""",
        base64.b64encode((tmp_path / "m").read_bytes()).decode(),
    )
    assert {*read} == {"w", "b"}
    scale = stored.get("w.scale", torch.ones(7))
    expected = stored["w"].float() * scale[:, None]
    torch.testing.assert_close(torch.tensor(read["w"]).view(7, 5), expected, rtol=1e-6, atol=0)
    torch.testing.assert_close(torch.tensor(read["b"]), stored["b"].float(), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"pointer": True, "tied": "all"}, "model.pointer = true"),
        ({"kind": "convolution", "d_model": 16}, 'model.kind = "convolution"'),
        ({"kind": "rnn", "d_model": 16, "hidden": 16, "cell": "ntm"}, 'model.cell = "ntm"'),
        ({"kind": "rnn", "d_model": 16, "hidden": 16, "tied": "all", "pointer": True}, "model.pointer = true"),
    ],
)
def test_other_models_are_refused_by_name(page: Page, table: dict[str, Any], said: str, tmp_path: Path) -> None:
    sizes = SIZES if "kind" not in table else {}
    file = saved(translator(model={**sizes, **table}), tmp_path / "m.safetensors")
    told = page.evaluate(
        """(file) => {
            const bytes = Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0));
            try { Transduce.engine.model(Transduce.engine.readModelFile(bytes.buffer)); }
            catch (error) { return [error instanceof Transduce.engine.Unsupported, error.message]; }
        }""",
        file,
    )
    assert told == [True, said]


@pytest.mark.parametrize("cut", [0, 5, 40])
def test_a_damaged_file_is_an_error(page: Page, cut: int, tmp_path: Path) -> None:
    saved(translator(model=SIZES), tmp_path / "m.safetensors")
    damaged = base64.b64encode((tmp_path / "m.safetensors").read_bytes()[:cut]).decode()
    read = (
        "(bytes) => Transduce.engine.readModelFile(Uint8Array.from(atob(bytes), (each) => each.charCodeAt(0)).buffer)"
    )
    with pytest.raises(Exception, match="no safetensors file"):
        page.evaluate(read, damaged)
