"""Stories with questions, as texts and in the files of the bAbI tasks (Weston et al. 2015).

A file has a statement or a question in each line. Lines are numbered from 1 in each story. Behind a question stand a
tab, its answer, a tab and the numbers of the statements that it follows from, which may be missing:

    1 Mary moved to the bathroom.
    2 John went to the hallway.
    3 Where is Mary? <tab> bathroom <tab> 1
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from transduce.core.errors import InputError
from transduce.core.printable import PROBLEMS
from transduce.data.files import existing_file, read_lines
from transduce.data.remote import located
from transduce.data.speech.archives import tar_archive

SHOWN = 60  # characters of what is wrong
ARCHIVE = re.compile(r"(.+?\.(?:tar|tgz|tar\.gz|tar\.xz|tar\.bz2)):(.+)")
PARTS = ("train", "test", "valid", "validation", "dev")  # of a data set: no part of a task's name
MARKS = ".!?。！？"
SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s|$)|[。！？]|$)")
LINE = re.compile(r"(\d+) (.*)")
NUMBER = re.compile(r"\s*(\d{1,9}) +(?=\S)")
KEYS = ("story", "question", "facts")


class StoryText(NamedTuple):
    """A story and a question about it.

    text: both, as people read them. parts: the characters [start, end) of each sentence without the mark at its end,
        the question last. facts: the places of the sentences that the answer follows from; () = nobody said.
    """

    text: str
    parts: tuple[tuple[int, int], ...]
    facts: tuple[int, ...] = ()

    @property
    def sentences(self) -> list[str]:
        """The parts, the question last."""
        return [self.text[start:end] for start, end in self.parts]

    @property
    def question(self) -> str:
        """As it is written, with its mark."""
        return self.text[self.parts[-1][0] :].partition("\t")[0].strip() if self.parts else ""


class StoryQuestion(NamedTuple):
    """A question in a file. task: the name of the file's task. story: the number of its story in the file, from 0."""

    sentences: tuple[str, ...]
    question: str
    answer: str
    facts: tuple[int, ...]
    task: str
    story: int

    @property
    def text(self) -> str:
        """Story and question as one text, which `story_of` takes apart again."""
        return numbered(self.sentences, self.question, self.facts)


class StorySource(NamedTuple):
    """A file, or one in an archive. name: for messages. task: without what says which part of a data set it is."""

    name: str
    task: str
    path: Path
    lines: Callable[[], Iterable[str]]


def numbered(sentences: Iterable[str], question: str, facts: Iterable[int] = ()) -> str:
    """A story and a question as lines of a file, without the answer."""
    lines = [" ".join(each.split()) for each in (*sentences, question)]
    known = " ".join(str(each + 1) for each in facts)
    return "\n".join(f"{number} {line}" for number, line in enumerate(lines, 1)) + (f"\t\t{known}" if known else "")


def story_of(text: str) -> StoryText:
    """A story and a question from text: sentences and the question behind them, one a line or all in one; the numbered
    lines of a file, the last of them a question; or JSON, whose `text` is then such lines.

        Mary moved to the bathroom. John went to the hallway. Where is Mary?
        {"story": ["Mary moved to the bathroom.", "John went to the hallway."], "question": "Where is Mary?"}

    In JSON, "facts" may number the sentences that the answer follows from, from 1. Of nothing but spaces there are no
    parts.

    Raises:
        InputError: there is no story; a fact is none of its sentences; the JSON is something else.
    """
    if text.lstrip().startswith("{"):
        return _of_json(text)
    spans = _lines(text) if "\n" in text.strip() else [match.span() for match in SENTENCE.finditer(text)]
    found = [NUMBER.match(text, start, end) for start, end in spans]
    if len(spans) > 1 and "\n" in text and all(found):
        return _of_numbered(text, spans, [match for match in found if match])
    if len(spans) == 1:
        raise InputError(
            "expected a story and a question, such as: Mary moved to the bathroom. Where is Mary? "
            f"Got one sentence: {text.strip()[:SHOWN]}"
        )
    return StoryText(text, tuple((start, start + len(_bare(text[start:end]))) for start, end in spans))


