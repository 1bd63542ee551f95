"""BERT, DistilBERT, RoBERTa, XLM-R, CamemBERT and ELECTRA: folders of Hugging Face with an encoder of texts.

| model_type | positions | around a text | the head of a classifier |
|---|---|---|---|
| `bert` | learned, from row 0 | `[CLS] x [SEP]` | a layer with tanh over the first state, then one of logits |
| `distilbert` | the same | the same | the same with relu |
| `electra` | the same; narrow embeddings are widened | the same | the same with gelu |
| `roberta`, `xlm-roberta`, `camembert` | learned, from row 2 | `<s> x </s>` | the same with tanh |

A folder with a head for labels of texts becomes a classifier, one for labels of words a `tagger`, one for spans a
`span_reader`, and one for hidden words a `masked_language_model`. Any other becomes a `sentence_encoder`, whose head is
left out, which is told.

Shapes: D model width, T positions, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from transduce.core.bounded_file import bounded_text
from transduce.core.errors import InputError
from transduce.core.model_file import ModelFile
from transduce.core.printable import NAMED, quoted
from transduce.data.columns import Column
from transduce.data.columns.label import Label
from transduce.data.columns.masked_text import MaskedText
from transduce.data.columns.question_context import QuestionContext
from transduce.data.columns.span import Span
from transduce.data.columns.text_pair import TextPair
from transduce.data.columns.text_vector import TextVector
from transduce.data.columns.tokens import Tokens
from transduce.data.columns.word_labels import WordLabels
from transduce.data.columns.words import Words
from transduce.data.structures.label_schemes import scheme_of
from transduce.data.tokenizers.text_ids import ABSENT
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.interop.foreign_folder import ForeignFolder, ForeignTensors
from transduce.interop.import_bart import ACTIVATIONS, Weights, affine
from transduce.interop.import_columns import HOW
from transduce.interop.import_tokenizer import LARGEST, json_of, of_bytes, of_wordpieces, tokenizer_file
from transduce.interop.imported_file import imported_file

AROUND = 2  # positions of tokens around a text
PAIRS = {"train": [{"file": "unknown", "text": [0, 1], "label": 2}]}  # two texts and a label a line
POSITION_IDS = "embeddings.position_ids"  # a buffer: the numbers from 0


class MaskedHead(NamedTuple):
    """The tensors of a head that predicts hidden words: its linear map, its norm, and below what its bias is."""

    dense: str
    norm: str
    bias: str


OF_BERT = MaskedHead("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions")


@dataclass(frozen=True)
class Names:
    """What a family calls its settings and its tensors.

    width .. heads: keys of the config. positions: the row of the first position.
    layer: of layer N. query .. outer_norm: within it. pooler, output: of a classifier's head, below the prefix or not.
    masked: of the head that predicts hidden words.
    """

    width: str = "hidden_size"
    layers: str = "num_hidden_layers"
    heads: str = "num_attention_heads"
    feed_forward: str = "intermediate_size"
    activation: str = "hidden_act"
    dropout: str = "hidden_dropout_prob"
    inner_dropout: str = "attention_probs_dropout_prob"
    positions: int = 0
    layer: str = "encoder.layer"
    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    output: str = "attention.output.dense"
    norm: str = "attention.output.LayerNorm"
    inner: str = "intermediate.dense"
    outer: str = "output.dense"
    outer_norm: str = "output.LayerNorm"
    pooler: tuple[str, str] = ("pooler.dense", "tanh")
    classifier: str = "classifier"
    masked: MaskedHead = OF_BERT


BERT = Names()
ROBERTA = Names(
    positions=2,
    pooler=("classifier.dense", "tanh"),
    classifier="classifier.out_proj",
    masked=MaskedHead("lm_head.dense", "lm_head.layer_norm", "lm_head"),
)
ELECTRA = Names(
    pooler=("classifier.dense", "gelu"),
    classifier="classifier.out_proj",
    masked=MaskedHead("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head"),
)
DISTILBERT = Names(
    width="dim",
    layers="n_layers",
    heads="n_heads",
    feed_forward="hidden_dim",
    activation="activation",
    dropout="dropout",
    inner_dropout="attention_dropout",
    layer="transformer.layer",
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    output="attention.out_lin",
    norm="sa_layer_norm",
    inner="ffn.lin1",
    outer="ffn.lin2",
    outer_norm="output_layer_norm",
    pooler=("pre_classifier", "relu"),
    masked=MaskedHead("vocab_transform", "vocab_layer_norm", "vocab_projector"),
)
FAMILIES = {
    "bert": BERT,
    "distilbert": DISTILBERT,
    "electra": ELECTRA,
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "camembert": ROBERTA,
}
"""By the model_type of a config.json."""
PREFIXES = ("", "bert.", "distilbert.", "electra.", "roberta.")


def read_encoder(
    folder: ForeignFolder, name: str, origin: Callable[[], dict[str, Any]], pairs: bool = False
) -> tuple[ModelFile, list[str]]:
    """The model file of a folder with an encoder, and what is to be told of it.

    Args:
        name: of the recipe that is written into the file.
        origin: gives its provenance, which takes long: every file is read.
        pairs: of a classifier: whether it reads pairs of texts, which its folder does not say.

    Raises:
        InputError: settings that our encoders do not have; tensors are missing, or are not known; no tokenizer; pairs
            for what is no classifier of texts.
    """
    if pairs and not _has_head(folder, "ForSequenceClassification"):
        raise InputError(f"{folder.path}: pairs of texts are read by classifiers of texts; this is another model.")
    kind = folder.get("model_type", str)
    names, tensors = FAMILIES[kind], folder.tensors()
    table, weights = _encoder(folder, tensors, names)
    tokenizer = _tokenizer(folder, kind, weights["source_embedding.weight"].shape[0])
    source = _source(tokenizer, TextPair if pairs else Tokens, twice=names is ROBERTA)
    head = _head(folder, tensors, weights, source, table)
    left = sorted({each.partition(".")[0] for each in tensors.left() if not each.endswith(POSITION_IDS)})
    data = {"train": [{"file": "unknown"}], **head.data}
    recipe = {"name": name, "task": head.task, "data": data, "model": {**table, **head.model}}
    notes = [f"left out: {', '.join(left)}, which this model does not need."] if left else []
    return imported_file(recipe, weights, {"source": head.source, "target": head.target}, origin()), notes


@dataclass(frozen=True)
class EncoderHead:
    """What stands on an encoder: sections of a recipe, and the columns of its task."""

    task: dict[str, Any]
    data: dict[str, Any]
    model: dict[str, Any]
    source: Column
    target: Column


def _head(
    folder: ForeignFolder, tensors: ForeignTensors, weights: Weights, source: Tokens, table: dict[str, Any]
) -> EncoderHead:
    """The head that the folder's architecture has, which is put among the weights."""
    longest = max(1, table["max_length"] - AROUND)
    limits = {"filters": {"max_tokens": longest, "max_ratio": 1_000_000}}
    if _has_head(folder, "ForSequenceClassification"):
        model = _classifier(folder, tensors, weights)
        data = {**limits, **(PAIRS if isinstance(source, TextPair) else {})}
        return EncoderHead({"kind": "classification"}, data, model, source, Label(_labels(folder)))
    if _has_head(folder, "ForTokenClassification"):
        affine(tensors, weights, "classifier", "output")
        words, labels, model = _words(source), _labels(folder), {"kind": "tagger", "crf": False}
        target = WordLabels(labels, scheme=_scheme(labels))
        return EncoderHead({"kind": "tagging"}, {**limits, "unit": words.unit}, model, words, target)
    if _has_head(folder, "ForQuestionAnswering"):
        reads = QuestionContext(source.tokenizer, ends=True, before=source.before, between=source.between)
        return EncoderHead(_windows(longest), {}, _pointer(tensors, weights), reads, Span())
    if _predicts_masked(folder, tensors, source):
        masked = MaskedText(source.tokenizer, ends=True, before=source.before, between=source.between)
        task = {"kind": "masked_language_modelling", "context": max(2, longest)}
        data = {"train": [{"text": "unknown"}]}
        return EncoderHead(task, data, _masked(folder, tensors, weights), masked, Tokens(source.tokenizer, ends=True))
    return EncoderHead({"kind": "text_encoding"}, limits, _pooling(folder), source, TextVector(table["d_model"]))


