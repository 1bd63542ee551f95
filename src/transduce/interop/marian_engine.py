"""Marian itself, from the package pymarian, as what a model is compared with."""

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from transduce.core.atomic import write_text
from transduce.core.extras import library
from transduce.interop.parity import BATCH, EngineOutput
from transduce.interop.text_to_text import positions_of

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

LEAST_FACTOR = 3.0  # Marian's default
BETWEEN = " ||| "  # the fields of a list of hypotheses: line, tokens, what each model says, their sum
WORKSPACE = 256  # megabytes for each thread


class MarianEngine:
    """Runs an exported model with Marian, which cuts texts by its own SentencePiece.

    Args:
        pipeline: of the model that was exported.
        folder: what `transduce.interop.export_marian` wrote.
    """

    name = "Marian"

    def __init__(self, pipeline: "Pipeline", folder: Path) -> None:
        self._library = library("pymarian", "comparing with Marian", "marian")
        self._folder, self._most = folder.absolute(), positions_of(pipeline)
        self._source, self._target = (pipeline.task.tokenizers[side] for side in ("source", "target"))
        self._translators: dict[float, Any] = {}

    def greedy(self, texts: Sequence[str], longest: int) -> list[EngineOutput]:
        """See `transduce.interop.parity.Engine`. Marian's limit grows with the source; longer outputs are cut off."""
        shortest = min(len(ids) + 1 for ids in self._source.encode(texts))
        found = self._translator(max(LEAST_FACTOR, longest / shortest)).translate(list(texts))
        outputs = dict(self._output(line, longest) for line in found)
        return [outputs.get(place, EngineOutput((), "", None)) for place in range(len(texts))]

    def _output(self, line: str, longest: int) -> tuple[int, EngineOutput]:
        """The place of a text, and what was written of it."""
        place, _, rest = line.partition(BETWEEN)
        written, _, score = rest.rsplit(BETWEEN, 2)
        tokens = written.split(" ") if written else []
        cut = tuple(tokens[:longest])
        text = self._target.decode(self._target.ids(cut))
        return int(place), EngineOutput(cut, text, float(score) if len(tokens) < longest else None)

    def _translator(self, factor: float) -> Any:
        """One for each limit of lengths, which Marian takes only when it is made."""
        if factor not in self._translators:
            with tempfile.TemporaryDirectory() as folder:
                settings = Path(folder, "settings.yml")
                write_text(settings, json.dumps(self._settings(factor)))
                with _no_standard_error():
                    self._translators[factor] = self._library.Translator(f"--config {settings}")
        return self._translators[factor]

    def _settings(self, factor: float) -> dict[str, Any]:
        return {
            "models": [str(self._folder / "model.npz")],
            "vocabs": [str(self._folder / f"{side}.spm") for side in ("source", "target")],
            "beam-size": 1,
            "n-best": True,
            "no-spm-decode": True,
            "allow-unk": True,  # where our search may choose it too; else its bias forbids it
            "mini-batch": BATCH,
            "max-length": self._most,
            "max-length-factor": factor,
            "cpu-threads": torch.get_num_threads(),
            "workspace": WORKSPACE,
            "log-level": "error",
            "quiet-translation": True,
        }


@contextmanager
def _no_standard_error() -> Iterator[None]:
    """Also of C++: the SentencePiece in Marian tells everyone that it changes no characters."""
    sys.stderr.flush()
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)
