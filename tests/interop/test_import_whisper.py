"""Whisper with random weights, as Hugging Face and CTranslate2 write it, converted, and compared with both."""

import io
import json
import math
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from rich.console import Console
from torch import Tensor

import forked
from foreign_models import whisper
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.core.padded import Padded
from transduce.explore.exploration import explore
from transduce.explore.offline import explored
from transduce.interop.ctranslate2_weights import read_ctranslate2
from transduce.interop.imports import Imported, read_foreign
from transduce.interop.model_card import Languages
from transduce.interop.parity import Text
from transduce.interop.speech_parity import compare_speech
from transduce.pipeline.pipeline import Pipeline, load
from transduce.recipe.recipe import load_recipe
from transduce.training.display import Display
from transduce.training.run import run_training

transformers = pytest.importorskip("transformers")
MOST = 12  # tokens of an output, with what it begins with


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A model of several languages."""
    folder = tmp_path_factory.mktemp("many")
    return folder, whisper(folder)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A second of a rising tone with noise, at 8 kHz."""
    time = np.arange(8000) / 8000
    noise = np.random.default_rng(1).normal(size=8000)
    path = tmp_path_factory.mktemp("sound") / "a.wav"
    soundfile.write(path, 0.3 * np.sin(2 * math.pi * (200 + 300 * time) * time) + 0.01 * noise, 8000)
    return str(path)


def ours(folder: Path, into: Path, *languages: str) -> Pipeline:
    path = into / "ours.safetensors"
    save_model_file(path, imported(folder, *languages).file)
    return load(path, device="cpu")


def imported(folder: Path, *languages: str) -> Imported:
    return read_foreign(folder, Languages(*languages), "ours")


def mel_of(pipeline: Pipeline, recording: str) -> Tensor:
    """(1, S, F)."""
    column: Any = pipeline.task.columns["source"]
    return torch.from_numpy(column.encode([recording])[0])[None]


def greedy(model: Any, mel_1SF: Tensor, prompt: list[int], never: list[int], first: list[int], end: int) -> list[int]:
    """The tokens that transformers' model finds likeliest, one after the other, without the prompt."""
    ids = list(prompt)
    with torch.inference_mode():
        while len(ids) <= MOST:
            logits_V = model(input_features=mel_1SF.transpose(1, 2), decoder_input_ids=torch.tensor([ids])).logits[
                0, -1
            ]
            logits_V[never + first * (len(ids) == len(prompt))] = -torch.inf
            ids.append(int(logits_V.argmax()))
            if ids[-1] == end:
                break
    return ids[len(prompt) :]


@pytest.mark.parametrize(
    ("languages", "prompt"),
    [
        ((), ["<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>"]),
        (("zh", "en"), ["<|startoftranscript|>", "<|zh|>", "<|translate|>", "<|notimestamps|>"]),
    ],
)
def test_logits_and_greedy_tokens_are_those_of_transformers(
    many: tuple[Path, Any], recording: str, tmp_path: Path, languages: tuple[str, ...], prompt: list[str]
) -> None:
    folder, model = many
    pipeline = ours(folder, tmp_path, *languages)
    tokens: Any = pipeline.task.columns["target"]
    begins, mel = tokens.ids(prompt), mel_of(pipeline, recording)
    assert [tokens.start, *tokens.opening] == begins
    written = torch.tensor([[*begins, 40, 7, 300]])
    with torch.inference_mode():
        theirs = model(input_features=mel.transpose(1, 2), decoder_input_ids=written).logits
        found = pipeline.model(*(Padded(each, torch.tensor([each.shape[1]])) for each in (mel, written)))
    torch.testing.assert_close(found, theirs, rtol=1e-4, atol=1e-4)
    times = range(begins[-1] + 1, model.config.vocab_size)
    wanted = greedy(model, mel, begins, [3, 9, *times], [5, tokens.end], tokens.end)
    prediction = pipeline.predict(recording, max_length_offset=MOST)
    assert tokens.ids(prediction.tokens[len(begins) - 1 :]) == [each for each in wanted if each != tokens.end]
    assert prediction.ended == (wanted[-1] == tokens.end)


