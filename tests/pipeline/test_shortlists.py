"""Translation with a shortlist, from a model's file to its outputs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import transduce
from random_models import language_model, model_file, sentences, translator
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.data.lexicon import Lexicon
from transduce.pipeline.pipeline import EnsemblePipeline, Pipeline
from transduce.search.shortlist import Shortlisted

SEARCHES: list[dict[str, Any]] = [{"method": "greedy"}, {"beam": 4, "nbest": 4}, {"method": "sample", "seed": 1}]


def lexicon_of(pipeline: Pipeline, candidates: int = 5) -> Lexicon:
    """Of random translations."""
    size, drawn = pipeline.task.specs.target.size, np.random.default_rng(2)
    tables = drawn.integers(4, size, (size, candidates)), drawn.permutation(np.arange(4, size))[: candidates + 3]
    return Lexicon(*(each.astype(np.int32) for each in tables))


def told(pipeline: Pipeline, candidates: int = 5) -> Pipeline:
    pipeline.lexicon = lexicon_of(pipeline, candidates)
    return pipeline


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return told(translator())


def words(pipeline: Pipeline, text: str, count: int, beam: int) -> set[int]:
    """What the setting says, one token at a time."""
    lexicon = pipeline.lexicon
    assert lexicon is not None
    [ids] = pipeline.task.tokenizers["source"].encode([text])
    found = {word for token in [*ids, 2] for word in lexicon.candidates_SC[token, :count].tolist()}
    return found | set(lexicon.frequent_F[: max(count, beam)].tolist())


@pytest.mark.parametrize("asked", SEARCHES, ids=str)
def test_only_listed_words_are_said_alone_and_in_any_batch(pipeline: Pipeline, asked: dict[str, Any]) -> None:
    texts = sentences(60)
    found = pipeline.predict(texts, shortlist=2, **asked)
    free = pipeline.predict(texts, **asked)
    assert [each.text for each in found] != [each.text for each in free]
    for text, each in zip(texts, found, strict=True):
        said = set(pipeline.task.tokenizers["target"].ids(each.tokens))
        assert said <= words(pipeline, text, 2, asked.get("beam", 5))
    again = pipeline.predict(texts, shortlist=2, batch_size=7, **asked)
    assert [each.tokens for each in again] == [each.tokens for each in found]
    assert [each.score for each in again] == pytest.approx([each.score for each in found], abs=1e-5)


@pytest.mark.parametrize(("count", "beam"), [(1, 4), (4, 1)])
def test_a_list_has_as_many_frequent_words_as_the_beam_is_wide(count: int, beam: int) -> None:
    """So that every slot has something to say, however short the list; and no fewer than of candidates."""
    pipeline = translator()
    size = pipeline.task.specs.target.size
    frequent_F = np.arange(10, 20, dtype=np.int32)
    pipeline.lexicon = Lexicon(np.full((size, 5), 5, np.int32), frequent_F)  # whatever is read, 5 translates it
    texts = [text for text in sentences(60) if text]
    found = pipeline.predict(texts, shortlist=count, beam=beam, nbest=beam)
    tokenizer = pipeline.task.tokenizers["target"]
    said = {word for each in found for other in each.alternatives or [each] for word in tokenizer.ids(other.tokens)}
    assert said == {5, *frequent_F[:4].tolist()}


def test_a_table_of_all_words_is_none() -> None:
    """Greedily: a beam weighs probabilities, and what may not be said takes a share of them where there is no list."""
    pipeline = translator()
    size = pipeline.task.specs.target.size
    every = np.arange(size, dtype=np.int32)
    pipeline.lexicon = Lexicon(np.tile(every, (size, 1)), every)
    texts = sentences(40)
    some, free = (pipeline.predict(texts, method="greedy", shortlist=count) for count in (size, None))
    assert [each.tokens for each in some] == [each.tokens for each in free]


def test_phrases_that_must_appear_can() -> None:
    pipeline = told(translator("bpe"), 2)
    texts = [text for text in sentences(12) if text]
    for phrase in ("go", "zufällig", "la me"):
        if pipeline.task.tokenizers["target"].unknown in pipeline.task.tokenizers["target"].encode([phrase])[0]:
            continue
        found = pipeline.predict(texts, shortlist=2, beam=4, must=[phrase], max_length_offset=20)
        assert sum(not each.unmet for each in found) > len(found) // 2
        begun = pipeline.predict(texts, shortlist=2, beam=4, prefix=phrase)
        assert all(each.text.startswith(phrase) for each in begun)


def test_with_coverage(pipeline: Pipeline) -> None:
    texts = sentences(20)
    found = pipeline.predict(texts, shortlist=2, beam=3, coverage=0.3)
    again = pipeline.predict(texts, shortlist=2, beam=3, coverage=0.3, batch_size=3)
    plain = pipeline.predict(texts, shortlist=2, beam=3)
    assert [each.tokens for each in found] == [each.tokens for each in again]
    assert all(one.score <= other.score + 1e-5 for one, other in zip(found, plain, strict=True))


def test_an_ensemble_takes_the_first_ones_table(pipeline: Pipeline) -> None:
    both = EnsemblePipeline([pipeline, translator(seed=4)])
    texts = sentences(20)
    for text, each in zip(texts, both.predict(texts, shortlist=2, beam=3), strict=True):
        assert set(pipeline.task.tokenizers["target"].ids(each.tokens)) <= words(pipeline, text, 2, 3)
    with pytest.raises(InputError, match="transduce shortlist MODEL"):
        EnsemblePipeline([translator(seed=4), pipeline]).predict(texts, shortlist=2)


def test_what_cannot_be_is_refused(pipeline: Pipeline) -> None:
    with pytest.raises(InputError, match=r"has no table .* `transduce shortlist MODEL` learns one"):
        translator().predict(["ba"], shortlist=2)
    with pytest.raises(InputError, match=r"holds 5 candidates a token; .* --candidates 6"):
        pipeline.predict(["ba"], shortlist=6)
    with pytest.raises(InputError, match="a language model has no source"):
        language_model().predict(["ba"], shortlist=2)
    with pytest.raises(InputError, match="shortlist"):
        pipeline.predict(["ba"], shortlist=0)


def test_it_travels_in_the_file(pipeline: Pipeline, tmp_path: Path) -> None:
    assert pipeline.lexicon is not None
    tensors = torch.from_numpy(pipeline.lexicon.candidates_SC), torch.from_numpy(pipeline.lexicon.frequent_F)
    save_model_file(tmp_path / "a.safetensors", replace(model_file(pipeline), lexicon=tensors))
    loaded, texts = transduce.load(tmp_path / "a.safetensors"), sentences(10)
    found = loaded.predict(texts, shortlist=3)
    assert [each.text for each in found] == [each.text for each in pipeline.predict(texts, shortlist=3)]


@pytest.mark.parametrize("table", ["candidates", "frequent", "rows"])
def test_a_table_of_another_vocabulary_is_refused(pipeline: Pipeline, table: str, tmp_path: Path) -> None:
    assert pipeline.lexicon is not None
    candidates_SC, frequent_F = pipeline.lexicon.candidates_SC.copy(), pipeline.lexicon.frequent_F.copy()
    if table == "rows":
        candidates_SC = candidates_SC[:-1]
    else:
        (candidates_SC if table == "candidates" else frequent_F).flat[1] = pipeline.task.specs.target.size
    tensors = torch.from_numpy(candidates_SC), torch.from_numpy(frequent_F)
    save_model_file(tmp_path / "a.safetensors", replace(model_file(pipeline), lexicon=tensors))
    with pytest.raises(InputError, match="the model file's shortlist is of"):
        transduce.load(tmp_path / "a.safetensors")


def test_a_model_with_a_step_of_its_own_is_stepped() -> None:
    class Mine:
        def fused_search(self, memory: Any, longest: int) -> Any:
            raise AssertionError("step is another's")

    class Yours(Mine):
        def step(self, token: Any, memory: Any, state: Any) -> Any: ...

    memory: Any = Shortlisted(Yours(), torch.ones(1, 1, dtype=torch.bool))
    assert memory.fused_search(None, 3) is None
