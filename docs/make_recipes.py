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

from transduce.compare.config import CompareConfig
from transduce.core.config import Config
from transduce.data.batches import BatchConfig
from transduce.data.corpus import PairFiles, TextFile
from transduce.data.filters import FilterConfig
from transduce.data.tokenizer import TokenizerConfig
from transduce.models.convolution import ConvolutionConfig
from transduce.models.ctc import CtcConfig
from transduce.models.linear_transformer import LinearTransformerConfig
from transduce.models.linear_transformer_decoder import LinearTransformerDecoderConfig
from transduce.models.non_autoregressive import NonAutoregressiveConfig
from transduce.models.rnn import RnnConfig
from transduce.models.rnn_decoder import RnnDecoderConfig
from transduce.models.ssru_transformer import SsruTransformerConfig
from transduce.models.transformer import TransformerConfig
from transduce.models.transformer_decoder import TransformerDecoderConfig
from transduce.recipe.training import Teachers, TrainingConfig
from transduce.search.settings import Search
from transduce.tasks.language_modelling import LanguageModellingConfig, LanguageModellingData
from transduce.tasks.translation import TranslationConfig, TranslationData

PAGE = Path(__file__).with_name("recipes.md")
HEAD = """# Recipes

A recipe is a TOML file. `transduce train RECIPE key=value ...` resolves it and writes the result into the run directory
and into the model file. `base = "other.toml"` takes what the recipe does not say from another one, which may have a
base itself. `--dry-run` shows what it would do. Unknown keys are errors that name the nearest known one. A key without
a default that may be left out is unset by "none": `training.minutes=none`, `data.test=none`. A list of one entry may
be written without its brackets, and a single test set without a name: `test = { source = .., target = .. }`.

This page is made from the code by `python docs/make_recipes.py`.
"""
SECTIONS: list[tuple[str, str, type[BaseModel]]] = [
    ('[task] kind = "translation"', "Text pairs.", TranslationConfig),
    ("[data] of translation", "`root` is relative to the working directory, files to `root`.", TranslationData),
    ("an entry of data.train, data.validation, data.test.NAME", "Text pairs.", PairFiles),
    (
        "[data.filters]",
        "Training pairs are dropped whole, counted and reported; held-out pairs never for their size.",
        FilterConfig,
    ),
    ('[task] kind = "language_modelling"', "Text alone.", LanguageModellingConfig),
    ("[data] of language_modelling", "", LanguageModellingData),
    ("an entry of data.train, data.validation, data.test.NAME", "Text.", TextFile),
    ("[tokenizer]", "Learnt from the training text.", TokenizerConfig),
    ("[batch]", "", BatchConfig),
    ('[model] kind = "transformer"', "Encoder and decoder.", TransformerConfig),
    ('[model] kind = "convolution"', "Gated convolutions that attend to the source.", ConvolutionConfig),
    ('[model] kind = "rnn"', "Recurrent encoder and decoder, with and without attention.", RnnConfig),
    ('[model] kind = "rnn_decoder"', "For language modelling.", RnnDecoderConfig),
    ('[model] kind = "transformer_decoder"', "For language modelling.", TransformerDecoderConfig),
    ('[model] kind = "linear_transformer"', "Encoder and decoder with linear attention.", LinearTransformerConfig),
    (
        '[model] kind = "ssru_transformer"',
        "A Transformer whose decoder has a recurrent unit in the place of self-attention.",
        SsruTransformerConfig,
    ),
    ('[model] kind = "linear_transformer_decoder"', "For language modelling.", LinearTransformerDecoderConfig),
    (
        '[model] kind = "non_autoregressive"',
        "All words at once; trained on a teacher's translations (`transduce distill`).",
        NonAutoregressiveConfig,
    ),
    (
        '[model] kind = "ctc"',
        "All words at once, in one pass, for a teacher's translations or for data that vary little.",
        CtcConfig,
    ),
    ("[training]", "", TrainingConfig),
    ("[teachers]", "Optional: who is trained first, and taught by whom; `transduce train` does it all.", Teachers),
    ("[search]", "What `predict` and the final tests use unless told otherwise.", Search),
    ("[compare]", "Of a comparison, which is no recipe itself: see [compare.md](compare.md).", CompareConfig),
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
    """A kind that the section's title already names, or a key of other kinds of models."""
    return len(get_args(field.annotation)) == 1


def _row(name: str, field: Any, text: str) -> str:
    default = "required" if field.is_required() else _default(field)
    return f"| `{name}` | {default} | {_one_line(text)} |\n"


def _texts(config: type[BaseModel]) -> dict[str, str]:
    """The text under each key, here and in its bases. Importing does not read it: that would take 0.1 s each time."""
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
