"""Models by name, and which of them a request means."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import transduce
from random_models import language_model, model_file
from served import CODES, write_model
from transduce.core.errors import InputError
from transduce.core.languages import BY_CODE, name_of
from transduce.core.model_file import load_model_file, save_model_file
from transduce.serve.models import Models
from transduce.serve.plans import plan_of
from transduce.serve.schemas import TranslateRequest
from transduce.serve.served_model import ModelUse


def test_a_model_is_called_as_its_file_or_its_folder_or_as_said(served_file: Path, tmp_path: Path) -> None:
    run = tmp_path / "german"
    run.mkdir()
    for name in ("model.safetensors", "a=b.safetensors"):
        (run / name).write_bytes(served_file.read_bytes())
    asked = [served_file, run, f"x={served_file}", run / "a=b.safetensors"]
    assert [model.name for model in Models.open(asked)] == ["tiny", "german", "x", "a=b"]
    with pytest.raises(InputError, match=r"two models have the same name among german, german; name them: a=runs"):
        Models.open([run, run / "model.safetensors"])
    with pytest.raises(InputError, match="no such file"):
        Models.open([tmp_path / "gone"])
    with pytest.raises(InputError, match="no model to serve"):
        Models.open([])


def test_languages_choose_the_model(served_file: Path, tmp_path: Path) -> None:
    back = write_model(tmp_path / "back.safetensors", seed=5)
    models = Models.open([served_file, back])
    assert models.translator("de", "en").name == "tiny"
    assert models.default.name == "tiny"
    assert models.named("back").name == "back"
    with pytest.raises(InputError, match="en to de is not supported; this server translates de to en"):
        models.translator("en", "de")
    with pytest.raises(InputError, match='Did you mean "back"'):
        models.named("bakc")


def test_auto_is_a_models_own_language_or_says_that_there_are_several(tmp_path: Path) -> None:
    from random_models import translator

    paths = []
    for source in ("de", "fr"):
        paths.append(tmp_path / f"{source}.safetensors")
        save_model_file(paths[-1], model_file(translator(task=CODES | {"source": source})))
    asked = TranslateRequest(q="ba", source="auto", target="en")
    assert plan_of(Models.open(paths[:1]), asked).legs[0].name == "de"
    with pytest.raises(InputError, match="name one of de, fr"):
        plan_of(Models.open(paths), asked)
    assert Models.open(paths).translator("fr", "en").name == "fr"


def test_a_language_model_translates_nothing(tmp_path: Path) -> None:
    save_model_file(tmp_path / "lm.safetensors", model_file(language_model()))
    models = Models.open([tmp_path / "lm.safetensors"])
    assert not models.default.translates
    with pytest.raises(InputError, match="this server translates nothing"):
        models.translator("auto", "und")


def test_language_names() -> None:
    assert len(BY_CODE) == 184
    assert [name_of(code) for code in ("de", "zh", "pt-BR", "sr_Latn", "xx", "und")] == [
        *("German", "Chinese", "Portuguese (BR)", "Serbian (Latn)", "xx", "Undetermined")
    ]


def test_models_are_used_as_asked_or_refused_at_once(served_file: Path, tmp_path: Path) -> None:
    file = load_model_file(served_file)
    source, target = transduce.load(served_file).task.specs.sizes
    candidates = torch.randint(target, (source or 0, 2), dtype=torch.int32, generator=torch.manual_seed(1))
    path = tmp_path / "listed.safetensors"
    save_model_file(path, replace(file, lexicon=(candidates, torch.arange(3, 8, dtype=torch.int32))))
    served = Models.open([path], ModelUse(precision="int8", search={"shortlist": 2})).default.pipeline
    assert (served.precision, served.recipe.search.shortlist) == ("int8", 2)
    texts = ["ein Hund", "zwei Katzen und ein Hund"]
    expected = transduce.load(path, precision="int8").predict(texts, shortlist=2)
    assert [each.tokens for each in served.predict(texts)] == [each.tokens for each in expected]
    anything = transduce.load(path, precision="int8").predict(texts)
    assert [each.score for each in expected] != [each.score for each in anything]
    pruning = Models.open([served_file], ModelUse(search={"prune": 1e-9})).default.pipeline
    assert [each.tokens for each in pruning.predict(texts)] == [each.tokens for each in pruning.predict(texts, beam=1)]
    greedy = transduce.load(served_file).predict(texts, method="greedy")
    assert [each.tokens for each in pruning.predict(texts, method="greedy")] == [each.tokens for each in greedy]
    with pytest.raises(InputError, match="holds 2 candidates a token"):
        Models.open([path], ModelUse(search={"shortlist": 3}))
    with pytest.raises(InputError, match="transduce shortlist MODEL"):
        Models.open([served_file], ModelUse(search={"shortlist": 1}))
