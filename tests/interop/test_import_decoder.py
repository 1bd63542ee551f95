"""Decoders of Hugging Face, converted: the same logits and the same continuations, by transformers' own classes."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from decoder_models import BEGINS, KINDS, LINES, SPECIAL, TOKENIZERS, decoder, tokenizer_json, write_tokenizer
from forked import Run
from transduce.core.errors import InputError
from transduce.core.model_file import read_model_file, save_model_file
from transduce.core.padded import Padded
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.interop.decoder_parity import CLOSE, compare_decoder
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.interop.parity import Text
from transduce.pipeline.pipeline import Pipeline, load

pytest.importorskip("transformers", reason="transformers is not installed")

SCRIPTS = [
    "The quick brown fox, 12.5% of it!",
    "Der Bär läuft über die Straße.",
    "Быстрая лиса перепрыгнула",
    "Η γρήγορη αλεπού",
    "الثعلب البني السريع",
    "השועל החום המהיר",
    "तेज़ भूरी लोमड़ी",
    "สุนัขจิ้งจอกสีน้ำตาล",
    "敏捷的棕色狐狸",
    "素早い茶色の狐です",
    "빠른 갈색 여우",
    "የፈጣን ቡናማ ቀበሮ \U0001f98a",
]


class Converted(NamedTuple):
    folder: Path
    theirs: Any
    ours: Pipeline


def converted(folder: Path, kind: str, **settings: Any) -> Converted:
    theirs = decoder(folder, kind, **settings)
    return Converted(folder, theirs, loaded(folder))


def loaded(folder: Path) -> Pipeline:
    """Written and read again."""
    path = folder / "ours.safetensors"
    save_model_file(path, read_foreign(folder, Languages(), "ours").file)
    return load(path, device="cpu")


@pytest.fixture(scope="module", params=KINDS)
def each(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Converted:
    return converted(tmp_path_factory.mktemp(request.param), request.param)


@torch.inference_mode()
def logits(model: Any, ids_BT: torch.Tensor) -> torch.Tensor:
    lengths_B = torch.full((len(ids_BT),), ids_BT.shape[1])
    said: torch.Tensor = model(None, Padded(ids_BT, lengths_B))
    return said


def random_ids(each: Converted, positions: int = 60) -> torch.Tensor:
    size = each.ours.task.columns["target"].tokenizer.size
    return torch.randint(size, (2, positions), generator=torch.Generator().manual_seed(1))


@torch.inference_mode()
def test_logits_are_equal(each: Converted) -> None:
    ids_BT = random_ids(each)
    expected_BTV = each.theirs(ids_BT).logits
    torch.testing.assert_close(logits(each.ours.model, ids_BT), expected_BTV, rtol=0, atol=1e-4)
    assert expected_BTV.std() > 0.5


@torch.inference_mode()
def test_step_by_step_it_is_the_same(each: Converted) -> None:
    ids_BT, model = random_ids(each, 20), each.ours.model
    whole_BTV = logits(model, ids_BT).log_softmax(-1)
    memory, state = model.start(None, 2)  # type: ignore[operator]
    for place in range(20):
        said_BV, state = model.step(ids_BT[:, place], memory, state)  # type: ignore[operator]
        torch.testing.assert_close(said_BV, whole_BTV[:, place], rtol=0, atol=1e-4)


@torch.inference_mode()
def test_fifty_greedy_tokens_are_equal(each: Converted) -> None:
    column: Any = each.ours.task.columns["target"]
    [ids] = column.encode([LINES[0]])
    read_1T = torch.tensor([[column.start, *ids]])
    written = each.theirs.generate(
        input_ids=read_1T,
        attention_mask=torch.ones_like(read_1T),
        max_new_tokens=50,
        do_sample=False,
        eos_token_id=column.end,
        pad_token_id=column.end,
        suppress_tokens=column.unwritten or None,
    )[0, 1:].tolist()
    [ours] = each.ours.predict([LINES[0]], method="greedy", max_length_offset=50, split="none")
    expected = written[: written.index(column.end)] if column.end in written else written
    assert column.ids(ours.tokens) == expected
    assert len(expected) > len(ids)


@torch.inference_mode()
def test_the_probability_of_a_line_is_theirs(each: Converted) -> None:
    column: Any = each.ours.task.columns["target"]
    [ids] = column.encode([LINES[1]])
    row_T = torch.tensor([column.start, *ids, column.end])
    each_TV = each.theirs(row_T[None, :-1]).logits[0].log_softmax(-1)
    expected = float(each_TV.gather(1, row_T[1:, None]).sum())
    assert each.ours.score(LINES[1]).log_probability == pytest.approx(expected, abs=1e-3)


def test_the_comparison_holds_and_says_so(each: Converted) -> None:
    found = compare_decoder(each.ours, each.folder, Text("lines", [*LINES[:3], SCRIPTS[4], ""]))
    assert found.holds, found.report()
    assert (found.lines, found.left_out) == (4, 1)
    assert 0 < found.difference < CLOSE


@pytest.mark.parametrize("kind", SPECIAL)
def test_ids_are_those_of_transformers_in_any_script(kind: str, tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    write_tokenizer(tmp_path, kind)
    theirs = PreTrainedTokenizerFast.from_pretrained(str(tmp_path))
    ours = Tokenizer.from_json(tokenizer_json(kind))
    texts = [*SCRIPTS, *LINES[:20]]
    expected = [theirs(text, add_special_tokens=False)["input_ids"] for text in texts]
    assert ours.encode(texts) == expected
    assert [ours.decode(ids) for ids in expected] == texts


def test_what_begins_and_ends_a_text(each: Converted) -> None:
    kind = TOKENIZERS[json.loads((each.folder / "config.json").read_text())["model_type"]]
    column: Any = each.ours.task.columns["target"]
    begins = BEGINS.get(kind, "<|endoftext|>")
    assert column.tokens([column.start]) == [begins]
    end = {"gpt2": "<|endoftext|>", "llama2": "</s>", "llama3": "<|end_of_text|>", "qwen": "<|im_end|>"}
    assert column.tokens([column.end]) == [end.get(kind, "<eos>")]
    assert column.tokenizer.tokens([column.tokenizer.size - 1])[0] in column.never
    assert column.end not in column.unwritten


# ---- settings ----------------------------------------------------------------------------------------------------

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256,
}


def rewritten(folder: Path, **settings: Any) -> None:
    """Changes keys of config.json; None removes one."""
    path = folder / "config.json"
    table = {**json.loads(path.read_text()), **settings}
    path.write_text(json.dumps({key: value for key, value in table.items() if value is not None}))


@pytest.mark.parametrize(
    ("rope", "before"),
    [
        ({"rope_type": "default", "rope_theta": 5e5}, {"rope_theta": 500000}),
        ({**LLAMA3, "rope_theta": 5e5}, {"rope_theta": 5e5, "rope_scaling": LLAMA3}),
        ({"rope_type": "linear", "factor": 2.0}, {"rope_scaling": {"type": "linear", "factor": 2.0}}),
    ],
    ids=["base", "llama3", "linear"],
)
@torch.inference_mode()
def test_positions_up_to_four_thousand(rope: dict[str, Any], before: dict[str, Any], tmp_path: Path) -> None:
    sizes = {"num_hidden_layers": 1, "max_position_embeddings": 8192}
    each = converted(tmp_path, "llama", rope_parameters={"rope_theta": 10000.0, **rope}, **sizes)
    ids_BT = random_ids(each, 4001)[:1]
    ours_BTV = logits(each.ours.model, ids_BT)
    torch.testing.assert_close(ours_BTV, each.theirs(ids_BT).logits, rtol=0, atol=2e-4)
    rewritten(tmp_path, rope_parameters=None, **before)  # as transformers 4 writes it
    again = loaded(tmp_path)
    assert again.recipe.model == each.ours.recipe.model
    assert each.ours.recipe.task.context == 8192  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
        ("llama", {"head_dim": 10, "num_key_value_heads": 1}),
        ("gemma", {"tie_word_embeddings": False}),
        ("qwen2", {"tie_word_embeddings": True, "num_key_value_heads": 4}),
        ("mistral", {"sliding_window": 128}),
        ("gpt2", {"tie_word_embeddings": False, "n_inner": 20, "activation_function": "gelu"}),
    ],
    ids=str,
)
@torch.inference_mode()
def test_other_settings(kind: str, settings: dict[str, Any], tmp_path: Path) -> None:
    each = converted(tmp_path, kind, **settings)
    ids_BT = random_ids(each)
    torch.testing.assert_close(logits(each.ours.model, ids_BT), each.theirs(ids_BT).logits, rtol=0, atol=1e-4)


@torch.inference_mode()
def test_half_precision_and_several_files(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    made = decoder(tmp_path, "llama").bfloat16()
    (tmp_path / "model.safetensors").unlink()
    made.save_pretrained(str(tmp_path), max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    theirs = AutoModelForCausalLM.from_pretrained(str(tmp_path), dtype=torch.float32)
    each = Converted(tmp_path, theirs, loaded(tmp_path))
    ids_BT = random_ids(each)
    torch.testing.assert_close(logits(each.ours.model, ids_BT), theirs(ids_BT).logits, rtol=0, atol=1e-4)


REFUSED = {
    "sliding_window = 64: attention to a window": ("mistral", {"sliding_window": 64}),
    "sliding_window = 32": ("qwen2", {"use_sliding_window": True, "sliding_window": 32}),
    "layer_types: expected full_attention": ("qwen3", {"layer_types": ["full_attention", "sliding_attention"]}),
    r"layer_types: expected full_attention in all layers; got \[1\]": ("qwen3", {"layer_types": [[1]]}),
    "soft-capping of logits": ("gemma", {"final_logit_softcapping": 30.0}),
    "a mixture of experts": ("llama", {"num_local_experts": 8}),
    "quantised weights": ("llama", {"quantization_config": {"quant_method": "gptq"}}),
    "partial_rotary_factor: expected 1.0; got 0.5": ("llama", {"partial_rotary_factor": 0.5}),
    "rope_type: expected one of default, linear, llama3; got 'yarn'": (
        "qwen2",
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0}},
    ),
    "got 'dynamic'": ("llama", {"rope_parameters": None, "rope_scaling": {"type": "dynamic", "factor": 2.0}}),
    "expected factor, low_freq_factor": (
        "llama",
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4, "factor": 2.0}},
    ),
    'hidden_act: expected one of .*; got "relu"': ("llama", {"hidden_act": "relu"}),
    "logit_scale = 2.0: nothing is known": ("llama", {"logit_scale": 2.0}),
    "scale_attn_by_inverse_layer_idx: expected False; got True": ("gpt2", {"scale_attn_by_inverse_layer_idx": True}),
    "architectures: expected a name": ("llama", {"architectures": ["LlamaForSequenceClassification"]}),
    "num_hidden_layers = 1000000": ("llama", {"num_hidden_layers": 10**6}),
    "nothing is known of full_attention": (
        "llama",
        {"rope_parameters": {"rope_type": "default", "full_attention": {"rope_theta": 1e4}}},
    ),
    "hidden_activation: a setting of Gemma": ("llama", {"hidden_activation": "gelu"}),
    r'"model.layers.0.self_attn.q_proj.bias" is missing': ("llama", {"attention_bias": True}),
    "vocab_size = 300, but the embedding has": ("gemma", {"vocab_size": 300}),
    "eos_token_id = 99999": ("gpt2", {"eos_token_id": 99999}),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One of each kind, whose settings are changed."""
    made = {kind: tmp_path_factory.mktemp(f"changed_{kind}") for kind in KINDS}
    for kind, folder in made.items():
        decoder(folder, kind)
        (folder / "generation_config.json").unlink(missing_ok=True)
        (folder / "kept.json").write_bytes((folder / "config.json").read_bytes())
    return made


