"""Translation without torch gives what `transduce.load` gives, to the last bit: of random models, the hard case."""

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import transduce
from random_models import model_file, sentences, translator
from transduce.core.errors import InputError
from transduce.core.model_file import load_model_file, save_model_file
from transduce.data.tokenizers.text_ids import SPECIAL
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.kernels.native import multiplies_int8
from transduce.pipeline.pipeline import Pipeline
from transduce.without_torch.translator import load

pytestmark = pytest.mark.usefixtures("kernels")

SIZES = {"d_model": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 24}
MODELS: dict[str, dict[str, Any]] = {
    "pre, sinusoidal": {"norm": "pre"},
    "post, sinusoidal, one matrix": {"norm": "post", "tied": "all"},
    "pre, rotary": {"norm": "pre", "positions": "rotary", "tied": "output"},
    "post, learned": {"norm": "post", "positions": "learned", "max_length": 60},
    "post, gelu": {"norm": "post", "activation": "gelu"},
    "pre, swiglu": {"norm": "pre", "activation": "swiglu"},
    "as Marian's": {
        "norm": "post",
        "positions": "tensor2tensor",
        "norm_epsilon": 1e-6,
        "activation": "swish",
        "zero_start": True,
        "output_bias": True,
        "tied": "all",
    },
    "as BART": {
        "norm": "post",
        "positions": "learned",
        "max_length": 60,
        "embedding_norm": True,
        "scale_embeddings": False,
        "output_bias": True,
    },
    "as M2M-100": {"norm": "pre", "positions": "tensor2tensor", "first_position": 2, "tied": "input"},
    "recurrent": {"kind": "ssru_transformer", "norm": "pre", "tied": "output", "positions": "rotary"},
    "recurrent, as Marian's": {
        "kind": "ssru_transformer",
        "norm": "post",
        "positions": "tensor2tensor",
        "decoder_positions": True,
        "zero_start": True,
        "embedding_norm": True,
        "output_bias": True,
    },
    "pointer": {"pointer": True, "tied": "all"},
    "pointer, post, rotary": {"pointer": True, "tied": "output", "norm": "post", "positions": "rotary", "d_model": 20},
    "pre, none, uneven sizes": {"norm": "pre", "positions": "none", "d_model": 18, "heads": 3, "encoder_layers": 1},
}
SEARCHES: dict[str, dict[str, Any]] = {
    "the recipe's": {},
    "greedy": {"method": "greedy"},
    "beam": {"beam": 5},
    "nbest": {"beam": 4, "nbest": 4, "length_rule": "gnmt"},
    "prune": {"beam": 5, "prune": 0.7},
    "shortlist": {"beam": 3, "shortlist": 3},
    "greedy, shortlist": {"method": "greedy", "shortlist": 2},
    "short": {"beam": 2, "max_length_factor": 0.2, "max_length_offset": 1, "alpha": 0},
}
TEXTS = [*sentences(40, seed=5), "", " ", "ba. Du ga! Ne", "x y z ba"]


@pytest.fixture(scope="module", params=MODELS)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("model") / "model.safetensors", **MODELS[request.param])


def written(path: Path, seed: int = 3, search: dict[str, Any] | None = None, **model: Any) -> Path:
    """The file of a random model with a lexicon."""
    sections = {"search": search} if search else {}
    pipeline = translator(seed=seed, model={**SIZES, "tied": "none", **model}, **sections)
    size = pipeline.task.tokenizers["target"].size
    drawn = random.Random(seed)
    words = [drawn.sample(range(len(SPECIAL), size), 6) for _ in range(size)]
    lexicon = torch.tensor(words, dtype=torch.int32), torch.arange(4, 12, dtype=torch.int32)
    save_model_file(path, replace(model_file(pipeline), lexicon=lexicon))
    return path


@pytest.fixture(params=["fp32", "int8"])
def precision(request: pytest.FixtureRequest) -> str:
    if request.param == "int8" and not multiplies_int8():
        pytest.skip("this processor's kernels do not multiply in 8 bits")
    return str(request.param)


