"""Which CER is left in the HSK words if every syllable and tone is heard, and what does rounding cost?

    pip install pypinyin                              # the syllables of characters, in an environment of its own
    python benchmarks/homophones.py                   # of recipes/hsk-words.toml
    python benchmarks/homophones.py --write FOLDER    # also FOLDER/index.tsv, the same table with syllables as texts
    transduce train recipes/hsk-words.toml data.root=FOLDER ..
    python benchmarks/homophones.py --heard SYLLABLES --write FOLDER    # what a model heard in the test, a line a word;
                                                      # writes FOLDER/characters, the commonest for each, and references

The ideal recogniser writes, for each syllable with its tone, the character that training has most often for it. It
knows no words, as no test word is a training word. The features are 40 logarithms of energies, rounded to 64 steps; the
error of rounding is compared with how much a feature changes within a recording and from frame to frame.
"""

import argparse
import csv
import gzip
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from pypinyin import Style, lazy_pinyin

DATA = Path(__file__).parents[1] / "../shared/data/mandarin_hsk_words"
STEP = 19 / 63  # README of the data: x = 19 q / 63 - 12
PAUSE = "_"  # an ellipsis in a text, which nobody hears
Row = dict[str, str]


def main() -> None:
    """The figures, one a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="a folder, which is made")
    parser.add_argument("--heard", type=Path, help="syllables of the test's words, a line each")
    asked = parser.parse_args()
    if asked.heard and not asked.write:
        parser.error("--heard needs --write")
    with gzip.open(DATA / "index.tsv.gz", "rt", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    said = characters_of_syllables(rows)
    tell_of_characters(rows, said)
    tell_of_rounding(rows)
    if asked.write:
        write(asked.write, rows)
    if asked.heard:
        write_characters(asked.write, asked.heard.read_text(encoding="utf-8").splitlines(), rows, said)


def syllables(text: str) -> list[str]:
    """One for each character, as ni3 hao3."""
    return lazy_pinyin(text.replace(PAUSE, ""), style=Style.TONE3, neutral_tone_with_five=True)


def pairs_of(rows: list[Row], split: str) -> list[tuple[str, str]]:
    """Each character of a part with its syllable before it."""
    texts = (row["text"].replace(PAUSE, "") for row in rows if row["split"] == split)
    return [pair for text in texts for pair in zip(syllables(text), text, strict=True)]


def characters_of_syllables(rows: list[Row]) -> dict[str, Counter[str]]:
    """How often training has each character for a syllable."""
    said = defaultdict[str, Counter[str]](Counter)
    for syllable, character in pairs_of(rows, "train"):
        said[syllable][character] += 1
    return said


def tell_of_characters(rows: list[Row], said: dict[str, Counter[str]]) -> None:
    """Characters of the test by how often training has them, and what hearing alone decides."""
    heard = pairs_of(rows, "test")
    counts = Counter[str]()
    for each in said.values():
        counts.update(each)
    seen = np.array([counts[character] for _, character in heard])
    wrong = sum(commonest(said, syllable) != true for syllable, true in heard)
    share = 100 / len(heard)
    print(f"{len(heard)} characters in the test; {(seen == 0).sum() * share:.1f} % in no training word, ", end="")
    print(f"{(seen <= 4).sum() * share:.1f} % at most four times")
    alike = np.mean([len(said.get(syllable, ())) for syllable, _ in heard])
    print(f"characters of training with the same syllable and tone: {alike:.1f}")
    print(f"CER of perfect hearing and the commonest character: {wrong * share:.1f}")


def commonest(said: dict[str, Counter[str]], syllable: str) -> str:
    """The character that training has most often for a syllable; "?" if it has none."""
    return said[syllable].most_common(1)[0][0] if said.get(syllable) else "?"


def write_characters(folder: Path, heard: list[str], rows: list[Row], said: dict[str, Counter[str]]) -> None:
    """What was heard in characters, and what was said."""
    lines = ["".join(commonest(said, syllable) for syllable in line.split()) for line in heard]
    references = [row["text"].replace(PAUSE, "") for row in rows if row["split"] == "test"]
    if len(lines) != len(references):
        raise SystemExit(f"--heard has {len(lines)} lines; the test has {len(references)} words.")
    for name, texts in (("characters", lines), ("references", references)):
        (folder / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


def tell_of_rounding(rows: list[Row]) -> None:
    """The signal beside the error of rounding, in decibels, for the features that change at all."""
    with gzip.open(DATA / "logmel40_q64.npy.gz") as file:
        steps = np.lib.format.read_array(file)
    within, between = [], []
    for row in rows[::10]:
        first, count = int(row["start_frame"]), int(row["num_frames"])
        frames = steps[first : first + count].astype(np.float32) * STEP
        within.append(frames.var(0))
        between.append((np.diff(frames, axis=0) ** 2).mean(0))
    noise = STEP**2 / 12
    changes = np.mean(within, 0) > noise
    for name, values in (("within a recording", within), ("from frame to frame", between)):
        ratio = 10 * np.log10(np.mean(values, 0)[changes] / noise)
        print(f"change {name} above the error of rounding: {ratio.min():.0f} to {ratio.max():.0f} dB")
    print(f"features that change: {changes.sum()} of {len(changes)}; lowest step: {(steps == 0).mean():.1%} of values")


def write(folder: Path, rows: list[Row]) -> None:
    """The table with syllables in the place of texts, beside a link to the features."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "index.tsv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0], delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE)
        table.writeheader()
        table.writerows({**row, "text": " ".join(syllables(row["text"]))} for row in rows)
    link = folder / "logmel40_q64.npy.gz"
    link.unlink(missing_ok=True)
    link.symlink_to((DATA / link.name).resolve())


if __name__ == "__main__":
    main()
