"""A model of speech explored over HTTP: recordings come as data: URLs; what cannot be heard is said in a sentence."""

import base64
import io
import json
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile

from base64_arrays import from_base64
from random_models import listener, model_file
from served import Server, serving
from transduce.core.model_file import save_model_file
from transduce.explore.exploration import explore
from transduce.explore.page_file import page
from transduce.inference.prediction import SpokenSegment
from transduce.interpret.capabilities import described
from transduce.pipeline.pipeline import Pipeline, load
from transduce.serve.explorer_schemas import ExplorationAnswer
from transduce.serve.subtitles import subtitles

RATE = 8000


def tone(seconds: float = 0.6, rate: int = RATE, channels: int = 1) -> np.ndarray:
    """A rising tone with a little noise, (N,) or (N, channels)."""
    time = np.arange(round(seconds * rate)) / rate
    wave = 0.4 * np.sin(2 * math.pi * (300 + 700 * time) * time)
    wave += 0.01 * np.random.default_rng(1).normal(size=len(time))
    return wave if channels == 1 else np.stack([wave * (1 + each) / channels for each in range(channels)], 1)


def sound(wave: np.ndarray, rate: int = RATE, format: str = "WAV", subtype: str | None = None) -> bytes:
    content = io.BytesIO()
    soundfile.write(content, wave, rate, format=format, subtype=subtype)
    return content.getvalue()


def url(content: bytes) -> str:
    return f"data:audio/wav;base64,{base64.b64encode(content).decode()}"


@pytest.fixture(
    scope="module", params=["rnn", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("transformer", "ctc"))]
)
def ears(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ears") / "ears.safetensors"
    save_model_file(path, model_file(listener(request.param)))
    return path


@pytest.fixture(scope="module")
def hearing(ears: Path) -> Iterator[Server]:
    with serving([ears], page=page()) as running:
        yield running


@pytest.fixture(scope="module")
def offline(ears: Path) -> Pipeline:
    return load(ears)


@pytest.mark.parametrize(
    ("wave", "rate", "format"),
    [(tone(), RATE, "WAV"), (tone(0.5, 16_000, 2), 16_000, "FLAC"), (tone(10.5), RATE, "WAV")],
)
def test_a_recording_is_explored_as_in_python(
    hearing: Server, offline: Pipeline, tmp_path: Path, wave: np.ndarray, rate: int, format: str
) -> None:
    content = sound(wave, rate, format)
    (tmp_path / "said.wav").write_bytes(content)
    answer = hearing.post("/v1/explore/predict", text=url(content))
    assert answer.status_code == 200, answer.text
    found = answer.json()
    ExplorationAnswer.model_validate(found)
    name = str(tmp_path / "said.wav")
    expected = explore(offline, name)
    prediction = offline.predict(name)
    assert found["text"] == found["source"]["text"] == ""  # bytes have no name, and are not sent back twice
    assert found["target"] == expected["target"] and found["target"]["text"] == prediction.text
    assert found["log_probability"] == pytest.approx(prediction.log_probability, abs=1e-4)
    told = found["recording"]
    [features_SF] = offline.task.columns["source"].encode([name])
    merged = told["frames_a_column"]
    rows = [features_SF[first : first + merged].mean(0) for first in range(0, len(features_SF), merged)]
    shown = from_base64(told["features"]["weights"], told["features"]["shape"])
    assert shown == pytest.approx(np.stack(rows), abs=1e-5) and len(shown) <= 1000
    assert (told["frames"], told["shift"], told["rate"]) == (len(features_SF), 0.01, RATE)
    assert told["seconds"] == pytest.approx(len(wave) / rate, abs=1e-3)
    assert -(-told["frames"] // told["frames_a_position"]) == len(found["source"]["tokens"])
    step = told["frames_a_position"] * told["shift"]
    times = [float(token["text"]) for token in found["source"]["tokens"]]
    assert times == pytest.approx([place * step for place in range(len(times))])
    for layer, other in zip(found["attention"], expected["attention"], strict=True):
        weights = from_base64(layer["weights"], layer["shape"])
        assert weights == pytest.approx(from_base64(other["weights"], other["shape"]), abs=1e-5)


def test_the_sound_that_is_sent_back_is_what_the_model_heard(hearing: Server, offline: Pipeline) -> None:
    wave = tone(0.5)
    told = hearing.post("/v1/explore/predict", text=url(sound(wave))).json()["recording"]
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(told["sound"])))
    assert rate == RATE and samples == pytest.approx(wave, abs=1e-4)


