"""Writes docs/recipes.md from the configs themselves; `tests/test_docs.py` fails when the page is out of date."""

import ast
import inspect
import sys
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from transduce.attention.rotary_scaling import RotaryScaling
from transduce.compare.axis import AxisConfig
from transduce.compare.config import CompareConfig
from transduce.core.config import Config
from transduce.data.batches import BatchConfig
from transduce.data.corpus import TextFile
from transduce.data.filters import FilterConfig
from transduce.data.hold_out import HoldOut
from transduce.data.labelled import LabelledFile
from transduce.data.members import FoldFile, MemberList
from transduce.data.pairs.pair_data import PairData
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.speech.recordings import RecordingFile, RecordingParts, Strings
from transduce.data.tagged import TaggedFile
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.models.bidaf import BidafConfig
from transduce.models.chart_parser import ChartParserConfig
from transduce.models.classifier import ClassifierConfig
from transduce.models.convolution import ConvolutionConfig
from transduce.models.ctc import CtcConfig
from transduce.models.graph_attention import GraphAttentionConfig
from transduce.models.graph_transformer import GraphTransformerConfig
from transduce.models.linear_transformer import LinearTransformerConfig
from transduce.models.linear_transformer_decoder import LinearTransformerDecoderConfig
from transduce.models.masked_language_model import MaskedLanguageModelConfig
from transduce.models.memory_network import MemoryNetworkConfig
from transduce.models.neural_turing_machine import NeuralTuringMachineConfig
from transduce.models.non_autoregressive import NonAutoregressiveConfig
from transduce.models.qanet import QanetConfig
from transduce.models.rnn import RnnConfig
from transduce.models.rnn_decoder import RnnDecoderConfig
from transduce.models.sentence_encoder import SentenceEncoderConfig
from transduce.models.span_reader import SpanReaderConfig
from transduce.models.ssru_transformer import SsruTransformerConfig
from transduce.models.tagger import TaggerConfig
from transduce.models.transformer import TransformerConfig
from transduce.models.transformer_decoder import TransformerDecoderConfig
from transduce.models.tree_lstm import TreeLstmConfig
from transduce.models.tree_transformer import TreeTransformerConfig
from transduce.models.vector_decoder import VectorDecoderConfig
from transduce.objectives.spec_augment import SpecAugmentConfig
from transduce.recipe.training import Backtranslation, Replay, Teachers, TrainingConfig
from transduce.search.settings import Search
from transduce.tasks.algorithmic import AlgorithmicConfig, AlgorithmicData, GeneratedExamples, HeldOutExamples
from transduce.tasks.classification import ClassificationConfig, ClassificationData
from transduce.tasks.extractive_qa import ExtractiveQaConfig, ExtractiveQaData, QuestionFile
from transduce.tasks.graph_classification import GraphClassificationConfig, GraphClassificationData
from transduce.tasks.language_modelling import LanguageModellingConfig, LanguageModellingData
from transduce.tasks.masked_language_modelling import MaskedLanguageModellingConfig
from transduce.tasks.node_classification import NodeClassificationConfig, NodeClassificationData
from transduce.tasks.parsing import ParsingConfig, ParsingData, TreebankFile
from transduce.tasks.question_answering import QuestionAnsweringConfig, QuestionAnsweringData, StoryFile
from transduce.tasks.speech_recognition import SpeechData, SpeechRecognitionConfig
from transduce.tasks.tagging import TaggingConfig, TaggingData
from transduce.tasks.translation import TranslationConfig
from transduce.tasks.tree_classification import LabelledTreeFile, TreeClassificationConfig, TreeClassificationData

