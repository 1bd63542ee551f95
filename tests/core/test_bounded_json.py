"""JSON of strangers: the same as Python reads, or refused before it takes up room."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.core.bounded_json import table_of_settings, table_of_texts, table_of_values, what

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
small = st.recursive(st.none() | st.booleans() | st.integers(-(10**15), 10**15) | texts, st.lists, max_leaves=8)
spaced = st.sampled_from([(",", ":"), (" , ", " : "), (",\n\t", ":\r\n ")])


@given(st.dictionaries(texts, texts), spaced, st.booleans())
def test_tables_of_texts_are_what_python_reads(table: dict[str, str], separators: Any, ascii_only: bool) -> None:
    assert table_of_texts(json.dumps(table, separators=separators, ensure_ascii=ascii_only)) == table


@given(st.dictionaries(texts, small), st.dictionaries(texts, texts), spaced)
def test_tables_of_values_are_what_python_reads(table: dict[str, Any], long: dict[str, str], separators: Any) -> None:
    whole = {**table, "long": long}
    assert table_of_values(json.dumps(whole, separators=separators), "long") == whole


@given(st.dictionaries(texts, small), spaced)
def test_settings_are_what_python_reads(table: dict[str, Any], separators: Any) -> None:
    assert table_of_settings(json.dumps(table, separators=separators)) == table


@given(st.text(st.sampled_from('{}[]:,"ab1 \\\n'), max_size=12))
def test_what_is_no_json_is_refused_and_what_is_json_is_not(text: str) -> None:
    try:
        pairs = json.loads(text, object_pairs_hook=lambda pairs: pairs)
        sound = text.strip().startswith("{") and all(isinstance(value, str) for _, value in pairs)
        sound = sound and len(dict(pairs)) == len(pairs)
    except ValueError:
        sound = False
    if sound:
        assert table_of_texts(text) == json.loads(text)
    else:
        with pytest.raises(ValueError):
            table_of_texts(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": ' + "9" * 21 + "}", "has a number of 21 digits"),
        ('{"a": 1e999}', "has the number 1e999"),
        ('{"a": NaN}', "has the number NaN"),
        ('{"a":' * 60 + "1" + "}" * 60, "nested more than 50 deep"),
        ('{"a": "\\ud800"}', "is not JSON"),
        ("[1]", "is not a table"),
        ('{"a": [' + "1," * 5000 + "1]}", "more than 4,000 values"),
        ('{"a": "' + "x" * 1_000_000 + '"}', "the limit is 1,000,000"),
    ],
)
def test_settings_that_no_file_has(text: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        table_of_settings(text)
    assert said in what(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": [' + "[]," * 1000 + "[]]}", "more than 1000 characters"),
        ('{"' + "a" * 501 + '": 1}', "a name of more than 500 characters"),
        ("{" + ", ".join(f'"{number}": 1' for number in range(20_001)) + "}", "more than 20,000 members"),
        ('{"long": {"a": 1}}', "metadata that is not text"),
        ('{"a": 1} x', "something follows its end"),
    ],
)
def test_values_that_no_header_has(text: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        table_of_values(text, "long")
    assert said in what(caught.value)