def test_the_other_views_take_sound_too(hearing: Server, offline: Pipeline, tmp_path: Path) -> None:
    content = sound(tone())
    (tmp_path / "said.wav").write_bytes(content)
    found = hearing.post("/v1/explore/predict", text=url(content)).json()
    asked = {"text": url(content), "target": found["nbest"][0]["tokens"]}
    for name in ("heads", "rollout"):
        answer = hearing.post(f"/v1/explore/{name}", **asked)
        assert answer.status_code == 200, answer.text
    layer = found["attention"][0]
    if layer["kind"] != "decoder":
        steps = hearing.post("/v1/explore/steps", **asked, name=layer["name"], query=0)
        assert steps.status_code == 200, steps.text
        assert steps.json()["columns"] == [token["text"] for token in found["source"]["tokens"]]


def test_what_it_hears_is_described(hearing: Server, offline: Pipeline, ears: Path) -> None:
    [model] = hearing.client.get("/v1/explore/models").json()["models"]
    assert model["accepts_audio"] == {"rate": RATE, "seconds": 30.0, "files": False, "bytes": 25_000_000}
    told = described("ears", offline.model, offline.task, offline.recipe, False, offline.provenance)
    assert told["accepts_audio"] == {"rate": RATE, "seconds": 30.0, "files": True}


def test_only_the_page_of_a_model_of_speech_may_use_the_microphone(hearing: Server, served_file: Path) -> None:
    assert "microphone=(self)" in hearing.client.get("/explore").headers["permissions-policy"]
    assert "microphone=()" in hearing.client.get("/docs").headers["permissions-policy"]
    with serving([served_file], page=page()) as reading:
        assert "microphone=()" in reading.client.get("/explore").headers["permissions-policy"]


def header(rate: int, samples: int, channels: int = 1) -> bytes:
    """A WAV file that says that it is so long, and holds a second."""
    data = np.zeros(RATE, "<i2").tobytes()
    form = struct.pack("<HHIIHH", 1, channels, rate, (rate * channels * 2) & 0xFFFFFFFF, channels * 2, 16)
    size = (samples * channels * 2) & 0xFFFFFFFF
    return (
        b"RIFF"
        + struct.pack("<I", 36 + len(data))
        + b"WAVEfmt "
        + struct.pack("<I", 16)
        + form
        + b"data"
        + (struct.pack("<I", size) + data)
    )


def silent(seconds: int, rate: int = RATE, channels: int = 1) -> bytes:
    """FLAC makes next to nothing of it."""
    return sound(np.zeros((seconds * rate, channels), np.int16), rate, "FLAC")


HOSTILE: list[tuple[str, str, str]] = [
    ("nothing", url(b""), "not a sound file"),
    ("no sound", url(b"<html>" * 500), "not a sound file"),
    ("bare samples", url(b"\xff\xfe\x10\x04" + (3000 * tone(1)).astype("<i2").tobytes()), "not a sound file"),
    ("no base64", "data:audio/wav;base64,%%%", "not base64"),
    ("no data", "data:audio/wav", "another kind of data: URL"),
    ("a cut file", url(sound(tone(1), format="FLAC")[:60]), ""),
    ("no samples", url(sound(np.zeros(0))), "shorter than a frame, 25 ms"),
    ("less than a frame", url(sound(tone(0.02))), "shorter than a frame, 25 ms"),
    ("not numbers", url(sound(np.full(RATE, np.nan), subtype="FLOAT")), "NaN or infinity"),
    ("too large numbers", url(sound(np.full(RATE, 1e30) * tone(1), subtype="FLOAT")), "NaN or infinity"),
    ("a text", "two dogs run", "expected sound as data:"),
    ("a file", "/etc/passwd", "expected sound as data:"),
    ("an array", "data:x.npy", "another kind of data: URL"),
    ("no text", "  ", "expected a recording; there is none"),
    ("too long", url(silent(121)), "longer than the 120 seconds"),
    ("too long for the model", url(silent(31)), "3098 frames; the model reads at most 3000"),
    ("too long together", " + ".join([url(silent(70))] * 2), "longer than the 120 seconds that this server hears, tog"),
    ("too fast", url(header(400_001, RATE)), "400,001 samples a second; expected at most 384,000"),
]


