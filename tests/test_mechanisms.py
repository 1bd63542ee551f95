"""docs/mechanisms.md names files, tests and recipe keys that there are."""

import re
from pathlib import Path

import pytest

from transduce.core.registry import known, resolve
from transduce.recipe.training import TrainingConfig
from transduce.search.settings import Search

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py(?::\w+)?)`", PAGE)))
ROOMS = ["attention.scores", "attention.normalizers", "attention.relative", "layers.recurrent", "models"]
KEYS = sorted(set(re.findall(r"`((?:model|training|search|task)\.\w+)`", PAGE)))


@pytest.mark.parametrize("where", NAMED)
def test_what_it_names_is_there(where: str) -> None:
    path, _, name = where.partition(":")
    is_test = Path(path).name.startswith("test_")
    assert is_test == name.startswith("test_")
    file = ROOT / ("tests" if is_test else "src/transduce") / path
    assert not name or re.search(rf"^(?:(?:def|class) {name}\b|{name} = )", file.read_text(encoding="utf-8"), re.M)


def test_every_key_is_one() -> None:
    models = {field for kind in known("models") for field in resolve("models", kind).Config.model_fields}
    fields = {
        "model": models,
        "training": set(TrainingConfig.model_fields),
        "search": set(Search.model_fields),
        "task": {field for kind in known("tasks") for field in resolve("tasks", kind).Config.model_fields},
    }
    assert KEYS
    assert [key for key in KEYS if key.partition(".")[2] not in fields[key.partition(".")[0]]] == []


@pytest.mark.parametrize("room", ROOMS)
def test_every_kind_has_its_row(room: str) -> None:
    assert [name for name in known(room) if f":{resolve(room, name).__name__}`" not in PAGE] == []


def test_every_score_says_its_formula() -> None:
    """Its own, not that of the class which it derives from: the explorer shows it."""
    scores = [resolve("attention.scores", name) for name in known("attention.scores")]
    assert [each.__name__ for each in scores if not vars(each).get("formula")] == []


CHINESE_TEXTS = sorted((ROOT / "src/transduce/explore/page").glob("text_*zh.js"))
MACHINE_TRANSLATED = ("变压器", "变形金刚", "重复神经", "重复网络", "图层规范化", "图层归一化", "层规范化")


# One term for one thing: what these were, and what the Chinese texts call it.
SECOND_TERMS = {
    "子词": "词元",
    "轻触": "轻点",
    "点击": "单击",
    "看哪些": "关注",
    "看了哪": "关注",
    "看向": "关注",
    "回看": "关注前文",
    "打分": "计算得分",
    "关掉": "屏蔽",
    "跳读": "多跳记忆",
    "探索器": "可视化",
    "互通": "模型导入与导出",
    "互操作": "模型导入与导出",
    "留出": "验证集",
}


@pytest.mark.parametrize("page", [*CHINESE_TEXTS, ROOT / "README.zh-CN.md"], ids=lambda page: page.name)
def test_the_chinese_page_uses_the_terms_of_the_field(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.search(r"[\u4e00-\u9fff]", text)
    assert [term for term in (*MACHINE_TRANSLATED, *SECOND_TERMS) if term in text] == []


def test_no_correct_slide_is_called_wrong() -> None:
    """The slides show both tables of the greedy example; only text copies of them lost the second."""
    wrong = PAGE.partition("## Where notes are wrong")[2].partition("\nThat greedy search")[0]
    assert "0.054" not in wrong
    assert "two tables" in PAGE
