"""The doctor's examination of texts with labels: missing and rare labels, contradictions, repetitions, leaks."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from transduce.core.printable import NAMED, quoted
from transduce.data.labelled import Example, LabelledFiles, read_labelled
from transduce.data.labelled_hold_out import hash_of
from transduce.data.remote import located
from transduce.doctor.lines import ScannedFile
from transduce.doctor.report import LINES_NAMED, Finding, Report, Severity, plural, worst_first

RARE = 5  # examples of a label, of fewer it is hardly learnt
SHOWN = 40  # characters of a label in a message
CUT = 100  # characters of a text in an example


def examine_labelled(named: LabelledFiles) -> Report:
    """Examine every example of files by role; training files have roles that begin with "train".

    Raises:
        InputError: as `transduce.data.labelled.read_labelled`.
    """
    rows = {role: list(read_labelled(file, named.root, named.labels)) for role, file in named.files.items()}
    trained = [each for role, found in rows.items() if role.startswith("train") for each in found]
    findings = list[Finding]()
    for role, found in rows.items():
        findings += _of_file(role, found)
        if not role.startswith("train"):
            findings += [*_leaks(role, found, trained), *_unseen(role, found, trained)]
    findings += _rare(trained)
    paths = {role: ScannedFile(located(named.root, file.name)) for role, file in named.files.items()}
    return Report(paths, {role: len(found) for role, found in rows.items()}, worst_first(findings), unit="example")


def _of_file(role: str, rows: Sequence[Example]) -> list[Finding]:
    """What a file has by itself."""
    hashes = [hash_of(text) for _, text, _ in rows]
    labels: dict[int | None, Counter[str]] = {}
    for key, (_, _, label) in zip(hashes, rows, strict=True):
        labels.setdefault(key, Counter())[label] += 1
    labels.pop(None, None)
    told = _teller(role, rows, hashes)
    return [
        *told("no_label", Severity.ERROR, "without a label", lambda _, label: not label.strip()),
        *told("no_text", Severity.WARNING, "without a text; training leaves them out", lambda key, _: key is None),
        *told(
            "contradiction",
            Severity.WARNING,
            "whose text stands there again with another label, but for case and white space",
            lambda key, _: len(labels.get(key, ())) > 1,
        ),
        *told(
            "repeated",
            Severity.NOTE,
            "whose text stands there again with the same label",
            lambda key, label: labels.get(key, Counter())[label] > 1,
        ),
    ]


def _leaks(role: str, rows: Sequence[Example], trained: Iterable[Example]) -> list[Finding]:
    """Texts of a held-out file that training has, too."""
    known = {hash_of(text) for _, text, _ in trained} - {None}
    told = _teller(role, rows, [hash_of(text) for _, text, _ in rows])
    return told("leak", Severity.ERROR, "whose text the training files have, too", lambda key, _: key in known)


def _unseen(role: str, rows: Sequence[Example], trained: Iterable[Example]) -> list[Finding]:
    known = {label for *_, label in trained}
    new = sorted({label for *_, label in rows if label not in known})
    what = f"with a label that training never has ({quoted(new, NAMED, SHOWN)}), which is never predicted"
    return _teller(role, rows, [0] * len(rows))(
        "unseen_label", Severity.WARNING, what, lambda _, label: label not in known
    )


def _rare(trained: Sequence[Example]) -> list[Finding]:
    counts = Counter(label for *_, label in trained)
    rare = sorted(label for label, count in counts.items() if count < RARE)
    if not rare:
        return []
    sentence = f"train: {plural(len(rare), 'label')} with fewer than {RARE} examples, hardly learnt: "
    lines = [line for line, _, label in trained if label in rare][:LINES_NAMED]
    return [
        Finding(
            "rare_label", Severity.WARNING, f"{sentence}{quoted(rare, NAMED, SHOWN)}.", len(rare), lines, side="train"
        )
    ]


def _teller(
    role: str, rows: Sequence[Example], hashes: Sequence[int | None]
) -> "Callable[[str, Severity, str, Callable[[int | None, str], bool]], list[Finding]]":
    """What makes a finding of the examples of which something is true; none where there are no such."""

    def told(kind: str, severity: Severity, what: str, is_so: Callable[[int | None, str], bool]) -> list[Finding]:
        found = [row for row, key in zip(rows, hashes, strict=True) if is_so(key, row[2])]
        if not found:
            return []
        examples = [f"{text[:CUT]}  {label}" for _, text, label in found[:LINES_NAMED]]
        lines = [line for line, *_ in found[:LINES_NAMED]]
        sentence = f"{role}: {plural(len(found), 'example')} {what}."
        return [Finding(kind, severity, sentence, len(found), lines, role, examples)]

    return told
