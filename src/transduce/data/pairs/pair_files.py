"""An entry of a recipe's [data] for pairs of texts: which files hold them, in which columns, how they are marked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from transduce.core.config import UNSET, Config
from transduce.core.registry import check, resolve
from transduce.data.formats import Format, format_name, format_of, is_table
from transduce.data.remote import located
from transduce.data.tags import checked_tag, language_tag

SHORT = ("tsv", "csv", "jsonl", "tmx")  # a file and its format in one key, as recipes may have them
FILES = ("source", "target", "file")
ONE_WAY = "name either source and target (two files) or file (one file with columns)"


class PairFiles(Config):
    """Sentence pairs: two parallel text files, or two columns of one file.

    `tsv = "a.tsv"` is short for `file = "a.tsv", format = "tsv"`; csv, jsonl and tmx likewise. A file in a .zip is
    named as if the .zip were a folder: `en-sw.txt.zip/Tatoeba.en-sw.en`.
    """

    source: str | None = None
    """File of the sources, one a line. A file in a .zip: `en-sw.txt.zip/Tatoeba.en-sw.en`."""
    target: str | None = None
    """File of the targets, one a line."""
    file: str | None = None
    """One file with both in columns, instead: .tsv, .csv, .jsonl, .json, .parquet, .tmx, .xlsx."""
    format: Annotated[str, AfterValidator(lambda name: check("data.formats", name))] | None = None
    """Of the file, as in "csv". Unset: what its suffix says, or tab-separated. Your own: `my_file:MyFormat`."""
    source_column: int | str | tuple[int | str, ...] = 0
    """Counted from 0, or a name in the file's header, a key of objects, a language in tmx: "en". A list: several
    columns, as lemma and tags."""
    target_column: int | str = 1
    """Counted from 0, or a name, as for the source."""
    source_separator: str | None = None
    """What stands between several source columns in the source; unset: " | "."""
    separator: str | None = Field(default=None, min_length=1)
    """What stands between the columns of tsv. Unset: a tab."""
    pairs: int | None = Field(default=None, ge=1)
    """Train on this many of the pairs. A hash of a pair's number chooses, so all trainings have the same pairs, and a
    larger number keeps those of a smaller one. Unset: all. Not for validation and tests."""
    weight: float = Field(default=1.0, gt=0)
    """How often an epoch shows each pair; see `transduce.data.batches`."""
    to: str | None = Field(default=None, pattern=r"^[^\s<>]+$")
    """Language code of the targets, for one model of several languages: before each source stands the tag >>to<<."""
    tag: Annotated[str, AfterValidator(checked_tag)] | None = None
    """A word of your own before each source, such as <BT> for sources that a model wrote; it becomes one token."""
    hold_out: bool | None = None
    """Whether data.hold_out draws from these pairs. Unset: unless they have a `tag`."""

    @classmethod
    def known_keys(cls) -> frozenset[str]:
        """With those that stand for a file and its format."""
        return super().known_keys() | {*SHORT}

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, given: Any) -> Any:
        """`tsv = ".."` is a file with its format, which is named where its suffix does not say it."""
        if not isinstance(given, dict) or given.keys().isdisjoint(SHORT):
            return given
        given = {key: value for key, value in given.items() if key not in SHORT or value not in (None, UNSET)}
        short = [key for key in SHORT if key in given]
        if not short:
            return given
        if len(short) > 1 or given.get("file") is not None:
            raise ValueError(ONE_WAY)
        (name,), rest = short, {key: value for key, value in given.items() if key not in SHORT}
        file = given[name]
        said_by_suffix = isinstance(file, str) and format_name(Path(file)) == name
        return {**rest, "file": file, **({} if said_by_suffix else {"format": name})}

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        both = self.source is not None and self.target is not None
        either = self.source is not None or self.target is not None
        if either == (self.file is not None) or either != both:
            raise ValueError(ONE_WAY)
        if self.of_two_files and (unread := [key for key in ("format", "separator") if getattr(self, key) is not None]):
            raise ValueError(f"{unread[0]}: two files have no columns. Leave it out, or name file")
        if self.separator is not None and self.format_name != "tsv":
            raise ValueError(f"separator: {self.format_name} has its own. Leave it out, or name a tab-separated file")
        if self.pairs is not None and self.file is not None and not self.kind.row_per_line:
            raise ValueError(f"pairs: {self.format_name} is read as a whole. Leave it out, or name tsv or jsonl")
        return self

    @model_validator(mode="after")
    def _columns_are_there(self) -> Self:
        keys = (*self.sources, self.target_column)
        if not self.sources:
            raise ValueError("source_column: expected at least one column")
        if wrong := [each for each in keys if isinstance(each, int) and each < 0]:
            raise ValueError(f"columns are counted from 0; got {wrong[0]}")
        named = [each for each in keys if isinstance(each, str)]
        if named and self.of_two_files:
            raise ValueError(f"two files have no columns; got {named[0]!r}")
        if self.kind.languages and len(named) < len(keys):
            wanted = f'the languages of {self.format_name}, such as "en" and "sw"'
            raise ValueError(f"source_column, target_column: expected {wanted}")
        counted = [key for key, usual in zip(keys, (0, 1), strict=False) if isinstance(key, int) and key != usual]
        if self.of_objects and (counted or 2 < len(keys) != len(named)):
            raise ValueError("source_column, target_column: objects have no columns to count; expected their names")
        return self

    @property
    def sources(self) -> tuple[int | str, ...]:
        """The columns of the source."""
        return self.source_column if isinstance(self.source_column, tuple) else (self.source_column,)

    @property
    def format_name(self) -> str:
        """The name of the file's format; "" = there are two files."""
        return "" if self.file is None else self.format or format_name(Path(self.file))

    @property
    def kind(self) -> type[Format]:
        """The class of the file's format; of one's own, which is imported by leave alone, what any has."""
        name = self.format_name
        found: type[Format] = Format if ":" in name or not name else resolve("data.formats", name)
        return found

    @property
    def reader(self) -> Format:
        """What reads the columns of one file. Raises InputError for a class that is not allowed."""
        assert self.file is not None
        return format_of(Path(self.file), self.format, self.separator)

    @property
    def of_objects(self) -> bool:
        """Whether the columns of its file are keys of objects, of which the usual ones have names."""
        return self.file is not None and self.kind.keyed()

    @property
    def keys(self) -> tuple[int | str, ...]:
        """The columns of the source and that of the target, as its file has them: those of objects are names."""
        if not self.of_objects:
            return (*self.sources, self.target_column)
        names = [each if isinstance(each, str) else "source" for each in self.sources]
        return (*names, self.target_column if isinstance(self.target_column, str) else "target")

    @property
    def of_two_files(self) -> bool:
        """Whether each side has a file of its own."""
        return self.source is not None

    @property
    def columns(self) -> list[Any] | None:
        """Which columns of one file are read, and how, for the key of a cache; None: there are two files."""
        if self.of_two_files:
            return None
        return [self.format_name, *self.sources, self.target_column, self.source_separator]

    @property
    def read_as(self) -> dict[str, Any]:
        """What decides, beside the content of the files, which pairs are read; only what is not usual."""
        given = {"separator": self.separator, "pairs": self.pairs}
        return {key: value for key, value in given.items() if value is not None}

    @property
    def names(self) -> dict[str, str]:
        return {key: name for key in FILES if (name := getattr(self, key)) is not None}

    def paths(self, root: Path) -> list[Path]:
        """The files themselves, relative ones from `root`; copies of what URLs name."""
        return [located(root, name) for name in self.names.values()]

    @property
    def tags(self) -> list[str]:
        """What stands before each source."""
        return [*([language_tag(self.to)] if self.to else []), *([self.tag] if self.tag else [])]

    def evaluate_options(self, root: Path) -> list[str]:
        """The files as options of `transduce evaluate`; none where it cannot know how they are read."""
        paths, to = [str(path) for path in self.paths(root)], ["--to", self.to] if self.to else []
        if self.of_two_files:
            return ["--source", paths[0], "--reference", paths[1], *to]
        if self.format_name == "tsv" and isinstance(self.source_column, int) and self.separator is None:
            return [*tsv_options(paths[0], [self.source_column], self.target_column), *to]
        known = is_table(Path(paths[0])) and self.format_name == format_name(Path(paths[0]))
        return ["--source", paths[0]] if known and not self.to else []


def tsv_options(path: str, source: Sequence[int | str], target: int | str) -> list[str]:
    """Columns of a tab-separated file as options of `transduce evaluate`: those of the source, and of the target."""
    columns = [option for each in source for option in ("--source-column", str(each))]
    return ["--tsv", path, *columns, "--target-column", str(target)]