def test_predictions_are_those_with_torch(path: Path, precision: Any) -> None:
    with_torch, without = transduce.load(path, precision=precision, device="cpu"), load(path, precision=precision)
    for search in SEARCHES.values():
        expected = with_torch.predict(TEXTS, protect=False, **search)
        if without.members[0].network.sizes.pointer and "shortlist" in search:
            with pytest.raises(InputError, match=r"search\.shortlist: a pointer with shortlists goes step by step"):
                without.predict(TEXTS, **search)
            continue
        assert without.predict(TEXTS, protect=False, **search) == expected
        assert len({len(each.tokens) for each in expected}) > 1


def test_a_text_is_translated_as_in_any_batch(path: Path) -> None:
    model = load(path)
    together = model.predict(TEXTS, protect=False, beam=3)
    assert [model.predict(text, protect=False, beam=3) for text in TEXTS] == together
    assert model.predict(TEXTS, protect=False, beam=3, batch_size=7, workers=3) == together


def test_texts_are_cut_as_with_torch(path: Path) -> None:
    with_torch, without = transduce.load(path, device="cpu"), load(path)
    text = "ba du. " * 90 + "ga, ne ba du\nti ta"
    for options in ({}, {"split": "none"}, {"split": "none", "long": "truncate"}, {"split": "sentences"}):
        told: list[str] = []
        told_without: list[str] = []
        if MODEL_IS_SHORT(path) and options.get("split") == "none":
            continue
        expected = with_torch.predict([text, "ba"], protect=False, tell=told.append, **options)  # type: ignore[arg-type]
        assert without.predict([text, "ba"], protect=False, tell=told_without.append, **options) == expected  # type: ignore[arg-type]
        assert told_without == told
    assert without.splits("auto") == with_torch.splits("auto")


def MODEL_IS_SHORT(path: Path) -> bool:  # noqa: N802
    """Whether its positions are fewer than the tokens that it may be given."""
    return bool(load_model_file(path).config["model"]["positions"] == "learned")


def test_too_few_learned_positions_are_told_as_with_torch(tmp_path: Path) -> None:
    path = written(tmp_path / "m.safetensors", positions="learned", max_length=12)
    with_torch, without = transduce.load(path, device="cpu"), load(path)
    for text, search in (("ba " * 20, {}), ("ba du ga", {"max_length_offset": 40})):
        problems = []
        for model in (with_torch, without):
            try:
                problems.append(model.predict(text, protect=False, **search).text)  # type: ignore[attr-defined]
            except InputError as error:
                problems.append(str(error).partition("but got")[0])
        assert problems[0] == problems[1]


@pytest.mark.parametrize("mean", ["probability", "log_probability"])
def test_an_ensemble_is_that_with_torch(tmp_path: Path, mean: Any) -> None:
    paths = [
        written(tmp_path / "a.safetensors", seed=3, norm="pre"),
        written(tmp_path / "b.safetensors", seed=4, norm="post", positions="rotary", d_model=20, decoder_layers=1),
    ]
    with_torch, without = transduce.load(paths, ensemble=mean, device="cpu"), load(paths, ensemble=mean)
    for search in ({}, {"method": "greedy"}, {"beam": 4, "nbest": 3, "prune": 2.0}):
        assert without.predict(TEXTS, protect=False, **search) == with_torch.predict(TEXTS, protect=False, **search)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"search\.shortlist: an ensemble with shortlists goes step by step"):
        without.predict(TEXTS, protect=False, shortlist=2)


def test_a_model_of_several_languages(tmp_path: Path) -> None:
    save_model_file(tmp_path / "m.safetensors", model_file(translator(tags=(">>fr<<", ">>de<<"))))
    with_torch, without = transduce.load(tmp_path / "m.safetensors", device="cpu"), load(tmp_path / "m.safetensors")
    assert without.predict(TEXTS, protect=False, to="fr") == with_torch.predict(TEXTS, protect=False, to="fr")
    with pytest.raises(InputError, match="this model writes fr, de"):
        without.predict(TEXTS, protect=False, to="es")


@pytest.mark.parametrize("name", ["format-1", "format-2"])
def test_files_of_all_formats_are_read(name: str) -> None:
    path = Path(__file__).parents[1] / "formats" / f"{name}.safetensors"
    lines = ["1 2 3", "9 9", "7"]
    expected = transduce.load(path, device="cpu").predict(lines, protect=False, beam=3)
    assert load(path).predict(lines, protect=False, beam=3) == expected


