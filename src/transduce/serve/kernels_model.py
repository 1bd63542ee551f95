"""A translation model that the kernels compute, and for what they do not do the same model with torch."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from transduce.core.config_errors import explain
from transduce.core.errors import InputError
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.documents.runs import Link
from transduce.inference.familiarity import Familiarity
from transduce.inference.options import PredictionOptions
from transduce.inference.prediction import Prediction
from transduce.inference.sentences import Split
from transduce.inference.splitting import LongText, Pieces
from transduce.pipeline.again import searching_again
from transduce.search.plain_settings import METHODS, is_idle
from transduce.search.settings import Search, search_settings
from transduce.serve.served_model import ModelUse, ServedModel
from transduce.without_torch.choice import Engine, translator_of
from transduce.without_torch.translator import Translator

if TYPE_CHECKING:
    from transduce.interpret.attention import Attention
    from transduce.pipeline.pipeline import Pipeline

NEEDS_TORCH = (
    "this server translates without torch, which is needed for this: attention, sampling, generation and the explorer. "
    'Serve the model with the whole package (pip install "transduce[serve]") and --engine auto or torch.'
)


class KernelsModel:
    """A `ServedModel`; see there.

    Args:
        translator: is changed: its settings of search become those of `use`.
        with_torch: loads the same version of the model with torch; None = there is no torch, or it is not wanted.

    Raises:
        InputError: the model cannot be searched so.
    """

    translates, accepts_audio = True, False

    def __init__(
        self, translator: Translator, use: ModelUse, with_torch: "Callable[[], ServedModel] | None" = None
    ) -> None:
        self._translator, self._with_torch = translator, with_torch
        self._torch_model: ServedModel | None = None
        self._loading = threading.Lock()
        self.search = search_settings(_recipes_search(translator), dict(use.search))
        translator.search = self.search.model_dump()
        translator.again = searching_again(lambda: self.pipeline) if with_torch else None
        self.kind = str(translator.task.get("kind", "translation"))
        self.max_source_length = translator.max_source_length
        self.tokenizers: Mapping[str, Tokenizer] = {"source": translator.source_tokenizer, "target": translator.target}
        translator.predict([""])  # settings that this model cannot be searched by are told of now

    @property
    def languages(self) -> tuple[str, str]:
        """Of source and target."""
        source, target = (str(self._translator.task.get(side) or "") for side in ("source", "target"))
        return source, target

    @property
    def examples(self) -> Sequence[str]:
        return self._translator.examples

    @property
    def familiarity(self) -> Familiarity:
        return self._translator.familiarity

    @property
    def attends(self) -> bool:
        return self._with_torch is not None

    @property
    def datastore(self) -> Path | None:
        return None

    @property
    def pipeline(self) -> "Pipeline":
        """With torch, which is loaded now if it was not. Raises InputError where there is none."""
        return self.torch_model.pipeline

    @property
    def torch_model(self) -> ServedModel:
        """The same model with torch, likewise."""
        if self._with_torch is None:
            raise InputError(NEEDS_TORCH)
        with self._loading:
            if self._torch_model is None:
                self._torch_model = self._with_torch()
            return self._torch_model

    def length(self, text: str) -> int:
        return len(self._translator.source_tokenizer.encode([text])[0])

    def splits(self, split: Split) -> bool:
        return self._translator.splits(split)

    def pieces(self, texts: Sequence[str], split: Split = "auto", long: LongText = "split") -> Pieces:
        return self._translator.pieces(texts, split, long)

    def predict(self, texts: Sequence[str], options: PredictionOptions) -> list[Prediction]:
        """Without torch, unless the outputs are to be drawn."""
        if search_settings(self.search, dict(options.search)).method not in METHODS:
            return self.torch_model.predict(texts, options)
        read = {name: value for name, value in options.search.items() if not is_idle(name)}
        return self._translator.predict_all(texts, replace(options, batch_size=len(texts), search=read))

    def stream(self, text: str, on_token: Callable[[str], None], options: PredictionOptions) -> Prediction:
        """Told token by token once all are found, as the whole search is one call."""
        [found] = self.predict([text], options)
        target = self._translator.target
        ids = target.ids(found.tokens)
        for number in range(1, len(ids) + 1):
            on_token(target.decode(ids[:number]))
        return found

    def attention(self, prediction: Prediction) -> "Attention":
        return self.torch_model.attention(prediction)

    def links(self, prediction: Prediction) -> Sequence[Link]:
        return self.torch_model.links(prediction)


def opened(path: Path, use: ModelUse, with_torch: Callable[[], ServedModel] | None) -> KernelsModel | None:
    """The model at a path without torch; None where torch is to compute.

    Args:
        with_torch: see `KernelsModel`.

    Raises:
        InputError: it is to be without torch, and cannot.
    """
    engine: Engine = "kernels" if use.engine == "kernels" else "auto"
    translator = translator_of([path], engine, use.search, use.device, use.trust_code, precision=use.precision)
    return None if translator is None else KernelsModel(translator, use, with_torch)


def _recipes_search(translator: Translator) -> Search:
    try:
        return Search.model_validate(translator.search)
    except ValidationError as error:
        raise InputError(f"the model file's config: {each}" for each in explain(error, Search, "search")) from None
