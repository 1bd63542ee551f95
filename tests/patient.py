"""A model that does not begin to train before certain files are there, so that others have come as far as a test wants.

To be had by recipes of other processes, tests/ stands in their PYTHONPATH.
"""

import time
from pathlib import Path

from torch import Tensor

from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.models.transformer import Transformer, TransformerConfig


class PatientConfig(TransformerConfig):
    """awaited: paths of files, which must hold something."""

    kind: str = "patient:Patient"  # type: ignore[assignment]
    awaited: tuple[str, ...] = ()


class Patient(Transformer):
    """A Transformer that waits."""

    Config = PatientConfig

    def __init__(self, config: PatientConfig, specs: Specs) -> None:
        super().__init__(config, specs)
        self._awaited = [Path(each) for each in config.awaited]

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        """As its base, once everybody is there."""
        while self.training and not all(path.exists() and path.stat().st_size for path in self._awaited):
            time.sleep(0.01)
        return super().forward(source, target)