BLOCKED = """
import json, sys
sys.modules["torch"] = sys.modules["pydantic"] = None  # importing either raises ImportError
from transduce.without_torch.translator import load
path, texts = json.loads(sys.argv[1])
print(json.dumps([each.to_dict() for each in load(path, threads=2).predict(texts, protect=False, beam=4, nbest=2)]))
"""


def test_neither_torch_nor_pydantic_is_needed(path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", BLOCKED, json.dumps([str(path), TEXTS])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    expected = transduce.load(path, device="cpu").predict(TEXTS, protect=False, beam=4, nbest=2)
    assert json.loads(done.stdout) == json.loads(json.dumps([each.to_dict() for each in expected]))


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"model": {"kind": "rnn", "hidden": 16, "d_model": 16}}, 'model.kind = "rnn": without torch, .* Transformers'),
        ({"model": {**SIZES, "norm_kind": "rms"}}, "model.norm_kind = 'rms': not available without torch"),
        (
            {"model": {**SIZES, "positions": "alibi"}},
            "model.positions = 'alibi': without torch, it must be one of none, sinusoidal",
        ),
        ({"model": {**SIZES, "key_value_heads": 1}}, "model.key_value_heads = 1"),
        ({"model": {**SIZES, "query_key_norm": True}}, "model.query_key_norm = True"),
        ({"model": {**SIZES, "positions": "rotary", "rotary_base": 5e5}}, "model.rotary_base = 500000.0"),
        (
            {"model": {**SIZES, "positions": "rotary", "rotary_scaling": {"kind": "linear", "factor": 2.0}}},
            "model.rotary_scaling = ",
        ),
        ({"model": {**SIZES, "encoder_positions": "learned"}}, "model.encoder_positions = 'learned'"),
        ({"model": {**SIZES, "encoder_max_length": 9}}, "model.encoder_max_length = 9"),
        ({"model": {**SIZES, "shared_layers": True}}, "model.shared_layers = True"),
    ],
)
def test_other_models_are_refused(tmp_path: Path, sections: dict[str, Any], said: str) -> None:
    save_model_file(tmp_path / "m.safetensors", model_file(translator(**sections)))
    with pytest.raises(InputError, match=rf"{said}.* pip install transduce"):
        load(tmp_path / "m.safetensors")