PAGE = Path(__file__).with_name("recipes.md")
HEAD = """# Recipes

A recipe is a TOML file with the settings of a training. `transduce train RECIPE key=value ...` applies the settings
from the command line and writes the complete recipe into the run directory and the model file. `--dry-run` shows what
the training would do.

- `base = "other.toml"` takes all missing settings from another recipe, which may have a base itself.
- `name = ".."` names the run, by default as the file: `runs/NAME` is its directory. It is a name, not a path.
- The run directory is new, empty, or a run of this recipe, which then goes on. A folder with other files is refused,
  and nothing in it is overwritten; so is a run in which a file is a link to one elsewhere.
- A recipe of yours may name code of yours ([Adding a part of your own](extend.md)). A recipe that lies in a run
  directory may be anybody's: there, `--trust-code` is needed.
- An unknown key is an error that suggests the nearest known key.
- `none` unsets an optional key: `training.minutes=none`, `data.test=none`.
- A list with one entry may be written without brackets.
- A single test set needs no name: `test = { source = .., target = .. }`.

`python docs/make_recipes.py` makes this page from the code.
"""
SECTIONS: list[tuple[str, str, type[BaseModel]]] = [
    (
        '[task] kind = "translation"',
        "Text pairs. `evaluate`, `score` and `predict` read a .csv, .jsonl, .tmx or .tsv in the columns that the "
        "recipe names for this file, else for one of the same name, else for one of the same kind. A .tsv with no more "
        "columns than a source is read as one source a line.",
        TranslationConfig,
    ),
    (
        "[data] of translation",
        "`root` is relative to the working directory. File names are relative to `root`.",
        PairData,
    ),
    ("an entry of data.train, data.validation, data.test.NAME", "Text pairs.", PairFiles),
    (
        "[data.filters]",
        "Whole training pairs are dropped, counted and reported. Held-out pairs are never dropped for their size.",
        FilterConfig,
    ),
    (
        "[data.hold_out]",
        "In the place of files: `hold_out = { validation = 1000, test = 1000 }`. The same text or nearly the same "
        "stays on one side. A run has the drawn pairs in `held_out/`; see [planning.md](planning.md).",
        HoldOut,
    ),
    ('[task] kind = "language_modelling"', "Text without translations.", LanguageModellingConfig),
    ("[data] of language_modelling", "", LanguageModellingData),
    (
        '[task] kind = "masked_language_modelling"',
        "Text whose hidden words are predicted; see [pretraining.md](pretraining.md). [data] is that of "
        "language_modelling.",
        MaskedLanguageModellingConfig,
    ),
    ("an entry of data.train, data.validation, data.test.NAME", "Text.", TextFile),
    (
        '[task] kind = "parsing"',
        'Sentences to phrase-structure trees. Most models write a tree token by token; `[model] kind = "chart_parser"` '
        "finds the likeliest of all trees over a sentence of up to 512 words. Words stand between spaces; brackets "
        "are written -LRB- and -RRB-.",
        ParsingConfig,
    ),
    ("[data] of parsing", "", ParsingData),
    (
        "an entry of data.train, data.validation, data.test.NAME",
        "Trees in brackets. Empty elements and function tags are left out.",
        TreebankFile,
    ),
    ('[task] kind = "speech_recognition"', "Speech to text.", SpeechRecognitionConfig),
    (
        "[data] of speech_recognition",
        "`words` and `pattern` read data sets that have no table of their own; see recipes/fsdd.toml.",
        SpeechData,
    ),
    ("an entry of data.train, data.validation, data.test.NAME", "Recordings.", RecordingFile),
    ("`parts` of such an entry", "Which recordings are read, where nobody has split them.", RecordingParts),
    ("`strings` of such an entry", "Utterances made of several recordings.", Strings),
    ("[data.spec_augment]", "Training hides stretches of time and bands of features.", SpecAugmentConfig),
    ('[task] kind = "extractive_qa"', "Questions on texts, answered by spans of the texts.", ExtractiveQaConfig),
    ("[data] of extractive_qa", "", ExtractiveQaData),
    ("an entry of data.train, data.validation, data.test.NAME", "Questions in SQuAD's JSON.", QuestionFile),
    (
        '[task] kind = "classification"',
        "Texts, or pairs of texts, to labels, which are learnt from the training files and kept in the model file. "
        "`predict` takes a pair as one line with a tab between, or a .csv or .jsonl with the recipe's columns.",
        ClassificationConfig,
    ),
    ("[data] of classification", "", ClassificationData),
    (
        "an entry of data.train, data.validation, data.test.NAME",
        'Texts and their labels. Pairs: `text = [0, 1]`, or by name `text = ["premise", "hypothesis"]`; both texts are '
        "read one after the other with the end token between.",
        LabelledFile,
    ),
    (
        '[task] kind = "node_classification"',
        "The nodes of one graph to labels. The model file keeps the graph with the names of its nodes. `predict` takes "
        "a node a line: its name, or its number where no name is a number.",
        NodeClassificationConfig,
    ),
    (
        "[data] of node_classification",
        'A node is in one part. Lists are files of their own: `train = { file = "train.txt" }`, '
        '`validation = { file = "val.csv", column = "paper" }`, `test = { file = "test.txt" }`.',
        NodeClassificationData,
    ),
    (
        "an entry of data.train, data.validation, data.test.NAME that is a list",
        "Of node_classification and graph_classification. A node or a graph that is named twice, stands in two parts, "
        "is unknown or has no label is an error, which names file and line.",
        MemberList,
    ),
    (
        '[task] kind = "graph_classification"',
        'Graphs to labels. `predict` takes one as a line `{"nodes": [..], "edges": [[0, 1], ..]}`, where a node is a '
        'tag, which is a whole number, or a list of numbers. `"names": [..]`, one a node, stand in pictures.',
        GraphClassificationConfig,
    ),
    (
        "[data] of graph_classification",
        'Folds are drawn, or stated: `folds = { file = "folds.csv" }`. Instead there may be lists, as of nodes: '
        '`test = { file = "test.txt" }`. Lists and folds name a graph by the `"id"` that it has in a .jsonl, or by its '
        "number in the file, from 0.",
        GraphClassificationData,
    ),
    ("data.folds of graph_classification that is a file", "", FoldFile),
    (
        '[task] kind = "tree_classification"',
        "Trees to a label for each of their nodes. `predict` takes a tree in brackets a line, with or without labels, "
        "such as `((The) ((best) (film)))`, and writes it with labels.",
        TreeClassificationConfig,
    ),
    ("[data] of tree_classification", "", TreeClassificationData),
    ("an entry of data.train, data.validation, data.test.NAME", "Trees.", LabelledTreeFile),
    (
        '[task] kind = "tagging"',
        "Texts to a label for each of their words: parts of speech, names of people and places, words of text without "
        "spaces. `predict` takes a text a line and writes its labels with spaces between; `--format conll` writes a "
        "word and its label a line, `--format entities` the spans. [A file and a recipe](tagging.md).",
        TaggingConfig,
    ),
    ("[data] of tagging", "", TaggingData),
    ("an entry of data.train, data.validation, data.test.NAME of tagging", "Words with labels.", TaggedFile),
    (
        '[task] kind = "algorithmic"',
        "Sequences of vectors to vectors: the tasks of Graves et al. 2014. Examples are generated from the seed, so "
        "there are no files, and no [tokenizer] or [batch]. Inputs and outputs are rows of numbers as JSON.",
        AlgorithmicConfig,
    ),
    ("[data] of algorithmic", "", AlgorithmicData),
    ("[data.train] of algorithmic", "", GeneratedExamples),
    ("data.validation and an entry data.test.NAME of algorithmic", "", HeldOutExamples),
    (
        '[task] kind = "question_answering"',
        "Questions on stories, answered by one of the answers of the training files: the bAbI tasks. `predict` takes a "
        'story and a question behind it, one a line, or {"story": ["..", ..], "question": ".."}. There is no [batch].',
        QuestionAnsweringConfig,
    ),
    ("[data] of question_answering", "", QuestionAnsweringData),
    (
        "an entry of data.train, data.validation, data.test.NAME of question_answering",
        "Stories in bAbI's format. The table of scores has a line for each file, whose name is that of its task.",
        StoryFile,
    ),
    (
        "[tokenizer]",
        "The tokenizer is trained on the training text. `[tokenizer.source]` and `[tokenizer.target]` have the same "
        "keys, and those of [tokenizer] where they do not say their own.",
        TokenizerConfig,
    ),
    ("[batch]", "", BatchConfig),
    ('[model] kind = "transformer"', "Encoder and decoder.", TransformerConfig),
    ('[model] kind = "convolution"', "Encoder and decoder of gated convolutions, with attention.", ConvolutionConfig),
    ('[model] kind = "rnn"', "Recurrent encoder and decoder, with or without attention.", RnnConfig),
    ('[model] kind = "rnn_decoder"', "For language modelling.", RnnDecoderConfig),
    ('[model] kind = "transformer_decoder"', "For language modelling.", TransformerDecoderConfig),
    (
        "[model.rotary_scaling]",
        'With `positions = "rotary"`: frequencies are divided, so that a model reads longer texts than before.',
        RotaryScaling,
    ),
    ('[model] kind = "linear_transformer"', "Encoder and decoder with linear attention.", LinearTransformerConfig),
    (
        '[model] kind = "ssru_transformer"',
        "A Transformer whose decoder uses a recurrent unit instead of self-attention.",
        SsruTransformerConfig,
    ),
    ('[model] kind = "linear_transformer_decoder"', "For language modelling.", LinearTransformerDecoderConfig),
    (
        '[model] kind = "non_autoregressive"',
        "Writes all words at once. Train it on a teacher's translations (`transduce distill`).",
        NonAutoregressiveConfig,
    ),
    (
        '[model] kind = "ctc"',
        "Writes all words at once, in one pass. Train it on a teacher's translations, or on data that vary little.",
        CtcConfig,
    ),
    ('[model] kind = "bidaf"', "For extractive_qa: LSTMs with attention between text and question.", BidafConfig),
    (
        '[model] kind = "span_reader"',
        "For extractive_qa: one encoder that reads question and text together, as BERT does. Settings that the chosen "
        "encoder does not read are refused.",
        SpanReaderConfig,
    ),
    (
        '[model] kind = "masked_language_model"',
        "For masked_language_modelling: an encoder that predicts hidden words. Trainings of other tasks start from it.",
        MaskedLanguageModelConfig,
    ),
    (
        '[model] kind = "sentence_encoder"',
        "What an encoder of Hugging Face without a head becomes: it gives each text a vector, and is not trained here. "
        "Trainings of other tasks start from it.",
        SentenceEncoderConfig,
    ),
    ('[model] kind = "qanet"', "For extractive_qa: convolutions and self-attention.", QanetConfig),
    (
        '[model] kind = "classifier"',
        "For classification: an encoder, what it says of the whole text, and a label. Settings that the chosen encoder "
        "does not read are refused.",
        ClassifierConfig,
    ),
    (
        '[model] kind = "tagger"',
        "For tagging: an encoder of pieces and characters of words, and a linear-chain CRF. Settings that the chosen "
        "encoder does not read are refused.",
        TaggerConfig,
    ),
    (
        '[model] kind = "chart_parser"',
        "For parsing: the encoder of a tagger, scores of spans with a conditional random field over trees, and the tag "
        "of each word. Settings that the chosen encoder does not read are refused.",
        ChartParserConfig,
    ),
    ('[model] kind = "tree_lstm"', "For tree_classification.", TreeLstmConfig),
    (
        '[model] kind = "tree_transformer"',
        "For tree_classification: attention along the edges of a tree, or a flat one of the same size.",
        TreeTransformerConfig,
    ),
    (
        '[model] kind = "graph_attention"',
        "For node_classification and graph_classification: each node attends to its neighbors.",
        GraphAttentionConfig,
    ),
    (
        '[model] kind = "graph_transformer"',
        "For node_classification and graph_classification: a Transformer encoder that attends along edges alone.",
        GraphTransformerConfig,
    ),
    (
        '[model] kind = "memory_network"',
        "For question_answering: reads the sentences of a story several times (Sukhbaatar et al. 2015).",
        MemoryNetworkConfig,
    ),
    (
        '[model] kind = "neural_turing_machine"',
        "For algorithmic: a controller with an external memory.",
        NeuralTuringMachineConfig,
    ),
    (
        '[model] kind = "vector_decoder"',
        "For algorithmic: an LSTM or a causal Transformer. Settings that the chosen network does not read are refused.",
        VectorDecoderConfig,
    ),
    ("[training]", "", TrainingConfig),
    (
        "[teachers]",
        "Optional. `transduce train` first trains teachers, then trains the model on their translations.",
        Teachers,
    ),
    (
        "[backtranslation]",
        "Optional. `transduce train` first trains a model of the other direction, which writes sources for further "
        "texts of the target language. `transduce translate-back` does this with a model that there is.",
        Backtranslation,
    ),
    (
        "[replay]",
        "Optional, with training.start. `transduce train` first collects pairs that the model to start from knows, see "
        "[planning.md](planning.md#fine-tuning).",
        Replay,
    ),
    ("[search]", "The defaults of `predict`, and the settings of the final tests.", Search),
    ("[compare]", "In the file of a comparison, not in a recipe: see [compare.md](compare.md).", CompareConfig),
    (
        "[compare.axis]",
        "What changes beside the variants: one of `key` with `values`, `tests` and `lengths`.",
        AxisConfig,
    ),
]