def story_sources(root: Path, pattern: str) -> list[StorySource]:
    """The files that a path or pattern below `root` names, or in an archive: data.tar.gz:en/qa*_train.txt.

    Numbers in their names count: qa2 comes before qa10.

    Raises:
        InputError: there is none; an archive cannot be read.
    """
    if found := ARCHIVE.fullmatch(pattern):
        return _in_archive(existing_file(located(root, found[1])), found[2])
    if not is_pattern(pattern):
        return [_source(existing_file(located(root, pattern)))]
    paths = [path for path in root.glob(pattern) if path.is_file()]
    if not paths:
        raise InputError(f"{located(root, pattern)}: no file has such a name.")
    return [_source(path) for path in sorted(paths, key=lambda path: _natural(str(path)))]


def read_stories(source: StorySource) -> list[StoryQuestion]:
    """All questions of a file, in its order.

    Raises:
        InputError: lines that are neither statement nor question, or out of order; a question without an answer, or
            with facts that no statement before it has. The first are named.
    """
    problems: list[str] = []
    found = list(_questions(source, problems))
    if problems:
        more = len(problems) - PROBLEMS
        others = [f"{source.name}: {more:,} more lines like these."] if more > 0 else []
        raise InputError([*problems[:PROBLEMS], *others])
    if not found:
        raise InputError(f"{source.name}: there is no question: expected lines such as 3 Where is Mary?<tab>bathroom.")
    return found


def parted(path: Path) -> tuple[Path, str]:
    """A folder and a pattern below it, as `story_sources` takes them."""
    archive = ARCHIVE.fullmatch(str(path))
    if archive is None:
        return path.parent, path.name
    packed = Path(archive[1])
    return packed.parent, f"{packed.name}:{archive[2]}"


def is_pattern(file: str) -> bool:
    """Whether it names what is in an archive, or maybe several files."""
    return ARCHIVE.fullmatch(file) is not None or any(each in file for each in "*?[")


def is_story_file(path: Path) -> bool:
    """Whether the first line is a numbered one, and one of the first hundred is a question."""
    lines = [line for line, _ in zip(read_lines(path), range(100), strict=False)]
    return bool(lines) and lines[0].startswith("1 ") and any("\t" in line for line in lines)


def _questions(source: StorySource, problems: list[str]) -> Iterator[StoryQuestion]:
    statements: dict[int, tuple[int, str]] = {}  # by the line's number in the story: its place, and the sentence
    last, story = 0, -1

    def wrong(line: int, expected: str, got: str) -> None:
        problems.append(f"{source.name}, line {line}: expected {expected}; got {got[:SHOWN]}")

    for number, line in enumerate(source.lines(), 1):
        match = LINE.fullmatch(line.rstrip("\r"))
        if not match or not match[2].strip():
            wrong(
                number, 'a number, a space and a sentence, such as "1 Mary moved to the bathroom."', line or "nothing"
            )
            continue
        told, (sentence, *more) = int(match[1]), match[2].split("\t")
        if told == 1:
            statements, story = {}, story + 1
        elif told != last + 1 or story < 0:
            wrong(number, f"the number {last + 1}, or 1 where a new story begins" if last else "the number 1", line)
        last = told
        if not more:
            statements[told] = (len(statements), sentence.strip())
            continue
        facts = more[1].split() if len(more) > 1 else []
        if len(more) > 2 or not more[0].strip():
            wrong(number, "a question, a tab, its answer, a tab and the numbers of its supporting facts", line)
        elif not statements:
            wrong(number, "a statement before the first question of a story", line)
        elif unknown := [each for each in facts if not each.isdecimal() or int(each) not in statements]:
            wrong(number, "numbers of statements before it as supporting facts", " ".join(unknown))
        else:
            places = tuple(statements[int(each)][0] for each in facts)
            sentences = tuple(each for _, each in statements.values())
            yield StoryQuestion(sentences, sentence.strip(), more[0].strip(), places, source.task, story)