def test_other_tasks_are_refused(tmp_path: Path) -> None:
    from random_models import language_model

    save_model_file(tmp_path / "m.safetensors", model_file(language_model()))
    with pytest.raises(
        InputError, match=r'task\.kind = "language_modelling": without torch, Transduce only translates'
    ):
        load(tmp_path / "m.safetensors")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"must": ["ba"]}, r"must: phrases that must appear needs a search that goes step by step\. Install the whole"),
        ({"prefix": "ba"}, "prefix: a prefix needs"),
        ({"lattice": True}, "lattice: a lattice needs"),
        (
            {"coverage": 0.2},
            r"search\.coverage = 0\.2: needs a search that goes step by step, .* pip install transduce",
        ),
        ({"min_length": 3}, r"search\.min_length = 3: needs"),
        ({"groups": 2}, r"search\.groups = 2: needs"),
        ({"method": "sample"}, r"search\.method: expected one of greedy, beam; got 'sample'\. For others install"),
        ({"temperature": 2.0}, r"search\.temperature: greedy search and beams do not use it"),
        ({"num_beams": 3}, 'search: unknown key "num_beams". Did you mean "beam"'),
        ({"prunes": 3}, 'search: unknown key "prunes". Did you mean "prune"'),
        ({"split": "words"}, 'split: expected "auto", "sentences" or "none"'),
        ({"batch_size": 0}, "batch_size = 0: expected at least 1"),
        ({"shortlist": 7}, "search.shortlist = 7: this model's table holds 6 candidates"),
    ],
)
def test_what_needs_torch_or_is_wrong_is_refused(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    model = load(written(tmp_path / "m.safetensors"))
    assert model.predict("ba", must=(), prefix="", lattice=False, on_step=None) == model.predict("ba")
    with pytest.raises(InputError, match=said):
        model.predict(["ba"], **options)


def test_a_pointer_needs_one_vocabulary_and_a_transformer(tmp_path: Path) -> None:
    """As torch does, which cannot copy words by the ids of another vocabulary, and whose SSRU has no pointer."""
    file = model_file(translator(model={**SIZES, "tied": "none", "pointer": True}))
    backwards = [" ".join(word[::-1] for word in line.split()) for line in sentences(200, seed=9)]
    other = train_tokenizer(TokenizerConfig(kind="whitespace", vocabulary=90, min_frequency=1), backwards)
    apart = replace(file, tokenizers={"source": other.to_json(), "target": file.tokenizers["joint"]})
    save_model_file(tmp_path / "apart.safetensors", apart)
    recurrent = model_file(translator(model={**SIZES, "kind": "ssru_transformer"}))
    recurrent.config["model"]["pointer"] = True
    save_model_file(tmp_path / "recurrent.safetensors", recurrent)
    for name, said, with_torch in (
        ("apart", "needs one vocabulary", "both sides need one vocabulary"),
        ("recurrent", "model.pointer = True: not available without torch", "unknown key model.pointer"),
    ):
        with pytest.raises(InputError, match=said):
            load(tmp_path / f"{name}.safetensors")
        with pytest.raises(InputError, match=with_torch):
            transduce.load(tmp_path / f"{name}.safetensors", device="cpu")


def test_a_model_without_a_table_has_no_shortlists(tmp_path: Path) -> None:
    save_model_file(tmp_path / "m.safetensors", model_file(translator()))
    with pytest.raises(InputError, match=r"search\.shortlist: this model has no table of which words translate which"):
        load(tmp_path / "m.safetensors").predict("ba", protect=False, shortlist=2)


def test_a_recipe_that_needs_steps_is_told_before_it_is_used(tmp_path: Path) -> None:
    path = written(tmp_path / "m.safetensors", search={"coverage": 0.3, "max_length_offset": 4})
    with pytest.raises(InputError, match=r"search\.coverage = 0\.3: needs"):
        load(path).predict("ba", protect=False)
    with_torch = transduce.load(path, device="cpu").predict(TEXTS, protect=False, coverage=0.0)
    assert load(path).predict(TEXTS, protect=False, coverage=0) == with_torch


def test_members_of_an_ensemble_share_their_target(tmp_path: Path) -> None:
    one = written(tmp_path / "one.safetensors")
    other: Pipeline = translator("character")
    save_model_file(tmp_path / "other.safetensors", model_file(other))
    with pytest.raises(InputError, match=r"other\.safetensors: its target tokenizer is not that of"):
        load([one, tmp_path / "other.safetensors"])


def test_attention_is_refused(tmp_path: Path) -> None:
    prediction = load(written(tmp_path / "m.safetensors")).predict("ba du")
    with pytest.raises(InputError, match="nothing is recorded of what the model attended to"):
        prediction.attention()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"heads": 3}, "d_model = 16 does not fit heads = 3"),
        ({"d_model": 0}, "model.d_model: expected a whole number of at least 1; got 0"),
        ({"d_model": 1 << 40}, "has shape"),
        ({"encoder_layers": 1 << 40}, "layers, but the file has"),
        ({"norm": "both"}, "model.norm: expected one of pre, post; got 'both'"),
        ({"activation": "mish"}, "model.activation: expected one of relu, gelu, .*; got 'mish'"),
        ({"feed_forward": True}, "model.feed_forward: expected a whole number"),
    ],
)
def test_settings_that_are_not_those_of_the_weights_are_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    file = model_file(translator(model=SIZES))
    save_model_file(
        tmp_path / "m.safetensors", replace(file, config={**file.config, "model": file.config["model"] | change})
    )
    with pytest.raises(InputError, match=said):
        load(tmp_path / "m.safetensors")


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    file = model_file(translator(model=SIZES))
    file.weights["target_embedding.weight"][3, 2] = torch.inf
    save_model_file(tmp_path / "m.safetensors", file)
    with pytest.raises(InputError, match=r'weight "target_embedding\.weight": 1 of its'):
        load(tmp_path / "m.safetensors")
