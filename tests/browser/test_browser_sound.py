"""A model of speech in the browser: recorded with its fake microphone, chosen, dropped, and listened to."""

import base64
import io
import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect, sync_playwright
from visiting import VIEWS, Visit, visiting

from base64_arrays import from_base64
from headless import NAMES, chromium
from random_models import listener, model_file
from served import Server, serving
from transduce.core.model_file import save_model_file
from transduce.explore.offline import offline
from transduce.explore.page_file import page
from transduce.pipeline.pipeline import load
from transduce.serve.served_model import ModelUse

RATE = 8000
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--use-fake-device-for-media-stream"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium whose microphone beeps; a page that asks for it is allowed to hear it by its context's permissions."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(playwright, NAMES[1:]), args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def ears(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ears") / "ears.safetensors"
    save_model_file(path, model_file(listener(task={"kind": "speech_recognition", "target": "zh"})))
    return path


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of 1.2 seconds."""
    path = tmp_path_factory.mktemp("said") / "said.wav"
    time_ = np.arange(round(1.2 * RATE)) / RATE
    soundfile.write(path, 0.4 * np.sin(2 * math.pi * (300 + 700 * time_) * time_), RATE, subtype="PCM_16")
    return path


@pytest.fixture(scope="module")
def hearing(ears: Path) -> Iterator[Server]:
    with serving([ears], page=page()) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, hearing: Server) -> Iterator[Callable[..., Visit]]:
    with ExitStack() as tabs:

        def opened(options: dict[str, Any] | None = None, **state: object) -> Visit:
            options = {"permissions": ["microphone"], **(options or {})}
            return tabs.enter_context(visiting(browser, f"{hearing.address}/explore", **options)).open(**state)

        yield opened


def heard(tab: Visit, file: Path) -> Visit:
    """The page once it shows the file."""
    tab.find("#sound-file").set_input_files(file)
    tab.find('[data-name="heard"]').wait_for()
    return tab.drawn()


def until(tab: Visit, told: str) -> None:
    """Waits for what the page says to be true; its policy forbids Playwright's own way."""
    end = time.monotonic() + 120
    while not tab.page.evaluate(told):
        assert time.monotonic() < end, told


def exploration(hearing: Server, file: Path) -> dict[str, Any]:
    url = f"data:audio/wav;base64,{base64.b64encode(file.read_bytes()).decode()}"
    found: dict[str, Any] = hearing.post("/v1/explore/predict", text=url).json()
    return found


def test_a_file_is_heard_and_drawn_with_the_models_numbers(
    visit: Callable[..., Visit], hearing: Server, ears: Path, said: Path
) -> None:
    tab = visit()
    assert "Record something" in tab.text("#view")
    heard(tab, said)
    wanted, found = load(ears).predict(str(said)), exploration(hearing, said)
    expect(tab.find("#output")).to_have_text(wanted.text)
    names = [token["text"] for token in found["target"]["tokens"]][:-1]
    assert tab.find(".chip").all_text_contents() == ["BEGIN", *names, "END"]
    assert tab.find(".heard-name").all_text_contents() == [*names, "END"]
    tab.find('[data-figure="heard"]').click()
    [layer] = [each for each in found["attention"] if each["kind"] == "cross"]
    weights_TS = from_base64(layer["weights"], layer["shape"]).mean(0)
    cells = tab.find('[data-name="heard"] tbody tr').first.locator("td").all_text_contents()
    assert [float(text) for text in cells[1:]] == pytest.approx(weights_TS[0], abs=6e-4)
    heads = tab.find('[data-name="heard"] thead th').all_text_contents()
    step = found["recording"]["frames_a_position"] * found["recording"]["shift"]
    assert heads[2:] == [f"{place * step:.2f} s" for place in range(layer["shape"][2])]


def test_the_spectrogram_has_the_features_and_the_same_time_axis(
    visit: Callable[..., Visit], hearing: Server, said: Path
) -> None:
    tab, told = heard(visit(), said), exploration(hearing, said)["recording"]
    columns, filters = told["features"]["shape"]
    size = tab.page.evaluate(
        """async () => {
          const image = new Image();
          image.src = document.querySelector(".heard image").getAttribute("href");
          await image.decode();
          return [image.naturalWidth, image.naturalHeight];
        }"""
    )
    assert size == [columns, filters]
    spectrogram, row = (tab.find(".heard image").nth(place) for place in (0, 1))
    second = float(row.get_attribute("width") or 0) / min(1.2, told["frames"] * told["shift"] + 0.04)
    assert float(row.get_attribute("x") or 0) == float(spectrogram.get_attribute("x") or 0)
    assert float(spectrogram.get_attribute("width") or 0) / (columns * told["shift"]) == pytest.approx(second, rel=0.05)


def test_what_the_microphone_hears_is_recorded_and_transcribed(visit: Callable[..., Visit]) -> None:
    tab = visit()
    with tab.page.expect_request("**/v1/explore/predict") as asked:
        tab.find("#record").click()
        expect(tab.find("#record")).to_have_attribute("aria-pressed", "true")
        expect(tab.find("#recorder-told")).to_contain_text("Recording: 1.")
        tab.find("#record").click()
    url = json.loads(asked.value.post_data or "")["text"]
    content = base64.b64decode(url.partition(",")[2])
    assert url.startswith("data:audio/wav;base64,") and content[:4] == b"RIFF"
    tab.find('[data-name="heard"]').wait_for()
    tab.drawn()
    assert "recording 1" in tab.text('.example[aria-pressed="true"]')
    assert "sound:" in tab.state()["text"] and len(tab.page.url) < 300  # a link holds no sound
    samples, rate = soundfile.read(io.BytesIO(content))
    assert rate == RATE and samples.ndim == 1 and 0.5 < len(samples) / RATE < 30
    assert np.abs(samples).max() > 0.05  # the beep


def test_a_refused_microphone_is_said_plainly(visit: Callable[..., Visit], said: Path) -> None:
    tab = visit({"permissions": []})
    tab.find("#record").click()
    expect(tab.find("#recorder-told")).to_contain_text("did not allow the microphone")
    expect(tab.find("#record")).to_have_attribute("aria-pressed", "false")
    heard(tab, said)


def test_without_a_secure_page_or_a_recorder_it_says_so(visit: Callable[..., Visit]) -> None:
    tab = visit()
    tab.page.add_init_script("Object.defineProperty(window, 'isSecureContext', {value: false})")
    tab.open()
    assert tab.find("#record").is_disabled()
    assert "Browsers record only on secure pages" in tab.text("#no-recording")


def test_a_dropped_file_is_heard_and_a_bad_one_is_said(visit: Callable[..., Visit], said: Path, tmp_path: Path) -> None:
    drop = """([name, content]) => {
      const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([bytes], name));
      document.querySelector("#drop").dispatchEvent(
        new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    }"""
    tab = visit()
    tab.page.evaluate(drop, ["said.wav", base64.b64encode(said.read_bytes()).decode()])
    tab.find('[data-name="heard"]').wait_for()
    tab.page.evaluate(drop, ["empty.wav", ""])
    expect(tab.find("#recorder-told")).to_have_text("empty.wav: the file is empty.")
    with tab.refusals():
        tab.page.evaluate(drop, ["page.wav", base64.b64encode(b"<html>" * 99).decode()])
        expect(tab.find("#view [role=alert]")).to_contain_text("not a sound file, but text")
    expect(tab.find("#output")).to_have_count(0)


def test_the_sound_is_played_and_its_position_shown(visit: Callable[..., Visit], said: Path) -> None:
    for motion in ("reduce", "no-preference"):
        tab = heard(visit({"reduced_motion": motion}), said)
        tab.find("#play-sound").click()
        until(tab, "Number(document.querySelector('.heard').dataset.at) > 0.2")
        assert tab.find(".playhead").get_attribute("visibility") == "visible"
        expect(tab.find("#play-sound")).to_have_text("Play sound")  # at its end
        assert tab.find(".playhead").get_attribute("visibility") == "hidden"
        assert float(tab.find(".heard").get_attribute("data-at") or 0) <= 1.2
        tab.find("#play-sound").click()
        tab.find("#play-sound").click()
        expect(tab.find("#play-sound")).to_have_attribute("aria-pressed", "false")


def test_characters_appear_one_after_another(visit: Callable[..., Visit], hearing: Server, said: Path) -> None:
    found = exploration(hearing, said)
    count = len(found["target"]["tokens"])
    tab = heard(visit({"reduced_motion": "no-preference"}), said)
    assert tab.find(".heard-row.unwritten").count() == 0
    tab.find("#write-out").click()
    expect(tab.find(".heard-row.unwritten")).to_have_count(count)
    expect(tab.find(".heard-row.unwritten")).to_have_count(0)  # by itself
    still = heard(visit(), said)
    for left in range(count, -1, -1):  # step by step for those who want nothing to move
        still.find("#write-out").click()
        assert still.find(".heard-row.unwritten").count() == left
    likeliest = [f"{each['token']}" for each in found["alternatives"][0][:5]]
    still.find("#char-0").click()
    assert [text.replace("END", "</s>") for text in still.find("#heard-share .piece").all_text_contents()] == likeliest
    still.page.keyboard.press("ArrowRight")
    expect(still.find("#char-1")).to_be_focused()
    expect(still.find("#char-1")).to_have_attribute("aria-pressed", "true")


def test_every_view_is_drawn_and_nothing_is_wrong_with_it(visit: Callable[..., Visit], said: Path) -> None:
    for theme, language in (("light", "en"), ("dark", "zh")):
        tab = heard(visit(theme=theme, lang=language), said)
        for view in VIEWS:
            tab.go(view=view)
            assert tab.find("#view .error").count() == 0, view
            found = Axe().run(tab.page).response["violations"]
            assert not found, [(each["id"], each["nodes"][0]["html"][:200]) for each in found]
        assert tab.page.evaluate("[...(Transduce.missing || [])]") == []
        tab.go(view="attention")
        tab.find("#measure").click()
        tab.find('[data-name="heads"]').wait_for()


@pytest.mark.parametrize("width", [390, 320])
def test_it_fits_a_narrow_page(visit: Callable[..., Visit], said: Path, width: int) -> None:
    tab = heard(visit({"viewport": {"width": width, "height": 800}}), said)
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_recording_that_is_gone_is_said(visit: Callable[..., Visit]) -> None:
    tab = visit(text="sound:1 said.wav")
    assert "a page forgets its recordings" in tab.text("#view [role=alert]")
    assert not [url for url in tab.requests if "predict" in url]


def test_a_file_of_this_machine_is_named_where_only_its_user_asks(browser: Browser, ears: Path, said: Path) -> None:
    with (
        serving([ears], page=page(), use=ModelUse(files=True)) as running,
        visiting(browser, f"{running.address}/explore") as tab,
    ):
        tab.open()
        tab.find("#sentence").fill(str(said))
        tab.find("#send").click()
        tab.find('[data-name="heard"]').wait_for()
        assert tab.drawn().state()["text"] == str(said)


def test_a_saved_page_has_the_recording_and_plays_it(browser: Browser, ears: Path, said: Path, tmp_path: Path) -> None:
    file = tmp_path / "saved.html"
    file.write_text(page(offline({"ears": load(ears)}, [str(said)])), encoding="utf-8")
    with visiting(browser, file.as_uri()) as tab:
        tab.open()
        expect(tab.find("#output")).to_have_text(load(ears).predict(str(said)).text)
        assert tab.find("#record").count() == 0 and tab.find(".example").all_text_contents() == ["said.wav"]
        tab.find("#play-sound").click()
        until(tab, "Number(document.querySelector('.heard').dataset.at) > 0.2")
        for view in VIEWS:
            tab.go(view=view)
            assert tab.text("#view").strip()
