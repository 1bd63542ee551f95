"""Files that are ZIP archives of XML parts: the parts with text change, all others stay byte for byte."""

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping
from lzma import LZMAError

from transduce.core.errors import InputError
from transduce.data.limits import RATIO, REPETITIVE

MEMBERS, LARGEST = 20_000, 200_000_000  # parts of an archive; bytes of all of them
WRONG = (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError, NotImplementedError, RuntimeError, ValueError)


class Zipped:
    """An archive in memory.

    Args:
        content: the file.
        name: what messages call it.

    Raises:
        InputError: it is none, or damaged; it unpacks to far more than its size; it has a password.
    """

    def __init__(self, content: bytes, name: str) -> None:
        self.name, self._content = name, content
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                self.infos = archive.infolist()
                self._check(len(content))
                self.parts = {each.filename: archive.read(each) for each in self.infos if not each.is_dir()}
        except WRONG as error:
            raise InputError(
                f"{name}: expected a ZIP archive, as such files are; it cannot be read: {error}."
            ) from None

    def _check(self, packed: int) -> None:
        size = sum(each.file_size for each in self.infos)
        if len(self.infos) > MEMBERS or size > LARGEST:
            raise InputError(
                f"{self.name}: holds {len(self.infos):,} parts of {size:,} bytes; at most {MEMBERS:,} parts and "
                f"{LARGEST:,} bytes are read."
            )
        if size > max(REPETITIVE, RATIO * packed):
            raise InputError(f"{self.name}: unpacks to more than {RATIO} times its size, which no document does.")
        if any(each.flag_bits & 1 for each in self.infos):
            raise InputError(f"{self.name}: has a password. Save it without one.")
        if len({each.filename for each in self.infos}) < len(self.infos):
            raise InputError(f"{self.name}: holds two parts of one name. Save it again in its own program.")

    def names(self, wanted: Callable[[str], object]) -> list[str]:
        """The parts that are wanted, in the archive's order."""
        return [each for each in self.parts if wanted(each)]

    def with_parts(self, changed: Mapping[str, bytes]) -> bytes:
        """The archive with these parts changed; all others, their order, dates and packing stay."""
        if all(self.parts[name] == content for name, content in changed.items()):
            return self._content
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            for info in self.infos:
                content = b"" if info.is_dir() else changed.get(info.filename, self.parts[info.filename])
                archive.writestr(info, content, info.compress_type)
        return made.getvalue()