@pytest.mark.parametrize(("text", "said"), [each[1:] for each in HOSTILE], ids=[each[0] for each in HOSTILE])
def test_what_cannot_be_heard_is_said(hearing: Server, text: str, said: str) -> None:
    for path in ("predict", "heads"):
        answer = hearing.post(f"/v1/explore/{path}", text=text)
        assert (answer.status_code, set(answer.json())) == (400, {"error"}), answer.text
        assert said in answer.json()["error"] and len(answer.json()["error"]) < 400
    assert hearing.post("/v1/explore/predict", text=url(sound(tone()))).status_code == 200


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "7.wav: not a sound file: it is empty."),
        (b"two dogs run\n", "7.wav: not a sound file, but text. Expected a recording, such as a .wav or .flac."),
        (sound(tone(1))[:100], "7.wav: shorter than one frame (25 ms): the file is empty, or was cut off."),
        (sound(np.zeros(0)), "7.wav: shorter than one frame (25 ms): the file is empty, or was cut off."),
        (silent(121), "7.wav: longer than the 120 seconds that this server hears."),
    ],
)
def test_an_uploaded_file_that_cannot_be_heard_is_named(hearing: Server, content: bytes, said: str) -> None:
    answer = hearing.client.post("/v1/audio/transcriptions", files={"file": ("7.wav", content)})
    told = {"message": said, "type": "invalid_request_error", "param": None, "code": "400"}
    assert (answer.status_code, answer.json()) == (400, {"error": told})
    other = hearing.post("/v1/predict", texts=[url(content)])
    assert (other.status_code, other.json()) == (400, {"error": said.replace("7.wav", "the recording")})


@pytest.fixture(scope="module")
def aligning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Pipeline]]:
    """A server of a model that aligns, and the model."""
    path = tmp_path_factory.mktemp("aligning") / "ctc.safetensors"
    save_model_file(path, model_file(listener("ctc")))
    with serving([path]) as running:
        yield running, load(path)


def transcribed(server: Server, content: bytes, **form: Any) -> httpx.Response:
    return server.client.post("/v1/audio/transcriptions", files={"file": ("7.wav", content)}, data=form)


def test_words_are_told_with_their_times(aligning: tuple[Server, Pipeline], tmp_path: Path) -> None:
    server, model = aligning
    content = sound(tone(2.0))
    (tmp_path / "said.wav").write_bytes(content)
    expected = model.predict(str(tmp_path / "said.wav"), word_times=True)
    name = "timestamp_granularities[]"
    both = transcribed(server, content, response_format="verbose_json", **{name: ["word", "segment"]}).json()
    assert both["text"] == expected.text and len(both["segments"]) == 1
    assert both["words"] == [each._asdict() for each in expected.spoken_words] and both["words"]
    only = transcribed(server, content, response_format="verbose_json", **{name: "word"}).json()
    assert only["words"] == both["words"] and "segments" not in only
    plain = transcribed(server, content, response_format="verbose_json").json()
    assert plain["segments"] == both["segments"] and "words" not in plain
    shown = transcribed(server, content, response_format="srt").text
    assert shown == subtitles(expected.segments, "srt", expected.spoken_words) != subtitles(expected.segments, "srt")


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"timestamp_granularities[]": "syllable"}, "expected word or segment; got syllable"),
        ({"timestamp_granularities[]": "word"}, "is for response_format = verbose_json; got json"),
    ],
)
def test_times_that_there_are_not_are_refused(
    aligning: tuple[Server, Pipeline], form: dict[str, str], said: str
) -> None:
    answer = transcribed(aligning[0], sound(tone()), **form)
    assert answer.status_code == 400 and said in answer.json()["error"]["message"]


