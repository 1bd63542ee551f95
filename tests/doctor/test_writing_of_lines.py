"""Damaged encodings, mixed Chinese, and untranslated or foreign lines in scripts without spaces."""

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from transduce.doctor import Severity, clean, examine, examine_text
from transduce.doctor.writing import marks_of, read_as_gbk, repaired

Corpus = tuple[list[str], list[str]]
Write = Callable[..., Path]
SIMPLIFIED = [f"这是第{number}个句子，我们还没有读过。" for number in "一二三四五六七八九十"]
TRADITIONAL = [f"這是第{number}個句子，我們還沒有讀過。" for number in "一二三四五六七八九十"]


def spoiled(text: str) -> str:
    """UTF-8 that was read as Windows-1252."""
    return text.encode().decode("windows-1252")


def test_damaged_encodings_are_found_and_a_cleaned_copy_repairs_them(corpus: Corpus, write: Write) -> None:
    pytest.importorskip("ftfy")
    source, target = corpus
    right = {9: "L’été était déjà là – où?", 33: "Eine Straße für Öl und Gas."}
    lines = [spoiled(right[place]) if place in right else line for place, line in enumerate(target, 1)]
    report = examine(write("a.txt", source), write("b.txt", lines))
    [finding] = report.findings
    assert (finding.kind, finding.severity, finding.lines) == ("mojibake", Severity.WARNING, [9, 33])
    out = [report.files["source"].path.parent / name for name in ("c.txt", "d.txt")]
    assert clean(report.files["source"], report.files["target"], *out, report).mended == 2
    written = out[1].read_text(encoding="utf-8").split("\n")
    assert {place: written[place - 1] for place in right} == right
    whole = [line for place, line in enumerate(written[:-1], 1) if place not in right]
    assert whole == [line for place, line in enumerate(target, 1) if place not in right]


HTML = {
    3: ("Tom &amp; Jerry &quot;live&quot;&nbsp;here.", 'Tom & Jerry "live" here.'),
    7: ("It &#39;s &#x41; test<br/>of &lt;b&gt;", "It 's A test<br/>of <b>"),
    9: ('He is <FONT color="red">red</FONT>.', 'He is <FONT color="red">red</FONT>.'),
    12: ("one&#10;line&#0;.", "one line\ufffd."),
}
PLAIN = [
    "a < b and c > d",
    "AT&T; R&D",
    "&nothing;",
    "x <- y",
    "<s> a <unk> </s>",
    "<2fr> hello",
    "<V;PST> go",
    "a & b;",
]


def test_html_is_found_and_a_cleaned_copy_has_no_entities(corpus: Corpus, write: Write) -> None:
    source, target = corpus
    lines = [HTML[place][0] if place in HTML else line for place, line in enumerate(source, 1)]
    report = examine(write("a.txt", lines), write("b.txt", target))
    [finding] = report.of_kind("markup")
    assert (finding.severity, finding.side, finding.lines) == (Severity.NOTE, "source", [*HTML])
    out = [report.files["source"].path.parent / name for name in ("c.txt", "d.txt")]
    clean(report.files["source"], report.files["target"], *out, report)
    written = out[0].read_text(encoding="utf-8").split("\n")
    assert {place: written[place - 1] for place in HTML} == {place: right for place, (_, right) in HTML.items()}
    assert not examine_text(write("plain.txt", PLAIN)).of_kind("markup")


def test_a_few_lines_with_html_are_a_warning(write: Write) -> None:
    lines = [*(f"The man sees {number} dogs." for number in range(200)), "Tom &amp; Jerry"]
    [finding] = examine_text(write("a.txt", lines)).of_kind("markup")
    assert (finding.severity, finding.lines) == (Severity.WARNING, [201])


def test_text_of_any_language_is_not_taken_for_damaged(write: Write) -> None:
    pytest.importorskip("ftfy")
    lines = [
        "L’été était déjà là.",
        "Ça va ? Où ça ?",
        "Ångström Ärger â la carte",
        "Обычный текст",
        "今天天气很好。",
        "Ã",
    ]
    assert not examine_text(write("a.txt", lines)).of_kind("mojibake")


@pytest.mark.parametrize(
    ("lines", "fewer", "expected"),
    [
        ([*SIMPLIFIED, TRADITIONAL[0], "你好。"], "traditional", [11]),
        ([*TRADITIONAL, SIMPLIFIED[2], SIMPLIFIED[0], "你好。"], "simplified", [11, 12]),
        ([*SIMPLIFIED, "我吃了。"], "", []),
        ([*TRADITIONAL, "我吃了這個。", "他在床上。"], "", []),  # characters of which there are variants
        (["日本語の文です。", "国と學校", "これは見本です。"], "", []),  # Japanese
    ],
)
def test_mixed_chinese(write: Write, lines: list[str], fewer: str, expected: list[int]) -> None:
    pytest.importorskip("opencc")
    found = examine_text(write("a.txt", lines)).of_kind("mixed_chinese")
    assert [each.lines for each in found] == ([expected] if expected else [])
    if found:
        assert found[0].severity is Severity.WARNING
        assert f"in {fewer} characters, where 10 are" in found[0].sentence


