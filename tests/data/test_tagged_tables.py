"""Tables of words with labels: a row a word, a row a text, lists as pandas writes them; what is no such table."""

import json
from pathlib import Path

import pytest

from transduce.core.errors import InputError
from transduce.data.pairs.inputs import Named
from transduce.data.structures.tagged_tables import listed
from transduce.data.tagged import TaggedFile, read_tagged
from transduce.planning.recognition import kind_of
from transduce.planning.tasks.tags import recognise

WANTED = [("EU rejects call", "B-ORG O O"), ("Peter Blackburn", "B-PER I-PER")]
TABLES = {
    "kaggle.csv": "Sentence #,Word,POS,Tag\nSentence: 1,EU,NNP,B-ORG\n,rejects,VBZ,O\n,call,NN,O\n"
    "Sentence: 2,Peter,NNP,B-PER\n,Blackburn,NNP,I-PER\n",
    "ids.csv": "sentence_id,word,tag\n7,EU,B-ORG\n7,rejects,O\n7,call,O\n8,Peter,B-PER\n8,Blackburn,I-PER\n",
    "sentences.csv": "sentence,token,label\n1,EU,B-ORG\n1,rejects,O\n1,call,O\n2,Peter,B-PER\n2,Blackburn,I-PER\n",
    "texts.csv": "id,tokens,ner_tags\n1,EU rejects call,B-ORG O O\n2,Peter Blackburn,B-PER I-PER\n",
    "semicolons.csv": "tokens;tags\nEU rejects call;B-ORG O O\nPeter Blackburn;B-PER I-PER\n",
    "lists.csv": "tokens,tags\n\"['EU', 'rejects', 'call']\",\"['B-ORG', 'O', 'O']\"\n"
    "\"['Peter', 'Blackburn']\",\"['B-PER', 'I-PER']\"\n",
}


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_recognised_and_read(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, TABLES[name])
    assert kind_of(Named(path)) == "tagging"
    assert [each[1:] for each in read_tagged(TaggedFile(file=name), tmp_path).examples] == WANTED


def test_an_array_of_objects_is_read(tmp_path: Path) -> None:
    objects = [{"tokens": words.split(), "ner_tags": tags.split()} for words, tags in WANTED]
    path = written(tmp_path, "tags.json", json.dumps({"data": objects}))
    assert kind_of(Named(path)) == "tagging"
    assert [each[1:] for each in read_tagged(TaggedFile(file="tags.json"), tmp_path).examples] == WANTED


def test_columns_are_named_where_they_have_no_usual_names(tmp_path: Path) -> None:
    written(tmp_path, "odd.csv", "satz,wort,art,sentence\n-,EU,B-ORG,1\n-,rejects,O,1\n-,call,O,1\n-,Peter,B-PER,2\n")
    found = read_tagged(TaggedFile(file="odd.csv", word="wort", label="art"), tmp_path).examples
    assert [each[1:] for each in found] == [WANTED[0], ("Peter", "B-PER")]
    with pytest.raises(InputError, match=r'expected a column of words.*"satz", "wort"'):
        read_tagged(TaggedFile(file="odd.csv"), tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "text,label\na good film,positive\na bad film,negative\n",
        "sentence,label,text\n1,positive,a good film\n2,negative,a bad film\n",
        "text,label\ngood,positive\nbad,negative\n",
        "id,source,target\n1,a good film,ein guter Film\n",
    ],
)
def test_other_tables_are_none_of_words_with_labels(tmp_path: Path, text: str) -> None:
    assert recognise(Named(written(tmp_path, "other.csv", text))) is None


def test_rows_that_are_wrong_are_named(tmp_path: Path) -> None:
    written(tmp_path, "wrong.csv", "tokens,tags\na b,O O\na b c,O O\n")
    with pytest.raises(InputError, match=r"wrong\.csv, line 3: expected a label for each word; got 3 words and 2"):
        read_tagged(TaggedFile(file="wrong.csv"), tmp_path)
    written(tmp_path, "empty.csv", "sentence_id,word,tag\n1,a,O\n1,,O\n1,c,\n")
    with pytest.raises(InputError) as told:
        read_tagged(TaggedFile(file="empty.csv"), tmp_path)
    assert [problem.split(": ")[0][-6:] for problem in told.value.problems] == ["line 3", "line 4"]


def test_a_number_is_no_name_of_a_column() -> None:
    with pytest.raises(ValueError, match="columns have names"):
        TaggedFile(file="a.csv", word=1)


@pytest.mark.parametrize(
    ("cell", "items"),
    [
        ("a b  c", ["a", "b", "c"]),
        ("['a', \"it's\", 'b']", ["a", "it's", "b"]),
        ("['a' 'b'\n 'c']", ["a", "b", "c"]),  # of NumPy
        ("[3, 0]", ["3", "0"]),
        ("['it\\'s']", ["it's"]),
        ("[UNK]", ["[UNK]"]),
    ],
)
def test_cells_are_lists_however_they_are_written(cell: str, items: list[str]) -> None:
    assert listed(cell) == items


@pytest.mark.parametrize(
    ("cell", "items"),
    [
        ("[0 1 0]", ["0", "1", "0"]),  # of NumPy
        ("[3]", ["3"]),
        ("['caf\\xe9', 'a\\tb', '\\u4e2d中']", ["café", "a\tb", "中中"]),
    ],
)
def test_labels_in_brackets_are_lists(cell: str, items: list[str]) -> None:
    assert listed(cell, labels=True) == items


def test_an_empty_list_has_no_items_and_an_open_quote_takes_no_time() -> None:
    assert listed("[]") == []
    assert len(listed("[" + "\\'" * 200_000 + "]")) < 10
