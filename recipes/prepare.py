"""Data sets that come in other forms than recipes read, written as the files that their recipes name.

    python recipes/prepare.py                        # all that are there
    python recipes/prepare.py tatoeba-eng-cmn --data ../shared/data --out prepared

| name | what is written |
|---|---|
| tatoeba-eng-cmn | English and simplified Chinese (by OpenCC, extra `doctor`); parts by the MD5 of the English |
| tatoeba-eng-fra | English and French; parts by the MD5 of the English |
| low-resource | of tatoeba-eng-fra: 5,000 training pairs, and 20,000 further French sentences alone |
| couplets | lines 3 and 4, 5 and 6 of regulated poems of eight lines, which answer each other |
| geoquery | questions and their SQL, with the names in place; the question split |
| geoquery-entities | the same with anonymised names, as in `what is the capital of state_name0` |
| mafand | news in four pairs of languages; 148 shifted pairs of Hausa are realigned |
| enja | English and Japanese; Japanese without the spaces that a segmenter put |
| weibo | characters and their labels, without each character's place in its word |
| gsdsimp-words | Chinese sentences as words with spaces between |
"""

import argparse
import bz2
import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import md5
from pathlib import Path
from typing import Any

Pair = tuple[str, str]
Parts = dict[str, Iterable[Pair | tuple[str]]]


def main() -> None:
    """Write each set that is asked for into a folder of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(SETS)}; all if left out", metavar="name")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="where the data sets lie")
    parser.add_argument("--out", type=Path, default=Path("prepared"), help="a folder is made in it for each")
    options = parser.parse_args()
    if unknown := set(options.names) - set(SETS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected some of {', '.join(SETS)}")
    for name in options.names or SETS:
        folder, read = SETS[name]
        if not (options.data / folder).is_dir():
            parser.error(f"{name}: {options.data / folder} is not there; name the folder above it by --data")
        for part, rows in read(options.data / folder).items():
            count = write(options.out / name / f"{part}.tsv", rows)
            print(f"{options.out / name / part}.tsv: {count:,} lines")


def write(path: Path, rows: Iterable[tuple[str, ...]]) -> int:
    """How many lines were written, each once complete."""
    lines = ["\t".join(" ".join(text.split()) for text in row) + "\n" for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)


def tatoeba_eng_cmn(folder: Path) -> Parts:
    """0 to 4 of 100 test, 5 to 9 validation, as the README of the data suggests."""
    from opencc import OpenCC

    simplify = OpenCC("t2s").convert
    pairs = [(english, simplify(chinese)) for english, chinese in rows_of(folder / "cmn.txt.gz")]
    return by_source(pairs, 5)


def tatoeba_eng_fra(folder: Path) -> Parts:
    """0 and 1 of 100 test, 2 and 3 validation, as the README of the data suggests."""
    return by_source(rows_of(folder / "fra.txt.gz"), 2)


def low_resource(folder: Path) -> Parts:
    """Pairs with different English sentences, by a hash; 1,000 each of validation and test."""
    parts = {name: list(rows) for name, rows in tatoeba_eng_fra(folder).items()}
    first = {name: by_hash({source: (source, target) for source, target in rows}) for name, rows in parts.items()}
    further = [(french,) for _, french in first["train"][5000:25_000]]
    return {
        "train": first["train"][:5000],
        "validation": first["validation"][:1000],
        "test": first["test"][:1000],
        "monolingual": further,
    }


def couplets(folder: Path) -> Parts:
    """Of 律诗 alone: their middle lines answer each other character by character."""

    def read(path: Path) -> Iterator[Pair]:
        for form, _, _, poem in rows_of(path):
            lines = poem.split("|")
            if form.endswith("律诗") and len(lines) == 8:
                yield lines[2], lines[3]
                yield lines[4], lines[5]

    return {
        part: read(folder / f"{name}.tsv.gz")
        for part, name in (("train", "train"), ("validation", "dev"), ("test", "test"))
    }


def geoquery(folder: Path, named: bool = True) -> Parts:
    """The first SQL of each question, as the published figures are counted."""
    queries = json.loads(opened(folder / "geography.json.gz"))
    fill = filled if named else lambda text, _: text
    return {
        part: [
            (fill(each["text"], each["variables"]), fill(query["sql"][0], each["variables"]))
            for query in queries
            for each in query["sentences"]
            if each["question-split"] == split
        ]
        for part, split in (("train", "train"), ("validation", "dev"), ("test", "test"))
    }


def mafand(folder: Path) -> Parts:
    """Of training in Hausa, lines 706 to 853 of the English belong two lines further down, as `transduce doctor` finds.

    The two lines of Hausa before, and the two of English behind, have no partner.
    """

    def read(pair: str, part: str) -> list[Pair]:
        lines = opened(folder / f"{pair}.{part}.jsonl.gz").splitlines()
        source, target = zip(*(json.loads(line)["translation"].values() for line in lines), strict=True)
        if (pair, part) == ("en-hau", "train"):
            source, target = source[:853] + source[855:], target[:705] + target[707:]
        return list(zip(source, target, strict=True))

    pairs = [path.name.removesuffix(".train.jsonl.gz") for path in sorted(folder.glob("*.train.jsonl.gz"))]
    return {f"{pair}.{part}": read(pair, part) for pair in pairs for part in ("train", "dev", "test")}


def enja(folder: Path) -> Parts:
    """Lines of two files; the Japanese written together."""

    def read(part: str) -> Iterator[Pair]:
        sides = (opened(folder / f"{part}.{code}.gz").splitlines() for code in ("en", "ja"))
        for english, japanese in zip(*sides, strict=True):
            yield english, japanese.replace(" ", "")

    return {part: read(name) for part, name in (("train", "train"), ("validation", "dev"), ("test", "test"))}


def weibo(folder: Path) -> Parts:
    """A character and its label a line; an empty line behind each post."""

    def read(part: str) -> Iterator[tuple[str, ...]]:
        for line in opened(folder / f"{part}.conll.gz").splitlines():
            token, _, label = line.partition("\t")
            yield (token[:-1], label) if label else ()

    return {part: read(name) for part, name in (("train", "train"), ("validation", "dev"), ("test", "test"))}


def gsdsimp_words(folder: Path) -> Parts:
    """The words of each sentence; dev is all there is to learn from, and every tenth of it is held out."""

    def read(part: str) -> Iterator[tuple[str]]:
        for sentence in opened(folder / f"{part}.conllu.gz").strip().split("\n\n"):
            rows = [line.split("\t") for line in sentence.splitlines() if not line.startswith("#")]
            yield (" ".join(row[1].replace(" ", "") for row in rows if row[0].isdecimal()),)

    known = list(read("dev"))
    tenth = known[::10]
    return {"train": [each for each in known if each not in tenth], "validation": tenth, "test": read("test")}


def by_source(pairs: Iterable[Any], width: int) -> Parts:
    """Parts by md5(source) % 100: below `width` test, below twice that validation; no source is in two parts."""
    parts: dict[str, list[Pair]] = {"train": [], "validation": [], "test": []}
    for source, target in pairs:
        bucket = int(md5(source.encode()).hexdigest(), 16) % 100
        parts["test" if bucket < width else "validation" if bucket < 2 * width else "train"].append((source, target))
    return dict(parts)


def by_hash(pairs: dict[str, Pair]) -> list[Pair]:
    """In an order that has nothing to do with the file's."""
    return [pairs[source] for source in sorted(pairs, key=lambda each: md5(f"order {each}".encode()).hexdigest())]