def test_only_a_model_that_aligns_tells_times_of_words(hearing: Server, offline: Pipeline) -> None:
    form = {"response_format": "verbose_json", "timestamp_granularities[]": "word"}
    answer = transcribed(hearing, sound(tone()), **form)
    assert answer.status_code == (200 if offline.times_words else 400)
    told = "does not align words with sound; expected segment alone"
    assert ("words" in answer.json()) == offline.times_words != (told in answer.text)


def test_an_output_that_was_cut_off_is_told(aligning: tuple[Server, Pipeline], tmp_path: Path) -> None:
    server, model = aligning
    content = sound(tone(3.0))
    (tmp_path / "said.wav").write_bytes(content)
    expected = model.predict(str(tmp_path / "said.wav"))
    found = transcribed(server, content, response_format="verbose_json").json()
    assert not expected.ended and found["warnings"] == expected.warnings
    assert found["warnings"][0].startswith("0.0 to 3.0 s: the output was cut off at its limit")


@pytest.mark.parametrize(
    "content", [header(RATE, 2**31 - 40), header(44_101, RATE), silent(3, 44_100, 8), sound(tone(1), subtype="GSM610")]
)
def test_odd_files_are_heard_without_much_memory(hearing: Server, content: bytes) -> None:
    assert hearing.post("/v1/explore/predict", text=url(content)).status_code in (200, 400)


def test_a_recording_may_be_as_large_as_the_server_says(ears: Path, served_file: Path) -> None:
    content = sound(tone(2))
    with serving([ears, served_file], audio_bytes=len(content)) as running:
        assert running.post("/v1/explore/predict", text=url(content)).status_code == 200
        answer = running.post("/v1/explore/predict", text=url(content + b"." * 1000))
        assert (answer.status_code, "at most" in answer.json()["error"]) == (413, True)
        text = running.post("/v1/explore/predict", text=url(content), model=served_file.stem)
        assert text.status_code == 413 and "characters" in text.json()["error"]  # for that model it is text
    with serving([ears], audio_bytes=100_000) as running:
        assert _refused(running, 4_000_000)
    with serving([served_file]) as running:
        assert _refused(running, 1_000_000)


def _refused(running: Server, size: int) -> bool:
    """Whether a body of so many bytes is refused before it is sent."""
    with httpx.Client(base_url=running.address, timeout=60) as client:
        body = json.dumps({"text": url(b" " * size)})
        try:
            answer = client.post("/v1/explore/predict", content=body, headers={"content-type": "application/json"})
        except httpx.TransportError:  # the server did not read on
            return True
        return answer.status_code == 413


def test_an_explorer_of_this_machine_reads_its_files(ears: Path, tmp_path: Path) -> None:
    from transduce.serve.models import Models, ModelUse

    (tmp_path / "said.wav").write_bytes(sound(tone()))
    column: Any = Models.open([ears], ModelUse(files=True)).default.pipeline.task.columns["source"]
    assert len(column.encode([str(tmp_path / "said.wav")])[0]) == 58
    long = url(silent(121))
    with pytest.raises(Exception, match="longer than the 120 seconds"):
        column.encode([long])


def test_subtitles_are_those_of_the_formats() -> None:
    said = [SpokenSegment(0.0, 22.5, "three"), SpokenSegment(22.5, 23, ""), SpokenSegment(3661.0015, 3662, "four")]
    assert subtitles(said, "srt") == (
        "1\n00:00:00,000 --> 00:00:22,500\nthree\n\n2\n01:01:01,002 --> 01:01:02,000\nfour\n"
    )
    assert subtitles(said, "vtt") == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:22.500\nthree\n\n01:01:01.002 --> 01:01:02.000\nfour\n"
    )
