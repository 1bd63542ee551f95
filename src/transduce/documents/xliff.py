"""XLIFF 1.2 and 2: every unit without a translation gets one, with its codes; translations that are there stay.

A translation whose state says that it is none yet (new, needs-translation, initial) counts as none.
"""

from collections.abc import Iterator

from transduce.core.errors import InputError
from transduce.core.languages import same_language
from transduce.documents.bilingual import FileLanguages
from transduce.documents.codes import with_codes
from transduce.documents.inline import Inline, ParsedXml, Replacement, inline_run, spliced
from transduce.documents.xml import Element, Xml, quoted

UNFINISHED = {"new", "needs-translation", "initial"}
INLINE = Inline(
    paired={"g", "pc", "mrk"},
    halves={
        "bpt": ("open", ("rid", "id")),
        "ept": ("close", ("rid", "id")),
        "bx": ("open", ("rid", "id")),
        "ex": ("close", ("rid", "id")),
        "sc": ("open", ("id",)),
        "ec": ("close", ("startRef", "id")),
        "sm": ("open", ("id",)),
        "em": ("close", ("startRef",)),
    },
)


def parsed(content: bytes, name: str, languages: FileLanguages) -> ParsedXml:
    """The file with runs of text in the place of translations that are missing.

    Raises:
        InputError: it is no XLIFF; its languages are others than the model's.
    """
    xml = Xml(content, name)
    if xml.root.name != "xliff":
        raise InputError(f"{name}: expected XLIFF 1.2 or 2; its outermost element is <{xml.root.name}>.")
    return ParsedXml(xml, spliced(xml, sorted(_replacements(xml, languages), key=lambda each: each[:2])))


def _replacements(xml: Xml, languages: FileLanguages) -> Iterator[Replacement]:
    for element in _translated(xml.root):
        if element.name in ("xliff", "file"):
            yield from _language(xml, element, languages)
        else:
            yield from _target(xml, element)


def _translated(element: Element) -> Iterator[Element]:
    """Files, and what holds a source and a target, but for what is not to be translated."""
    if element.attributes.get("translate") == "no":
        return
    if element.name in ("xliff", "file", "trans-unit", "segment"):
        yield element
    if element.name not in ("trans-unit", "segment"):
        for each in element.elements:
            yield from _translated(each)


def _language(xml: Xml, element: Element, languages: FileLanguages) -> Iterator[Replacement]:
    """The language of the targets, where the file does not say. Raises InputError where it says another."""
    for keys, code in (
        (("srcLang", "source-language"), languages.source),
        (("trgLang", "target-language"), languages.target),
    ):
        named = next((element.attributes[each] for each in keys if each in element.attributes), "")
        if named and code and not same_language(named, code):
            raise InputError(
                f'{xml.name}, line {element.line}: says {keys[element.name == "file"]}="{named[:20]}", '
                f"and this model has {code} there. Choose a model of these languages."
            )
    key = {"xliff": "trgLang", "file": "target-language"}[element.name]
    speaks = {"xliff": "srcLang", "file": "source-language"}[element.name]
    if languages.target and speaks in element.attributes and key not in element.attributes:
        place = element.inside - 1
        yield place, place, [f' {key}="{quoted(languages.target)}"']


def _target(xml: Xml, unit: Element) -> Iterator[Replacement]:
    source, target = unit.first("source"), unit.first("target")
    read = unit.first("seg-source") or source
    if source is None or read is None or not read.children or (target and not _is_missing(unit, target)):
        return
    run = with_codes(inline_run(xml, read, INLINE))
    if target is None:
        name = xml.raw(source.start, source.inside)[1:].partition("source")[0] + "target"
        before = xml.raw(unit.inside, source.start)
        indent = before[len(before.rstrip()) :]
        yield read.end, read.end, [f"{indent}<{name}>", run, f"</{name}>"]
    elif target.inside == target.outside == target.end:  # <target/>
        start = xml.raw(target.start, target.end).removesuffix("/>").rstrip()
        name = start[1:].split()[0]
        yield target.start, target.end, [f"{start}>", run, f"</{name}>"]
    else:
        yield target.inside, target.outside, [run]


def _is_missing(unit: Element, target: Element) -> bool:
    state = target.attributes.get("state") or unit.attributes.get("state") or ""
    return not target.text.strip() or state in UNFINISHED
