"""Where sentences end, by rules, as an ONNX model that MiniSBD runs: for Argos packages, which then need no network.

MiniSBD gives the model one id for each character (`units`) and some features of it (`features`), and takes the
likeliest of three classes for each character: 0 = inside, 1 = the last of a word, 2 = the last of a sentence. Its files
carry their vocabulary and the names of the features as metadata.

A sentence ends at

- the last character of a paragraph;
- 。！？｡ and their like, which no space follows;
- a full stop, question or exclamation mark or their like in other scripts, with any closing quotation marks and
  brackets behind it, if a space follows, and then anything but a small letter; not at the full stop behind an initial
  (J.), or behind a capital and r, s or t, which are titles (Dr., Ms., St.).

The rules know no other abbreviations.

Shapes: B paragraphs, N characters, F features, C classes.
"""

import json
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

from transduce.core.extras import library

ENDERS = ".!?…‽؟۔।॥։፧።᙮᠃᠉"
FULL_ENDERS = "。！？｡"
CLOSERS = "\"'”’»›)]」』）】"
FEATURES = ("capitalized", "end_of_para", "start_of_para")
PAD, UNKNOWN, SPACE, ENDER, STOP, FULL, CLOSER, SMALL, TITLE = range(9)  # kinds of units; TITLE: r, s and t
REACH = 4  # closing marks behind an ender


def sentence_rules(language: str) -> bytes:
    """The contents of an `.onnx` file.

    Raises:
        InputError: the library is missing.
    """
    onnx = library("onnx", "a sentence model for Argos", "argos")
    units = _units()
    nodes = _Graph(onnx)
    nodes.constant("kinds", [PAD, UNKNOWN, *map(_kind, units)], "INT64")
    graph = _rules(nodes)
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17)], producer_name="transduce", ir_version=8
    )
    names = ["<PAD>", "<UNK>", *units]
    vocabulary = {
        "lang": "",
        "idx": 0,
        "cutoff": 0,
        "lower": False,
        "_id2unit": names,
        "_unit2id": {name: index for index, name in enumerate(names)},
    }
    onnx.helper.set_model_props(
        model,
        {
            "lang_code": language,
            "config": json.dumps({"feat_funcs": list(FEATURES), "max_seqlen": 1000, "batch_size": 1}),
            "vocab": json.dumps(vocabulary, ensure_ascii=False),
            "lexicon": "null",
        },
    )
    onnx.checker.check_model(model)
    return model.SerializeToString(deterministic=True)


