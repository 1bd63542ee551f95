"""Files that are not read, named as what they are."""

from pathlib import PurePosixPath

PDF = "a PDF, which has no text to write into. Export it as .docx or .html"
OLD = "of old Office (before 2007), or has a password. Save it as .docx, .pptx or .xlsx without one"
KINDS = {
    ".pdf": PDF,
    ".doc": OLD,
    ".ppt": OLD,
    ".xls": OLD,
    ".rtf": "Rich Text (RTF). Save it as .docx or .odt",
    ".ods": "a table of OpenDocument. Save it as .xlsx",
    ".odp": "slides of OpenDocument. Save them as .pptx",
    ".pages": "of Apple's Pages. Export it as .docx",
    ".key": "of Apple's Keynote. Export it as .pptx",
    ".numbers": "of Apple's Numbers. Export it as .xlsx",
    ".mo": "a compiled catalogue of gettext. Give the .po that it was made of",
    ".mobi": "a book for Kindle. Convert it to .epub",
    ".azw3": "a book for Kindle. Convert it to .epub",
    ".tex": "LaTeX, which is a program. Convert it to .html or .md",
    ".sub": "of MicroDVD or VobSub. Convert it to .srt",
    ".ass": "of SubStation Alpha. Convert it to .srt",
    ".ssa": "of SubStation Alpha. Convert it to .srt",
    ".scp": "Kaldi's list of recordings. Join it with its text into a .tsv with columns audio and text",
    ".sdlxliff": "XLIFF of Trados. Export it as .xlf",
}
BEGINNINGS = {
    b"%PDF-": KINDS[".pdf"],
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": OLD,
    b"{\\rtf": KINDS[".rtf"],
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"Rar!": "an archive",
    b"7z\xbc\xaf": "an archive",
    b"\x1f\x8b": "packed with gzip. Unpack it",
    b"\xfd7zXZ": "packed with xz. Unpack it",
    b"(\xb5/\xfd": "packed with zstd. Unpack it",
}


def told_of_foreign(name: str, content: bytes = b"") -> str:
    """What a file is that cannot be translated, by its first bytes or name: " It is a PDF, .."; "" = nobody knows."""
    found = next((told for begins, told in BEGINNINGS.items() if content.startswith(begins)), "")
    if not found and not content:
        found = KINDS.get(PurePosixPath(name).suffix.lower(), "")
    return f" It is {found}." if found else ""
