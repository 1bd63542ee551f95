"""Files that are not read are named as what they are."""

from pathlib import Path

import pytest

from transduce.core.errors import InputError
from transduce.core.foreign_files import told_of_foreign
from transduce.recipe.recipe import load_recipe


def test_files_are_known_by_their_first_bytes_and_names(tmp_path: Path) -> None:
    assert "It is a PDF" in told_of_foreign("a.docx", b"%PDF-1.7")
    assert "It is a PDF" in told_of_foreign("a.pdf")
    assert told_of_foreign("a.docx") == told_of_foreign("a.docx", b"PK\x03\x04") == ""
    (tmp_path / "wav.scp").write_text("utt1 clip.wav\n")
    with pytest.raises(InputError, match=r"wav\.scp: It is Kaldi's list of recordings\. Join it .* text\.$"):
        load_recipe(tmp_path / "wav.scp")
