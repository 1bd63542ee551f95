"""Draw held-out parts from texts whose words have labels: whole documents where a file marks them, else single texts.

Hashes of the words decide which are held out, not their order or a seed. Texts that are the same but for case and white
space stay together; so do the texts of a document, where there are enough documents to draw from.
"""

from collections.abc import Sequence

from transduce.data.hold_out import HoldOut
from transduce.data.labelled_hold_out import Example, ExampleSplit, drawn_parts, has_parts, hash_of, parts_of_files
from transduce.data.tagged import TaggedTexts

ENOUGH = 0.5  # of the texts that are wanted for a part, which whole documents must make up


def split_tagged(names: str, files: Sequence[TaggedTexts], amounts: HoldOut) -> ExampleSplit:
    """Where each text of the files belongs.

    Args:
        names: of the files.

    Raises:
        InputError: there are too few texts.
    """
    by_document = [_documents(file) for file in files]
    marked = any(document for file in files for document in file.documents)
    together = marked and _are_enough(by_document, amounts)
    read = by_document if together else [_texts(file) for file in files]
    parts = parts_of_files(names, read, amounts, "texts, of which one is kept for training")
    return ExampleSplit(parts, "texts", "whole documents" if together else "the same text on one side")


def _texts(file: TaggedTexts) -> list[Example]:
    return [(hash_of(words), "") for _, words, _ in file.examples]


def _documents(file: TaggedTexts) -> list[Example]:
    """Each text with the hash of its document; of a text before the first mark, its own."""
    words: dict[int, list[str]] = {}
    for document, (_, text, _) in zip(file.documents, file.examples, strict=True):
        words.setdefault(document, []).append(text)
    hashes = {document: hash_of(" ".join(texts)) for document, texts in words.items() if document}
    own = _texts(file)
    return [(hashes.get(document, key), label) for document, (key, label) in zip(file.documents, own, strict=True)]


def _are_enough(files: Sequence[Sequence[Example]], amounts: HoldOut) -> bool:
    """Whether documents are marked, and as many texts as are wanted can be drawn in whole ones."""
    examples = [each for file in files for each in file]
    wanted = amounts.counts(len(examples))
    different = len({key for key, _ in examples})
    return 1 < different < len(examples) and all(has_parts(drawn_parts(examples, wanted), wanted, ENOUGH))
