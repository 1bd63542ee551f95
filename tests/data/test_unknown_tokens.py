"""The share of tokens that a tokenizer does not know is told before training, and what helps where it is large."""

from pathlib import Path

import pytest

from transduce.data.pairs.pair_data import PairData
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.tasks.translation import Translation, TranslationConfig


@pytest.mark.parametrize(
    ("rare", "told"),
    [
        (0, ""),
        (2, "0.5% of the target's tokens are unknown to the tokenizer."),
        (8, "2.0% of the target's tokens are unknown to the tokenizer. A larger tokenizer.vocabulary or a smaller "),
    ],
)
def test_it_is_told(rare: int, told: str, tmp_path: Path) -> None:
    """100 lines of four letters, with the ends that are not counted; `rare` of them have a letter that occurs once."""
    lines = [f"{chr(0x4E00 + n) if n < rare else 'b'}aba" for n in range(100)]
    (tmp_path / "source").write_text("abab\n" * 100, encoding="utf-8")
    (tmp_path / "target").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = {"source": "source", "target": "target"}
    data = PairData.model_validate({"root": str(tmp_path), "train": [files]})
    columns = Translation.learn_columns(TokenizerConfig(kind="character", min_frequency=2), data)
    said = list[str]()
    opened = Translation(TranslationConfig(), data, columns).open(tmp_path / "cache", said.append)
    assert opened.corpora[0][0].metadata["unknown"] == {"source": 0, "target": rare}
    found = [line for line in said if "unknown" in line]
    assert len(found) == bool(told) and all(told in line for line in found)
