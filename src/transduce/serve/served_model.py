"""What the server asks of a model, whatever computes it: torch, CTranslate2, or the kernels alone.

Nothing here imports torch, so that a server of translations starts without it.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.documents.runs import Link
from transduce.inference.familiarity import Familiarity
from transduce.inference.options import PredictionOptions
from transduce.inference.prediction import Prediction
from transduce.inference.sentences import Split
from transduce.inference.splitting import LongText, Pieces
from transduce.search.settings import Search

if TYPE_CHECKING:
    from transduce.interpret.attention import Attention
    from transduce.kernels.matmul import Precision
    from transduce.pipeline.pipeline import Pipeline

ServeEngine = Literal["auto", "kernels", "torch", "ctranslate2"]


class ModelUse(NamedTuple):
    """How models are used. search: keys of `transduce.search.settings.Search` in place of each recipe's.

    seconds: models of speech hear uploads of at most so long.
    files: they also hear files of this machine, by name, where only the machine's own user asks.
    engine: what computes. "kernels" needs no torch, and has Transformers that translate; "torch" has all models; "auto"
        is the kernels where they give the same answers, and torch for what they do not do, from when it is asked for.
        "ctranslate2" runs folders of CTranslate2; see `transduce.interop.ctranslate2_pipeline`.
    threads: of the model; None = as many as the engine takes by itself.
    datastores: of models, each as `path` or `name=path`. datastore: that of one model.
    """

    trust_code: bool = False
    precision: "Precision" = "fp32"
    device: str = "auto"
    search: Mapping[str, Any] = MappingProxyType({})
    seconds: float | None = 120.0
    files: bool = False
    engine: ServeEngine = "auto"
    threads: int | None = None
    datastores: Sequence[str] = ()
    datastore: Path | None = None


class ServedModel(Protocol):
    """One version of a model."""

    @property
    def kind(self) -> str:
        """Of its task."""
        ...

    @property
    def languages(self) -> tuple[str, str]:
        """The codes of what it reads and writes; "" where its recipe does not say."""
        ...

    @property
    def search(self) -> Search:
        """How it is searched unless a request says otherwise."""
        ...

    @property
    def max_source_length(self) -> int:
        """The longest text, in tokens, that is read in one piece."""
        ...

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        """Of the "target", and of the "source" where it reads text."""
        ...

    @property
    def translates(self) -> bool:
        """Whether it reads a text and writes another."""
        ...

    @property
    def accepts_audio(self) -> bool:
        """Whether it reads recordings."""
        ...

    @property
    def examples(self) -> Sequence[str]:
        """Texts to try it with, which its file holds."""
        ...

    @property
    def familiarity(self) -> Familiarity:
        """What its training texts were like, by which languages are told apart."""
        ...

    @property
    def attends(self) -> bool:
        """Whether `attention` and `links` can be asked."""
        ...

    @property
    def datastore(self) -> Path | None:
        """The translation memory that it consults, whose fuzzy matches can be asked for; None = none."""
        ...

    @property
    def pipeline(self) -> "Pipeline":
        """What can be looked into. Raises InputError where only translations are to be had."""
        ...

    def length(self, text: str) -> int:
        """How many tokens it reads of a text."""
        ...

    def splits(self, split: Split) -> bool:
        """Whether a text is cut into its sentences."""
        ...

    def pieces(self, texts: Sequence[str], split: Split = "auto", long: LongText = "split") -> Pieces:
        """How it reads texts: which spans of each by themselves."""
        ...

    def predict(self, texts: Sequence[str], options: PredictionOptions) -> list[Prediction]:
        """One a text, all searched together. Raises InputError for what it cannot do."""
        ...

    def stream(self, text: str, on_token: Callable[[str], None], options: PredictionOptions) -> Prediction:
        """The prediction of one text that is read in one piece, found greedily.

        hear: called with the output so far for each of its tokens; what it raises ends the work.
        """
        ...

    def attention(self, prediction: Prediction) -> "Attention":
        """What it attended to. Raises InputError where there is none."""
        ...

    def links(self, prediction: Prediction) -> Sequence[Link]:
        """Which words of the output and of its source belong together, by its attention."""
        ...
