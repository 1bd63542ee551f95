"""The data that Python passes to the kernels: structs of addresses and integers, arguments, and shared constants.

`layout.h` describes what a module was compiled to read. The two are compared when the module is loaded, so that kernels
compiled from other sources are left out instead of reading the wrong memory. If you change a struct, the arguments of a
function or a constant, change it in both files. If only its meaning changes, raise `VERSION` in both.
"""

from typing import Any

VERSION = 1
WIDEST, DEEP, QUADS = 32, 64, 4  # of `linear.h`
VECTOR = 64  # of `shortlist.h`
ROWS = 128  # of `norm.h`: rows of one partial sum
LOG_ROUNDING = 1e-3  # of `beam.h`: a log-probability may be this much above 0
STOPPINGS = ("slots", "heuristic", "complete", "never")  # of `beam.h`: what ended hypotheses do to a beam
MEANS = ("probability", "log_probability")  # of `beam.h`: how the members of an ensemble are averaged
ACTIVATIONS = ("identity", "relu", "gelu", "gelu_tanh", "swish", "squared_relu", "sigmoid")  # of `activation.h`

STRUCTS = {
    "Weight": "panels scale_O above_O bias_O inputs outputs",
    "Norm": "gain bias",
    "BlockWeights": "query:Weight key_value:Weight output:Weight forget:Weight value:Weight cross_query:Weight "
    "cross_output:Weight inner:Weight inner_linear:Weight outer:Weight self_norm:Norm cross_norm:Norm "
    "forward_norm:Norm query_norm:Norm key_norm:Norm",
    "Heads": "queries groups width",
    "Places": "key value key_source key_head key_place value_source value_head value_place",
    "Pointer": "query:Weight generate generate_bias",
    "Copies": "state_BSD id_BS place_BS",
    "BlockMemory": "said:Places read:Places",
    "Writer": "embedding_VD position_TD turn_TE embedding_norm:Norm norm:Norm output:Weight width heads:Heads hidden "
    "pre activation blocks scaled zero_start pointer:Pointer",
    "Reader": "writer weights read real_BS positions copies:Copies",
    "NgramModel": "key first share rest root weight levels vocabulary end",
    "Barred": "column count",
    "Wanted": "start end beam nbest barred:Barred longest stopping forces_end",
}
"""The fields in order. Each is a word of 64 bits or another struct."""

FUNCTIONS = {
    "add_dropped": "pppiiu",
    "attention": "piiipiiipiiipiipiiiiiiiii",
    "attention_gradient": "piiipiiipiiipiipiiipiiipiiipiiiiiiiii",
    "beam_search": "ppiiipppppppffffppppp",
    "cross_entropy": "ppppiif",
    "cross_entropy_gradient": "ppppiiff",
    "ctc_prefixes": "ppppiiiiiippp",
    "decoder_step": "pppppppppiiiiiiiiiiiif",
    "dropped": "ppiiu",
    "encoder_pass": "ppppiiiiiiiiiif",
    "layer_norm": "ppppppiif",
    "layer_norm_gradient": "ppppppppii",
    "likeliest": "ppppiifpip",
    "linear": "pppii",
    "log_softmax": "pii",
    "memory_unroll": "ppppppppppppppiiiiiiiiii",
    "memory_unroll_gradient": "ppppppppppppppppiiiiiiiii",
    "pack": "piip",
    "pack_whole": "piippp",
    "packed_rows": "pppi",
    "top": "piipiipp",
    "turned": "piiippiiiii",
}
"""The arguments of each function: p address, i integer, u unsigned integer, f real number; see `call.h`."""


def words(struct: str) -> int:
    """The size of a struct in words of 64 bits."""
    return sum(words(inner) if inner else 1 for _, inner in _fields(struct))


def expected() -> dict[str, object]:
    """Everything that is compared, by name."""
    numbers: dict[str, float] = {"VERSION": VERSION, "LOG_ROUNDING": LOG_ROUNDING}
    numbers |= {"WIDEST": WIDEST, "DEEP": DEEP, "QUADS": QUADS, "VECTOR": VECTOR, "ROWS": ROWS}
    names = {name: place for each in (MEANS, STOPPINGS, ACTIVATIONS) for place, name in enumerate(each)}
    functions = {f"{name}()": letters for name, letters in FUNCTIONS.items()}
    return {**numbers, **names, **{name: _described(name) for name in STRUCTS}, **functions}


def differences(module: Any, types: tuple[str, ...]) -> list[str]:
    """The differences between the layout of a compiled module and the one declared here, as text.

    Args:
        module: the compiled module.
        types: the endings of the names of functions that exist for several dtypes.
    """
    if not hasattr(module, "layout"):
        return ["it does not describe its layout"]
    ours, theirs = expected(), dict(module.layout())
    for name in FUNCTIONS:
        versions = [each for each in dir(module) if each == name or _without_types(each, types) == name]
        found = sorted({str(getattr(module, each).__doc__) for each in versions})
        if found:
            theirs[f"{name}()"] = " or ".join(found)
    names = dict.fromkeys((*ours, *theirs))
    return [
        f"{name} is {_told(theirs.get(name))} in C++, {_told(ours.get(name))} in Python"
        for name in names
        if ours.get(name) != theirs.get(name)
    ]


def _told(value: object) -> str:
    return "nothing" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _fields(struct: str) -> list[tuple[str, str]]:
    """The name of each field, and of its struct if it is one."""
    parts = (field.partition(":") for field in STRUCTS[struct].split())
    return [(name, inner) for name, _, inner in parts]


def _described(struct: str) -> str:
    """The description that `layout.h` gives, such as "gain@0 bias@1, 2 words"."""
    at, told = 0, []
    for name, inner in _fields(struct):
        told.append(f"{name}@{at}")
        at += words(inner) if inner else 1
    return f"{' '.join(told)}, {at} words"


def _without_types(name: str, types: tuple[str, ...]) -> str:
    while (shorter := name.rpartition("_"))[2] in types:
        name = shorter[0]
    return name
