"""How much of what ruins a corpus the doctor finds: 28 damages in four corpora, and eight corpora without any.

    OMP_NUM_THREADS=1 python benchmarks/damages.py [--data FOLDER] [--pairs 10000] [--only DAMAGE]

Each damage is planted alone, by a fixed seed, into 5 % of the pairs unless it says otherwise. Found means all of:

- named: the report has a finding of the kind, and of the words, that `DAMAGES` names for this damage;
- counted: within 20 % of the lines planted. What the doctor counts in the corpus as it was (Tatoeba has near-duplicates
  of its own) is subtracted first;
- shown: one of the examples, at most three, is a planted line.

Where a damage cannot be done to a pair of languages, the nearest one is planted:

- another language: German in French, French in German, Japanese in Chinese, Chinese in Japanese;
- simplified in traditional: of Chinese, the whole side is first made traditional. French and German get lines in
  full-width letters, Japanese gets half-width katakana: the same text in another form of its script;
- case lost: for Chinese, on the English side; for small_parallel_enja, which has no capitals, the English in capitals;
- leak in lower case: of small_parallel_enja, in capitals;
- homoglyph: for Chinese and Japanese, on the English side.

Undamaged corpora are read whole. Their findings are listed; one of severity "error" is a false one.
"""

import argparse
import gzip
import json
import platform
import random
import re
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from transduce.doctor import Finding, Report, Severity, examine

SEED, SHARE, TOLERANCE, HELD_OUT = 2026, 0.05, 0.2, 500
LOOKALIKES = str.maketrans(
    "aeopcxyAEOPCTHK", "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0410\u0415\u041e\u0420\u0421\u0422\u041d\u041a"
)
NOTES = {
    "fr": " [TRADUCTEUR : à vérifier]",
    "de": " [Anm. d. Ü.: unklar]",
    "zh": "（译者注：存疑）",
    "ja": "（訳注：要確認）",
}
EUROS = {
    "en": " for {} euros.",
    "fr": " pour {} euros.",
    "de": " für {} Euro.",
    "zh": "{}欧元。",
    "ja": " {} ユーロ 。",
}


@dataclass(frozen=True)
class Corpus:
    """Two sides, a test set, and texts in another language that has the target's script."""

    name: str
    languages: tuple[str, str]
    sides: tuple[list[str], list[str]]
    tests: tuple[list[str], list[str]]
    foreign: list[str]

    def copied(self) -> "Corpus":
        return replace(self, sides=(list(self.sides[0]), list(self.sides[1])))


@dataclass(frozen=True)
class Damage:
    """How it is done, and how the doctor calls it: a kind of finding, with these words in its sentence.

    first: what is done with the whole corpus, before.
    """

    plant: Callable[[Corpus, random.Random], list[int]]
    kind: str
    words: str = ""
    first: Callable[[Corpus], Corpus] | None = None


def lines_of(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]


def some(corpus: Corpus, dice: random.Random, fits: Callable[[int], bool] = lambda row: True) -> list[int]:
    """Rows for 5 % of the pairs, of those that fit."""
    rows = [row for row in range(len(corpus.sides[0])) if fits(row)]
    return sorted(dice.sample(rows, min(int(SHARE * len(corpus.sides[0])), len(rows))))


def changed(
    side: int, change: Callable[[Corpus, int, random.Random], str]
) -> Callable[[Corpus, random.Random], list[int]]:
    """A damage that changes the line of one side; lines that it leaves as they are do not count."""

    def plant(corpus: Corpus, dice: random.Random) -> list[int]:
        rows = some(corpus, dice, lambda row: change(corpus, row, random.Random(row)) != corpus.sides[side][row])
        for row, text in [(row, change(corpus, row, random.Random(row))) for row in rows]:
            corpus.sides[side][row] = text
        return rows

    return plant


def target(change: Callable[[str], str]) -> Callable[[Corpus, random.Random], list[int]]:
    return changed(1, lambda corpus, row, dice: change(corpus.sides[1][row]))


