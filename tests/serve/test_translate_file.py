"""Files in, files out: what is text in them is translated as /translate does it, and all else stays."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from served import Server, serving
from transduce.core.errors import InputError
from transduce.serve import translate_file
from transduce.serve.file_formats import CUE, FORMATS, Subtitles, broken, decoded, translated_name
from transduce.serve.subtitles import WIDTH, width
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


def never_whole(line: str) -> bool:
    return False


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


CUES = st.lists(
    st.sampled_from(["two words", "- one", "- two", "<i>so</i>", "a --> b", "42", "你好", "&lt;", "世界"]),
    min_size=1,
    max_size=4,
)


@given(st.lists(CUES, max_size=4), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_what_is_no_line_of_a_subtitle_stays(cues: list[list[str]], newline: str, ends: bool) -> None:
    """Line by line, as a reader of the file would go through it."""
    cues = [[each for each in cue if "-->" not in each] or ["x"] for cue in cues]
    rows = ["WEBVTT", ""]
    for number, cue in enumerate(cues):
        rows += [f"{number}", f"0:0{number} --> 0:0{number + 1}", *cue, ""]
    source = newline.join(rows[: None if ends else -1])
    document = Subtitles(source, never_whole)
    found = document.rejoined([("Q", []) for _ in document.pieces])
    blocks, made = (re.split(r"(?:\r?\n){2}", each.strip()) for each in (source, found))
    assert len(blocks) == len(made)
    for one, other in zip(blocks[1:], made[1:], strict=True):
        assert one.splitlines()[:2] == other.splitlines()[:2]
        words = re.findall(r"[^\W\d_]", re.sub("<.*?>|&lt;", "", "".join(one.splitlines()[2:])))
        assert ("Q" in other) == bool(words)
    assert source[len(source.rstrip()) :] == found[len(found.rstrip()) :]


@given(st.text(alphabet="ab你好。， <i>", max_size=120))
def test_a_wide_line_is_broken_where_it_is_most_equal(text: str) -> None:
    text = " ".join(text.split())
    lines = broken(text)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    plain = [re.sub("<[^<>]*>", "", each) for each in lines]
    if width(re.sub("<[^<>]*>", "", text)) <= WIDTH:
        assert lines == [text]
        return
    places = [
        place
        for place in range(1, len(text))
        if (
            text[place] == " "
            or (all(each in "你好。，" for each in text[place - 1 : place + 1]) and text[place] in "你好")
        )
        and text[:place].rfind("<") <= text[:place].rfind(">")
    ]
    if "<" not in text and places:
        best = min(max(width(text[:place]), width(text[place:])) for place in places)
        assert len(lines) == 2
        assert max(map(width, plain)) <= best


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("letter.docx", b"x", r'"letter.docx": expected a name that ends in .txt, .html, .htm, .srt, .vtt'),
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
    kept.keep("large.txt", "text/plain", b"x" * 20_000_001)
    assert kept.get(keys[1]) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("letter.txt", "letter.fr.txt"),
        ("a.b.HTML", "a.b.fr.HTML"),
        (r"C:\x\y.srt", "y.fr.srt"),
        ("../信.vtt", "信.fr.vtt"),
    ],
)
def test_names_of_translated_files(name: str, expected: str) -> None:
    assert translated_name(name, "fr") == expected


def test_every_format_is_read(server: Server) -> None:
    for ending in FORMATS:
        assert fetched(server, send(server, f"信{ending}", b"")).content == b""


@pytest.mark.parametrize(
    ("text", "cues"),
    [
        ("1\n0 --> 1\nTwo dogs.\n \n2\n1 --> 2\nA cat.\n", ["Two dogs.\n", "A cat.\n"]),
        ("1\n0 --> 1\nTwo dogs.\n2\n1 --> 2\nA cat.\n", ["Two dogs.\n", "A cat.\n"]),
        ("1\r\n0 --> 1\r\nTwo\r\ndogs.\r\n\r\n2\r\n1 --> 2\r\nA cat.", ["Two\r\ndogs.\r\n", "A cat."]),
    ],
)
def test_a_subtitle_ends_at_a_blank_line_and_at_the_next_times(text: str, cues: list[str]) -> None:
    assert CUE.findall(text) == cues


def test_arrows_without_end_take_no_time() -> None:
    assert CUE.findall("-->" * 100_000) == []


def test_bare_carriage_returns_are_refused_and_utf_32_is_read() -> None:
    with pytest.raises(InputError, match="carriage return"):
        Subtitles("1\r0 --> 1\rTwo dogs.\r", lambda _: True)
    assert decoded("Two dogs.".encode("utf-32"), "a.txt") == ("Two dogs.", "utf-32")
