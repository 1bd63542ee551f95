"""JSON: the values that are text. Keys, numbers and names for programs stay; placeholders and tags are codes."""

import json
import re

from transduce.core.errors import InputError
from transduce.documents.codes import with_codes
from transduce.documents.identifiers import is_identifier
from transduce.documents.runs import Part, RunBuilder, writes_escaped

STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?')
ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.")
FORMS = re.compile(r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal)\b")  # of ICU, which choose between texts


def parts(source: str, name: str) -> list[Part]:
    """The file as it is, runs of text in the place of its values.

    Raises:
        InputError: it is no JSON.
    """
    try:
        json.loads(source, parse_int=str)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: expected JSON; it cannot be read: {error}.") from None
    found, done = list[Part](), 0
    for each in STRING.finditer(source):
        text = "" if each[2] else json.loads(f'"{each[1]}"')
        if text and not is_identifier(text) and not FORMS.search(text):
            building = RunBuilder()
            _add(building, each[1])
            found += [source[done : each.start(1)], with_codes(building.run(WRITE, lines=True))]
            done = each.end(1)
    return [*found, source[done:]]


def _add(building: RunBuilder, raw: str) -> None:
    done = 0
    for escape in ESCAPE.finditer(raw):
        building.add_text(raw[done : escape.start()])
        building.add_text(json.loads(f'"{escape[0]}"'), escape[0])
        done = escape.end()
    building.add_text(raw[done:])


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


WRITE = writes_escaped(_escaped)