def near_copy(corpus: Corpus, row: int, dice: random.Random) -> str:
    """The source in lower case with one word more, or one word less."""
    words = corpus.sides[0][row].lower().split()
    return "Translation: " + " ".join(words) if row % 2 else " ".join(words[: len(words) - (len(words) > 5)]) + " !"


def swapped(corpus: Corpus, dice: random.Random) -> list[int]:
    return exchange(corpus, some(corpus, dice))


def swapped_half(corpus: Corpus, dice: random.Random) -> list[int]:
    return exchange(corpus, list(range((len(corpus.sides[0]) + 1) // 2, len(corpus.sides[0]))))


def exchange(corpus: Corpus, rows: list[int]) -> list[int]:
    for row in rows:
        corpus.sides[0][row], corpus.sides[1][row] = corpus.sides[1][row], corpus.sides[0][row]
    return rows


def shuffled(corpus: Corpus, dice: random.Random) -> list[int]:
    dice.shuffle(corpus.sides[1])
    return list(range(len(corpus.sides[1])))


def random_partner(corpus: Corpus, row: int, dice: random.Random) -> str:
    lines = len(corpus.sides[1])
    return corpus.sides[1][(row + dice.randint(lines // 4, lines // 2)) % lines]


def shifted(corpus: Corpus, dice: random.Random) -> list[int]:
    place = len(corpus.sides[0]) // 2 + dice.randint(0, 500)
    del corpus.sides[1][place]
    corpus.sides[0].pop()
    return list(range(place, len(corpus.sides[0])))


def numbers(corpus: Corpus, dice: random.Random) -> list[int]:
    """Both sides end in an amount, which differs."""
    rows = some(corpus, dice)
    for row in rows:
        for side, language in enumerate(corpus.languages):
            text = corpus.sides[side][row].rstrip(" .。")
            corpus.sides[side][row] = text + EUROS[language].format(row + 7 * side)
    return rows


def placeholders(corpus: Corpus, dice: random.Random) -> list[int]:
    """The source has a placeholder that the target lacks."""
    return changed(0, lambda corpus, row, _: corpus.sides[0][row] + (" {user_name}", " %d", " %1$s {{x}}")[row % 3])(
        corpus, dice
    )


def url_only(corpus: Corpus, dice: random.Random) -> list[int]:
    rows = some(corpus, dice)
    for row in rows:
        corpus.sides[0][row] = corpus.sides[1][row] = f"http://example.org/{row}"
    return rows


def cut(corpus: Corpus, row: int, dice: random.Random) -> str:
    """The target's first 30 to 60 %."""
    text = corpus.sides[1][row]
    return text[: max(int(len(text) * dice.uniform(0.3, 0.6)), 1)]


def repetition(corpus: Corpus, row: int, dice: random.Random) -> str:
    """The first word twenty times, or a target that ends in its last two words five times more."""
    words = re.findall(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+", corpus.sides[1][row])
    space = "" if corpus.languages[1] == "zh" else " "
    return space.join(words[:1] * 20 if row % 2 else words + words[-2:] * 5)


def homoglyph(corpus: Corpus, dice: random.Random) -> list[int]:
    def change(corpus: Corpus, row: int, dice: random.Random) -> str:
        words = corpus.sides[side][row].split(" ")
        fit = [
            place for place, word in enumerate(words) if len(word) > 2 and word[1:].translate(LOOKALIKES) != word[1:]
        ]
        for place in dice.sample(fit, min(len(fit), 1)):
            words[place] = words[place][0] + words[place][1:].translate(LOOKALIKES)
            if not re.search("[A-Za-z]", words[place]):
                words[place] = "x" + words[place]
        return " ".join(words)

    side = int(corpus.languages[1] in ("fr", "de"))
    return changed(side, change)(corpus, dice)


def mojibake(text: str) -> str:
    return text.encode().decode("latin-1") if not text.isascii() else text


def duplicate(corpus: Corpus, dice: random.Random, nearly: bool = False) -> list[int]:
    """A pair that stands earlier, where it is not one already."""
    rows = [row for row in some(corpus, dice) if row]
    planted = set(rows)
    kept = [row for row in range(len(corpus.sides[0])) if row not in planted]
    for row in rows:
        first = dice.choice([each for each in dice.sample(kept, 50) if each < row] or kept[:1])
        for side in corpus.sides:
            side[row] = differently(side[first], row) if nearly else side[first]
    return rows


def differently(text: str, row: int) -> str:
    """Nearly the same: without its last point, in capitals, or with two spaces and an exclamation mark."""
    bare = text.rstrip(" .。!！?？")
    return (
        bare or text + " !",
        text.upper() if text.upper() != text else text + " !",
        "  ".join(bare.split(" ")) + " !!",
    )[row % 3]


def near_duplicate(corpus: Corpus, dice: random.Random) -> list[int]:
    return duplicate(corpus, dice, nearly=True)


def leak(corpus: Corpus, dice: random.Random, case: Callable[[str], str] = str) -> list[int]:
    """Half of the test set stands in the training data. The rows are those of the test set."""
    tested = sorted(dice.sample(range(len(corpus.tests[0])), len(corpus.tests[0]) // 2))
    for row, test in zip(dice.sample(range(len(corpus.sides[0])), len(tested)), tested, strict=True):
        for side in (0, 1):
            corpus.sides[side][row] = case(corpus.tests[side][test])
    return tested


def leak_in_lower_case(corpus: Corpus, dice: random.Random) -> list[int]:
    return leak(corpus, dice, str.upper if corpus.languages[1] == "ja" else str.lower)


def length_ratio(corpus: Corpus, row: int, dice: random.Random) -> str:
    """Eight other targets behind the target."""
    lines = corpus.sides[1]
    return " ".join([lines[row], *(lines[(row + 31 * k) % len(lines)] for k in range(1, 9))])


def traditional(corpus: Corpus) -> Corpus:
    """The same in traditional characters, where it is Chinese."""
    from opencc import OpenCC

    if corpus.languages[1] != "zh":
        return corpus
    convert = OpenCC("s2t").convert
    return replace(corpus, sides=(corpus.sides[0], [convert(text) for text in corpus.sides[1]]))


def other_form(corpus: Corpus, dice: random.Random) -> list[int]:
    from opencc import OpenCC

    if corpus.languages[1] == "zh":
        return target(OpenCC("t2s").convert)(corpus, dice)
    return target(half_width if corpus.languages[1] == "ja" else full_width)(corpus, dice)


def full_width(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalpha() else c for c in text)


HALF_WIDTH = {unicodedata.normalize("NFKC", chr(code)): chr(code) for code in range(0xFF66, 0xFF9E)}
VOICED = {"\u3099": "\uff9e", "\u309a": "\uff9f"}


def half_width(text: str) -> str:
    parts = (unicodedata.normalize("NFD", c) if "\u30a0" <= c <= "\u30ff" else c for c in text)
    return "".join("".join((HALF_WIDTH | VOICED).get(c, c) for c in part) for part in parts)


def case_lost(corpus: Corpus, dice: random.Random) -> list[int]:
    side = int(corpus.languages[1] in ("fr", "de"))
    change = str.upper if corpus.languages[1] == "ja" else str.lower
    return changed(side, lambda corpus, row, _: change(corpus.sides[side][row]))(corpus, dice)


def another_language(corpus: Corpus, row: int, dice: random.Random) -> str:
    return corpus.foreign[row % len(corpus.foreign)]


DAMAGES = {
    "another language": Damage(changed(1, another_language), "other_language"),
    "copy": Damage(changed(1, lambda corpus, row, _: corpus.sides[0][row]), "copy"),
    "near-copy": Damage(changed(1, near_copy), "near_copy"),
    "swapped half": Damage(swapped_half, "swapped"),
    "swapped 5 %": Damage(swapped, "swapped"),
    "shuffled": Damage(shuffled, "unrelated"),
    "random partner": Damage(changed(1, random_partner), "wrong_partner"),
    "shifted one line": Damage(shifted, "shift"),
    "numbers": Damage(numbers, "numbers_differ"),
    "placeholders": Damage(placeholders, "placeholders_differ"),
    "URL only": Damage(url_only, "url_only"),
    "cut": Damage(changed(1, cut), "cut_target"),
    "constant target": Damage(target(lambda text: "OK."), "constant_target"),
    "repetition": Damage(changed(1, repetition), "repetition"),
    "translator's note": Damage(
        changed(1, lambda corpus, row, _: corpus.sides[1][row] + NOTES[corpus.languages[1]]), "note_one_side"
    ),
    "zero-width": Damage(target(lambda text: text[: len(text) // 2] + "\u200b" + text[len(text) // 2 :]), "invisible"),
    "homoglyph": Damage(homoglyph, "homoglyph"),
    "mojibake": Damage(target(mojibake), "mojibake"),
    "HTML": Damage(target(lambda text: f"<p class='x'>{text}<br/></p>"), "markup"),
    "empty": Damage(target(lambda text: ""), "empty_one_side"),
    "NUL": Damage(target(lambda text: text[:3] + "\0" + text[3:]), "odd_character", "NUL"),
    "duplicate": Damage(duplicate, "duplicate"),
    "near-duplicate": Damage(near_duplicate, "near_duplicate"),
    "leak": Damage(leak, "test_pair_in_train"),
    "leak in lower case": Damage(leak_in_lower_case, "test_pair_nearly_in_train"),
    "length ratio": Damage(changed(1, length_ratio), "extreme_ratio"),
    "simplified in traditional": Damage(other_form, "mixed_chinese|mixed_width", first=traditional),
    "case lost": Damage(case_lost, "case"),
}


def multi30k(data: Path, language: str, foreign: str) -> Corpus:
    folder = data / "multi30k" / "raw"
    sides = [lines_of(folder / f"train.{each}.gz") for each in ("en", language)]
    tests = [lines_of(folder / f"test_2016_flickr.{each}.gz") for each in ("en", language)]
    others = lines_of(folder / f"train.{foreign}.gz")
    return Corpus(f"Multi30k en-{language}", ("en", language), (sides[0], sides[1]), (tests[0], tests[1]), others)


def tatoeba(data: Path, name: str, language: str) -> Corpus:
    rows = [line.split("\t") for line in lines_of(next((data / f"tatoeba_eng_{name}").glob("*.txt.gz")))]
    held = set(range(7, len(rows), len(rows) // HELD_OUT))
    known = {tuple(row[:2]) for number, row in enumerate(rows) if number not in held}
    tests = [rows[number] for number in sorted(held) if tuple(rows[number][:2]) not in known]
    train = [row for number, row in enumerate(rows) if number not in held]
    sides, tested = (([row[0] for row in each], [row[1] for row in each]) for each in (train, tests))
    foreign = [line.replace(" ", "") for line in lines_of(data / "small_parallel_enja" / "train.ja.gz")]
    return Corpus(f"Tatoeba en-{language}", ("en", language), sides, tested, foreign)


def enja(data: Path) -> Corpus:
    train, test = (
        [lines_of(data / "small_parallel_enja" / f"{part}.{language}.gz") for language in ("en", "ja")]
        for part in ("train", "test")
    )
    foreign = [" ".join(row) for row in tatoeba(data, "cmn", "zh").sides[1]]
    return Corpus("enja", ("en", "ja"), (train[0], train[1]), (test[0], test[1]), foreign)


def mafand(data: Path, language: str) -> Corpus:
    def sides(part: str) -> tuple[list[str], list[str]]:
        path = data / "mafand" / f"en-{language}.{part}.jsonl.gz"
        rows = [json.loads(line)["translation"] for line in lines_of(path)]
        return [row["en"].replace("\n", " ") for row in rows], [row[language].replace("\n", " ") for row in rows]

    return Corpus(f"MAFAND en-{language}", ("en", language), sides("train"), sides("test"), [])


def to_damage(data: Path, pairs: int) -> Iterator[Corpus]:
    """The four, `pairs` of each that are spread evenly."""
    for corpus in (multi30k(data, "fr", "de"), multi30k(data, "de", "fr"), tatoeba(data, "cmn", "zh"), enja(data)):
        rows = np.unique(np.linspace(0, len(corpus.sides[0]) - 1, pairs).astype(int)).tolist()
        source, target = ([side[row] for row in rows] for side in corpus.sides)
        yield replace(corpus, sides=(source, target))


def undamaged(data: Path) -> Iterator[Corpus]:
    yield from (multi30k(data, "fr", "de"), multi30k(data, "de", "fr"), tatoeba(data, "cmn", "zh"), enja(data))
    yield from (multi30k(data, "cs", "de"), tatoeba(data, "fra", "fr"), mafand(data, "hau"), mafand(data, "lug"))


def examined(corpus: Corpus) -> tuple[Report, float]:
    """The report, and the seconds of one processor that it took."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("a", "b", "test.a", "test.b")]
        for path, lines in zip(paths, (*corpus.sides, *corpus.tests), strict=True):
            path.write_bytes("".join(f"{line}\n" for line in lines).encode())
        began = time.process_time()
        report = examine(paths[0], paths[1], paths[2], paths[3])
        return report, time.process_time() - began


def judged(report: Report, before: Report, damage: Damage, rows: list[int]) -> tuple[bool, str]:
    """Whether the damage was found, and what was: the count, and what is wrong with it."""

    def findings(report: Report) -> list[Finding]:
        kinds = damage.kind.split("|")
        return [each for each in report.findings if each.kind in kinds and damage.words in each.sentence]

    found, count = findings(report), sum(each.count for each in findings(report))
    more = count - sum(each.count for each in findings(before))
    planted, wrong = set(rows), []
    if not found:
        return False, f"not named, of {len(planted)}"
    if abs(more - len(planted)) > TOLERANCE * len(planted):
        wrong.append("count")
    if not any(line - 1 in planted for each in found for line in each.lines[: max(len(each.examples), 1)]):
        wrong.append("example")
    surplus = f" + {count - more}" if count != more else ""
    return not wrong, f"{more}{surplus} of {len(planted)}" + "".join(f", wrong {each}" for each in wrong)


def plant_all(corpora: list[Corpus], only: str) -> None:
    before = {corpus.name: examined(corpus)[0] for corpus in corpora}
    print("| damage | " + " | ".join(corpus.name for corpus in corpora) + " |\n|---|" + "---|" * len(corpora))
    total = dict.fromkeys(before, 0)
    for name, damage in DAMAGES.items():
        if only and name not in only.split(","):
            continue
        cells = []
        for corpus in corpora:
            clean = damage.first(corpus) if damage.first else corpus
            known = before[corpus.name] if clean is corpus else examined(clean)[0]
            damaged = clean.copied()
            rows = damage.plant(damaged, random.Random(f"{SEED} {name}"))
            found, said = judged(examined(damaged)[0], known, damage, rows)
            total[corpus.name] += found
            cells.append(said if found else f"**no** ({said})")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print("| found | " + " | ".join(map(str, total.values())) + " |")
    print(f"\nfound {sum(total.values())} of {len(total) * len(only.split(',') if only else DAMAGES)}")


def examine_undamaged(data: Path) -> None:
    print("\n| undamaged | pairs | errors | told | s |\n|---|---|---|---|---|")
    for corpus in undamaged(data):
        report, seconds = examined(corpus)
        errors = sum(each.severity is Severity.ERROR for each in report.findings)
        told = "; ".join(f"{each.severity}: {each.sentence}" for each in report.findings)
        print(f"| {corpus.name} | {len(corpus.sides[0])} | {errors} | {told} | {seconds:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[1] / ".." / "shared" / "data")
    parser.add_argument("--pairs", type=int, default=10_000, help="of each corpus that is damaged")
    parser.add_argument("--only", default="", help="damages, with commas between")
    parser.add_argument("--corpora", default="", help="those whose name holds this")
    parser.add_argument("--no-undamaged", action="store_true")
    given = parser.parse_args()
    print(f"seed {SEED}; Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}\n")
    plant_all([each for each in to_damage(given.data, given.pairs) if given.corpora in each.name], given.only)
    sys.stdout.flush()
    if not given.no_undamaged:
        examine_undamaged(given.data)


if __name__ == "__main__":
    main()