@pytest.mark.parametrize("said", REFUSED)
def test_what_our_layers_do_not_have_is_refused_by_name(said: str, folders: dict[str, Path]) -> None:
    kind, settings = REFUSED[said]
    folder = folders[kind]
    (folder / "config.json").write_bytes((folder / "kept.json").read_bytes())
    rewritten(folder, **settings)
    with pytest.raises(InputError, match=said):
        read_foreign(folder, Languages(), "ours")


def test_more_weights_than_the_memory_holds_are_refused_before_they_are_read(tmp_path: Path) -> None:
    decoder(tmp_path, "llama")
    numbers = 10**12  # 2 TB in a file without blocks
    table = {"model.embed_tokens.weight": {"dtype": "F16", "shape": [10**6, 10**6], "data_offsets": [0, 2 * numbers]}}
    names = [f"model.layers.0.{number}" for number in range(3)]
    table |= {
        name: {"dtype": "U8", "shape": [1], "data_offsets": [2 * numbers + place, 2 * numbers + place + 1]}
        for place, name in enumerate(names)
    }
    header = json.dumps(table).encode()
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + 2 * numbers + 3)
    with pytest.raises(InputError, match=r"1000\.0 billion weights need 4000 GB in fp32.*this machine has"):
        read_foreign(tmp_path, Languages(), "ours")


