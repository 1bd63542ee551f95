"""The doctor's examination of recordings: how long they are, what cannot be read, silence, clipping, texts, leaks.

Shapes: N samples, S frames, F features.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.core.errors import InputError
from transduce.data.remote import located
from transduce.data.speech.audio import ARRAY, JOIN, read_features, read_samples
from transduce.data.speech.filterbank import SHIFT, WINDOW
from transduce.data.speech.recordings import RecordingFile, read_recordings
from transduce.doctor.lines import ScannedFile
from transduce.doctor.report import LINES_NAMED, Finding, Report, Severity, worst_first
from transduce.doctor.scan import Progress, in_silence

FULL, RUN = 0.999, 3  # of full scale; samples in a row from which they are clipped
SILENT = 1e-3  # the loudest sample of a silent recording: -60 dB of full scale
QUIET = 0.01  # a frame is quiet below this share of the loudest: -40 dB
FASTEST = 25  # characters a second; nobody speaks faster


class Examined(NamedTuple):
    """What one recording is. content: a hash of its samples; kinds: of what is wrong with it."""

    line: int
    name: str
    text: str
    seconds: float = 0.0
    rate: int | None = None
    content: str = ""
    kinds: tuple[str, ...] = ()
    problem: str = ""


SENTENCES = {
    "unreadable": (Severity.ERROR, "{count} cannot be read."),
    "not_finite": (Severity.ERROR, "{count} with features that are NaN or infinite."),
    "no_text": (Severity.WARNING, "{count} without a text; training leaves them out."),
    "too_short": (Severity.WARNING, "{count} shorter than a frame of 25 ms; training leaves them out."),
    "too_long": (Severity.WARNING, "{count} longer than data.max_frames; training leaves them out."),
    "too_much_text": (
        Severity.WARNING,
        f"{{count}} with more than {FASTEST} characters a second: is it the right text?",
    ),
    "silent": (Severity.WARNING, "{count} silent: nothing in them is louder than -60 dB of full scale."),
    "mostly_quiet": (Severity.NOTE, "{count} of which more than half is 40 dB below the loudest frame."),
    "clipped": (Severity.WARNING, f"{{count}} clipped: {RUN} or more samples in a row at full scale."),
    "upsampled": (
        Severity.WARNING,
        "{count} with fewer samples a second than data.rate: the upper filters hear nothing. Lower data.rate.",
    ),
}
"""Kind of finding -> how bad it is and how it is said, in the order in which findings are told."""


def examine_recordings(
    files: Mapping[str, RecordingFile],
    root: Path,
    words: Mapping[str, str] | None = None,
    rate: int | None = None,
    max_frames: int | None = None,
    progress: Progress = in_silence,
) -> Report:
    """Examine every recording of files by role; training files have roles that begin with "train".

    Strings of recordings are examined recording by recording.

    Args:
        words: what texts are called; see `transduce.data.speech.recordings.read_recordings`.
        rate: samples a second that training brings sound to.
        max_frames: training leaves out longer recordings.

    Raises:
        InputError: a table or an archive cannot be read.
    """
    findings, heard = list[Finding](), dict[str, list[Examined]]()
    for role, file in files.items():
        single = file.model_copy(update={"strings": None})
        longest = max_frames if role.startswith("train") else None
        heard[role] = list(_examined(single, root, words, rate, longest, partial(progress, role, 1)))
        findings += _findings(heard[role], role)
    findings += _leaks(heard) + _contradictions(heard)
    paths = {role: ScannedFile(located(root, file.file)) for role, file in files.items()}
    counts = {role: len(each) for role, each in heard.items()}
    return Report(paths, counts, worst_first(findings), unit="recording")


def _examined(
    file: RecordingFile,
    root: Path,
    words: Mapping[str, str] | None,
    rate: int | None,
    max_frames: int | None,
    advance: Callable[[], None],
) -> Iterator[Examined]:
    for line, name, text in read_recordings(file, root, words):
        try:
            found = _features(name, root) if ARRAY.fullmatch(name) else _sound(name, root, rate)
        except InputError as error:
            yield Examined(line, name, text, kinds=("unreadable",), problem="; ".join(error.problems))
        else:
            kinds = [*found.kinds, *([] if text.strip() else ["no_text"])]
            kinds += ["too_long"] if max_frames and found.seconds > max_frames * SHIFT + WINDOW else []
            kinds += ["too_much_text"] if found.seconds and len(text) > 1 + FASTEST * found.seconds else []
            yield found._replace(line=line, text=text, kinds=tuple(kinds))
        advance()


def _sound(name: str, root: Path, rate: int | None) -> Examined:
    parts = [read_samples(part.strip(), root) for part in name.split(JOIN)]
    wave_N, rates = np.concatenate([wave.numpy() for wave, _ in parts]), [each for _, each in parts]
    seconds = sum(len(wave) / each for wave, each in parts)
    loudest = float(np.abs(wave_N).max(initial=0.0))
    checks = {
        "too_short": seconds < WINDOW,
        "silent": loudest < SILENT,
        "clipped": loudest >= FULL and _longest_run(np.abs(wave_N) >= FULL * loudest) >= RUN,
        "mostly_quiet": loudest >= SILENT and _quiet_share(wave_N, int(rates[0] * SHIFT)) > 0.5,
        "upsampled": rate is not None and min(rates) < rate,
    }
    content = hashlib.sha256(wave_N.tobytes()).hexdigest()
    return Examined(0, name, "", seconds, min(rates), content, tuple(kind for kind, found in checks.items() if found))


def _features(name: str, root: Path) -> Examined:
    features_SF = np.concatenate([read_features(part.strip(), root) for part in name.split(JOIN)])
    finite = bool(np.isfinite(features_SF).all())
    checks = {
        "too_short": not len(features_SF),
        "not_finite": not finite,
        "silent": bool(len(features_SF)) and finite and float(np.ptp(features_SF, axis=0).max()) == 0,
    }
    content = hashlib.sha256(features_SF.tobytes()).hexdigest()
    kinds = tuple(kind for kind, found in checks.items() if found)
    return Examined(0, name, "", len(features_SF) * SHIFT, None, content, kinds)


def _longest_run(which_N: NDArray[np.bool_]) -> int:
    """How many in a row are True at most."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], which_N, [False])).astype(np.int8)))
    return int((edges[1::2] - edges[::2]).max(initial=0))


