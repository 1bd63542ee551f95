"""The cleaned copy: both sides together, every dropped pair counted, the inputs untouched."""

import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from transduce.core.errors import InputError
from transduce.data.files import fingerprint, read_lines
from transduce.doctor import Cleaned, clean, examine, examine_text

Corpus = tuple[list[str], list[str]]
Write = Callable[..., Path]


def cleaned_copy(write: Write, source: list[bytes], target: list[bytes]) -> tuple[Cleaned, list[tuple[str, str]]]:
    paths = write("a.txt", source), write("b.txt", target)
    before = [fingerprint(path) for path in paths]
    outputs = paths[0].with_name("a.clean.xz"), paths[1].with_name("b.clean.zst")
    done = clean(*paths, *outputs, examine(*paths))
    assert [fingerprint(path) for path in paths] == before
    return done, list(zip(*(read_lines(path) for path in outputs), strict=True))


def encoded(lines: list[str]) -> list[bytes]:
    return [line.encode() for line in lines]


def test_a_clean_corpus_is_copied_whole(corpus: Corpus, write: Write) -> None:
    done, pairs = cleaned_copy(write, encoded(corpus[0]), encoded(corpus[1]))
    assert done == Cleaned(written=400, dropped={}, mended=0)
    assert pairs == list(zip(*corpus, strict=True))


def test_each_reason_is_counted_once(corpus: Corpus, write: Write) -> None:
    source, target = encoded(corpus[0]), encoded(corpus[1])
    source[0] = b"\xff\xfe"
    source[1], target[2] = b"", b"\xe3\x80\x80"
    target[3] = "Это предложение на другом языке".encode()
    target[4] = source[4]
    target[5] = target[5] * 12
    source[6], target[6] = b" ".join(source[7:60]), b" ".join(target[7:60])
    source[399], target[399] = source[100], target[100]
    done, pairs = cleaned_copy(write, source, target)
    assert done.dropped == {
        "invalid_utf8": 1,
        "empty": 2,
        "wrong_script": 1,
        "copy": 1,
        "extreme_ratio": 1,
        "extreme_length": 1,
        "duplicate": 1,
    }
    assert pairs == list(zip(*corpus, strict=True))[7:399]
    assert done.written == 392


def test_odd_characters_are_mended(corpus: Corpus, write: Write) -> None:
    source, target = encoded(corpus[0]), encoded(corpus[1])
    source[1] = b"\xef\xbb\xbf" + source[1] + b"\r"
    target[7] = target[7].replace(b" ", "\u2028".encode(), 1)
    source[8], target[9] = b"\xef\xbb\xbf", b"\x00\t"
    done, pairs = cleaned_copy(write, source, target)
    expected = list(zip(*corpus, strict=True))
    assert pairs == expected[:8] + expected[10:]
    assert (done.mended, done.dropped) == (2, {"empty": 2})


def test_a_shift_is_mended_without_a_wrong_pair(corpus: Corpus, write: Write) -> None:
    right = set(zip(*corpus, strict=True))
    source, target = encoded(corpus[0]), encoded(corpus[1])
    del target[120], source[250:253]
    done, pairs = cleaned_copy(write, source, target)
    assert right.issuperset(pairs)
    assert len(pairs) == done.written >= 380
    assert done.dropped == {
        "unmatched_source": len(source) - done.written,
        "unmatched_target": len(target) - done.written,
    }


def test_what_cannot_be_cleaned_is_refused(corpus: Corpus, write: Write) -> None:
    source, target = write("a.txt", corpus[0]), write("b.txt", corpus[1])
    report = examine(source, target)
    out = source.with_name("out")
    with pytest.raises(InputError, match=r"a\.txt: this is an input"):
        clean(source, target, source.parent / "." / "a.txt", out, report)
    with pytest.raises(InputError, match="must go to two different files"):
        clean(source, target, out, out, report)
    with pytest.raises(InputError, match="single file"):
        clean(source, target, out, source.with_name("out2"), examine_text(source))
    short = write("c.txt", corpus[1][:20])
    with pytest.raises(InputError, match=r"400 lines, .* 20, and the place where they slip was not found"):
        clean(source, short, out, source.with_name("out2"), examine(source, short))
    assert not out.exists()


def test_output_is_compressed_by_its_suffix(corpus: Corpus, write: Write) -> None:
    cleaned_copy(write, encoded(corpus[0]), encoded(corpus[1]))
    packed = write("probe", ["x"]).with_name("a.clean.xz").read_bytes()
    assert lzma.decompress(packed).decode().split("\n")[:-1] == corpus[0]