def page() -> str:
    """The whole page."""
    return HEAD + "".join(_section(*section) for section in SECTIONS)


def _section(title: str, text: str, config: type[BaseModel]) -> str:
    texts = _texts(config)
    shown = {name: field for name, field in config.model_fields.items() if not _is_fixed(field)}
    rows = "".join(_row(name, field, texts.get(name, "")) for name, field in shown.items())
    intro = f"\n{text}\n" if text else ""
    return f"\n## {title}\n{intro}\n| key | default | |\n|---|---|---|\n{rows}"


def _is_fixed(field: Any) -> bool:
    """Whether a key has one possible value: the kind that the title names, or a key that this kind does not use."""
    return len(get_args(field.annotation)) == 1


def _row(name: str, field: Any, text: str) -> str:
    default = "required" if field.is_required() else _default(field)
    return f"| `{name}` | {default} | {_one_line(text)} |\n"


def _texts(config: type[BaseModel]) -> dict[str, str]:
    """The text under each key, in this class and its bases. It is not read at import, where it would take 0.1 s."""
    found: dict[str, str] = {}
    for kind in reversed([each for each in config.__mro__ if issubclass(each, Config) and each is not Config]):
        (defined,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        assert isinstance(defined, ast.ClassDef)
        for one, next_one in pairwise(defined.body):
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                found.pop(one.target.id, None)
                if isinstance(next_one, ast.Expr) and isinstance(next_one.value, ast.Constant):
                    found[one.target.id] = inspect.cleandoc(str(next_one.value.value))
    return found


def _default(field: Any) -> str:
    value = field.get_default(call_default_factory=True)
    if value is None:
        return ""
    if value is PydanticUndefined or isinstance(value, BaseModel | dict):
        return "see there" if isinstance(value, BaseModel) else ""
    if isinstance(value, tuple):
        return f"`{list(value)}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`" if value != "" else ""


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
