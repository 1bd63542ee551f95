"""Files in, files out: what is text in them is translated as /translate does it, and all else stays."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from served import Server, serving
from transduce.documents.formats import FORMATS
from transduce.documents.subtitles import broken
from transduce.serve import translate_file
from transduce.serve.translate_file import Downloads

SRT = """1\r
00:00:01,000 --> 00:00:02,500\r
ba be\r
bi go\r
\r
2
00:00:03,000 --> 00:00:04,000 X1:10
- Ka le & mo.
- Fi <i>da</i> du!

3
00:00:05,000 --> 00:00:06,000
♪ 12 ♪

4
00:00:07,000 --> 00:00:08,000
mo"""
VTT = """WEBVTT ba be

STYLE
::cue { color: lime }

NOTE ba be bi

one
00:01.000 --> 00:02.000 line:0
<v Mo>ba be &amp; bi</v>

00:03.000 --> 00:04.000
ka
"""
HTML = '<p class="x">ba be <b>bi</b></p><script>ba</script>'


def send(
    server: Server, name: str, content: bytes, source: str = "de", target: str = "en", **more: str
) -> httpx.Response:
    data = {"source": source, "target": target, **more}
    return server.client.post("/translate_file", files={"file": (name, content)}, data=data)


def fetched(server: Server, answer: httpx.Response) -> httpx.Response:
    assert answer.status_code == 200, answer.text
    url = answer.json()["translatedFileUrl"]
    assert url.startswith(f"{server.address}/download_file/")
    return httpx.get(url)


def told(server: Server, text: str, form: str = "text") -> str:
    """By /translate."""
    asked = {"q": text, "source": "de", "target": "en", "format": form}
    found: str = server.post("/translate", **asked).json()["translatedText"]
    return found


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("letter.txt", "ba be bi.\r\n\r\n  Ka le mo.\n", "text/plain"),
        ("page.HTML", HTML, "text/html"),
        ("page.htm", HTML, "text/html"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_and_html_are_what_translate_makes_of_them(
    server: Server, name: str, text: str, kind: str, encoding: str
) -> None:
    found = fetched(server, send(server, name, text.encode(encoding)))
    assert found.content.decode(encoding) == told(server, text, kind.removeprefix("text/").replace("plain", "text"))
    mark = "".encode(encoding)
    assert found.content.startswith(mark), "the mark of the encoding stays"
    assert found.headers["content-type"].startswith(kind)
    stem, ending = name.split(".")
    assert found.headers["content-disposition"] == f"attachment; filename*=UTF-8''{stem}.en.{ending}"
    assert "default-src 'none'" in found.headers["content-security-policy"]


def test_subtitles_keep_all_but_their_lines(server: Server) -> None:
    found = fetched(server, send(server, "film.srt", SRT.encode())).content.decode()
    speakers = [told(server, line, "html") for line in ("- Ka le & mo.", "- Fi <i>da</i> du!")]
    expected = SRT.replace("ba be\r\nbi go", "\r\n".join(broken(told(server, "ba be bi go"))))
    expected = expected.replace("- Ka le & mo.\n- Fi <i>da</i> du!", "\n".join(speakers).replace("&amp;", "&"))
    assert found == re.sub(r"mo$", told(server, "mo"), expected)
    found = fetched(server, send(server, "film.vtt", VTT.encode())).content.decode()
    line = told(server, "<v Mo>ba be &amp; bi</v>", "html")
    assert found == VTT.replace("<v Mo>ba be &amp; bi</v>", line).replace("\nka\n", f"\n{told(server, 'ka')}\n")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("letter.doc", b"x", r'"letter.doc": expected a name that ends in .txt, .md, .* It is of old Office'),
        ("letter.docx", b"x", r"expected a ZIP archive"),
        ("letter.docx", b"%PDF-1.7", r'"letter.docx": It is a PDF'),
        ("letter", b"x", "expected a name that ends in"),
        ("letter.txt", b"ba \xff", r"is not text in UTF-8 \(byte 4\)"),
    ],
)
def test_other_files_are_refused_with_the_reason(server: Server, name: str, content: bytes, said: str) -> None:
    answer = send(server, name, content)
    assert answer.status_code == 400
    assert re.search(said, answer.json()["error"])


def test_what_is_missing_or_wrong_is_said(server: Server) -> None:
    answer = server.client.post("/translate_file", data={"source": "de"})
    assert answer.status_code == 400
    assert re.search(r"file: expected .*missing target parameter", answer.json()["error"])
    answer = server.client.post("/translate_file", content=b"{}", headers={"content-type": "application/json"})
    assert answer.status_code == 400
    wrong = {"content-type": "multipart/form-data; boundary=x"}
    assert server.client.post("/translate_file", content=b"--x", headers=wrong).status_code == 400
    assert "de to fr is not supported" in send(server, "a.txt", b"ba", target="fr").json()["error"]
    assert send(server, "a.txt", b"x" * 20_001).status_code == 413
    assert send(server, "a.txt", b"").status_code == 200
    answer = server.client.get("/download_file/nothing.txt")
    assert (answer.status_code, "kept for 10 minutes" in answer.json()["error"]) == (404, True)


@pytest.fixture(scope="module")
def locked(served_file: Path) -> Iterator[Server]:
    with serving([served_file], api_key="k") as running:
        yield running


def test_the_key_is_wanted(locked: Server) -> None:
    assert send(locked, "a.txt", b"ba").status_code == 403
    assert fetched(locked, send(locked, "a.txt", b"ba", api_key="k")).status_code == 200


def test_files_are_given_up_in_time_and_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate_file, "KEPT_FILES", 2)
    now = [100.0]
    monkeypatch.setattr(translate_file.time, "monotonic", lambda: now[0])
    kept = Downloads()
    keys = [kept.keep(f"{name}.txt", "text/plain", b"x") for name in "abc"]
    assert len(set(keys)) == 3 and all(re.fullmatch(r"[\w-]{22}\.txt", key) for key in keys)
    assert [kept.get(key) is not None for key in keys] == [False, True, True]
    now[0] += 601
    assert kept.get(keys[2]) is None


def test_a_large_file_can_be_fetched_and_others_make_room_for_it() -> None:
    kept = Downloads()
    small = kept.keep("small.txt", "text/plain", b"x")
    large = kept.keep("large.txt", "text/plain", b"x" * 20_000_001)
    assert kept.get(small) is None and kept.get(large) is not None


def test_every_format_is_read(server: Server) -> None:
    for ending in FORMATS:
        assert fetched(server, send(server, f"信{ending}", b"")).content == b""