@cache
def _units() -> tuple[str, ...]:
    """The characters that mean something: the marks, and every small letter."""
    small = (chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Ll")
    return tuple(dict.fromkeys([" ", *ENDERS, *FULL_ENDERS, *CLOSERS, *small]))


def _kind(unit: str) -> int:
    marks = {" ": SPACE, ".": STOP, **dict.fromkeys("rst", TITLE)}
    sets = ((ENDERS, ENDER), (FULL_ENDERS, FULL), (CLOSERS, CLOSER))
    return marks.get(unit) or next((kind for characters, kind in sets if unit in characters), SMALL)


class _Graph:
    """Nodes of a graph under construction; every method returns the name of its result."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def constant(self, name: str, values: Sequence[Any], kind: str, shape: Sequence[int] | None = None) -> str:
        number = getattr(self.onnx.TensorProto, kind)
        self.initializers.append(
            self.onnx.helper.make_tensor(name, number, [len(values)] if shape is None else shape, values)
        )
        return name

    def number(self, value: int, shape: Sequence[int] = ()) -> str:
        return self.constant(f"number_{len(self.initializers)}", [value], "INT64", shape)

    def apply(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def cast(self, name: str, kind: str) -> str:
        return self.apply("Cast", name, to=getattr(self.onnx.TensorProto, kind))

    def all_of(self, first: str, *others: str) -> str:
        for other in others:
            first = self.apply("And", first, other)
        return first

    def any_of(self, first: str, *others: str) -> str:
        for other in others:
            first = self.apply("Or", first, other)
        return first

    def opposite(self, name: str) -> str:
        return self.apply("Not", name)

    def feature(self, name: str) -> str:
        """A flag of each character."""
        return self.cast(self.apply("Gather", "features", self.number(FEATURES.index(name)), axis=2), "BOOL")

    def is_kind(self, values_BN: str, *kinds: int) -> str:
        found = [self.apply("Equal", values_BN, self.number(kind)) for kind in kinds]
        return self.any_of(found[0], *found[1:])

    def shifted(self, values_BN: str, by: int, filler: int) -> str:
        """The value `by` characters later; `filler` beyond the ends."""
        width = abs(by)
        pads = (0, 0, 0, width) if by > 0 else (0, width, 0, 0)
        widths = self.constant(f"pads_{len(self.initializers)}", pads, "INT64")
        padded = self.apply("Pad", values_BN, widths, self.number(filler))
        first, last = (by, sys.maxsize) if by > 0 else (0, -width)
        return self.apply("Slice", padded, *(self.number(each, [1]) for each in (first, last, 1)))

    def shifted_flag(self, flag_BN: str, by: int) -> str:
        return self.cast(self.shifted(self.cast(flag_BN, "INT64"), by, 0), "BOOL")


def _rules(graph: _Graph) -> Any:
    """The whole graph; see the module's text."""
    kind_BN, capital_BN = graph.apply("Gather", "kinds", "units"), graph.feature("capitalized")

    def begins(back: int) -> str:
        """Whether the word began so many characters before, with a capital; a paragraph begins as behind a space."""
        behind_space = graph.is_kind(graph.shifted(kind_BN, -back - 1, SPACE), SPACE)
        return graph.all_of(graph.shifted_flag(capital_BN, -back), behind_space)

    title = graph.all_of(begins(2), graph.is_kind(graph.shifted(kind_BN, -1, SPACE), TITLE))
    initial = graph.all_of(graph.is_kind(kind_BN, STOP), graph.any_of(begins(1), title))
    ended = graph.all_of(graph.is_kind(kind_BN, ENDER, STOP), graph.opposite(initial))
    full, closer = graph.is_kind(kind_BN, FULL), graph.is_kind(kind_BN, CLOSER)
    for _ in range(REACH):
        ended = graph.any_of(ended, graph.all_of(closer, graph.shifted_flag(ended, -1)))
        full = graph.any_of(full, graph.all_of(closer, graph.shifted_flag(full, -1)))
    behind, second = graph.shifted(kind_BN, 1, PAD), graph.shifted(kind_BN, 2, PAD)
    goes_on = graph.is_kind(second, SMALL, TITLE)
    spaced = graph.all_of(ended, graph.is_kind(behind, SPACE), graph.opposite(goes_on))
    unspaced = graph.all_of(full, graph.opposite(graph.is_kind(behind, CLOSER)))
    return _scored(graph, graph.any_of(spaced, unspaced, graph.feature("end_of_para")))


def _scored(graph: _Graph, last_BN: str) -> Any:
    """The graph that gives the last character of a sentence class 2, and all others class 0."""
    onnx, helper = graph.onnx, graph.onnx.helper
    inside, ends = graph.cast(graph.opposite(last_BN), "FLOAT"), graph.cast(last_BN, "FLOAT")
    never = graph.apply("Sub", ends, graph.constant("two", [2.0], "FLOAT", []))
    axis = graph.number(2, [1])
    columns = [graph.apply("Unsqueeze", column, axis) for column in (inside, never, ends)]
    graph.nodes.append(helper.make_node("Concat", columns, ["scores"], axis=2))
    free = ["paragraphs", "characters"]
    unit_BN = helper.make_tensor_value_info("units", onnx.TensorProto.INT64, free)
    feature_BNF = helper.make_tensor_value_info("features", onnx.TensorProto.FLOAT, [*free, len(FEATURES)])
    score_BNC = helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, [*free, 3])
    return helper.make_graph(graph.nodes, "sentences", [unit_BN, feature_BNF], [score_BNC], graph.initializers)