def test_a_model_of_english_has_no_language_in_its_prompt(recording: str, tmp_path: Path) -> None:
    model = whisper(tmp_path, multilingual=False)
    pipeline = ours(tmp_path, tmp_path)
    tokens: Any = pipeline.task.columns["target"]
    assert tokens.before == ("<|startoftranscript|>", "<|notimestamps|>")
    begins, mel = tokens.ids(tokens.before), mel_of(pipeline, recording)
    times = range(begins[-1] + 1, model.config.vocab_size)
    wanted = greedy(model, mel, begins, [3, 9, *times], [5, tokens.end], tokens.end)
    found = pipeline.predict(recording, max_length_offset=MOST).tokens
    assert tokens.ids(found[1:]) == [each for each in wanted if each != tokens.end]
    with pytest.raises(InputError, match='hears English only; got "zh"'):
        imported(tmp_path, "zh")


def test_what_was_not_said_is_told_and_what_is_wrong_is_refused(many: tuple[Path, Any]) -> None:
    assert imported(many[0]).notes == ("it writes down English; convert it with --language for another one.",)
    assert not imported(many[0], "zh").notes
    with pytest.raises(InputError, match=r'no language "zz".*Known: en, zh'):
        imported(many[0], "zz")
    with pytest.raises(InputError, match='as text, or translated into English; got "zh"'):
        imported(many[0], "en", "zh")


def changed(folder: Path, into: Path, **settings: Any) -> Path:
    shutil.copytree(folder, into)
    config = json.loads((into / "config.json").read_text())
    (into / "config.json").write_text(json.dumps({**config, **settings}))
    return into


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_source_positions": 750}, "max_source_positions: expected 1500; got 750"),
        ({"decoder_attention_heads": 4}, "decoder_attention_heads: expected 2; got 4"),
        ({"scale_embedding": True}, "scale_embedding = true is not supported"),
        ({"activation_function": "mish"}, 'activation_function: expected one of relu, .*; got "mish"'),
        ({"encoder_attention_heads": 3, "decoder_attention_heads": 3}, r"must be a multiple of heads \(3\)"),
    ],
)
def test_other_settings_are_refused(many: tuple[Path, Any], tmp_path: Path, settings: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        imported(changed(many[0], tmp_path / "other", **settings))


def test_a_tokenizer_is_needed(many: tuple[Path, Any], tmp_path: Path) -> None:
    folder = changed(many[0], tmp_path / "other")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"there is no tokenizer\.json"):
        imported(folder)


def test_texts_are_cut_as_the_model_learnt_to_write_them(many: tuple[Path, Any], tmp_path: Path) -> None:
    english, chinese = (ours(many[0], tmp_path, code).task.columns["target"] for code in ("en", "zh"))
    assert english.tokens(english.encode(["ba"])[0])[0].startswith("Ġ")
    assert not chinese.tokens(chinese.encode(["ba"])[0])[0].startswith("Ġ")
    assert english.decode(english.encode(["ba <|0.00|> <|en|>"])[0]) == " ba <|0.00|> <|en|>"


def ctranslate2_folder(theirs: Path, into: Path, quantization: str | None) -> Path:
    ctranslate2 = pytest.importorskip("ctranslate2")
    converter = ctranslate2.converters.TransformersConverter(str(theirs), copy_files=["tokenizer.json"])
    return Path(converter.convert(str(into), quantization=quantization))