def test_settings_of_generation_become_those_of_search(folders: dict[str, Path]) -> None:
    folder = folders["qwen2"]
    (folder / "config.json").write_bytes((folder / "kept.json").read_bytes())
    generation = {
        "do_sample": True,
        "temperature": 0.7,
        "top_k": 20,
        "top_p": 0.8,
        "repetition_penalty": 1.05,
        "max_new_tokens": 33,
        "eos_token_id": [2, 0],
    }
    (folder / "generation_config.json").write_text(json.dumps(generation))
    read = read_foreign(folder, Languages(), "ours")
    (folder / "generation_config.json").unlink()
    search = read.file.config["search"]
    expected = {"method": "sample", "temperature": 0.7, "top_k": 20, "top_p": 0.8, "max_length_offset": 33}
    assert {key: search[key] for key in expected} == expected
    assert read.notes == (
        "a text ends at <|im_end|> only; the original also ends it at <|endoftext|>.",
        "repetition_penalty = 1.05 is left out: search has none.",
        f"not read in {folder.name}: kept.json.",
    )


def test_a_folder_without_a_tokenizer_says_how_to_save_one(tmp_path: Path) -> None:
    decoder(tmp_path, "llama")
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(InputError, match="AutoTokenizer"):
        read_foreign(tmp_path, Languages(), "ours")


