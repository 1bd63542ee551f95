"""Questions on texts in SQuAD's JSON: of SQuAD 1.1, SQuAD 2.0 with questions that have no answer, and their like.

{"data": [{"paragraphs": [{"context": "..", "qas": [{"id": "..", "question": "..", "answers": [
    {"text": "..", "answer_start": 17}, ..]}, ..]}, ..]}, ..]}

Or an object a line, with answers in any of these ways:

{"question": "..", "context": "..", "answers": [{"text": "..", "answer_start": 17}, ..]}
{"question": "..", "context": "..", "answers": {"text": ["..", ..], "answer_start": [17, ..]}}
{"question": "..", "context": "..", "answer": ".."}
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from transduce.core.errors import InputError
from transduce.core.printable import PROBLEMS
from transduce.data.files import read_lines, read_whole, suffix_of

SEPARATORS = ("\t", "\n")
OBJECTS = (".jsonl", ".ndjson")
ANSWERS = ("answers", "answer")


class Question(NamedTuple):
    """A question on a text.

    answers: each with its first character in the text; none where the text holds no answer, or nobody said.
    """

    id: str
    question: str
    context: str
    answers: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        """Both as one text, which `cut` takes apart again."""
        return joined(self.question, self.context)


def joined(question: str, context: str) -> str:
    """A question and a text as one text: the question, a tab, the text."""
    return f"{' '.join(question.split())}\t{context}"


def cut(text: str) -> tuple[str, str]:
    """The question and the text of what `joined` gave; a line break may stand in the place of the tab. Both are empty
    where there is nothing.

    Raises:
        InputError: there is neither.
    """
    if not text.strip():
        return "", ""
    places = [place for place in map(text.find, SEPARATORS) if place >= 0]
    if not places:
        raise InputError(f"expected a question, a tab (or a line break), and a text that answers it; got: {text[:60]}")
    return text[: min(places)], text[min(places) + 1 :]


def read_squad(path: Path) -> list[Question]:
    """All questions of a .json or a .jsonl, compressed or not, in its order.

    Raises:
        InputError: it is no such JSON; all wrong places are named. Two questions have the same id.
    """
    problems: list[str] = []
    if suffix_of(path) in OBJECTS:
        found = [each for each in _objects(path, problems) if each]
    else:
        found = list(_questions(_table(path), problems))
    ids = [each.id for each in found]
    if len(set(ids)) < len(ids):
        twice = list(dict.fromkeys(each for each in ids if ids.count(each) > 1))
        problems.append(f'{len(twice):,} ids stand twice, such as "{twice[0]}"')
    if problems:
        more = [f"and {len(problems) - PROBLEMS:,} more"] if len(problems) > PROBLEMS else []
        raise InputError(f"{path}: {problem}." for problem in [*problems[:PROBLEMS], *more])
    return found


def _table(path: Path) -> Any:
    try:
        return json.loads(read_whole(path).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected JSON in the format of SQuAD; it cannot be read: {error}.") from None


def _objects(path: Path, problems: list[str]) -> Iterator[Question | None]:
    """The question of each line, of which those without an id are called by their lines."""
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            yield _object(line, number, problems)


def _object(line: str, number: int, problems: list[str]) -> Question | None:
    where = f"line {number}"
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        problems.append(f"{where}: expected a JSON object; it cannot be read: {error}")
        return None
    context = _text(row, "context", where, problems)
    if context is None:
        return None
    key = next((key for key in ANSWERS if row.get(key) is not None), "")
    whole = {"id": str(row.get("id", number)), "question": row.get("question"), "answers": as_answers(row.get(key))}
    return _question(whole, context, where, problems)


def as_answers(given: Any) -> Any:
    """The answers of an object of its own as SQuAD's: texts alone have no place, and lists of both become objects."""
    if isinstance(given, dict) and isinstance(given.get("text"), list):
        starts = given.get("answer_start") or [0] * len(given["text"])
        return [{"text": text, "answer_start": start} for text, start in zip(given["text"], starts, strict=False)]
    several = given if isinstance(given, list) else [] if given is None else [given]
    return [{"text": each} if isinstance(each, str) else each for each in several if each != ""]


def placed(question: Question) -> list[tuple[str, int]]:
    """Its answers that stand in the text, each with its first character.

    Where an answer is not where the file says, the nearest place that holds it is taken; one that is nowhere is left
    out.
    """
    found = []
    for answer, said in question.answers:
        if answer and answer in question.context:
            starts = _starts(question.context, answer)
            found.append((answer, min(starts, key=lambda start: (abs(start - said), start))))
    return found


def _starts(context: str, answer: str) -> list[int]:
    starts, start = [], context.find(answer)
    while start >= 0:
        starts.append(start)
        start = context.find(answer, start + 1)
    return starts


def _questions(table: Any, problems: list[str]) -> Iterator[Question]:
    for number, article in enumerate(_listed(table, "data", "the file", problems)):
        where = f"data[{number}]"
        for place, paragraph in enumerate(_listed(article, "paragraphs", where, problems)):
            here = f"{where}.paragraphs[{place}]"
            context = _text(paragraph, "context", here, problems)
            for nth, row in enumerate(_listed(paragraph, "qas", here, problems)):
                question = _question(row, context, f"{here}.qas[{nth}]", problems)
                if question:
                    yield question


def _question(row: Any, context: str | None, where: str, problems: list[str]) -> Question | None:
    id_, asked = _text(row, "id", where, problems), _text(row, "question", where, problems)
    if id_ is None or asked is None or context is None:
        return None
    answers = []
    for number, answer in enumerate(_listed(row, "answers", where, problems) if "answers" in row else []):
        text = _text(answer, "text", f"{where}.answers[{number}]", problems)
        start = answer.get("answer_start", 0) if isinstance(answer, dict) else 0
        if isinstance(start, bool) or not isinstance(start, int):
            problems.append(f"{where}.answers[{number}].answer_start: expected a whole number; got {start!r}")
        elif text is not None:
            answers.append((text, start))
    return Question(id_, asked, context, tuple(answers))


def _listed(table: Any, key: str, where: str, problems: list[str]) -> list[Any]:
    found = table.get(key) if isinstance(table, dict) else None
    if isinstance(found, list):
        return found
    problems.append(f'{where}: expected an object with a list "{key}"; got {json.dumps(table)[:60]}')
    return []


def _text(table: Any, key: str, where: str, problems: list[str]) -> str | None:
    found = table.get(key) if isinstance(table, dict) else None
    if isinstance(found, str):
        return found
    problems.append(f'{where}: expected an object with a text "{key}"; got {json.dumps(table)[:60]}')
    return None
