"""Documents through a real model: from Python, from the command line, and over HTTP."""

import io
import json
import re
import zipfile
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from samples import JSON, PO, SRT, XLIFF1, ZIPPED

import forked
from served import write_model
from transduce.core.errors import InputError
from transduce.pipeline.pipeline import Pipeline, load
from transduce.without_torch.translator import load as load_kernels


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random translator from German to English."""
    return write_model(tmp_path_factory.mktemp("documents") / "tiny.safetensors")


@pytest.fixture(scope="module")
def pipeline(model_file: Path) -> Pipeline:
    return load(model_file)


def german(source: str) -> str:
    """With the languages of the model."""
    return source.replace('source-language="en" target-language="fr"', 'source-language="de" target-language="en"')


@pytest.mark.parametrize(
    ("name", "source", "codes"),
    [
        ("a.xlf", german(XLIFF1), r'<(?:g|x|bpt|ept) id="\d"/?>|%d|\{name\}'),
        ("a.po", PO, r"%[ds]|</?b>|\\n"),
        ("a.json", JSON, r"%s|\{count\}|\b12\b|ab-12"),
        ("a.srt", SRT, r"\d\d:\d\d:\d\d,\d{3}|</?i>|(?m:^\d$)"),
        ("a.html", "<p>ba <b>be</b> <img src=x> bi</p><p>12</p>", r"<[^>]*>|12"),
    ],
)
def test_every_code_of_the_source_stands_once(
    pipeline: Pipeline, tmp_path: Path, name: str, source: str, codes: str
) -> None:
    (tmp_path / name).write_text(source, newline="")
    made = tmp_path / f"made-{name}"
    said = pipeline.predict_file(tmp_path / name, made)
    assert said
    before, after = (Counter(re.findall(codes, each)) for each in (source, made.read_text()))
    if name in ("a.po", "a.xlf"):  # the source is still there; each message that had no translation now has the codes
        added = after - before
        assert set(added) == set(before) - ({"%%"} if name == "a.po" else set())
        assert all(count <= before[code] for code, count in added.items())
    else:
        assert before == after


@pytest.mark.parametrize("suffix", [*ZIPPED])
def test_archives_go_through_a_model(pipeline: Pipeline, tmp_path: Path, suffix: str) -> None:
    source, made = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    source.write_bytes(ZIPPED[suffix]())
    said = pipeline.predict_file(source, made, beam=1)
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(made) as after:
        assert before.namelist() == after.namelist()
        text = b"".join(after.read(name) for name in after.namelist()).decode(errors="replace")
    text = re.sub("<text:note .*?</text:note>", "", text) + text
    words = re.sub(r"\s|&\w+;", "", re.sub(r"<[^>]*>", "", text))
    assert all(re.sub(r"\s|[<>&]", "", each.text) in words for each in said)


def test_segments_are_what_predict_says(pipeline: Pipeline, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>ba be bi.</p><p>go</p>")
    said = pipeline.predict_file(tmp_path / "a.html", tmp_path / "b.html")
    assert [each.source for each in said] == ["ba be bi.", "go"]
    assert [each.text for each in said] == [each.text for each in pipeline.predict(["ba be bi.", "go"], split="none")]


def test_without_torch_the_texts_are_the_same(model_file: Path, pipeline: Pipeline, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>ba be bi.</p><p>go</p>")
    for number, model in enumerate((pipeline, load_kernels(model_file))):
        model.predict_file(tmp_path / "a.html", tmp_path / f"{number}.html")
    assert (tmp_path / "0.html").read_bytes() == (tmp_path / "1.html").read_bytes()


def test_nothing_is_written_where_something_is_wrong(pipeline: Pipeline, tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(b"no archive")
    (tmp_path / "a.srt").write_text(SRT)
    for source, output, said in [
        ("a.docx", "b.docx", "expected a ZIP archive"),
        ("a.srt", "b.vtt", "name the output with .srt"),
        ("a.srt", "a.srt", "this is an input"),
        ("a.pdf", "b.pdf", "It is a PDF"),
        ("none.srt", "b.srt", "no such file"),
    ]:
        with pytest.raises(InputError, match=said):
            pipeline.predict_file(tmp_path / source, tmp_path / output)
    with pytest.raises(InputError, match="must: a document has many texts"):
        pipeline.predict_file(tmp_path / "a.srt", tmp_path / "b.srt", must=["x"])
    assert {each.name for each in tmp_path.iterdir()} == {"a.docx", "a.srt"}


@pytest.fixture
def run(tmp_path: Path) -> forked.Run:
    """Runs `transduce` with arguments."""
    return partial(forked.transduce, tmp_path)


def test_the_command_writes_a_document(model_file: Path, pipeline: Pipeline, tmp_path: Path, run: forked.Run) -> None:
    source, made = tmp_path / "a.srt", tmp_path / "c.srt"
    source.write_text(SRT)
    pipeline.predict_file(source, tmp_path / "b.srt")
    assert run("predict", model_file, "--source", source, "--output", made).code == 0
    assert made.read_bytes() == (tmp_path / "b.srt").read_bytes()
    assert run("predict", model_file, "--source", source).out.encode() == made.read_bytes()
    (tmp_path / "a.json").write_text(JSON)
    assert run("predict", model_file, "--source", tmp_path / "a.json", "--output", tmp_path / "b.json").code == 0
    assert json.loads((tmp_path / "b.json").read_text())["n"] == 12


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--json"], "--json: a.srt is translated as a document"),
        (["--draw", "--engine", "torch"], "--draw: a.srt"),
        (["--must", "x"], "must: a document has many texts"),
        (["--output", "b.txt"], "name the output with .srt"),
    ],
)
def test_the_command_says_what_does_not_go_together(
    model_file: Path, tmp_path: Path, options: list[str], said: str, run: forked.Run
) -> None:
    (tmp_path / "a.srt").write_text(SRT)
    options = [str(tmp_path / each) if each == "b.txt" else each for each in options]
    code, _, told = run("predict", model_file, "--source", tmp_path / "a.srt", *options)
    assert (code, said in told) == (2, True), told


def test_binary_documents_want_an_output(model_file: Path, tmp_path: Path, run: forked.Run) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", "<a/>")
    (tmp_path / "a.docx").write_bytes(file.getvalue())
    code, _, told = run("predict", model_file, "--source", tmp_path / "a.docx")
    assert (code, "--output NAME.docx" in told) == (2, True)