def _of_json(text: str) -> StoryText:
    wanted = 'expected {"story": ["..", ..], "question": ".."}'
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{wanted}; it cannot be read: {str(error)[:200]}.") from None
    story, question = table.get("story"), table.get("question")
    if unknown := [each for each in table if each not in KEYS]:
        raise InputError(f"{wanted}; got the key {unknown[0][:SHOWN]!r}.")
    sentences = [*story, question] if isinstance(story, list) else [story, question]
    if not all(isinstance(each, str) and each.strip() for each in sentences) or len(sentences) < 2:
        raise InputError(f"{wanted}, with a sentence at least in the story; got: {text[:SHOWN]}")
    if isinstance(story, str):
        sentences = [story[slice(*match.span())] for match in SENTENCE.finditer(" ".join(story.split()))] + [question]
    facts = table.get("facts", [])
    known = range(1, len(sentences))
    if not isinstance(facts, list) or not all(type(each) is int and each in known for each in facts):
        raise InputError(
            f'"facts": expected numbers of sentences, 1 to {len(sentences) - 1}; got {str(facts)[:SHOWN]}.'
        )
    return story_of(numbered(sentences[:-1], sentences[-1], [each - 1 for each in facts]))


def _of_numbered(text: str, spans: list[tuple[int, int]], numbers: list[re.Match[str]]) -> StoryText:
    """Questions before the last one are left out."""
    parts: list[tuple[int, int]] = []
    places: dict[str, int] = {}
    for (_, end), match in zip(spans[:-1], numbers, strict=False):
        line = text[match.end() : end]
        if "\t" not in line:
            places[match[1]] = len(parts)
            parts.append((match.end(), match.end() + len(_bare(line))))
    first = numbers[-1].end()
    question, *more = text[first : spans[-1][1]].split("\t")
    facts = more[1].split() if len(more) > 1 else []
    if not parts or (unknown := [each for each in facts if each not in places]):
        wanted = f"numbers of sentences before it as facts; got {unknown[0][:SHOWN]}" if parts else "a story before it"
        raise InputError(f"the question {question.strip()[:SHOWN]}: expected {wanted}.")
    return StoryText(text, (*parts, (first, first + len(_bare(question)))), tuple(places[each] for each in facts))


def _lines(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"[^\S\n]*\S[^\n]*", text)]


def _bare(sentence: str) -> str:
    """Without spaces and marks at its end."""
    return sentence.rstrip().rstrip(MARKS).rstrip()


def _source(path: Path) -> StorySource:
    return StorySource(str(path), _task(path.name), path, lambda: read_lines(path))


def _in_archive(path: Path, pattern: str) -> list[StorySource]:
    archive = tar_archive(path)
    names = [name for name in archive.names if fnmatchcase(name, pattern)]
    if not names:
        raise InputError(f"{path}: no file in the archive is called {pattern}.")

    def source(name: str) -> StorySource:
        full = f"{path}:{name}"
        return StorySource(full, _task(name), path, lambda: _decoded(full, archive.read(name)))

    return [source(name) for name in sorted(names, key=_natural)]


def _decoded(name: str, raw: bytes) -> list[str]:
    try:
        return raw.decode("utf-8-sig").removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        raise InputError(f"{name}: not UTF-8. Convert the file (iconv -t UTF-8).") from None


def _task(name: str) -> str:
    """qa1_single-supporting-fact of en/qa1_single-supporting-fact_train.txt."""
    stem = Path(name).name.partition(".")[0]
    head, _, part = stem.rpartition("_")
    return head if head and part in PARTS else stem


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
