"""What stands around a row of tokens."""

import numpy as np
import pytest

from random_models import sentences
from transduce.core.errors import InputError
from transduce.data.columns.packed import pack, unpack
from transduce.data.columns.tokens import Tokens
from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TokenizerConfig(kind="whitespace", min_frequency=1), sentences(50, 9))


def test_tokens_may_stand_before_and_behind_a_source(tokenizer: Tokenizer) -> None:
    column = Tokens(tokenizer, ends=True, before=("ba",), after=("</s>", "be"))
    ba, be, end = *tokenizer.ids(["ba", "be"]), tokenizer.end
    assert column.closed([9, 8]) == [ba, 9, 8, end, be]
    rows = column.collate([np.array([9, 8], np.int32), np.array([7], np.int32)])
    assert rows.values.tolist() == [[ba, 9, 8, end, be], [ba, 7, end, be, 0]]
    assert rows.lengths.tolist() == [5, 4]


def test_an_output_starts_from_the_first_and_begins_with_the_others(tokenizer: Tokenizer) -> None:
    column = Tokens(tokenizer, starts=True, ends=True, before=("</s>", "ba"))
    ba, end = *tokenizer.ids(["ba"]), tokenizer.end
    assert (column.start, column.opening) == (end, [ba])
    assert column.closed([9]) == [ba, 9, end]
    assert column.collate([np.array([9], np.int32)]).values.tolist() == [[end, ba, 9, end]]


def test_a_text_of_a_stream_that_starts_stands_between_start_and_end(tokenizer: Tokenizer) -> None:
    column, row = Tokens(tokenizer, starts=True, stream=True), [np.array([9, 8], np.int32)]
    assert column.start == tokenizer.start != tokenizer.end
    assert column.collate_texts(row).values.tolist() == [[tokenizer.start, 9, 8, tokenizer.end]]
    assert column.closed([9, 8]) == [9, 8, tokenizer.end]
    assert column.collate(row).values.tolist() == [[9, 8]]  # a window of running text
    assert column.unwritten == sorted([tokenizer.pad, tokenizer.start, tokenizer.unknown])


def test_what_is_never_written(tokenizer: Tokenizer) -> None:
    ids = tokenizer
    assert Tokens(ids, starts=True).unwritten == sorted([ids.pad, ids.start, ids.unknown])
    assert Tokens(ids, starts=True, never=("be", "</s>")).unwritten == ids.ids(["be"])
    assert Tokens(ids, starts=True, never=()).unwritten == []


def test_a_file_keeps_them(tokenizer: Tokenizer) -> None:
    target = Tokens(tokenizer, starts=True, ends=True, before=("</s>", "ba"), never=())
    source = Tokens(tokenizer, ends=True, after=("</s>", "be"))
    back = unpack(*pack({"source": source, "target": target}))
    assert [back[side].to_dict() for side in ("source", "target")] == [source.to_dict(), target.to_dict()]
    assert Tokens(tokenizer, ends=True).to_dict() == {"starts": False, "ends": True, "stream": False}


def test_names_of_no_tokens_are_refused(tokenizer: Tokenizer) -> None:
    for table in ({"before": ["nowhere"]}, {"never": "ba"}, {"after": [3]}):
        with pytest.raises(InputError):
            Tokens.from_dict(table, tokenizer)
