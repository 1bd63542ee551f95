"""Small models with random weights for each task that draws its predictions."""

from typing import Any

import numpy as np
import torch
from torch import nn

from random_models import sentences
from transduce.core.model_file import ModelFile
from transduce.data.columns import Column
from transduce.data.columns.binary_trees import BinaryTrees
from transduce.data.columns.graph import Graph
from transduce.data.columns.label import Label
from transduce.data.columns.masked_text import MaskedText
from transduce.data.columns.node import Node
from transduce.data.columns.node_labels import NodeLabels
from transduce.data.columns.packed import pack
from transduce.data.columns.question_context import QuestionContext
from transduce.data.columns.span import Span
from transduce.data.columns.story import Story
from transduce.data.columns.text_vector import TextVector
from transduce.data.columns.tokens import Tokens
from transduce.data.columns.tree_nodes import TreeNodes
from transduce.data.columns.trees import Trees
from transduce.data.columns.vectors import Vectors
from transduce.data.columns.word_labels import WordLabels
from transduce.data.columns.words import Words
from transduce.data.structures.graphs import EdgeReading
from transduce.data.structures.trees import parse_tree
from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer
from transduce.inference.decode import SearchPredictor
from transduce.pipeline.outline import make_model, make_task
from transduce.pipeline.pipeline import Pipeline, PredictorPipeline
from transduce.recipe.recipe import parse_recipe

LABELS = ("bad", "good", "so-so")
TAGS = ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")
CHINESE = "这部电影很好看但是结尾太差"
QUESTION = "ba de ?"
STORY = "1 ba de fi.\n2 go ku.\n3 fi go ba.\n4 where ba?\t\t2"
VECTORS = "[[0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]"
TREE = "((ba) ((de) ((fi) (go))))"
GRAPH = '{"nodes": [0, 1, 2, 0, 1], "edges": [[0, 1], [1, 2], [2, 0], [2, 3]]}'  # the last node is by itself
CONTEXT = "fi go ku ba . de la mi no . pu ra si to ."
BIDAF = {"d_model": 8, "hidden": 8, "modeling_layers": 1, "character_filters": 4, "character_width": 4}
QANET = {"d_model": 8, "heads": 2, "blocks": 1, "encoder_convolutions": 1, "character_filters": 4, "character_width": 4}


def classifier(kind: str = "whitespace", seed: int = 1, **model: Any) -> Pipeline:
    """Of three labels; recurrent, under attention pooling, unless `model` says otherwise."""
    tokenizer = learnt(kind)
    columns: dict[str, Column] = {"source": Tokens(tokenizer, ends=True), "target": Label(LABELS)}
    table = {"kind": "classifier", "d_model": 8, "hidden": 8, **model}
    return made({"kind": "classification"}, {"train": [{"file": "a.tsv"}]}, columns, table, seed)


def sentence_encoder(seed: int = 1, **model: Any) -> Pipeline:
    """Vectors of 8 numbers."""
    columns: dict[str, Column] = {"source": Tokens(learnt("whitespace"), ends=True), "target": TextVector(8)}
    table = {"kind": "sentence_encoder", "encoder": "transformer", "d_model": 8, "heads": 2, "feed_forward": 8, **model}
    return made({"kind": "text_encoding"}, {}, columns, table, seed)


def masked(seed: int = 1, **model: Any) -> Pipeline:
    """Predicts hidden words."""
    reads = MaskedText.of(learnt("whitespace"))
    columns: dict[str, Column] = {"source": reads, "target": Tokens(reads.tokenizer, ends=True)}
    table = {"kind": "masked_language_model", "d_model": 8, "heads": 2, "feed_forward": 8, "layers": 1, **model}
    return made({"kind": "masked_language_modelling"}, {"train": [{"text": "a.txt"}]}, columns, table, seed)


def answerer(kind: str = "bidaf", seed: int = 1, **task: Any) -> Pipeline:
    """Points into texts; in windows of 8 tokens, unless `task` says otherwise."""
    columns: dict[str, Column] = {"source": QuestionContext.of(learnt("whitespace")), "target": Span()}
    table = {"kind": kind, **(BIDAF if kind == "bidaf" else QANET)}
    windows = {"window": 8, "stride": 4, "longest_answer": 3, **task}
    return made({"kind": "extractive_qa", **windows}, {"train": [{"file": "a.json"}]}, columns, table, seed)


def parser(seed: int = 1) -> Pipeline:
    """Of a few phrases."""
    labels = " ".join(parse_tree("(S (NP (XX a) (XX b)) (VP (XX c) (NP (XX d))))").sequence())
    written = train_tokenizer(TokenizerConfig(kind="whitespace", min_frequency=1), [labels])
    columns: dict[str, Column] = {
        "source": Tokens(learnt("whitespace"), ends=True),
        "target": Trees(written, starts=True, ends=True),
    }
    table = {"kind": "rnn", "d_model": 8, "hidden": 8}
    return made({"kind": "parsing"}, {"train": [{"file": "a.mrg"}]}, columns, table, seed)


def chart_parser(seed: int = 1, **model: Any) -> Pipeline:
    """Of a few phrases, by scores of spans; recurrent, unless `model` says otherwise."""
    trees = [
        "(S (NP (DT a) (NN b)) (VP (VB c) (NP (NN d))))",
        "(S (VP (VB c)))",
        "(NP (NP (NN a)) (NN b) (, ,) (NN c))",
    ]
    columns: dict[str, Column] = {"source": Words(learnt("bpe")), "target": BinaryTrees.of(map(parse_tree, trees))}
    table = {"kind": "chart_parser", "d_model": 8, "hidden": 8, "span_width": 8, "character_filters": 4, **model}
    return made({"kind": "parsing"}, {"train": [{"file": "a.mrg"}]}, columns, table, seed)


