"""Every view of 200 x 200 tokens is drawn, with images for shapes, and how long that takes is told."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from visiting import VIEWS, Visit, visiting

from random_models import SYLLABLES, model_file, translator
from served import serving
from transduce.core.model_file import save_model_file
from transduce.explore.page_file import page

WORDS = 199
TEXT = " ".join(SYLLABLES[i % len(SYLLABLES)] for i in range(WORDS))


@pytest.fixture(scope="module")
def long_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random translator of 4 + 4 layers with 4 heads, whose every output is of 200 tokens."""
    model = {"d_model": 16, "heads": 4, "encoder_layers": 4, "decoder_layers": 4, "feed_forward": 24, "tied": "none"}
    search = {"max_length_factor": 0, "max_length_offset": WORDS + 1, "min_length": WORDS, "beam": 2}
    path = tmp_path_factory.mktemp("long") / "long.safetensors"
    save_model_file(path, model_file(translator(model=model, search=search)))
    return path


@pytest.fixture
def tab(browser: Browser, long_file: Path) -> Iterator[Visit]:
    with (
        serving([long_file], page=page(), attention_numbers=4_000_000) as server,
        visiting(browser, f"{server.address}/explore") as opened,
    ):
        yield opened.open(text=TEXT, unit="tokens")


class Stopwatch:
    """What drawing costs by the clock, and in processor time, which a busy machine leaves alone."""

    def __init__(self, tab: Visit) -> None:
        self._tab = tab
        self._tools = tab.context.new_cdp_session(tab.page)
        self._tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._before = self._busy()

    def _busy(self) -> float:
        metrics = self._tools.send("Performance.getMetrics")["metrics"]
        return 1000 * next(each["value"] for each in metrics if each["name"] == "TaskDuration")

    def told(self, view: str) -> str:
        """Since the last time."""
        drawn = "(name) => performance.getEntriesByName(name).at(-1).duration"
        wall, busy, before = self._tab.page.evaluate(drawn, f"draw {view}"), self._busy(), self._before
        self._before = busy
        return f"{wall:.0f} ms drawing, {busy - before:.0f} ms of processor"


def test_two_hundred_tokens(tab: Visit, capsys: pytest.CaptureFixture[str]) -> None:
    watch, told = Stopwatch(tab), []
    for view, more in [
        ("attention", {"kind": "cross"}),
        ("attention", {"kind": "encoder", "layer": "encoder.blocks.1.self_attention", "head": 2}),
        ("attention", {"unit": "words"}),
        ("attention", {"row": 7}),
        ("attention", {"show": "lines"}),
        *((view, {}) for view in VIEWS[1:] if view not in ("training", "compare")),
    ]:
        tab.go(view=view, **more)
        told.append(f"  {view} {' '.join(map(str, more.values()))}: {watch.told(view)}")
        assert tab.find("#view .error").count() == 0
    with capsys.disabled():
        print("\n200 x 200 tokens, 48 heads\n" + "\n".join(told))


def test_large_matrices_are_images(tab: Visit) -> None:
    picture = tab.find('[data-name="attention"] svg.picture')
    assert picture.locator("image").count() == 1
    assert picture.locator("rect[fill]").count() == 0
    assert 10 < picture.locator(".names.rows text").count() < 100  # as many names as can be read
    tab.go(text="ba de fi", kind="encoder")
    assert picture.locator("image").count() == 0 and picture.locator("rect[fill]").count() == 16