def _quiet_share(wave_N: NDArray[np.float32], shift: int) -> float:
    """The share of frames of 10 ms whose root mean square is far below that of the loudest."""
    count = len(wave_N) // shift
    if not count:
        return 0.0
    level_S = np.sqrt(np.square(wave_N[: count * shift].reshape(count, shift)).mean(1))
    return float((level_S < QUIET * level_S.max()).mean())


def _findings(heard: Sequence[Examined], role: str) -> list[Finding]:
    """How long the recordings are, and one finding for each kind of what is wrong."""
    if not heard:
        return [Finding("no_recordings", Severity.ERROR, "There is no recording.", 0, side=role)]
    found = [_durations(heard, role)]
    for kind, (severity, sentence) in SENTENCES.items():
        wrong = [each for each in heard if kind in each.kinds]
        if wrong:
            said = f"{role}: " + sentence.format(count=_counted(len(wrong)))
            found.append(_finding(kind, severity, said, wrong, role))
    return found


def _durations(heard: Sequence[Examined], role: str) -> Finding:
    seconds = sorted(each.seconds for each in heard if "unreadable" not in each.kinds) or [0.0]
    minutes, rest = divmod(round(sum(seconds)), 60)
    rates = Counter(each.rate for each in heard if each.rate)
    told = "; " + ", ".join(f"{count:,} at {rate:,} Hz" for rate, count in rates.most_common()) if rates else ""
    sentence = (
        f"{role}: {_counted(len(heard))}, {minutes:,}:{rest:02d} minutes in all; the shortest {seconds[0]:.2f} s, half "
        f"of them up to {seconds[(len(seconds) - 1) // 2]:.2f} s, the longest {seconds[-1]:.2f} s{told}."
    )
    return Finding("durations", Severity.NOTE, sentence, len(heard), side=role)


def _leaks(heard: Mapping[str, Sequence[Examined]]) -> list[Finding]:
    """Recordings of held-out files that training hears too."""
    trained = {each.content for role, rows in heard.items() if role.startswith("train") for each in rows}
    found = []
    for role, rows in heard.items():
        leaked = [each for each in rows if not role.startswith("train") and each.content in trained - {""}]
        if leaked:
            sentence = f"{role}: {_counted(len(leaked))} that the training files have too, sample for sample."
            found.append(_finding("leak", Severity.ERROR, sentence, leaked, role))
    return found


def _contradictions(heard: Mapping[str, Sequence[Examined]]) -> list[Finding]:
    """Recordings of a training file that stand there twice, with different texts."""
    found = []
    for role, rows in heard.items():
        texts: dict[str, set[str]] = {}
        for each in rows:
            if each.content:
                texts.setdefault(each.content, set()).add(each.text)
        twice = [each for each in rows if len(texts.get(each.content, ())) > 1]
        if twice:
            sentence = f"{role}: {_counted(len(twice))} that are the same, sample for sample, with different texts."
            found.append(_finding("contradiction", Severity.WARNING, sentence, twice, role))
    return found


def _finding(kind: str, severity: Severity, sentence: str, rows: Sequence[Examined], role: str) -> Finding:
    lines = [each.line for each in rows[:LINES_NAMED]]
    examples = [each.problem or f"{each.name}  {each.text}".strip() for each in rows[:LINES_NAMED]]
    return Finding(kind, severity, sentence, len(rows), lines, role, examples)


def _counted(count: int) -> str:
    return f"{count:,} recording" + ("" if count == 1 else "s")