@pytest.fixture(scope="module")
def written(many: tuple[Path, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model in fp32, as CTranslate2 writes it."""
    return ctranslate2_folder(many[0], tmp_path_factory.mktemp("ct2") / "fp32", None)


def test_tokens_are_those_of_ctranslate2(written: Path, recording: str, tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    pipeline = ours(written, tmp_path)
    tokens: Any = pipeline.task.columns["target"]
    mel = mel_of(pipeline, recording)
    theirs = ctranslate2.models.Whisper(str(written), device="cpu", compute_type="float32", intra_threads=1)
    features = ctranslate2.StorageView.from_array(mel.transpose(1, 2).contiguous().numpy())
    prompt = [*tokens.before]
    never = [*tokens.unwritten]
    [wanted] = theirs.generate(features, [prompt], beam_size=1, max_length=24, suppress_tokens=never)
    found = pipeline.predict(recording, max_length_offset=15)
    states = torch.from_numpy(np.array(theirs.encode(features, to_cpu=True)))
    with torch.inference_mode():
        ours_BSD = pipeline.model.encode(Padded(mel, torch.tensor([3000]))).values
    torch.testing.assert_close(ours_BSD, states, rtol=1e-4, atol=1e-4)
    theirs_ids = wanted.sequences_ids[0]
    assert tokens.ids(found.tokens)[len(prompt) - 1 :][: len(theirs_ids)] == theirs_ids
    assert len({*theirs_ids}) > 4


@pytest.mark.parametrize("quantization", ["float16", "bfloat16", "int8", "int8_float16"])
def test_smaller_weights_are_read(many: tuple[Path, Any], written: Path, tmp_path: Path, quantization: str) -> None:
    folder = ctranslate2_folder(many[0], tmp_path / "small", quantization)
    whole, small = (read_ctranslate2(each / "model.bin").tensors for each in (written, folder))
    assert whole.keys() == small.keys()
    for name, weight in whole.items():
        found, eight = small[name], quantization.startswith("int8") and weight.ndim > 1 and "position" not in name
        assert found.dtype == weight.dtype and found.shape == weight.shape
        half = torch.bfloat16 if quantization == "bfloat16" else torch.float16
        if eight:
            rows, wanted = found.flatten(1), weight.flatten(1)
            step_N1 = wanted.abs().amax(1, keepdim=True) / 127
            assert ((rows - wanted).abs() <= 0.51 * step_N1 + 1e-3 * wanted.abs()).all(), name
        elif quantization != "int8" and weight.is_floating_point():
            assert torch.equal(found, weight.to(half).float()), name
        else:
            assert torch.equal(found, weight), name
    assert imported(folder).file.config["model"] == imported(written).file.config["model"]


def named(name: str) -> bytes:
    return struct.pack("<H", len(name) + 1) + name.encode() + b"\0"


def tensor(name: str, shape: list[int], kind: int, size: int) -> bytes:
    head = struct.pack("<B", len(shape)) + struct.pack(f"<{len(shape)}I", *shape)
    return named(name) + head + struct.pack("<BI", kind, size)


HEAD = struct.pack("<I", 6) + named("WhisperSpec") + struct.pack("<I", 3)
DAMAGED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "another version": (
        lambda whole: struct.pack("<I", 5) + whole[4:],
        "expected model.bin of version 6; got version 5",
    ),
    "cut off": (lambda whole: whole[: len(whole) // 2], "more bytes where .* are left: it is cut off"),
    "cut off in its head": (lambda whole: whole[:20], "it is cut off"),
    "longer": (lambda whole: whole + b"\0", "1 bytes behind its end"),
    "many tensors": (lambda whole: HEAD + struct.pack("<I", 2**32 - 1), "4,294,967,295 of something in 0 bytes"),
    "a large tensor": (
        lambda whole: HEAD + struct.pack("<I", 1) + tensor("a", [2**30], 0, 2**32 - 1) + b"\0",
        r"\"a\" of type 0, shape \[1073741824\] and 4,294,967,295 bytes",
    ),
    "a larger one than the file": (
        lambda whole: HEAD + struct.pack("<I", 1) + tensor("a", [2**29], 0, 2**31) + b"\0",
        "2,147,483,648 more bytes where 1 are left",
    ),
    "a type that there is not": (
        lambda whole: HEAD + struct.pack("<I", 1) + tensor("a", [1], 9, 4) + bytes(4),
        "of type 9",
    ),
    "many axes": (lambda whole: HEAD + struct.pack("<I", 1) + tensor("a", [1] * 200, 0, 4) + bytes(4), "200 axes"),
    "a name of no text": (
        lambda whole: HEAD + struct.pack("<I", 1) + struct.pack("<H", 2) + b"\xff\0" + bytes(9),
        "the name",
    ),
    "another name of nothing": (
        lambda whole: HEAD + struct.pack("<II", 0, 1) + named("a") + named("b"),
        'a further name of "b", which is no tensor',
    ),
}


@pytest.mark.parametrize("fault", DAMAGED)
def test_a_damaged_file_is_refused_in_words(written: Path, tmp_path: Path, fault: str) -> None:
    change, said = DAMAGED[fault]
    path = tmp_path / "model.bin"
    path.write_bytes(change((written / "model.bin").read_bytes()))
    with pytest.raises(InputError, match=said):
        read_ctranslate2(path)


def renamed(whole: bytes, before: str, after: str) -> bytes:
    assert len(before) == len(after)
    return whole.replace(named(before), named(after))


def faults(whole: bytes) -> Iterator[tuple[bytes, str]]:
    other = renamed(whole, "encoder/conv1/weight", "encoder/conv3/weight")
    yield other, r'tensor "model\.encoder\.conv1\.weight" is missing'
    yield renamed(whole, "decoder/num_heads", "decoder/sum_heads"), "expected num_heads"
    yield renamed(whole, "encoder/layer_1/ffn/linear_0/bias", "encoder/layer_9/ffn/linear_0/bias"), "is missing"


def test_a_file_of_another_model_is_refused(written: Path, tmp_path: Path) -> None:
    shutil.copytree(written, tmp_path / "other")
    for content, said in faults((written / "model.bin").read_bytes()):
        (tmp_path / "other" / "model.bin").write_bytes(content)
        with pytest.raises(InputError, match=said):
            imported(tmp_path / "other")


@pytest.fixture
def hears(many: tuple[Path, Any], tmp_path: Path) -> Pipeline:
    return ours(many[0], tmp_path, "en")


def test_long_sound_is_heard_in_parts(hears: Pipeline, recording: str, tmp_path: Path) -> None:
    sound, rate = soundfile.read(recording, dtype="float32")
    gap = np.zeros(25 * rate, np.float32)
    soundfile.write(tmp_path / "long.wav", np.concatenate([sound, gap, sound]), rate, subtype="FLOAT")
    told: list[str] = []
    [found, short] = hears.predict([str(tmp_path / "long.wav"), recording], max_length_offset=MOST, tell=told.append)
    assert [len(each.segments) for each in (found, short)] == [1, 1] and not told
    soundfile.write(tmp_path / "long.wav", np.concatenate([sound, gap, sound, gap, sound]), rate, subtype="FLOAT")
    [found] = hears.predict([str(tmp_path / "long.wav")], max_length_offset=MOST, tell=told.append)
    assert [round(each.end - each.start) for each in found.segments] == [30, 23]
    assert told[0].endswith("heard in 2 parts")
    assert found.text == " ".join(each.text for each in found.segments)
    written = [(each["start"], each["end"], each["text"]) for each in found.to_dict()["segments"]]
    assert written == [each[:3] for each in found.segments]
    [same] = hears.task.predictor.predict(hears.model, [str(tmp_path / "long.wav")], hears.recipe.search)
    assert [each.start for each in same.segments] == [each.start for each in found.segments]
    with pytest.raises(InputError, match="53 s, the model hears 30 s at once here; cut the recording"):
        hears.predict(str(tmp_path / "long.wav"), long="refuse")


def test_ours_is_compared_with_the_original(
    hears: Pipeline, many: tuple[Path, Any], written: Path, recording: str, tmp_path: Path
) -> None:
    pytest.importorskip("ctranslate2")
    found = compare_speech(hears, many[0], Text("names", [recording, ""]))
    assert found.holds, found.report()
    assert found.report()[0].endswith("greedy, fp32; 1 empty, or longer than 30 s, and left out:")
    found = compare_speech(ours(written, tmp_path), written, Text("names", [recording]))
    assert found.holds, found.report()
    assert found.report()[:2] == [
        "ctranslate2 and Transduce on 1 recordings of names, greedy, fp32:",
        "  equal tokens     1 of 1",
    ]


def test_the_command_says_what_is_spoken(many: tuple[Path, Any], run: forked.Run, tmp_path: Path) -> None:
    done = run("convert", many[0], tmp_path / "m.safetensors", "--language", "zh", "--translate")
    assert done.code == 0, done.err
    target: Any = load(tmp_path / "m.safetensors", device="cpu").task.columns["target"]
    assert target.before[1:3] == ("<|zh|>", "<|translate|>")
    refused = run("convert", many[0], tmp_path / "o.safetensors", "--translate")
    assert refused.code == 2 and "--translate: say which language is spoken" in refused.err


def test_a_folder_stands_where_a_model_is_named(written: Path, recording: str, run: forked.Run) -> None:
    done = run("predict", written, recording, "--max-new", 8)
    assert done.code == 0, done.err
    assert "converted from CTranslate2 whisper, once, into the cache" in done.err
    assert len(done.out.splitlines()) == 1


def test_a_recording_is_explored_without_the_attention_between_its_positions(hears: Pipeline, recording: str) -> None:
    found = explore(hears, recording, max_length_offset=MOST)
    kinds = {layer["kind"] for layer in found["attention"]}
    assert "cross" in kinds and "encoder" not in kinds
    assert len(found["source"]["tokens"]) == 1500
    assert (found["recording"]["frames"], found["recording"]["seconds"]) == (3000, 1.0)
    hears.recipe = hears.recipe.model_copy(
        update={"search": hears.recipe.search.model_copy(update={"max_length_offset": MOST})}
    )
    assert explored("hears", hears, recording)["rollout"] is None


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """Ten short recordings, and one of 31 s."""
    lines = []
    for number in range(11):
        soundfile.write(tmp_path / f"{number}.wav", np.random.default_rng(number).normal(0, 0.1, 4000), 8000)
        lines.append(f"{number}.wav\t{'ba be' if number % 2 else 'du'}\n")
    soundfile.write(tmp_path / "10.wav", np.zeros(31 * 8000), 8000)
    (tmp_path / "train.tsv").write_text("".join(lines))
    return tmp_path


def test_it_is_fine_tuned_on_recordings(many: tuple[Path, Any], words: Path) -> None:
    start = words / "start.safetensors"
    save_model_file(start, imported(many[0], "en").file)
    (words / "tune.toml").write_text(
        f"""
        task = {{ kind = "speech_recognition", target = "en", metrics = ["wer"] }}
        data = {{ root = "{words}", train = [{{ file = "train.tsv" }}], validation = {{ file = "train.tsv" }} }}
        batch = {{ tokens = 9000 }}
        search = {{ method = "greedy", max_length_factor = 0.0, max_length_offset = 8 }}
        training = {{ start = "{start}", updates = 2, validate_every = 2, warmup = 1, learning_rate = 1e-4 }}
        """
    )
    told = io.StringIO()
    run_training(load_recipe(words / "tune.toml"), words / "run", Display(Console(file=told, width=200)))
    assert "the loss leaves out what has an empty side, or is longer than 30 s" in told.getvalue()
    before, after = (load(each, device="cpu") for each in (start, words / "run"))
    assert before.task.columns["target"].to_dict() == after.task.columns["target"].to_dict()
    changed = [
        name
        for name, weight in after.model.state_dict().items()
        if not torch.equal(weight, before.model.state_dict()[name])
    ]
    assert "source_embedding.convolutions.0.weight" in changed and "decoder.positions.weight_TD" in changed
