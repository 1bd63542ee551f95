"""Text in the encoding of its file: Unicode, by its mark, or UTF-8."""

import codecs
from typing import NamedTuple

from transduce.core.errors import InputError

MARKS = {codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be"}  # before UTF-16, whose mark begins so, too
MARKS |= {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class FileEncoding(NamedTuple):
    """How a file is written. mark: the bytes that it begins with. errors: of characters that the encoding lacks."""

    name: str
    mark: bytes = b""
    errors: str = "strict"

    def written(self, text: str) -> bytes:
        """The file of a text. Raises InputError for characters that its encoding lacks."""
        try:
            return self.mark + text.encode(self.name, self.errors)
        except UnicodeError as error:
            lacks = text[error.start : error.start + 1] if isinstance(error, UnicodeEncodeError) else "a character"
            raise InputError(
                f"file: its encoding, {self.name}, lacks {lacks!r}, which its translation has. Save it as UTF-8."
            ) from None


def decoded(content: bytes, name: str, declared: str = "utf-8") -> tuple[str, FileEncoding]:
    """The text of a file, and its encoding.

    Args:
        name: what messages call it.
        declared: the encoding of a file without a mark.

    Raises:
        InputError: it is not in this encoding, or nobody knows it.
    """
    mark = next((each for each in MARKS if content.startswith(each)), b"")
    encoding = FileEncoding(MARKS.get(mark, declared), mark)
    try:
        return content[len(mark) :].decode(encoding.name), encoding
    except UnicodeDecodeError as error:
        known = "UTF-8" if encoding.name == "utf-8" else encoding.name
        raise InputError(
            f'file: "{name[:80]}" is not text in {known} (byte {error.start + 1}); save it in that encoding.'
        ) from None
    except (LookupError, ValueError):
        raise InputError(
            f'file: "{name[:80]}" says that it is in the encoding {declared[:40]}, which is unknown; save it as UTF-8.'
        ) from None
