"""A folder of Hugging Face that stands where a model is named: it is converted once, into the cache."""

import sys
from hashlib import sha256
from pathlib import Path

from transduce.core.cache import cache_folder, state_of
from transduce.core.model_file import save_model_file
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.version import __version__


class ConvertedFolder:
    """What `transduce convert FOLDER` would write.

    Raises:
        InputError: as `read_foreign`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def model_file(self) -> Path:
        """Its place in the cache; the folder is converted again when one of its files, or Transduce, has changed."""
        name = self.folder.resolve().name
        files = sorted(each for each in self.folder.rglob("*") if each.is_file())
        content = repr([__version__, *((str(each.absolute()), state_of(each)) for each in files)])
        path = cache_folder() / "converted" / sha256(content.encode()).hexdigest()[:16] / f"{name}.safetensors"
        if not path.is_file():
            read = read_foreign(self.folder, Languages(), name)
            path.parent.mkdir(parents=True, exist_ok=True)
            save_model_file(path, read.file)
            for note in (f"converted from {read.kind}, once, into the cache.", *read.notes):
                print(f"{self.folder}: {note}", file=sys.stderr, flush=True)
        return path
