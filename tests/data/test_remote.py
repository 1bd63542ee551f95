"""Files by URL: read through a copy, fetched again when they change, written in one go."""

import gzip
import http.server
import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from transduce.core.cache import cache_folder
from transduce.core.errors import InputError
from transduce.data.corpus import read_pairs
from transduce.data.files import fingerprint, read_lines, writing
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.remote import local_copy, located, matching_urls, url_of
from transduce.data.shards import shards_of

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed (extra remote)")


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    """As in a new process."""
    local_copy.cache_clear()
    yield
    fsspec.filesystem("memory").store.clear()
    local_copy.cache_clear()


def put(url: str, content: bytes) -> None:
    with fsspec.open(url, "wb") as file:
        file.write(content)


def test_what_a_url_is() -> None:
    assert url_of("s3://bucket/a.en.gz") == "s3://bucket/a.en.gz"
    assert url_of(Path("s3://bucket/a.en.gz")) == "s3://bucket/a.en.gz"  # a path has one slash less
    assert url_of(Path("a/b.txt")) is None
    assert url_of("C:/b.txt") is None
    assert url_of("data:audio/wav;base64,UklGR") is None
    assert located(Path("root"), "a.txt") == Path("root/a.txt")


def test_files_are_read_by_url_and_compressed_by_their_names() -> None:
    put("memory://corpus/a.en.gz", gzip.compress(b"ba\nde\n"))
    assert list(read_lines("memory://corpus/a.en.gz")) == ["ba", "de"]
    assert list(read_lines(Path("memory://corpus/a.en.gz"))) == ["ba", "de"]
    assert local_copy("memory://corpus/a.en.gz").name == "a.en.gz"


def test_a_recipe_may_name_urls_and_patterns_of_them(tmp_path: Path) -> None:
    for number in range(3):
        put(f"memory://corpus/t-{number}.en", f"ba {number}\n".encode())
        put(f"memory://corpus/t-{number}.de", f"fi {number}\n".encode())
    files = PairFiles(source="memory://corpus/t-*.en", target="memory://corpus/t-*.de")
    found = shards_of([files], tmp_path)
    pairs = [(source, target) for each in found for _, source, target in read_pairs(each, tmp_path)]
    assert pairs == [(f"ba {number}", f"fi {number}") for number in range(3)]
    assert matching_urls("memory://corpus/*.en") == [f"memory://corpus/t-{number}.en" for number in range(3)]


def test_a_changed_file_is_fetched_again_and_has_another_fingerprint() -> None:
    url = "memory://corpus/a.txt"
    put(url, b"ba\n")
    before = fingerprint(url)
    put(url, b"de fi\n")
    assert fingerprint(url) == before  # asked once in a process
    local_copy.cache_clear()
    assert fingerprint(url) != before
    assert list(read_lines(url)) == ["de fi"]


def test_what_is_not_there_is_an_error_of_ours() -> None:
    with pytest.raises(InputError, match=r"memory://corpus/none\.txt: no such file"):
        list(read_lines("memory://corpus/none.txt"))
    with pytest.raises(InputError, match="nonsense://a/b"):
        local_copy("nonsense://a/b")


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    with pytest.raises(InputError, match=r"s3://bucket/a: s3fs is not installed.*\[remote\].* s3fs"):
        local_copy("s3://bucket/a")


def test_outputs_are_written_by_url_all_or_nothing() -> None:
    with writing("memory://out/new/b.txt.gz") as file:
        file.write(b"ba\n")
    assert gzip.decompress(fsspec.filesystem("memory").cat("/out/new/b.txt.gz")) == b"ba\n"
    with pytest.raises(ValueError, match="stop"), writing("memory://out/c.txt") as file:
        file.write(b"half")
        raise ValueError("stop")
    assert not fsspec.filesystem("memory").exists("/out/c.txt")


def test_over_http(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="aiohttp is not installed (extra remote)")
    (tmp_path / "a.txt").write_text("ba\nde\n")
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *told: None})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/a.txt"
        assert list(read_lines(url)) == ["ba", "de"]
        (tmp_path / "a.txt").write_text("fi go\n")
        os.utime(tmp_path / "a.txt", (1e9, 1e9))  # another date, whatever the server's clock
        local_copy.cache_clear()
        assert list(read_lines(url)) == ["fi go"]
        with pytest.raises(InputError, match="no such file"):
            local_copy(f"http://127.0.0.1:{server.server_port}/none.txt")
        server.shutdown()


@pytest.mark.parametrize("slashes", ["//", "///", "/"])
def test_a_file_of_this_machine_is_found_from_its_root(
    slashes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("ba\n")
    monkeypatch.chdir(tmp_path)
    assert list(read_lines(f"file:{slashes}{(tmp_path / 'a.txt').as_posix().lstrip('/')}")) == ["ba"]
    with pytest.raises(InputError, match="no such file"):
        list(read_lines("file:///a.txt"))


@pytest.mark.parametrize("name", ["state.json", "..", "a" * 300 + ".gz"])
def test_a_remote_file_may_have_any_name(name: str) -> None:
    put(f"memory://corpus/{name}", b"ba\n")
    copy = local_copy(f"memory://corpus/{name}")
    assert copy.read_bytes() == b"ba\n" and copy.is_relative_to(cache_folder()) and copy.suffix == Path(name).suffix
    local_copy.cache_clear()
    assert local_copy(f"memory://corpus/{name}").read_bytes() == b"ba\n"


@pytest.mark.parametrize("url", ["github://a/b.txt", "reference://a/b.txt", "dask://a", "zip://a.txt", "git://a:b@c/d"])
def test_other_protocols_are_files_or_errors_of_ours(url: str) -> None:
    with pytest.raises(InputError, match=url.partition(":")[0]):
        local_copy(url)


class _Endless(http.server.BaseHTTPRequestHandler):
    """A server that never says how long its file is, nor ends it."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        try:
            while True:
                self.wfile.write(b"line\n" * 10_000)
        except OSError:
            pass

    def log_message(self, *told: object) -> None:
        pass


def test_a_download_of_unknown_size_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("aiohttp", reason="aiohttp is not installed (extra remote)")
    monkeypatch.setenv("TRANSDUCE_MAX_STREAM_GB", "0.003")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/a.txt"
        with pytest.raises(InputError, match=r"a\.txt: has more than 3\.0 MB.*TRANSDUCE_MAX_STREAM_GB"):
            local_copy(url)
        server.shutdown()