def tree_labeller(seed: int = 1, **model: Any) -> Pipeline:
    """Three labels for the nodes of trees; attention along edges, unless `model` says otherwise."""
    columns: dict[str, Column] = {"source": TreeNodes.of(learnt("whitespace")), "target": NodeLabels(LABELS)}
    table = {"kind": "tree_transformer", "d_model": 12, "heads": 3, "layers": 2, "feed_forward": 8, **model}
    return made({"kind": "tree_classification"}, {"train": [{"file": "a.trees"}]}, columns, table, seed)


def tagger(seed: int = 1, unit: str = "word", **model: Any) -> Pipeline:
    """Names of persons and places; an LSTM with a CRF, unless `model` says otherwise."""
    columns: dict[str, Column] = {"source": Words(learnt("bpe"), unit=unit), "target": WordLabels(TAGS, scheme="bio")}
    table = {"kind": "tagger", "d_model": 8, "hidden": 8, "character_width": 4, "character_filters": 4, **model}
    return made({"kind": "tagging"}, {"train": [{"file": "a.conll"}]}, columns, table, seed)


def reader(seed: int = 1, **model: Any) -> Pipeline:
    """A language model that looks back: an LSTMN of two layers, unless `model` says otherwise."""
    columns: dict[str, Column] = {"target": Tokens(learnt("whitespace"), stream=True)}
    table = {"kind": "rnn_decoder", "cell": "lstmn", "d_model": 8, "layers": 2, **model}
    task = {"kind": "language_modelling", "context": 40}
    return made(task, {"train": [{"text": "a"}]}, columns, table, seed)


def listener(seed: int = 1, **model: Any) -> Pipeline:
    """Answers questions on stories; in two hops, unless `model` says otherwise."""
    tokenizer = learnt("whitespace")
    words = tuple(tuple(ids) for ids in tokenizer.encode(["ba", "de", "fi"]))
    columns: dict[str, Column] = {"source": Story.of(tokenizer), "target": Label(("ba", "de", "fi"), words)}
    table = {"kind": "memory_network", "d_model": 8, "hops": 2, "slots": 4, **model}
    return made({"kind": "question_answering"}, {"train": [{"file": "a.txt"}]}, columns, table, seed)


def machine(seed: int = 1, **model: Any) -> Pipeline:
    """That copies vectors of two bits: a Neural Turing Machine with two heads of each kind."""
    columns: dict[str, Column] = {"source": Vectors(3), "target": Vectors(2)}
    heads = {"read_heads": 2, "write_heads": 2, "slots": 9, "width": 4, "hidden": 8}
    table = {"kind": "neural_turing_machine", **heads, **model}
    return made({"kind": "algorithmic"}, {"name": "copy", "bits": 2}, columns, table, seed)


def nodes(seed: int = 1, **model: Any) -> Pipeline:
    """Of the labels of the nodes of a graph, which are numbers: 60 nodes, of which node 0 is linked to all others."""
    ring = np.arange(1, 60)
    pairs = np.concatenate([np.stack([0 * ring, ring], 1), np.stack([ring, ring % 59 + 1], 1)])
    source, target = (ends.astype(np.int32) for ends in EdgeReading().read(pairs, 60))
    columns = np.arange(60, dtype=np.int32) % 5
    node = Node(5, source, target, columns, np.ones(60, np.float32), np.arange(61, dtype=np.int32))
    table = {"kind": "graph_attention", "heads": 2, "d_head": 4, **model}
    data = {"nodes": "a.tsv", "edges": "b.tsv"}
    return made({"kind": "node_classification"}, data, {"source": node, "target": Label(("0", "1", "2"))}, table, seed)


def graphs(seed: int = 1, **model: Any) -> Pipeline:
    """Of the labels of graphs, by attention pooling, unless `model` says otherwise."""
    columns: dict[str, Column] = {"source": Graph(3, 0), "target": Label(LABELS)}
    table = {"kind": "graph_attention", "heads": 2, "d_head": 4, "pooling": "attention", **model}
    return made({"kind": "graph_classification"}, {"file": "a.jsonl"}, columns, table, seed)


def learnt(kind: str) -> Tokenizer:
    """A tokenizer that knows the words here."""
    texts = [*sentences(200, seed=9), CHINESE, QUESTION, CONTEXT]
    return train_tokenizer(TokenizerConfig(kind=kind, vocabulary=150, min_frequency=1), texts)


def file_of(pipeline: Pipeline) -> ModelFile:
    """What a training would have written."""
    texts, tables = pack(pipeline.task.columns)
    weights = {name: weight.detach() for name, weight in pipeline.model.named_parameters()}
    return ModelFile(weights, pipeline.recipe.to_table(), texts, {"seed": 1}, {"loss": 2.0}, columns=tables)


def made(task: dict[str, Any], data: dict[str, Any], columns: Any, model: dict[str, Any], seed: int) -> Pipeline:
    """A pipeline with random weights."""
    recipe = parse_recipe({"name": "drawn", "task": task, "data": data, "model": model}, "test")
    bound = make_task(recipe, columns)
    torch.manual_seed(seed)
    module: nn.Module = make_model(recipe, bound)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.4)
    weights = {name: weight.detach() for name, weight in module.named_parameters()}
    texts, tables = pack(columns)
    file = ModelFile(weights, recipe.to_table(), texts, {"seed": seed}, {"loss": 2.0}, columns=tables)
    searches = isinstance(bound.predictor, SearchPredictor)
    return Pipeline(file) if searches else PredictorPipeline(file)