def _source(tokenizer: Tokenizer, column: type[Tokens], twice: bool) -> Tokens:
    """What is read, a token before it. twice: two end tokens stand between texts."""
    start, end = tokenizer.tokens([tokenizer.start, tokenizer.end])
    return column(tokenizer, ends=True, before=(start,), between=(end, end) if twice else ())


def _words(source: Tokens) -> Words:
    """The words of raw text, punctuation apart, as such models saw it in training."""
    end = tuple(source.tokenizer.tokens([source.end]))
    tokenizer = source.tokenizer
    return Words(tokenizer, before=source.before, after=end, unit="split", spaced=tokenizer.spaces_words)


def _scheme(labels: Sequence[str]) -> str:
    """The scheme by which labels follow each other; "none" where a span may begin with I-, as in IOB1."""
    begin, inside = ({each[2:] for each in labels if each.startswith(letter)} for letter in ("B-", "I-"))
    found = scheme_of(labels)
    return "none" if found == "bio" and inside - begin else found


def _has_head(folder: ForeignFolder, name: str) -> bool:
    return any(str(each).endswith(name) for each in folder.get("architectures", list, []))


def _predicts_masked(folder: ForeignFolder, tensors: ForeignTensors, source: Tokens) -> bool:
    """Whether there is a head for hidden words, with a norm and gelu as ours has, and a token that hides them."""
    names = FAMILIES[folder.get("model_type", str)]
    known = folder.get(names.activation, str, "gelu") == "gelu" and source.tokenizer.mask != ABSENT
    wanted = any(_has_head(folder, name) for name in ("ForMaskedLM", "ForPreTraining"))
    return wanted and known and f"{names.masked.dense}.weight" in tensors


