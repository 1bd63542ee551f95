"""README.zh-CN.md keeps in step with README.md: same sections, commands, code, links and figures, in the same order."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ENGLISH, CHINESE = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-CN.md"))
OTHER = {"README.md", "README.zh-CN.md"}


def code(text: str) -> list[str]:
    """All lines of fenced and indented blocks, without their comments."""
    fenced, found = False, []
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
            found.append(line)
        elif fenced or line.startswith("    "):
            found.append(re.sub(r"\s+# .*", "", line).rstrip())
    return found


def spans(text: str) -> list[str]:
    """Code within the text."""
    outside = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", outside)


def commands(text: str) -> list[str]:
    """Of these, what can be typed into a shell."""
    return [span for span in spans(text) if re.match(r"(transduce|make|source|kill) ", span)]


def links(text: str) -> list[str]:
    """Where links and pictures lead, but for the link to the other language."""
    return [link for link in re.findall(r"\]\(([^)]+)\)", text) if link not in OTHER]


def results(text: str) -> list[list[str]]:
    """The table of results, row by row: its code and its numbers."""
    table = text.partition("<!-- results -->\n")[2].partition("<!-- end -->")[0]
    return [re.findall(r"`[^`]+`|(?<=\| )[\d.]+(?= \|)", row) for row in table.splitlines()]


def shape(text: str) -> list[str]:
    """Levels of headings, items of lists and rows of tables."""
    outside = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"^(#+|-|\||!)(?= ?\S)", outside, flags=re.MULTILINE)


@pytest.mark.parametrize("part", [code, commands, links, results, shape], ids=lambda part: part.__name__)
def test_both_have_the_same(part) -> None:
    assert part(CHINESE) == part(ENGLISH)
    assert part(ENGLISH)


def test_both_name_the_same_things_and_numbers() -> None:
    assert sorted(spans(CHINESE)) == sorted(spans(ENGLISH))
    numbers = [
        sorted(re.findall(r"\d+(?:[.,]\d+)*", re.sub(r"束宽 5|beam 5", "", text))) for text in (CHINESE, ENGLISH)
    ]
    assert numbers[0] == numbers[1]


def test_each_links_to_the_other_at_the_top() -> None:
    assert "[中文](README.zh-CN.md)" in ENGLISH.split("\n", 4)[:4]
    assert "[English](README.md)" in CHINESE.split("\n", 4)[:4]


def test_it_is_chinese_and_short() -> None:
    lines = CHINESE.splitlines()
    assert len(lines) <= 150
    headings = [line for line in lines if line.startswith("## ")]
    assert all(re.search(r"[\u4e00-\u9fff]", line) for line in headings)
