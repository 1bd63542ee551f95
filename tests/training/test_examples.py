"""What a model file keeps for the explorer to open on: short sentences of its own domain."""

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from drawn_models import listener, machine, made
from random_models import language_model, translator
from random_models import listener as listener_of_speech
from transduce.core.bounded_json import table_of_settings
from transduce.core.model_file import load_model_file
from transduce.core.model_summary import describe
from transduce.data.columns.frames import Frames
from transduce.data.columns.tokens import Tokens
from transduce.data.speech.uploads import called
from transduce.data.speech.wav import wav
from transduce.data.store import Store
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.interpret.capabilities import described
from transduce.pipeline.pipeline import load
from transduce.tasks.protocols import Dataset
from transduce.training.examples import LETTERS, examples, opening_of

PIPELINE = translator()


class Rows:
    """A store of encoded lines."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.rows = [np.asarray(row, np.int32) for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, field: str, rows: np.ndarray) -> list[np.ndarray]:
        return [self.rows[row] for row in rows]


def held_out(texts: list[str], store: Store | None = None) -> Dataset:
    return Dataset(store, [(text, "target") for text in texts])  # type: ignore[arg-type]


def test_a_run_keeps_sources_of_its_validation_data(tiny_run: Path, tiny_corpus: Path) -> None:
    kept = load_model_file(tiny_run).provenance["examples"]
    lines = (tiny_corpus / "valid.digits").read_text(encoding="utf-8").splitlines()
    assert len(set(kept)) == 4 and set(kept) <= set(lines)
    assert all(4 <= len(text.split()) <= 12 for text in kept)
    assert describe(tiny_run)["provenance"]["examples"] == kept
    pipeline = load(tiny_run)
    opens = pipeline.provenance["opening"]
    assert opens == opening_of(pipeline.model, pipeline.task, kept, pipeline.recipe.search)
    told = described("m", pipeline.model, pipeline.task, pipeline.recipe, False, pipeline.provenance)
    assert told["opening"] == opens and opens["head"] in (0, 1)


def test_they_are_short_and_none_is_there_twice() -> None:
    texts = ["a", "one two three four", "", "one two three four", "w " * 200, "five six seven eight nine"]
    found = examples(PIPELINE.task, held_out(texts), 4)
    assert found == ["one two three four", "five six seven eight nine"]
    assert examples(PIPELINE.task, held_out(["两只狗在跑。", "x" * (LETTERS + 1)]), 4) == ["两只狗在跑。"]
    assert examples(PIPELINE.task, None, 4) == examples(PIPELINE.task, held_out([]), 0) == []


def test_of_long_texts_the_shortest_are_kept() -> None:
    """As of questions with their texts, of which none fits the box."""
    long = [f"where {'la ' * count}?\tla" for count in (200, 40, 900, 60)]
    assert examples(PIPELINE.task, held_out(long), 2) == [long[1], long[3]]
    assert examples(PIPELINE.task, held_out([*long, "ba de fi ka"]), 2) == ["ba de fi ka"]


def test_eight_to_twelve_words_come_before_fewer() -> None:
    long = [f"{number} b c d e f g h" for number in range(3)]
    assert examples(PIPELINE.task, held_out(["a b c d", *long, "a b c d e"]), 3) == long
    assert examples(PIPELINE.task, held_out(["a b c d", *long, "a b c d e"]), 5) == ["a b c d", *long, "a b c d e"]
    chinese = ["那只动物没有过马路。", "狗。"]  # nine characters and a mark are nine words
    assert examples(PIPELINE.task, held_out(chinese), 1) == chinese[:1]


def test_stories_with_three_facts_and_vectors_that_say_something() -> None:
    story = "1 ba de fi.\n2 go ku.\n3 fi go ba.\n4 where ba?\t\t{}"
    found = examples(listener().task, held_out([story.format(facts) for facts in ("2", "1 2 3", "1 2")]), 4)
    assert found == [story.format("1 2 3")]
    rows = [json.dumps([[0, 1, 0]] * set_ + [[0, 0, 0]] * 3) for set_ in (2, 8, 12, 13)]
    assert examples(machine().task, held_out(rows), 4) == rows[1:3]


def test_a_recording_is_kept_as_its_sound(tmp_path: Path) -> None:
    """The longest that is small enough, also from inside an archive; none of features."""
    task = listener_of_speech().task
    task.columns["source"] = replace(task.columns["source"], root=tmp_path)  # type: ignore[index, type-var]
    archive = tmp_path / "all.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for name, seconds in [("short.wav", 0.5), ("one.wav", 1.0), ("long.wav", 9.0)]:
            (tmp_path / name).write_bytes(wav(torch.sin(torch.arange(int(8000 * seconds)) / 9) / 2, 8000))
            packed.add(tmp_path / name, name)
    names = [f"all.tar.gz:{name}" for name in ("short.wav", "one.wav", "long.wav", "gone.wav")]
    [kept] = examples(task, held_out(names), 4)
    assert called(kept) == "one.wav"
    reads = task.columns["source"]
    assert isinstance(reads, Frames)
    np.testing.assert_array_equal(reads.encode([kept])[0], reads.encode(["all.tar.gz:one.wav"])[0])
    told = json.dumps({"examples": [kept]})
    assert table_of_settings(told) == {"examples": [kept]}, "a model file may hold it"
    assert examples(task, held_out(names), 0) == []


def test_those_asked_for_come_first() -> None:
    texts = [f"one two three {number}" for number in range(100)]
    found = examples(PIPELINE.task, held_out(texts), 4, ("the pair", "one two three 0"))
    assert found[:2] == ["the pair", "one two three 0"] and len(set(found)) == 4
    assert examples(PIPELINE.task, held_out(texts), 1, ("the pair", "its other half")) == ["the pair"]


def test_a_language_model_is_given_beginnings_of_lines() -> None:
    task = language_model().task
    words = task.tokenizers["target"]
    lines = ["ba de fi go ku ba de fi", "go ku ba de fi go ku", "ba de"]
    encoded = [words.encode([line])[0] for line in lines]
    row = [*encoded[0][3:], task.end, *encoded[1], task.end, *encoded[0]]
    found = examples(task, held_out([], Rows([encoded[0], row, encoded[2]])), 4)  # type: ignore[arg-type]
    assert found == ["ba de fi go ku ba", "go ku ba de fi go"]


def test_a_poem_without_spaces_begins_with_its_characters() -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="character", min_frequency=1), ["床前明月光，疑是地上霜。", "ab"])
    columns = {"target": Tokens(tokenizer, stream=True)}
    table = {"kind": "transformer_decoder", "d_model": 8, "heads": 2, "layers": 1}
    task = made({"kind": "language_modelling"}, {"train": [{"text": "a"}]}, columns, table, 1).task
    encoded = [tokenizer.encode([line])[0] for line in ("床前明月光，疑是地上霜。", "床前", "ab")]
    rows = Rows([[tokenizer.end, *each, tokenizer.end] for each in encoded])
    found = examples(task, held_out([], rows), 4)  # type: ignore[arg-type]
    assert found == ["床前明月光，"]


OPENS = {"layer": "encoder.blocks.0.self_attention", "head": 1, "row": 3}


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (OPENS, OPENS),
        (None, None),
        ([], None),
        ({**OPENS, "head": 2}, None),
        ({**OPENS, "head": True}, None),
        ({**OPENS, "row": -1}, None),
        ({**OPENS, "row": 10**9}, None),
        ({**OPENS, "layer": "encoder"}, None),
        ({**OPENS, "layer": ["x"]}, None),
        ({**OPENS, "more": 1}, None),
    ],
)
def test_an_opening_of_a_file_names_a_head_of_the_model(found: object, shown: object) -> None:
    told = described("m", PIPELINE.model, PIPELINE.task, PIPELINE.recipe, False, {"opening": found})
    assert told["opening"] == shown


@pytest.mark.parametrize("found", [None, "text", {"a": 1}, [1, None, ["x"], " ", "y" * 2001, "\ud800"], 7])
def test_a_file_may_hold_anything(found: object) -> None:
    """A file whose JSON says \\ud800 as well, which is no text."""
    told = described("m", PIPELINE.model, PIPELINE.task, PIPELINE.recipe, False, {"examples": found})
    assert told["examples"] == []
    json.dumps(told, ensure_ascii=False).encode()
