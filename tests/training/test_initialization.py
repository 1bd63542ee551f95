"""A training that starts from another model: which weights it begins with."""

import io
from pathlib import Path

import pytest
import torch
from rich.console import Console

from transduce.core.errors import InputError
from transduce.core.model_file import lasting_tensors, load_model_file
from transduce.data.lexicon import read_links
from transduce.data.word_vectors import WordVectors, word_vectors
from transduce.layers.embedding import Embedding
from transduce.recipe.recipe import Recipe, load_recipe, parse_recipe
from transduce.training.display import Display
from transduce.training.initialization import begin_with, count_embeddings, new_training
from transduce.training.run import open_task, run_training


def begun(recipe: Recipe) -> tuple[dict[str, torch.Tensor], list[str]]:
    told: list[str] = []
    task, _ = open_task(recipe, Display(Console(file=io.StringIO())))
    return lasting_tensors(new_training(recipe, task, told.append).model), told


def test_of_the_same_kind_all(tiny_recipe: Path, tiny_run: Path) -> None:
    begins, told = begun(load_recipe(tiny_recipe, [f"training.start={tiny_run}"]))
    weights = load_model_file(tiny_run).weights
    assert begins.keys() == weights.keys()
    assert all(torch.equal(begins[name], weights[name]) for name in weights)
    assert not told


def test_of_another_kind_what_fits(tiny_recipe: Path, tiny_run: Path) -> None:
    kind = ["model.kind=non_autoregressive", "search.method=mask_predict"]
    begins, told = begun(load_recipe(tiny_recipe, [*kind, f"training.start={tiny_run}"]))
    anew, _ = begun(load_recipe(tiny_recipe, kind))
    weights = load_model_file(tiny_run).weights
    assert begins.keys() > weights.keys()
    for name, begin in begins.items():
        assert torch.equal(begin, weights[name] if name in weights else anew[name]), name
    new = ", ".join(dict.fromkeys(name.partition(".")[0] for name in begins if name not in weights))
    assert told == [f"training.start: {len(weights)} of {len(begins)} tensors are those of {tiny_run}; new: {new}."]


def test_what_has_nothing_in_common_or_other_sizes_is_refused(tiny_recipe: Path, tiny_run: Path) -> None:
    start = f"training.start={tiny_run}"
    with pytest.raises(InputError, match="another kind of model and shares no weight"):
        begun(load_recipe(tiny_recipe, [start, "model={kind='rnn', d_model=24}"]))
    with pytest.raises(InputError, match=r"Expected in \[model\] what it has: feed_forward = 32 \(here 48\)"):
        begun(load_recipe(tiny_recipe, [start, "model.feed_forward=48"]))


COUNTED = "training.embeddings=cooccurrence"


def test_embeddings_that_are_counted(tiny_recipe: Path) -> None:
    recipe = load_recipe(tiny_recipe, [COUNTED, "tokenizer.joint=false", "model.tied=output"])
    display = Display(Console(file=io.StringIO()))
    task, data = open_task(recipe, display)
    trained, drawn = new_training(recipe, task), new_training(recipe, task).model
    count_embeddings(trained, recipe, task, data, display)
    sizes = (task.specs.sizes[0], task.specs.target.size)
    source, target = word_vectors(read_links([data.corpora[0][0]]), sizes, 16)
    for name, side in (("source_embedding", source), ("target_embedding", target)):
        weight, before = getattr(trained.model, name).weight, getattr(drawn, name).weight
        seen = side.count_V > 0
        assert 0 < seen.sum() < len(seen)  # start and padding are nowhere
        length = before.norm(dim=1).mean()
        torch.testing.assert_close(weight[seen], side.rows_VW[seen] * length)
        assert torch.equal(weight[~seen], before[~seen])
    for name, weight in lasting_tensors(trained.model).items():
        assert torch.equal(trained.average.tensors()[name], weight), name
        if "embedding" not in name and "output" not in name:
            assert torch.equal(weight, lasting_tensors(drawn)[name]), name


def test_one_matrix_for_both_sides_begins_as_their_mean() -> None:
    embedding = Embedding(3, 2)
    before = embedding.weight.detach().clone()
    source = WordVectors(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]), torch.tensor([3.0, 1.0, 0.0]))
    target = WordVectors(torch.tensor([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]), torch.tensor([4.0, 0.0, 0.0]))
    begin_with(dict.fromkeys(("source_embedding", "target_embedding", "output"), embedding), source, target)
    length = before.norm(dim=1).mean()
    torch.testing.assert_close(embedding.weight[:2], torch.tensor([[0.6, 0.8], [1.0, 0.0]]) * length)
    assert torch.equal(embedding.weight[2], before[2])


@pytest.mark.parametrize("kind", ["rnn", "convolution", "ctc", "non_autoregressive", "ssru_transformer"])
def test_every_model_of_pairs_has_embeddings_to_count(kind: str, tiny_recipe: Path) -> None:
    changes = {"non_autoregressive": ["search.method=mask_predict"], "ctc": ["search.method=greedy"]}
    recipe = load_recipe(tiny_recipe, [COUNTED, f"model={{kind='{kind}', d_model=16}}", *changes.get(kind, [])])
    display = Display(Console(file=io.StringIO()))
    task, data = open_task(recipe, display)
    trained, drawn = new_training(recipe, task), new_training(recipe, task).model
    count_embeddings(trained, recipe, task, data, display)
    assert not torch.equal(trained.model.source_embedding.weight, drawn.source_embedding.weight)
    assert not torch.equal(trained.model.output.weight, drawn.output.weight)


def test_counting_is_refused_where_there_is_nothing_to_count(tiny_recipe: Path, tiny_run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="start takes the embeddings of another model"):
        load_recipe(tiny_recipe, [COUNTED, f"training.start={tiny_run}"])
    (tmp_path / "text.txt").write_text("a b\nb a\n")
    text = {"name": "lm", "task": {"kind": "language_modelling"}, "model": {"kind": "transformer_decoder"}}
    table = {
        **text,
        "data": {"train": [{"text": str(tmp_path / "text.txt")}]},
        "training": {"embeddings": "cooccurrence"},
    }
    with pytest.raises(InputError, match="is counted from pairs of texts"):
        run_training(parse_recipe(table, "lm"), tmp_path / "run", Display(Console(file=io.StringIO())))
    assert not (tmp_path / "run").exists()
    recipe = load_recipe(tiny_recipe, [COUNTED])
    display = Display(Console(file=io.StringIO()))
    task, data = open_task(recipe, display)
    trained = new_training(recipe, task)
    del trained.model.source_embedding
    with pytest.raises(InputError, match="Transformer lacks a `source_embedding` and an `output`"):
        count_embeddings(trained, recipe, task, data, display)
