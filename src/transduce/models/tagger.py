"""A text encoder, and the label of each word, with a linear-chain CRF above (Huang et al. 2015; Lample et al. 2016).

    w_1 .. w_N: see `transduce.layers.word_encoder`
    e_n = W dropout(w_n) + b,   p(y | x): see `transduce.layers.crf`

Shapes: B batch, N words, C labels.
"""

from typing import Literal

from torch import Tensor, nn

from transduce.core.errors import InputError
from transduce.data.columns import ColumnSpec, Specs
from transduce.data.columns.words import WordPieces
from transduce.layers.crf import LinearChain, log_marginals
from transduce.layers.word_encoder import WordEncoder, WordEncoderConfig


class TaggerConfig(WordEncoderConfig):
    """What reads, and the sizes and parts of `StackConfig`, which are mostly a Transformer's."""

    kind: Literal["tagger"] = "tagger"
    crf: bool | None = None
    """Whether each label is scored together with the one before it, by a conditional random field. Unset: where labels
    follow a scheme such as BIO. Predictions keep to the scheme in any case."""


class Tagger(WordEncoder):
    """Labels words (see `Classifies`, `LabelsWords` in `transduce.models.protocols`).

    Raises:
        InputError: the columns are not words and their labels.
    """

    Config = TaggerConfig

    def __init__(self, config: TaggerConfig, specs: Specs) -> None:
        source, target = _words_of(specs), specs.target
        super().__init__(config, source)
        self.output = nn.Linear(config.width, target.size)
        self.crf = bool(target.follows) if config.crf is None else config.crf
        self.chain = LinearChain(target.size, target.follows, learned=self.crf)

    def emissions(self, inputs: WordPieces) -> Tensor:
        """(B, N, C): the scores of each word's labels by themselves."""
        scores_BNC: Tensor = self.output(self.dropout(self.words(inputs)))
        return scores_BNC

    def classify(self, inputs: WordPieces) -> Tensor:
        """Logits (B, N, C): with a CRF log p(y_n | x), and -inf where a label cannot be."""
        scores_BNC = self.emissions(inputs)
        if not self.crf:
            return scores_BNC
        return log_marginals(scores_BNC.float(), inputs.firsts.lengths, self.chain.chain())


def _words_of(specs: Specs) -> ColumnSpec:
    """The column that is read. Raises InputError for another task."""
    if specs.source is None or specs.source.kind != "words" or specs.target.kind != "word_labels":
        raise InputError('[model] kind = "tagger": expected a task with words and their labels; got another one.')
    return specs.source