def filled(text: str, variables: dict[str, str]) -> str:
    """Names in the place of variables; the longest variables first, as state_name1 begins state_name10."""
    for name in sorted(variables, key=len, reverse=True):
        text = text.replace(name, variables[name])
    return text


def rows_of(path: Path) -> Iterator[list[str]]:
    """The columns of each line."""
    return (line.split("\t") for line in opened(path).splitlines())


def opened(path: Path) -> str:
    """The text of a compressed file."""
    data = path.read_bytes()
    return (bz2.decompress(data) if path.suffix == ".bz2" else gzip.decompress(data)).decode()


SETS: dict[str, tuple[str, Callable[[Path], Parts]]] = {
    "tatoeba-eng-cmn": ("tatoeba_eng_cmn", tatoeba_eng_cmn),
    "tatoeba-eng-fra": ("tatoeba_eng_fra", tatoeba_eng_fra),
    "low-resource": ("tatoeba_eng_fra", low_resource),
    "couplets": ("poems_tang", couplets),
    "geoquery": ("text2sql", geoquery),
    "geoquery-entities": ("text2sql", partial(geoquery, named=False)),
    "mafand": ("mafand", mafand),
    "enja": ("small_parallel_enja", enja),
    "weibo": ("ner_weibo", weibo),
    "gsdsimp-words": ("ud_chinese_gsdsimp", gsdsimp_words),
}
"""The folder of the data, and how its parts are read."""

if __name__ == "__main__":
    main()
