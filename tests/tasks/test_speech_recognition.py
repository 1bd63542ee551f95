"""Speech recognition: recordings are read; it is trained, resumed, evaluated, explored and served as others are."""

import hashlib
import io
import json
import math
import random
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from pydantic import ValidationError

import transduce
from forked import transduce as command
from served import serving
from toy_trainings import resumed_to_the_same_bytes
from transduce.core.errors import InputError
from transduce.core.model_file import NAME
from transduce.core.padded import Padded
from transduce.data.columns.frames import Frames
from transduce.data.kneser_ney import KneserNey
from transduce.data.speech.recordings import RecordingFile, RecordingParts, Strings, read_recordings
from transduce.interpret.attention import attention_of
from transduce.interpret.figures import exposure_figure
from transduce.models.protocols import writes_at_once
from transduce.pipeline.outline import make_task
from transduce.recipe.recipe import load_recipe
from transduce.runtime.event_log import read_log
from transduce.tasks import speech_recognition
from transduce.training.finished import read_report

RATE, TONES = 8000, {"a": 300, "b": 700, "c": 1300, "d": 2200}
SIZES = {
    "transformer": "heads = 2\nencoder_layers = 1\ndecoder_layers = 1\nfeed_forward = 32",
    "rnn": "hidden = 24",
    "ctc": "heads = 2\nencoder_layers = 1\ndecoder_layers = 1\nfeed_forward = 32\nplaces = 1",
}


