"""Translation memories (.tmx): every unit's text in the target language is written anew, with the source's codes."""

from collections.abc import Iterator

from transduce.core.errors import InputError
from transduce.core.languages import closest
from transduce.documents.bilingual import FileLanguages
from transduce.documents.codes import with_codes
from transduce.documents.inline import Inline, ParsedXml, Replacement, inline_run, spliced
from transduce.documents.xml import Element, Xml, quoted

INLINE = Inline(paired={"hi"}, halves={"bpt": ("open", ("i",)), "ept": ("close", ("i",))})


def parsed(content: bytes, name: str, languages: FileLanguages) -> ParsedXml:
    """The file with runs of text in the place of its targets.

    Raises:
        InputError: it is no translation memory; the languages are not known; it has none of the source's.
    """
    xml = Xml(content, name)
    if xml.root.name != "tmx":
        raise InputError(f"{name}: expected a translation memory (TMX); its outermost element is <{xml.root.name}>.")
    units = [each for each in xml.root.walk() if each.name == "tu"]
    header = xml.root.first("header")
    source = languages.source or (header.attributes.get("srclang", "") if header else "")
    if not source or not languages.target or source == "*all*":
        raise InputError(
            f"{name}: the model does not say which languages it reads and writes: its recipe has no codes."
        )
    if units and not any(_variant(each, source) for each in units):
        there = sorted({_language(each) for unit in units for each in unit.elements if each.name == "tuv"})
        raise InputError(f"{name}: has no text in {source}; its languages are {', '.join(there)[:200]}.")
    found = [each for unit in units for each in _target(xml, unit, source, languages.target)]
    return ParsedXml(xml, spliced(xml, found))


def _language(variant: Element) -> str:
    return variant.attributes.get("xml:lang") or variant.attributes.get("lang") or ""


def _variant(unit: Element, language: str) -> Element | None:
    """The text in a language."""
    variants = {_language(each): each for each in reversed(unit.elements) if each.name == "tuv"}
    found = closest(language, reversed(variants))
    return None if found is None else variants[found]


def _target(xml: Xml, unit: Element, source: str, language: str) -> Iterator[Replacement]:
    read, written = _variant(unit, source), _variant(unit, language)
    segment = read.first("seg") if read else None
    if read is None or segment is None or written is read:
        return
    run = with_codes(inline_run(xml, segment, INLINE))
    target = written.first("seg") if written else None
    if target is not None and target.inside < target.end and target.outside < target.end:
        yield target.inside, target.outside, [run]
    elif written is None:
        before = xml.raw(unit.inside, read.start)
        indent = before[len(before.rstrip()) :]
        yield read.end, read.end, [f'{indent}<tuv xml:lang="{quoted(language)}"><seg>', run, "</seg></tuv>"]
    elif target is not None:
        yield target.start, target.end, ["<seg>", run, "</seg>"]
