"""LoRA adapters in folders: merged as their equation says, by numpy and by peft where it is installed, or refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from converted import logits_of_both
from foreign_models import bart
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.pipeline.pipeline import Pipeline, load

transformers = pytest.importorskip("transformers")

LAYER = "model.encoder.layers.0"
PLAIN: dict[str, Any] = {"peft_type": "LORA", "r": 2, "lora_alpha": 6, "target_modules": ["q_proj", "fc1"]}


def adapter(folder: Path, tensors: dict[str, torch.Tensor], **settings: Any) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({**PLAIN, **settings}), encoding="utf-8")
    save_file(
        {f"base_model.model.{name}": each for name, each in tensors.items()}, folder / "adapter_model.safetensors"
    )


def pair(module: str, inputs: int, outputs: int, rank: int = 2, seed: int = 1) -> dict[str, torch.Tensor]:
    """A and B of a linear map."""
    drawn = torch.Generator().manual_seed(seed)
    return {
        f"{module}.lora_A.weight": torch.randn(rank, inputs, generator=drawn),
        f"{module}.lora_B.weight": torch.randn(outputs, rank, generator=drawn),
    }


def merged(folder: Path, base: Path | None = None) -> Pipeline:
    path = folder / "ours.safetensors"
    save_model_file(path, read_foreign(folder, Languages(), "ours", base=base).file)
    return load(path, device="cpu")


def with_deltas(folder: Path, deltas: dict[str, np.ndarray[Any, Any]]) -> Any:
    """The model of a folder with these added to its weights, by transformers without an adapter."""
    plain = folder.parent / "plain"
    transformers.BartForConditionalGeneration.from_pretrained(folder, config=_config(folder)).save_pretrained(plain)
    weights = load_file(plain / "model.safetensors")
    for name, delta in deltas.items():
        weights[name] = torch.from_numpy(weights[name].numpy() + delta)
    save_file(weights, plain / "model.safetensors", {"format": "pt"})
    return transformers.BartForConditionalGeneration.from_pretrained(plain).eval()


def _config(folder: Path) -> Any:
    return transformers.BartConfig.from_pretrained(folder)


@pytest.mark.parametrize("rslora", [False, True])
def test_weights_get_their_product(rslora: bool, tmp_path: Path) -> None:
    (folder := tmp_path / "theirs").mkdir()
    bart(folder)
    one, other = pair(f"{LAYER}.self_attn.q_proj", 16, 16), pair(f"{LAYER}.fc1", 16, 24, rank=3, seed=2)
    root = np.sqrt if rslora else float
    deltas = {
        f"{LAYER}.self_attn.q_proj.weight": 6 / root(2) * _product(one),
        f"{LAYER}.fc1.weight": 9 / root(3) * _product(other),
    }
    model = with_deltas(folder, {name: each.astype(np.float32) for name, each in deltas.items()})
    patterns = {"rank_pattern": {"layers.0.fc1": 3}, "alpha_pattern": {"layers.0.fc1": 9}}
    adapter(tmp_path / "lora", one | other, use_rslora=rslora, **patterns)
    theirs, ours = logits_of_both(model, merged(tmp_path / "lora", folder))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    for file in (tmp_path / "lora").glob("adapter_*"):
        file.rename(folder / file.name)  # beside the model
    read = read_foreign(folder, Languages(), "x")
    assert "the adapter in theirs was merged into the weights." in read.notes
    theirs, ours = logits_of_both(model, merged(folder))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def _product(tensors: dict[str, torch.Tensor]) -> Any:
    down, up = (each.numpy() for each in tensors.values())
    return up @ down


@pytest.mark.filterwarnings("ignore")
def test_logits_are_those_of_peft(tmp_path: Path) -> None:
    """With biases of its own, and another rank for some."""
    peft = pytest.importorskip("peft", reason="peft is not installed: pip install peft")
    (folder := tmp_path / "theirs").mkdir()
    model = bart(folder)
    names = ["q_proj", "v_proj", "fc1"]
    own = {"rank_pattern": {"layers.1.fc1": 2}, "alpha_pattern": {"^model.encoder.layers.0.fc1": 7}}
    config = peft.LoraConfig(
        task_type="SEQ_2_SEQ_LM", r=3, lora_alpha=5, target_modules=names, bias="lora_only", use_rslora=True, **own
    )
    torch.manual_seed(5)
    tuned = peft.get_peft_model(model, config)
    with torch.no_grad():
        for name, parameter in tuned.named_parameters():
            if "lora_" in name or (parameter.requires_grad and name.endswith("bias")):
                parameter.normal_(std=0.3)
    tuned.save_pretrained(str(tmp_path / "lora"))
    theirs, ours = logits_of_both(tuned.eval(), merged(tmp_path / "lora", folder))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "kind": ({"peft_type": "IA3"}, "only \"LORA\" can be merged; got 'IA3'"),
    "DoRA": ({"use_dora": True}, "use_dora = True: this is not supported"),
    "start": ({"init_lora_weights": "pissa"}, "init_lora_weights = 'pissa': it changes the model's own weights"),
    "pattern": ({"alpha_pattern": {".*fc1": 3}}, "only names and ends of names are understood"),
    "unknown": ({"use_magic": 3}, "use_magic = 3: this is not supported"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_adapters_are_refused_by_name(name: str, tmp_path: Path) -> None:
    settings, said = REFUSED[name]
    bart(tmp_path)
    adapter(tmp_path, pair(f"{LAYER}.fc1", 16, 24), **settings)
    with pytest.raises(InputError, match=said):
        read_foreign(tmp_path, Languages(), "x")


TENSORS: dict[str, tuple[dict[str, torch.Tensor], str]] = {
    "no such weight": (pair("model.encoder.layers.7.fc1", 16, 24), r'the model has no "model\.encoder\.layers\.7'),
    "another size": (pair(f"{LAYER}.fc1", 16, 20), r"it changes \[20, 16\] numbers"),
    "half": (dict([*pair(f"{LAYER}.fc1", 16, 24).items()][:1]), r'lacks ".*fc1\.lora_B\.weight"'),
    "shared": (
        {"model.shared.lora_embedding_A": torch.ones(2, 334), "model.shared.lora_embedding_B": torch.ones(16, 2)},
        "the model's output has the same matrix",
    ),
    "magnitude": ({f"{LAYER}.fc1.lora_magnitude_vector": torch.ones(24)}, "only plain LoRA is merged"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_that_belong_nowhere_are_refused_by_name(name: str, tmp_path: Path) -> None:
    tensors, said = TENSORS[name]
    bart(tmp_path)
    adapter(tmp_path, tensors)
    with pytest.raises(InputError, match=said):
        read_foreign(tmp_path, Languages(), "x")


def test_an_adapter_alone_finds_its_model_or_asks_for_it(tmp_path: Path) -> None:
    (folder := tmp_path / "theirs").mkdir()
    bart(folder)
    adapter(tmp_path / "lora", pair(f"{LAYER}.fc1", 16, 24), base_model_name_or_path="../theirs")
    assert read_foreign(tmp_path / "lora", Languages(), "x").notes[-1].startswith("the adapter in lora was merged")
    adapter(tmp_path / "lora", pair(f"{LAYER}.fc1", 16, 24), base_model_name_or_path="facebook/bart-base")
    with pytest.raises(
        InputError, match="an adapter alone, of the model 'facebook/bart-base', which is no folder here"
    ):
        read_foreign(tmp_path / "lora", Languages(), "x")
    with pytest.raises(InputError, match="--base is for a folder that has only an adapter"):
        read_foreign(folder, Languages(), "x", base=folder)


def test_files_that_are_not_understood_are_named(tmp_path: Path) -> None:
    bart(tmp_path)
    (tmp_path / "steering.safetensors").write_bytes(b"")
    (tmp_path / "more").mkdir()
    (tmp_path / "README.md").write_text("", encoding="utf-8")
    [said] = [each for each in read_foreign(tmp_path, Languages(), "x").notes if "not read" in each]
    assert said == f"not read in {tmp_path.name}: more/, steering.safetensors."
