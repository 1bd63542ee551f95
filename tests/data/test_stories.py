"""Stories with questions: their files, by line; as text; and as rows of ids."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

from transduce.core.errors import InputError
from transduce.data.columns.label import Label
from transduce.data.columns.story import Story
from transduce.data.structures.stories import read_stories, story_of, story_sources
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer

TWO = """1 Mary moved to the bathroom.
2 John went to the hallway.
3 Where is Mary? \tbathroom\t1
4 Mary went to the garden.
5 Where is Mary?\tgarden\t4 1
1 The office is east of the hallway.
2 How do you go?\ts,e
"""


def one(path: Path, text: str) -> list[object]:
    path.write_text(text)
    [source] = story_sources(path.parent, path.name)
    return list(read_stories(source))


def test_a_question_sees_the_statements_before_it_and_no_other_question(tmp_path: Path) -> None:
    first, second, third = one(tmp_path / "qa1_simple_train.txt", TWO)
    assert first[:4] == (
        ("Mary moved to the bathroom.", "John went to the hallway."),
        "Where is Mary?",
        "bathroom",
        (0,),
    )
    assert second.sentences == (*first.sentences, "Mary went to the garden.")
    assert (second.answer, second.facts, second.story, second.task) == ("garden", (2, 0), 0, "qa1_simple")
    assert (third.sentences, third.answer, third.facts, third.story) == (
        ("The office is east of the hallway.",),
        "s,e",
        (),
        1,
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["Mary moved."], "line 1: expected a number, a space and a sentence"),
        (["1 Mary moved.", "3 John moved."], "line 2: expected the number 2, or 1 where a new story begins"),
        (["2 Mary moved."], "line 1: expected the number 1"),
        (["1 Where is Mary?\tgarden\t1"], "line 1: expected a statement before the first question"),
        (["1 Mary moved.", "2 Where?\t\t1"], "line 2: expected a question, a tab, its answer"),
        (["1 Mary moved.", "2 Where?\tgarden\t2"], "line 2: expected numbers of statements before it as supporting"),
        (["1 Mary moved.", "2 Where?\tgarden\tone"], "facts; got one"),
        (["1 Mary moved.", ""], "line 2: expected a number"),
        (["1 Mary moved."], "there is no question"),
    ],
)
def test_wrong_lines_are_named(tmp_path: Path, lines: list[str], said: str) -> None:
    with pytest.raises(InputError) as error:
        one(tmp_path / "bad.txt", "\n".join(lines) + "\n")
    assert any(said in problem for problem in error.value.problems)
    assert all("bad.txt" in problem for problem in error.value.problems)


def test_all_wrong_lines_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        one(tmp_path / "bad.txt", "x\n" * 25)
    assert len(error.value.problems) == 11
    assert "15 more lines like these" in error.value.problems[-1]


def test_patterns_know_numbers_and_archives(tmp_path: Path) -> None:
    names = ["qa10_c_train.txt", "qa2_b_train.txt", "qa1_a_train.txt", "qa1_a_test.txt"]
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        for name in names:
            (tmp_path / name).write_text(TWO)
            member = tarfile.TarInfo(f"en/{name}")
            member.size = len(TWO)
            archive.addfile(member, io.BytesIO(TWO.encode()))
    plain, packed = (story_sources(tmp_path, each) for each in ("qa*_train.txt", "all.tar.gz:en/qa*_train.txt"))
    assert [each.task for each in plain] == [each.task for each in packed] == ["qa1_a", "qa2_b", "qa10_c"]
    assert [read_stories(each) for each in plain] == [read_stories(each) for each in packed]
    assert {each.path.name for each in packed} == {"all.tar.gz"}
    for pattern in ("qb*.txt", "all.tar.gz:fr/*.txt", "qa2_b_trai.txt", "none.tar.gz:x"):
        with pytest.raises(InputError, match=r"no file|no such file"):
            story_sources(tmp_path, pattern)
    (tmp_path / "torn.tar.gz").write_bytes(b"no archive")
    with pytest.raises(InputError, match="not a tar archive"):
        story_sources(tmp_path, "torn.tar.gz:*")


@pytest.mark.parametrize(
    "text",
    [
        "Mary moved to Nr.5 now. John left!   Where is Mary?",
        "Mary moved to Nr.5 now.\nJohn left\n\nWhere is Mary?",
        '{"story": ["Mary moved to Nr.5 now.", "John  left"], "question": "Where is Mary?"}',
        '{"story": "Mary moved to Nr.5 now. John left.", "question": "Where is Mary?"}',
    ],
)
def test_a_story_may_be_written_in_several_ways(text: str) -> None:
    read = story_of(text)
    assert read.sentences == ["Mary moved to Nr.5 now", "John left", "Where is Mary"]
    assert read.facts == ()


def test_numbered_lines_are_a_story_whose_facts_are_known() -> None:
    text = "1 Mary left.\n2 John left!\n3 Where is Mary?\tgarden\t1\n4 Mary came.\n5 Where is Mary? \tattic\t4 1"
    read = story_of(text)
    assert read.sentences == ["Mary left", "John left", "Mary came", "Where is Mary"]
    assert (read.facts, read.question, read.text) == ((2, 0), "Where is Mary?", text)
    table = {"story": ["Mary left.", "Mary\ncame."], "question": "Where is Mary?", "facts": [2]}
    read = story_of(json.dumps(table))
    assert read.text == "1 Mary left.\n2 Mary came.\n3 Where is Mary?\t\t2"
    assert (read.sentences, read.facts) == (["Mary left", "Mary came", "Where is Mary"], (1,))
    for wrong in ("1 Mary left.\n2 Where?\t\t2", "1 Mary left.\n2 Where?\t\tx", "1 A?\tb\n2 Where?"):
        with pytest.raises(InputError, match=r"the question Where\?: expected"):
            story_of(wrong)


def test_a_file_s_question_survives_as_text(tmp_path: Path) -> None:
    for question in one(tmp_path / "qa1.txt", TWO):
        read = story_of(question.text)
        assert read.facts == question.facts
        bare = [each.rstrip(".?") for each in (*question.sentences, question.question)]
        assert read.sentences == bare


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Where is Mary?", "expected a story and a question"),
        ('{"story": []', "it cannot be read"),
        ('{"story": [], "question": "Where?"}', "a sentence at least"),
        ('{"story": ["a"], "question": 3}', "a sentence at least"),
        ('{"story": ["a"]}', "a sentence at least"),
        ('{"story": ["a"], "question": "b", "answer": "c"}', "the key 'answer'"),
        ('{"story": ["a"], "question": "b", "facts": [2]}', "numbers of sentences, 1 to 1"),
        ('{"story": ["a"], "question": "b", "facts": [true]}', "numbers of sentences, 1 to 1"),
        ("[" * 100_000, "expected a story"),
        ("{" * 100_000, "it cannot be read"),
    ],
)
def test_what_is_no_story_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        story_of(text)


def test_of_nothing_there_are_no_parts() -> None:
    assert story_of("  \n ").parts == ()


# ---- the column --------------------------------------------------------------------------------------------


def test_rows_are_sentences_and_a_question() -> None:
    config = TokenizerConfig(kind="whitespace", lowercase=True, min_frequency=1)
    tokenizer = train_tokenizer(config, ["mary moved to the garden where is"])
    column = Story.of(tokenizer)
    texts = ["Mary moved to the garden. To. Where is Mary?", "... Mary moved. Where?", "John. Is?"]
    rows = column.encode(texts)
    assert [column.tokens(row) for row in rows[:2]] == [
        ["mary", "moved", "to", "the", "garden", "</s>", "to", "</s>", "where", "is", "mary"],
        ["</s>", "mary", "moved", "</s>", "where"],
    ]
    read = column.collate([np.asarray(row, np.uint16) for row in rows])
    assert read.story.lengths.tolist() == [2, 2, 1]
    assert read.words.values.tolist() == [[5, 1], [0, 2], [1, 0]]
    assert read.question.lengths.tolist() == [3, 1, 1]
    for row, text in enumerate(texts):
        *sentences, question = tokenizer.encode(story_of(text).sentences)
        found = [
            story[:words].tolist() for story, words in zip(read.story.values[row], read.words.values[row], strict=True)
        ]
        assert found[: len(sentences)] == sentences
        assert read.question.values[row, : len(question)].tolist() == question
    closed = column.inputs([np.asarray(column.closed(row)) for row in rows])
    assert all(a.equal(b) for one, other in zip(read, closed, strict=True) for a, b in zip(one, other, strict=True))
    assert column.collate([np.empty(0, np.uint16)]).question.values.tolist() == [[tokenizer.unknown]]


def test_labels_may_be_words_of_the_texts() -> None:
    label = Label(("a", "b,c"), ((4,), (5, 6)))
    assert Label.from_dict(label.to_dict()) == label
    assert label.spec.words == ((4,), (5, 6))
    assert Label.from_dict(Label(("a", "b")).to_dict()) == Label(("a", "b"))
    for wrong in ([[4]], [[4], []], [[4], [-1]], [[4], [True]], "ab"):
        with pytest.raises(InputError):
            Label.from_dict({"labels": ["a", "b"], "words": wrong})