def test_a_chinese_character_says_as_much_as_two_letters(write: Write) -> None:
    source = [*SIMPLIFIED, *TRADITIONAL, *SIMPLIFIED, "今天天气很好。", "一二三四五六"]
    target = [*[f"This is sentence number {number}." for number in range(30)], "今天天气很好。", "你们都好吗"]
    report = examine(write("a.txt", source), write("b.txt", target))
    assert [each.lines for each in report.of_kind("copy")] == [[31]]
    assert [(each.side, each.lines) for each in report.of_kind("wrong_script")] == [("target", [31, 32])]


def test_what_is_not_looked_for_is_told(write: Write) -> None:
    """In a process that has neither library."""
    paths = write("a.txt", [*SIMPLIFIED, spoiled("déjà")]), write("b.txt", ["plain", "déjà vu"])
    code = (
        "import sys\nsys.modules['opencc'] = sys.modules['ftfy'] = None\n"
        "from transduce.cli.app import main\n"
        "for path in sys.argv[1:]:\n"
        "    sys.argv = ['transduce', 'doctor', '--text', path]\n"
        "    try: main()\n"
        "    except SystemExit as ended: assert not ended.code\n"
        "    print('the end of one')"
    )
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    found, nothing, _ = done.stdout.split("the end of one\n")
    assert "Not looked for: mixed simplified and traditional Chinese" in found
    assert "Not looked for: damaged encoding" in found
    assert "Not looked for" not in nothing


def test_a_control_character_is_told_in_a_sentence(write: Write) -> None:
    [finding] = examine_text(write("a.txt", ["a\x07b", "c"])).findings
    assert finding.sentence == "1 line of the text with another control character inside."


def as_gbk(text: str) -> str:
    """UTF-8, read as GBK; bytes without a partner become U+FFFD."""
    return text.encode().decode("gbk", "replace")


def test_utf8_that_was_read_as_gbk_is_found_and_repaired_where_nothing_is_lost(write: Write) -> None:
    whole, cut = "这什么都能说明", "今天天气很好。"
    damaged = ["杩欎粈涔堥兘璇存槑", as_gbk(cut), as_gbk("Ещё"), as_gbk("Привет всем")]
    lines = [*SIMPLIFIED, *damaged]
    report = examine(write("a.txt", [f"This is line {n}." for n, _ in enumerate(lines)]), write("b.txt", lines))
    [finding] = report.of_kind("gbk")
    first = len(SIMPLIFIED) + 1
    assert (finding.severity, finding.lines) == (Severity.WARNING, [first, first + 1, first + 3])  # the third is short
    assert repaired(damaged[0]) == "这什么都说明"
    assert repaired(as_gbk("Привет всем")) == "Привет всем"
    assert repaired(as_gbk(whole)) == as_gbk(whole)  # 21 bytes: the last one is lost


def test_chinese_text_is_not_taken_for_damaged(data_root: Path) -> None:
    with gzip.open(data_root / "tatoeba_eng_cmn" / "cmn.txt.gz", "rt", encoding="utf-8") as file:
        chinese = [line.split("\t")[1] for line in file]
    with gzip.open(data_root / "poems_tang" / "train.tsv.gz", "rt", encoding="utf-8") as file:
        chinese += list(file)
    assert len(chinese) > 50_000
    assert not [text for text in chinese if read_as_gbk(text)]
    damaged = [as_gbk(text) for text in chinese if 6 <= len(text) < 40]
    assert sum(map(read_as_gbk, damaged)) > 0.85 * len(damaged)


def test_a_nul_in_chinese_text_is_told_and_stops_nothing(write: Write) -> None:
    pytest.importorskip("opencc", reason="OpenCC is not installed (extra doctor)")
    lines = ["我们去了市场。\0", "这是一本书。", "你\0好，世界。", "她喜欢茶。"]
    report = examine(write("a.en", [f"line {each}" for each in range(4)]), write("a.zh", lines))
    assert "2 lines of the target with a NUL inside." in [each.sentence for each in report.findings]


def test_nul_and_line_break_change_no_other_character() -> None:
    pytest.importorskip("opencc", reason="OpenCC is not installed (extra doctor)")
    plain, broken = ["这是书", "這是書"], ["这\0是\n书", "這是\0\0書"]
    assert marks_of(broken).tolist() == marks_of(plain).tolist()
