"""XLIFF, as its files are called."""

from transduce.data.formats.xliff import Xliff


class Xlf(Xliff):
    """The same by another ending."""
