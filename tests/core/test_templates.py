"""Templates: what is put in is escaped, and what is missing is an error."""

import json
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from transduce.core.errors import InputError
from transduce.core.templates import render

HOSTILE = "</script><script>alert(1)</script><b title='\"'>&amp;"


def written(folder: Path, text: str) -> Path:
    path = folder / "page.html.jinja"
    path.write_text(text, encoding="utf-8")
    return path


def test_texts_are_escaped_in_elements_and_in_attributes(tmp_path: Path) -> None:
    path = written(tmp_path, '<p title="{{ text }}">{{ text }}</p>{{ markup }}\n')
    html = render(path, text=HOSTILE, markup=Markup("<hr>"))
    assert html.count("<") == html.count(">") == 3
    assert html.count('"') == 2
    assert html.endswith("<hr>\n")


def test_json_cannot_end_its_element_and_says_the_same(tmp_path: Path) -> None:
    path = written(tmp_path, "{{ data | tojson }}")
    told = {"text": HOSTILE, "other": "两只狗 \u2028", "b": 1, "a": [0.5]}
    html = render(path, data=told)
    assert "<" not in html
    assert list(json.loads(html).items()) == list(told.items())
    with pytest.raises(ValueError, match="JSON"):
        render(path, data=float("nan"))


def test_what_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UndefinedError, match="title"):
        render(written(tmp_path, "{{ title }}"))
    with pytest.raises(InputError, match="nowhere"):
        render(tmp_path / "nowhere.html.jinja")