def spoken(text: str, seed: int) -> np.ndarray:
    """A tone for each letter, with a little noise."""
    random_ = np.random.default_rng(seed)
    time = np.arange(RATE // 10) / RATE
    parts = [np.sin(2 * math.pi * TONES[letter] * time) * np.hanning(len(time)) for letter in text]
    return (0.3 * np.concatenate(parts) + 0.002 * random_.normal(size=len(parts) * len(time))).astype(np.float32)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spoken")
    random_ = random.Random(1)
    for name, count in (("train", 150), ("valid", 20), ("test", 25)):
        lines = []
        for number in range(count):
            text = "".join(random_.choices(list(TONES), k=random_.randrange(2, 5)))
            soundfile.write(folder / f"{name}{number}.wav", spoken(text, number), RATE, subtype="PCM_16")
            lines.append(f"{name}{number}.wav\t{text}\n")
        (folder / f"{name}.tsv").write_text("".join(lines))
    return folder


def recipe_at(corpus: Path, path: Path, model: str, updates: int = 300, more: str = "") -> Path:
    path.write_text(f"""
[task]
kind = "speech_recognition"
metrics = ["cer", "wer", "exact_match"]
[data]
root = "{corpus}"
rate = 8000
mels = 20
train = [{{ file = "train.tsv" }}]
validation = {{ file = "valid.tsv" }}
test = {{ held_out = {{ file = "test.tsv" }} }}
spec_augment = {{ time_width = 3, feature_width = 2 }}
speeds = [0.9, 1.1]
[tokenizer]
kind = "character"
[batch]
tokens = 600
[model]
kind = "{model}"
d_model = 24
{SIZES[model]}
dropout = 0.0
[training]
threads = 1
updates = {updates}
learning_rate = 1e-2
warmup = 20
precision = "fp32"
best = "cer"
validate_every = 100
decode_sentences = 20
checkpoint_every = 50
label_smoothing = 0.0
{more}
""")
    return path


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSDUCE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield


@pytest.fixture(scope="module", params=[pytest.param("transformer", marks=pytest.mark.slow), "rnn", "ctc"])
def trained(request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    done = command(folder, "train", recipe_at(corpus, folder / "recipe.toml", request.param), "--run", folder / "run")
    assert done.code == 0, done.shown
    assert "cer" in done.shown and "At speeds 1.0, 0.9, 1.1." in done.shown
    return folder / "run"


def test_it_learns_what_is_said(trained: Path, corpus: Path) -> None:
    report = json.loads((trained / "report.json").read_text())
    scores = report["tests"]["held_out"]["scores"]
    assert scores["cer"]["value"] < 25, scores
    assert scores["cer"]["interval"][0] <= scores["cer"]["value"] <= scores["cer"]["interval"][1]
    nearest = report["baseline"]["tests"]["held_out"]["scores"]["cer"]["value"]  # most texts are not in training
    assert (report["baseline"]["name"], 5 < nearest < 60) == ("nearest recording", True)
    model = transduce.load(trained)
    rows = [line.split("\t") for line in (corpus / "test.tsv").read_text().splitlines()]
    found = model.predict([str(corpus / name) for name, _ in rows])
    exact = 100 * sum(each.text == text for each, (_, text) in zip(found, rows, strict=True)) / len(rows)
    assert scores["exact_match"]["value"] == pytest.approx(exact)


def slow_teacher_forced_errors(pipeline: Any, name: str, text: str) -> int:
    """Of one utterance, token by token: each is predicted by a step after the true ones before."""
    task, model = pipeline.task, pipeline.model.eval()
    tokenizer = task.tokenizers["target"]
    frames = torch.from_numpy(task.columns["source"].encode([name])[0])[None]
    memory, state = model.start(Padded(frames, torch.tensor([frames.shape[1]])), 1)
    before, errors = task.start, 0
    for wanted in [*tokenizer.encode([text])[0], task.end]:
        said, state = model.step(torch.tensor([before]), memory, state)
        said[0, [tokenizer.pad, tokenizer.start, tokenizer.unknown]] = -math.inf
        errors += int(said[0].argmax()) != wanted
        before = wanted
    return errors


def test_exposure_bias_is_reported_where_there_are_next_tokens(trained: Path, corpus: Path) -> None:
    report = json.loads((trained / "report.json").read_text())
    test, [last] = report["tests"]["held_out"], read_log(trained / "log.jsonl")[-1:]
    pipeline = transduce.load(trained)
    if writes_at_once(pipeline.model):
        assert "exposure_bias" not in test["scores"] and "exposure_bias" not in last
        return
    rows = [line.split("\t") for line in (corpus / "test.tsv").read_text().splitlines()]
    with torch.inference_mode():
        errors = sum(slow_teacher_forced_errors(pipeline, str(corpus / name), text) for name, text in rows)
    rate = 100 * errors / sum(len(text) for _, text in rows)
    assert test["scores"]["teacher_forced"]["value"] == pytest.approx(rate)
    assert test["scores"]["exposure_bias"]["value"] == pytest.approx(test["scores"]["cer"]["value"] - rate)
    assert last["event"] == "validation" and last["teacher_forced"] + last["exposure_bias"] == pytest.approx(
        last["cer"]
    )
    assert {"teacher_forced", "exposure_bias"} < report["validation_signatures"].keys()
    drawn = exposure_figure(read_log(trained / "log.jsonl"), test["errors_by_position"])
    over_updates, over_positions = ([line.get_label() for line in axes.lines] for axes in drawn.axes)
    assert over_updates == over_positions == ["outputs", "teacher-forced"]
    places, rates = drawn.axes[1].lines[1].get_data()
    assert list(places) == [1, 2, 3] and list(rates) == test["errors_by_position"]["teacher_forced"]


def test_parts_split_recordings_by_the_hash_of_a_value(tmp_path: Path) -> None:
    lines = [f"{speaker}{number}.wav\t{number}\t{speaker}\n" for speaker in "abcdefghijkl" for number in range(3)]
    (tmp_path / "all.tsv").write_text("sound\tsaid\tspeaker\n" + "".join(lines))
    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        for line in lines:
            archive.addfile(tarfile.TarInfo(line.split("\t")[0]))
    table = RecordingFile(file="all.tsv", audio="sound", text="said")
    named = RecordingFile(file="all.tar", pattern=r"(?P<speaker>[a-z])(?P<text>\d)\.wav")
    for part in range(3):
        asked = {"parts": RecordingParts(by="speaker", of=3, take=(part,))}
        own = {each for each in "abcdefghijkl" if int(hashlib.md5(each.encode()).hexdigest(), 16) % 3 == part}
        for file in (table, named):
            names = [name for _, name, _ in read_recordings(file.model_copy(update=asked), tmp_path)]
            assert {name.rpartition(":")[2][0] for name in names} == own and len(names) == 3 * len(own) > 0
    with pytest.raises(ValidationError, match="expected parts from 0 to 2; got 3"):
        RecordingParts(by="speaker", of=3, take=(0, 3))
    with pytest.raises(ValidationError, match=r"parts\.by: expected a group of pattern \(text\); got speaker"):
        RecordingFile(file="all.tar", pattern=r"(?P<text>\d)", parts=RecordingParts(by="speaker", take=(0,)))


def test_computing_features_says_the_time_left(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech_recognition, "SILENCE", 0.0)
    monkeypatch.setattr(Frames, "encoded_at_once", 60)
    recipe = load_recipe(recipe_at(corpus, tmp_path / "recipe.toml", "rnn"))
    task = make_task(recipe, speech_recognition.SpeechRecognition.learn_columns(recipe.tokenizer, recipe.data))
    told: list[str] = []
    task.open(tmp_path / "cache", told.append)
    left = [line for line in told if "left" in line]
    assert [line.split(" of the")[0].rsplit(" ", 1)[1] for line in left] == ["40%", "80%"] * 3  # of 150, thrice
    assert "train.tsv, at speed 0.9: features of 40% of the recordings are computed, " in left[2]
    assert any("All 150 recordings kept." in line for line in told)
    told.clear()
    task.open(tmp_path / "cache", told.append)
    assert not any("left" in line for line in told), "they are in the cache"


def names_of(corpus: Path, count: int = 8) -> tuple[list[str], list[str]]:
    rows = [line.split("\t") for line in (corpus / "test.tsv").read_text().splitlines()[:count]]
    return [str(corpus / name) for name, _ in rows], [text for _, text in rows]


def test_the_same_alone_and_in_any_batch(trained: Path, corpus: Path) -> None:
    model, (names, texts) = transduce.load(trained), names_of(corpus)
    together = model.predict(names)
    for name, text, found, likely in zip(names, texts, together, model.score(names, texts), strict=True):
        alone = model.predict(name)
        assert alone.text == found.text
        assert alone.log_probability == pytest.approx(found.log_probability, abs=1e-4)
        assert model.score(name, text).log_probability == pytest.approx(likely.log_probability, abs=1e-4)


def test_a_killed_training_ends_in_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    recipe = recipe_at(corpus, tmp_path / "recipe.toml", "rnn", updates=20, more="")
    joint = recipe.read_text().replace("hidden = 24", "hidden = 24\nctc_weight = 0.3")
    recipe.write_text(joint.replace("checkpoint_every = 50", "checkpoint_every = 6") + SEARCHED)
    killed = resumed_to_the_same_bytes(recipe)
    assert b"train0.wav" not in (killed / NAME).read_bytes()
    model, (names, _) = transduce.load(killed), names_of(corpus)
    found = model.predict(names)
    for without in ("ctc_weight", "lm_weight"):
        other = model.predict(names, **{without: 0.0})
        assert [each.log_probability for each in found] != [each.log_probability for each in other]
    assert_counted_on(model, [line.split("\t")[1] for line in (corpus / "train.tsv").read_text().splitlines()])
    [last], test = read_log(killed / "log.jsonl")[-1:], read_report(killed)["tests"]["held_out"]  # type: ignore[index]
    assert "exposure_bias" in last, "attention alone writes in validation"
    assert not {"teacher_forced", "exposure_bias"} & test["scores"].keys(), "CTC helps to write in tests"
    assert "errors_by_position" not in test


def assert_counted_on(model: Any, texts: list[str]) -> None:
    tokens = model.task.tokenizers["target"]
    read = [[id_ for ids in tokens.encode(lines) for id_ in (*ids, tokens.end)] for lines in (texts, ["abab", "d"])]
    wanted = KneserNey.of(read[0], tokens.size, tokens.end)
    assert (model.task.ngrams.log_probabilities(read[1]) == wanted.log_probabilities(read[1])).all()


def test_lists_of_files_are_predicted_evaluated_and_compared(trained: Path, corpus: Path, tmp_path: Path) -> None:
    names, texts = names_of(corpus)
    (tmp_path / "list").write_text("".join(f"{name}\n" for name in names))
    (tmp_path / "said").write_text("".join(f"{text}\n" for text in texts))
    found = command(tmp_path, "predict", trained, "--source", tmp_path / "list")
    assert found.out.splitlines() == [each.text for each in transduce.load(trained).predict(names)]
    (tmp_path / "always").write_text("abcd\n" * len(names))
    told = command(
        *(tmp_path, "evaluate", trained, "--source", tmp_path / "list", "--reference", tmp_path / "said"),
        *("--outputs", tmp_path / "always"),
    )
    assert told.code == 0, told.shown
    assert "CER" in told.shown and "is better than" in told.shown
    wrong = command(tmp_path, "predict", trained, "--source", tmp_path / "said")
    assert wrong.code == 2 and "no such file" in wrong.shown


def test_attention_is_over_time(trained: Path, corpus: Path) -> None:
    model, (names, _) = transduce.load(trained), names_of(corpus)
    found = attention_of(model.model, model.task, model.predict(names[0]))
    weights = found.alignment()
    assert weights is not None
    assert weights.sum(1) == pytest.approx(np.ones(len(weights)), abs=1e-4)
    labels = found.labels("source", weights.shape[1])
    assert labels[:3] == ["0.00", "0.04", "0.08"] and len(labels) == weights.shape[1]


def test_it_is_explored(trained: Path, corpus: Path, tmp_path: Path) -> None:
    [name, *_], _ = names_of(corpus)
    found = command(tmp_path, "explore", trained, "--file", tmp_path / "page.html", "--text", name)
    assert found.code == 0, found.shown
    assert "0.04" in (tmp_path / "page.html").read_text()


def test_long_recordings_are_told(trained: Path, corpus: Path) -> None:
    model, ([name, *_], _) = transduce.load(trained), names_of(corpus)
    model.task.data = model.task.data.model_copy(update={"max_frames": 5})
    told: list[str] = []
    model.predict(name, tell=told.append)
    assert "the model was trained on 5 at most; read as a whole all the same" in told[0]
    with pytest.raises(InputError, match=r'cut the recording, or choose "truncate"'):
        model.predict(name, long="refuse")
    assert model.predict(name, long="truncate").source == name


def test_it_is_served_to_openais_client(trained: Path, corpus: Path) -> None:
    openai = pytest.importorskip("openai")
    (names, _), model = names_of(corpus), transduce.load(trained)
    with serving([f"ears={trained}"], api_key="secret") as server:
        client = openai.OpenAI(base_url=f"{server.address}/v1", api_key="secret", max_retries=0)
        with Path(names[0]).open("rb") as file:
            answer = client.audio.transcriptions.create(model="ears", file=file)
        assert answer.text == model.predict(names[0]).text
        text = client.audio.transcriptions.create(model="ears", file=Path(names[1]), response_format="text")
        assert text.strip() == model.predict(names[1]).text
        told = client.audio.transcriptions.create(model="ears", file=Path(names[1]), response_format="verbose_json")
        [part] = told.segments or []
        assert (told.text, part.text, part.start) == (text.strip(), text.strip(), 0)
        assert told.duration == part.end == pytest.approx(soundfile.info(names[1]).duration, abs=0.03)
        shown = client.audio.transcriptions.create(model="ears", file=Path(names[1]), response_format="srt")
        assert str(shown).startswith("1\n00:00:00,000 --> 00:00:0") and text.strip() in str(shown)
        assert [each.id for each in client.models.list()] == ["ears"]
        for said, asked in (
            (
                "response_format: expected one of json, text, srt, vtt, verbose_json; got xml",
                {"file": Path(names[0]), "response_format": "xml"},
            ),
            ("not a sound file", {"file": b"no sound"}),
            ("tears", {"file": Path(names[0]), "model": "tears"}),
        ):
            with pytest.raises(openai.BadRequestError) as caught:
                client.audio.transcriptions.create(**{"model": "ears", **asked})
            assert said in str(caught.value.body["message"])  # type: ignore[index]
            assert (caught.value.type, caught.value.code) == ("invalid_request_error", "400")
        with pytest.raises(openai.PermissionDeniedError):
            openai.OpenAI(base_url=f"{server.address}/v1", api_key="wrong", max_retries=0).audio.transcriptions.create(
                model="ears", file=Path(names[0])
            )


def test_a_server_reads_no_files_of_its_machine(trained: Path, corpus: Path) -> None:
    (names, _) = names_of(corpus)
    with serving([trained]) as server:
        for path, key in (("/v1/predict", "texts"), ("/v1/explore/predict", "text")):
            answer = server.post(path, **{key: [names[0]] if key == "texts" else names[0]})
            assert answer.status_code == 400 and "this server reads no files" in answer.text
        nothing = server.client.post("/v1/audio/transcriptions", data={"model": "x"}, files={})
        assert nothing.status_code == 400 and "file" in nothing.text
        long = io.BytesIO()
        soundfile.write(long, np.zeros(RATE * 121, np.float32), RATE, format="FLAC")
        refused = server.client.post("/v1/audio/transcriptions", files={"file": long.getvalue()})
        assert refused.status_code == 400 and "longer than the 120 seconds" in refused.text
        assert server.client.get("/languages").json() == []


# ---- files ---------------------------------------------------------------------------------------------------


def read(folder: Path, words: dict[str, str] | None = None, **file: object) -> list[tuple[int, str, str]]:
    return list(read_recordings(RecordingFile(**file), folder, words))  # type: ignore[arg-type]


def test_tables_are_read_by_number_and_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("one.wav\thello\ntwo.flac\tworld\n")
    assert read(tmp_path, file="a.tsv") == [(1, "one.wav", "hello"), (2, "two.flac", "world")]
    (tmp_path / "b.tsv").write_text("id\tsplit\ttext\tstart\tlong\n1\ttrain\tone\t0\t7\n2\ttest\ttwo\t7\t5\n")
    keys = {"features": "f.npy", "text": "text", "start": "start", "frames": "long"}
    assert read(tmp_path, file="b.tsv", **keys) == [(2, "f.npy:0:7", "one"), (3, "f.npy:7:5", "two")]
    assert read(tmp_path, file="b.tsv", where={"split": "test"}, **keys) == [(3, "f.npy:7:5", "two")]
    assert read(tmp_path, file="b.tsv", but={"split": ["test", "dev"]}, **keys) == [(2, "f.npy:0:7", "one")]
    assert read(tmp_path, {"two": "2"}, file="b.tsv", **keys) == [(3, "f.npy:7:5", "2")]
    with pytest.raises(InputError, match=r"expected columns txt; its header has id, split, text"):
        read(tmp_path, file="b.tsv", text="txt")
    (tmp_path / "c.tsv").write_text("one.wav\thello\nalone\n")
    with pytest.raises(InputError, match=r"expected 2 tab-separated columns; line 2 has fewer"):
        read(tmp_path, file="c.tsv")


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    soundfile.write(tmp_path / "x.wav", np.zeros(400, np.float32), RATE)
    with tarfile.open(tmp_path / "r.tar.gz", "w:gz") as archive:
        for digit in range(4):
            for speaker in ("ann", "bob"):
                for index in range(3):
                    archive.add(tmp_path / "x.wav", f"r/{digit}_{speaker}_{index}.wav")
    return tmp_path


SEARCHED = "[search]\nctc_weight = 0.3\nlm_weight = 0.4\n"
PATTERN = r"(?P<text>\d)_(?P<speaker>[a-z]+)_[01]\.wav"


def test_the_names_in_an_archive_say_what_is_said(digits: Path) -> None:
    found = read(digits, {"1": "一"}, file="r.tar.gz", pattern=PATTERN)
    assert [(name, text) for _, name, text in found] == [
        (f"r.tar.gz:r/1_{speaker}_{index}.wav", "一") for speaker in ("ann", "bob") for index in (0, 1)
    ]
    with pytest.raises(InputError, match="no file in the archive has a name like"):
        read(digits, file="r.tar.gz", pattern="(?P<text>x)")
    with pytest.raises(ValueError, match="group"):
        RecordingFile(file="r.tar.gz", pattern="x")


def test_strings_are_of_one_speaker_and_of_different_recordings(digits: Path) -> None:
    keys = {"file": "r.tar.gz", "pattern": PATTERN}
    found = read(digits, strings=Strings(count=50, shortest=2, longest=5), **keys)
    assert found == read(digits, strings=Strings(count=50, shortest=2, longest=5), **keys)
    assert found != read(digits, strings=Strings(count=50, shortest=2, longest=5, seed=2), **keys)
    assert {len(text) for _, _, text in found} == {2, 3, 4, 5} and len(found) == 50
    for _, name, text in found:
        parts = [part.partition(":r/")[2] for part in name.split(" + ")]
        assert "".join(part[0] for part in parts) == text
        assert len(set(parts)) == len(parts) and len({part.split("_")[1] for part in parts}) == 1
    with pytest.raises(InputError, match="strings of 9 recordings need as many"):
        read(digits, strings=Strings(count=1, longest=9), **keys)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("data.speeds=[1.0]", "expected speeds between 0.25 and 4"),
        ("model={kind='convolution'}", "this model reads tokens, and the task gives it frames"),
        ("model.pointer=true", "joint"),
        ("data.train=[{file='gone.tsv'}]", "gone.tsv: no such file"),
        ("data.rate=10", "data.rate"),
        ("search.ctc_weight=0.3", "set model.ctc_weight above 0"),
        ("search={lm_weight=0.3, coverage=0.2}", "without coverage or a shortlist"),
    ],
)
def test_what_does_not_go_together_is_refused(corpus: Path, tmp_path: Path, override: str, said: str) -> None:
    recipe = recipe_at(corpus, tmp_path / "recipe.toml", "rnn")
    more = [override, "tokenizer.joint=false"] if "pointer" in override else [override]
    found = command(tmp_path, "train", recipe, *more, "--run", tmp_path / "run")
    assert found.code == 2, found.shown
    assert said in " ".join(found.shown.split())
