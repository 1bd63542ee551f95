"""What tests share: a cache of their own, real data where it lies beside the repository, a tiny corpus and runs."""

import gc
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from forked import BRIEFLY, Fate, transduce
from shared_folders import made_once, trained_once
from tiny_recipe import DIGITS, TINY_RECIPE

os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads that share tiny sums wait for each other
os.environ.setdefault("TRANSDUCE_FIGURES", "off")  # which take longer than a tiny training; on where they are looked at

settings.register_profile("transduce", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("transduce")  # a busy machine is no bug


def pytest_configure(config: pytest.Config) -> None:
    """`-m "not slow"` leaves out what takes long and what a quick test notices too, on a smaller scale."""
    config.addinivalue_line("markers", "slow: left out by `make test`; `make test-all` and .ci/run run it")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores, as tests also wait for servers, browsers and processes."""
    return min(8, (os.cpu_count() or 1) + 1)


def pytest_collection_finish() -> None:
    """Exempt the collected tests from garbage collection, as thousands of them live until the end."""
    gc.collect()
    gc.freeze()


DATA = Path(os.environ.get("TRANSDUCE_DATA", Path(__file__).resolve().parents[1] / ".." / "shared" / "data"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores and tokenizers are cached in a folder of this session, never in the user's."""
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def own_threads() -> Iterator[None]:
    """Restore the number of torch's threads: later tests would be slowed down by threads that wait for each other."""
    before = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else None
    yield
    if before:
        sys.modules["torch"].set_num_threads(before)  # MKL's number may be another than the one that torch tells


@pytest.fixture
def briefly_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planning measures this machine's speed for a moment, as it does in forked commands: plans are not its subject."""
    monkeypatch.setattr("transduce.planning.speed.SECONDS", BRIEFLY)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real corpora; the test is skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"no real data: {DATA} is not there (set TRANSDUCE_DATA)")
    return DATA


@pytest.fixture(scope="session")
def tiny_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train, valid and test .digits/.words: a number's digits spelt out from the last to the first."""
    return made_once(tmp_path_factory, "corpus", write_tiny_corpus)


def write_tiny_corpus(folder: Path) -> None:
    """300 + 30 + 20 pairs; some sources come twice, none of them across the files."""
    drawn = random.Random(5)
    numbers = [str(drawn.randrange(10 ** drawn.randint(1, 6))) for _ in range(5000)]
    distinct = list(dict.fromkeys(numbers))
    splits = {"train": distinct[:290] + distinct[:10], "valid": distinct[300:330], "test": distinct[330:350]}
    for name, chosen in splits.items():
        sources = [" ".join(number) for number in chosen]
        targets = [" ".join(DIGITS[int(digit)] for digit in reversed(number)) for number in chosen]
        (folder / f"{name}.digits").write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
        (folder / f"{name}.words").write_text("".join(f"{line}\n" for line in targets), encoding="utf-8")


@pytest.fixture
def tiny_recipe(tmp_path: Path, tiny_corpus: Path) -> Path:
    """A recipe that trains on the tiny corpus for a second: dropout, Muon and AdamW, average, accumulation."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY_RECIPE.replace("[data]", f'[data]\nroot = "{tiny_corpus}"'), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory, tiny_corpus: Path) -> Path:
    """The directory of one finished training of the tiny recipe; nobody may write into it."""
    text = TINY_RECIPE.replace("[data]", f'[data]\nroot = "{tiny_corpus}"')
    return trained_once(tmp_path_factory, "trained", text)


@pytest.fixture(scope="session")
def interrupted_run(tmp_path_factory: pytest.TempPathFactory, tiny_corpus: Path) -> Path:
    """The directory of a training of the tiny recipe that was stopped after update 10; for copies."""

    def train(folder: Path) -> None:
        recipe = folder / "tiny.toml"
        recipe.write_text(TINY_RECIPE.replace("[data]", f'[data]\nroot = "{tiny_corpus}"'), encoding="utf-8")
        fate = Fate(signal=signal.SIGTERM, at=10)
        ended = transduce(folder, "train", recipe, "--run", folder / "run", fate=fate)
        assert ended.code == 130, ended.shown

    return made_once(tmp_path_factory, "interrupted", train) / "run"


@pytest.fixture(scope="session")
def sentence_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished training on pairs of single sentences, in runs/multi30k-en-de of its folder; see sentence_model.py."""
    from sentence_model import train_sentence_model

    return made_once(tmp_path_factory, "sentences", train_sentence_model) / "runs" / "multi30k-en-de"


@pytest.fixture(scope="session")
def kernels() -> None:
    """Skips where no kernels were compiled, before a module's servers start."""
    from transduce.kernels import native

    if native.kernels() is None:
        pytest.skip("no kernels: there was no C++ compiler when the package was installed, or TRANSDUCE_NATIVE=off")


@pytest.fixture(params=["kernels", "torch"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs twice: with the kernels in C++, and as if there were none."""
    from transduce.kernels import native

    if request.param == "torch":
        monkeypatch.setattr(native, "_wanted", False)
    else:
        request.getfixturevalue("kernels")