def test_gpt2s_own_files_of_pieces_are_read(tmp_path: Path) -> None:
    each = converted(tmp_path, "gpt2")
    model = json.loads((tmp_path / "tokenizer.json").read_text())["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf-8")
    merges = "".join(f"{' '.join(pair)}\n" for pair in model["merges"])
    (tmp_path / "merges.txt").write_text(f"#version: 0.2\n{merges}", encoding="utf-8")
    (tmp_path / "tokenizer.json").unlink()
    texts = [*SCRIPTS, *LINES[:5]]
    again: Any = loaded(tmp_path).task.columns["target"]
    column: Any = each.ours.task.columns["target"]
    assert again.encode(texts) == column.encode(texts)
    assert (again.start, again.end) == (column.start, column.end)


# ---- commands ----------------------------------------------------------------------------------------------------


def test_the_command_converts_and_compares(run: Run, folders: dict[str, Path], tmp_path: Path) -> None:
    folder, lines = folders["gemma"], tmp_path / "lines.txt"
    (folder / "config.json").write_bytes((folder / "kept.json").read_bytes())
    lines.write_text("\n".join(LINES[:4]) + "\n", encoding="utf-8")
    done = run("convert", folder, tmp_path / "gemma.safetensors", "--check", lines)
    assert done.code == 0, done.err
    assert "equal continuations   4 of 4" in done.err
    assert read_model_file(tmp_path / "gemma.safetensors").config["model"]["kind"] == "transformer_decoder"


def test_a_folder_stands_in_the_place_of_a_model(run: Run, folders: dict[str, Path], tmp_path: Path) -> None:
    folder, lines = folders["llama"], tmp_path / "lines.txt"
    (folder / "config.json").write_bytes((folder / "kept.json").read_bytes())
    lines.write_text("\n".join(LINES[:4]) + "\n", encoding="utf-8")
    written = run("generate", folder, "--prompt", LINES[0], "--max-new", "4", "--count", "2")
    assert written.code == 0, written.err
    assert "converted from Hugging Face llama" in written.err
    assert written.out.count(LINES[0]) == 2
    scored = run("score", folder, "--target", lines)
    assert scored.code == 0, scored.err
    page = run("explore", folder, "--file", tmp_path / "page.html", "--text", LINES[0])
    assert page.code == 0, page.err


def test_it_goes_on_learning(run: Run, folders: dict[str, Path], tmp_path: Path) -> None:
    folder = folders["llama"]
    (folder / "config.json").write_bytes((folder / "kept.json").read_bytes())
    (tmp_path / "text.txt").write_text("\n".join(LINES[:40]) + "\n", encoding="utf-8")
    recipe = f"""
        task = {{ kind = "language_modelling", context = 32 }}
        data = {{ root = "{tmp_path}", train = [{{ text = "text.txt" }}], validation = {{ text = "text.txt" }} }}
        batch = {{ tokens = 256 }}
        training = {{ updates = 12, learning_rate = 2e-2, warmup = 1 }}
    """
    (tmp_path / "tuned.toml").write_text(recipe, encoding="utf-8")
    before = loaded(folder)
    done = run("train", tmp_path / "tuned.toml", f"training.start={folder}", "--run", tmp_path / "run")
    assert done.code == 0, done.err
    after = load(tmp_path / "run", device="cpu")
    assert after.recipe.model == before.recipe.model
    assert after.task.columns["target"].to_dict() == before.task.columns["target"].to_dict()
    line = LINES[3]
    assert after.score(line).log_probability > before.score(line).log_probability + 1
