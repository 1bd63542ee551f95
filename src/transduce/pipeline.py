"""A trained model, ready for use: `transduce.load(path)`."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import torch
from pydantic import ValidationError
from torch import nn

from transduce.data.tokenizer import Tokenizer
from transduce.errors import InputError
from transduce.inference import Advance, Likelihood, decode, pair_likelihoods
from transduce.linear import pack_all
from transduce.long_text import LongText, shorten
from transduce.model_file import ModelFile, check_weights, lasting_tensors, load_model_file
from transduce.names import resolve
from transduce.recipe import Recipe, explain, parse_recipe
from transduce.search.settings import Search
from transduce.tasks.protocols import Prediction, Task


class Pipeline:
    """Text in, predictions out.

    recipe: what the model was trained with; metrics, provenance: what its file says of it.
    """

    def __init__(self, file: ModelFile) -> None:
        self.recipe: Recipe = parse_recipe(file.config, "the model file's config")
        self.metrics = file.metrics
        self.provenance = file.provenance
        self.task: Task = make_task(self.recipe, unpack_tokenizers(file.tokenizers))
        self.model = make_model(self.recipe, self.task)
        load_weights(self.model, file.weights)
        self.model.eval()
        pack_all(self.model)

    def predict(
        self,
        texts: Sequence[str],
        *,
        batch_size: int = 64,
        long: LongText = "split",
        tell: Callable[[str], None] | None = None,
        advance: Advance | None = None,
        **search: Any,
    ) -> list[Prediction]:
        """One prediction a text, in order; each is what it would be alone. An empty text gives an empty prediction.

        Args:
            batch_size: texts searched together: speed and memory, nothing else.
            long: a text longer than the model can read is translated in pieces, cut off, or refused; of a prompt
                the end is kept.
            tell: told which texts were long and what became of them.
            advance: told how many more texts are done.
            search: any key of `transduce.search.settings.Search` in place of the recipe's: beam=5, alpha=0.75, ..

        Raises:
            InputError: a search setting is wrong; a text is too long and long="refuse".
        """
        settings = search_settings(self.recipe.search, search)
        pieces, owners = self._fit(texts, long, tell)
        found = decode(self.model, self.task, pieces, settings, batch_size, owners, advance)
        whole: list[list[Prediction]] = [[] for _ in texts]
        for owner, prediction in zip(owners, found, strict=True):
            whole[owner].append(prediction)
        return [_joined(text, parts) for text, parts in zip(texts, whole, strict=True)]

    def score(
        self, pairs: Sequence[tuple[str, str]], batch_size: int = 64, advance: Advance | None = None
    ) -> list[Likelihood]:
        """The log-probability of each given (source, target); of the target alone for a language model."""
        return pair_likelihoods(self.model, self.task, pairs, batch_size, advance)

    def _fit(
        self, texts: Sequence[str], long: LongText, tell: Callable[[str], None] | None
    ) -> tuple[list[str], list[int]]:
        """Pieces that the model can read, and the place of the text that each is part of."""
        reads = self.task.tokenizers.get("source")
        prompts, reads = reads is None, reads or self.task.tokenizers["target"]
        pieces: list[str] = []
        owners: list[int] = []
        problems = []
        for place, (text, ids) in enumerate(zip(texts, reads.encode(texts), strict=True)):
            parts = [text]
            if len(ids) > self.task.readable:
                parts, done = shorten(text, reads, self.task.readable, long, prompts)
                known = f"line {place + 1}: {len(ids)} tokens, the model reads {self.task.readable} at most"
                problems.append(f"{known}; shorten it, or ask for split or truncate.")
                if tell and long != "refuse":
                    tell(f"{known}; {done}")
            pieces += parts
            owners += [place] * len(parts)
        if problems and long == "refuse":
            raise InputError(problems)
        return pieces, owners


def load(path: str | PathLike[str], *, trust_code: bool = False) -> Pipeline:
    """The model in a run directory or a model file.

    Args:
        trust_code: let the file name classes outside Transduce, which are then imported: only if you trust its maker.

    Raises:
        InputError: no model there, or one that is damaged, foreign or too new.
    """
    return Pipeline(load_model_file(path, trust_code=trust_code))


def search_settings(recipe: Search, asked: dict[str, Any]) -> Search:
    """The recipe's settings with those asked for in their place.

    Raises:
        InputError: an unknown key, a wrong value, or keys that do not go together.
    """
    try:
        return Search.model_validate({**recipe.model_dump(), **asked})
    except ValidationError as error:
        raise InputError(explain(error, Search, "search")) from None


def make_task(recipe: Recipe, tokenizers: dict[str, Tokenizer]) -> Task:
    """The task of a recipe."""
    kind: str = recipe.task.kind  # type: ignore[attr-defined]
    task: Task = resolve("tasks", kind)(recipe.task, recipe.data, tokenizers)
    return task


def make_model(recipe: Recipe, task: Task) -> nn.Module:
    """The untrained model of a recipe; its random start is torch's global generator's."""
    kind: str = recipe.model.kind  # type: ignore[attr-defined]
    model: nn.Module = resolve("models", kind)(recipe.model, task.sizes)
    return model


def load_weights(model: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Copy `weights` into the model's parameters and lasting buffers.

    Raises:
        InputError: names or shapes differ; all differences are listed.
    """
    tensors = lasting_tensors(model)
    check_weights({name: tuple(tensor.shape) for name, tensor in tensors.items()}, weights)
    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.copy_(weights[name])


def pack_tokenizers(tokenizers: dict[str, Tokenizer]) -> dict[str, str]:
    """As a model file holds them: one text where both sides share one."""
    texts = {side: tokenizer.to_json() for side, tokenizer in tokenizers.items()}
    if len(texts) > 1 and len(set(texts.values())) == 1:
        return {"joint": next(iter(texts.values()))}
    return texts


def unpack_tokenizers(texts: dict[str, str]) -> dict[str, Tokenizer]:
    """What `pack_tokenizers` packed."""
    if "joint" in texts:
        joint = Tokenizer.from_json(texts["joint"], "the model file's tokenizer")
        return {"source": joint, "target": joint}
    return {side: Tokenizer.from_json(text, f"the model file's {side} tokenizer") for side, text in texts.items()}


def _joined(text: str, parts: list[Prediction]) -> Prediction:
    """One prediction for a text that was read in parts: texts joined by spaces, probabilities multiplied."""
    if len(parts) == 1:
        return parts[0]
    return Prediction(
        source=text,
        text=" ".join(part.text for part in parts),
        score=sum(part.score for part in parts),
        log_probability=sum(part.log_probability for part in parts),
        tokens=tuple(token for part in parts for token in part.tokens),
        token_log_probabilities=tuple(each for part in parts for each in part.token_log_probabilities),
        ended=all(part.ended for part in parts),
    )
