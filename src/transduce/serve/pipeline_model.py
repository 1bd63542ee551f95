"""A pipeline behind the server: torch's, which does everything, or CTranslate2's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from transduce.data.columns import Column
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.documents.runs import Link
from transduce.inference.example_texts import example_texts
from transduce.inference.familiarity import Familiarity
from transduce.inference.generates import generating
from transduce.inference.options import PredictionOptions
from transduce.inference.prediction import Prediction
from transduce.inference.sentences import Split
from transduce.inference.splitting import LongText, Pieces
from transduce.interpret.attention import Attention
from transduce.interpret.links import links
from transduce.kernels.matmul import make_programs
from transduce.pipeline.pipeline import Pipeline, load
from transduce.search.request import OnStep, Step
from transduce.search.settings import Search, search_settings
from transduce.serve.served_model import ModelUse


class PipelineModel:
    """A `ServedModel`; see there.

    Args:
        pipeline: is changed: its settings of search become those of `use`, and of speech it hears what `use` allows.

    Raises:
        InputError: the model cannot be searched so.
    """

    def __init__(self, pipeline: Pipeline, use: ModelUse) -> None:
        self.pipeline, self.datastore = pipeline, use.datastore
        search = search_settings(pipeline.recipe.search, dict(use.search))
        pipeline.recipe = pipeline.recipe.model_copy(update={"search": search})
        source = pipeline.task.columns.get("source")
        if source is not None:
            served = source.served(use.seconds, use.files)
            pipeline.task.columns = {**pipeline.task.columns, "source": served}
        if pipeline.searches:
            self.predict([""], PredictionOptions())  # what this model cannot be searched by is told of now

    @property
    def kind(self) -> str:
        return str(self.pipeline.recipe.to_table()["task"]["kind"])

    @property
    def languages(self) -> tuple[str, str]:
        return self.pipeline.task.languages

    @property
    def search(self) -> Search:
        """The recipe's, with those of `ModelUse` in their place."""
        return self.pipeline.recipe.search

    @property
    def max_source_length(self) -> int:
        return self.pipeline.task.max_source_length

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        """Trees and graphs have none of the source."""
        return self.pipeline.task.tokenizers

    @property
    def translates(self) -> bool:
        """Not a language model, nor one of speech."""
        return "source" in self.pipeline.task.columns and not self.accepts_audio

    @property
    def accepts_audio(self) -> bool:
        source = self.pipeline.task.columns.get("source")
        return source is not None and source.is_sound

    @property
    def examples(self) -> Sequence[str]:
        return example_texts(getattr(self.pipeline, "provenance", {}))  # folders of CTranslate2 hold none

    @property
    def familiarity(self) -> Familiarity:
        return self.pipeline.familiarity

    @property
    def attends(self) -> bool:
        """CTranslate2 shows nothing."""
        return self.pipeline.attends

    def length(self, text: str) -> int:
        return len(_reads(self.pipeline).encode([text])[0])

    def splits(self, split: Split) -> bool:
        return self.pipeline.splits(split)

    def pieces(self, texts: Sequence[str], split: Split = "auto", long: LongText = "split") -> Pieces:
        return self.pipeline.pieces(texts, split, long)

    def predict(self, texts: Sequence[str], options: PredictionOptions) -> list[Prediction]:
        how = replace(options, batch_size=len(texts), datastore=self.datastore)
        return self.pipeline.predict_all(texts, how)

    def stream(self, text: str, on_token: Callable[[str], None], options: PredictionOptions) -> Prediction:
        """Told while the search goes on."""
        [found] = self.predict([text], replace(options, on_step=_telling(self.pipeline, on_token)))
        return found

    def attention(self, prediction: Prediction) -> Attention:
        return self.pipeline.attention(prediction)

    def links(self, prediction: Prediction) -> Sequence[Link]:
        return links(prediction, self.attention(prediction))


def opened(path: Path, use: ModelUse) -> PipelineModel:
    """The model at a path, with torch or CTranslate2.

    Raises:
        InputError: there is none, or it cannot be used so.
    """
    if use.engine == "ctranslate2":
        from transduce.interop.ctranslate2_pipeline import CTranslate2Pipeline  # late: few servers need it

        return PipelineModel(CTranslate2Pipeline(path, use.precision, use.device, use.threads), use)
    pipeline = load(path, trust_code=use.trust_code, precision=use.precision, device=use.device)
    make_programs(pipeline.model)
    return PipelineModel(pipeline, use)


def _reads(pipeline: Pipeline) -> Column:
    """The column of what the model is given."""
    return pipeline.task.columns.get("source") or pipeline.task.columns["target"]


def _telling(pipeline: Pipeline, on_token: Callable[[str], None]) -> OnStep:
    """A callback that tells the output so far after each token."""
    task = generating(pipeline.task)

    def tell(step: Step) -> None:
        ids = step.tokens[0].tolist()
        if ids[-1] != task.end:
            on_token(task.tokenizers["target"].decode(ids))

    return tell