def _masked(folder: ForeignFolder, tensors: ForeignTensors, weights: Weights) -> dict[str, Any]:
    """The [model] keys of a model that predicts hidden words, whose head is put among the weights.

    Raises:
        InputError: its output is not the matrix of its embeddings.
    """
    head = FAMILIES[folder.get("model_type", str)].masked
    affine(tensors, weights, head.dense, "prediction.dense")
    affine(tensors, weights, head.norm, "prediction.norm")
    weights["prediction.bias"] = tensors.take(f"{head.bias}.bias", f"{head.bias}.decoder.bias")
    tensors.spare(f"{head.bias}.decoder.bias", f"{head.bias}.bias")
    for name in (f"{head.bias}.decoder.weight", f"{head.bias}.weight"):
        if name in tensors and not torch.equal(tensors.take(name), weights["source_embedding.weight"]):
            raise InputError(f"{folder.path}: {name}: expected the matrix of the embeddings, as such models have it.")
    return {"kind": "masked_language_model"}


def _windows(longest: int) -> dict[str, Any]:
    """The [task] section of a model that reads a question and a window of a text at once."""
    question = max(1, min(64, longest // 4))
    window = max(1, longest - question - AROUND)
    return {"kind": "extractive_qa", "longest_question": question, "window": window, "stride": max(1, window // 2)}


def _pointer(tensors: ForeignTensors, weights: Weights) -> dict[str, Any]:
    """The [model] keys of a model that points, whose head is put among the weights: row 0 is of the first token."""
    for part in ("weight", "bias"):
        head = tensors.take(f"qa_outputs.{part}")
        weights[f"pointer.first.{part}"], weights[f"pointer.last.{part}"] = head[:1], head[1:2]
    return {"kind": "span_reader", "no_answer": "first"}


def _encoder(folder: ForeignFolder, tensors: ForeignTensors, names: Names) -> tuple[dict[str, Any], Weights]:
    """The [model] section without its head, and the encoder's weights."""
    table, prefix = _settings(folder, names), _prefix(folder, tensors)
    weights: Weights = {"source_embedding.weight": tensors.take(f"{prefix}embeddings.word_embeddings.weight")}
    narrow = weights["source_embedding.weight"].shape[-1]
    side = "encoder.embedding_norm"
    place = "encoder.positions"
    if narrow != table["d_model"]:
        table["embedding_width"] = narrow
        side, place = "widen.norm", "widen.positions"
        affine(tensors, weights, f"{prefix}embeddings_project", "widen.output")
    affine(tensors, weights, f"{prefix}embeddings.LayerNorm", side)
    weights[f"{place}.weight_TD"] = tensors.take(f"{prefix}embeddings.position_embeddings.weight")[names.positions :]
    table["max_length"] = len(weights[f"{place}.weight_TD"])
    types = f"{prefix}embeddings.token_type_embeddings.weight"
    if types in tensors:
        weights["token_types.weight"] = tensors.take(types)
        table["token_types"] = len(weights["token_types.weight"])
    for layer in range(table["layers"]):
        _layer(tensors, weights, names, f"{prefix}{names.layer}.{layer}", f"encoder.blocks.{layer}")
    return table, weights


def _layer(tensors: ForeignTensors, weights: Weights, names: Names, theirs: str, ours: str) -> None:
    affine(tensors, weights, f"{theirs}.{names.query}", f"{ours}.self_attention.query")
    affine(tensors, weights, f"{theirs}.{names.output}", f"{ours}.self_attention.output")
    affine(tensors, weights, f"{theirs}.{names.norm}", f"{ours}.self_residual.norm")
    affine(tensors, weights, f"{theirs}.{names.inner}", f"{ours}.feed_forward.inner")
    affine(tensors, weights, f"{theirs}.{names.outer}", f"{ours}.feed_forward.outer")
    affine(tensors, weights, f"{theirs}.{names.outer_norm}", f"{ours}.feed_forward_residual.norm")
    for part in ("weight", "bias"):
        halves = [tensors.take(f"{theirs}.{each}.{part}") for each in (names.key, names.value)]
        weights[f"{ours}.self_attention.key_value.{part}"] = torch.cat(halves)


def _settings(folder: ForeignFolder, names: Names) -> dict[str, Any]:
    activation = folder.get(names.activation, str, "gelu")
    problems = []
    if activation not in ACTIVATIONS:
        problems.append(f'{names.activation}: expected one of {", ".join(ACTIVATIONS)}; got "{activation}".')
    for key, wanted in (("position_embedding_type", "absolute"), ("is_decoder", False), ("add_cross_attention", False)):
        if folder.config.get(key, wanted) != wanted:
            problems.append(f"{key}: expected {wanted!r}; got {folder.config[key]!r:.80}.")
    problem, one_label = folder.config.get("problem_type"), "single_label_classification"
    if folder.config.get("auto_map") is not None:
        problems.append("auto_map: code of its own cannot be converted.")
    if problem not in (None, one_label):
        problems.append(f'problem_type: expected "{one_label}"; got {problem!r:.80}.')
    if problems:
        raise InputError(f"{folder.path / 'config.json'}: {problem}" for problem in problems)
    return {
        "encoder": "transformer",
        "d_model": folder.size(names.width),
        "layers": folder.layers(names.layers),
        "heads": folder.size(names.heads),
        "feed_forward": folder.size(names.feed_forward),
        "activation": ACTIVATIONS[activation],
        "norm": "post",
        "norm_epsilon": float(folder.get("layer_norm_eps", (int, float), 1e-12)),
        "embedding_norm": True,
        "scale_embeddings": False,
        "positions": "learned",
        "dropout": float(folder.get(names.dropout, (int, float), 0.1)),
        "inner_dropout": float(folder.get(names.inner_dropout, (int, float), 0.1)),
    }


def _prefix(folder: ForeignFolder, tensors: ForeignTensors) -> str:
    """What stands before the names of the encoder's tensors."""
    found = [each for each in PREFIXES if f"{each}embeddings.word_embeddings.weight" in tensors]
    if not found:
        raise InputError(f'{folder.path}: the tensor "embeddings.word_embeddings.weight" is missing.')
    return found[0]


def _classifier(folder: ForeignFolder, tensors: ForeignTensors, weights: Weights) -> dict[str, Any]:
    """The [model] keys of a classifier, whose head is put among the weights."""
    names, prefix = FAMILIES[folder.get("model_type", str)], _prefix(folder, tensors)
    pooler, activation = names.pooler
    theirs = pooler if f"{pooler}.weight" in tensors else f"{prefix}{pooler}"
    affine(tensors, weights, theirs, "pooler")
    affine(tensors, weights, names.classifier, "output")
    return {"kind": "classifier", "pooling": "first", "pooler": activation}


def _pooling(folder: ForeignFolder) -> dict[str, Any]:
    """The [model] keys of a sentence encoder, as 1_Pooling of sentence-transformers says; else the mean."""
    file = folder.path / "1_Pooling" / "config.json"
    said = json_of(file) if file.is_file() else {}
    if not isinstance(said, dict):
        raise InputError(f"{file}: expected a table.")
    modes = [key for key, value in said.items() if key.startswith("pooling_mode_") and value is True]
    ours = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first", "pooling_mode_max_tokens": "max"}
    if unknown := [mode for mode in modes if mode not in ours] or (modes[1:] and modes):
        raise InputError(f"{file}: expected one of {', '.join(ours)}; got {', '.join(unknown)}.")
    pooling = ours[modes[0]] if modes else "mean"
    return {"kind": "sentence_encoder", "pooling": pooling, "normalize": True}


def _labels(folder: ForeignFolder) -> tuple[str, ...]:
    named = folder.get("id2label", dict, {"0": "LABEL_0", "1": "LABEL_1"})
    file = folder.path / "config.json"
    try:
        labels = tuple(str(named[str(place)]) for place in range(len(named)))
    except KeyError as error:
        raise InputError(f"{file}: id2label: expected the numbers from 0; {error} is missing.") from None
    if len(labels) < 2 or len(set(labels)) < len(labels) or "" in labels:
        raise InputError(
            f"{file}: id2label: expected two labels or more, all different and none empty; got {quoted(labels, NAMED)}."
        )
    return labels


def _tokenizer(folder: ForeignFolder, kind: str, size: int) -> Tokenizer:
    """The folder's, which puts a space before a text where the settings of the tokenizer say so."""
    found, spaces = _cutter(folder, kind, size), folder.tokenizer.get("add_prefix_space")
    return found.spacing_texts(spaces) if isinstance(spaces, bool) else found


def _cutter(folder: ForeignFolder, kind: str, size: int) -> Tokenizer:
    path = folder.path
    if (path / "tokenizer.json").is_file():
        return tokenizer_file(path / "tokenizer.json", size)
    if (path / "vocab.txt").is_file() and FAMILIES[kind] is not ROBERTA:
        return of_wordpieces(bounded_text(path / "vocab.txt", LARGEST), folder.tokenizer, size)
    if kind == "roberta" and (path / "merges.txt").is_file():
        return of_bytes(path, size)
    raise InputError(f"{path}: there is no tokenizer that can be read. {HOW.format(folder=path)}")
