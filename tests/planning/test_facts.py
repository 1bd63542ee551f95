"""What a corpus is, in numbers, is not decided by a few odd lines of it."""

import gzip
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import regex

from transduce.core.errors import InputError
from transduce.data.corpus import read_pairs, train_pair_tokenizers
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.source_columns import BETWEEN_COLUMNS
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.planning.decisions import decide
from transduce.planning.facts import Facts, facts_of
from transduce.search.settings import Search

WORDS = [f"word{number}" for number in range(500)]


def written(path: Path, pairs: list[tuple[str, str]]) -> tuple[PairFiles]:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return (PairFiles(tsv=str(path)),)


def decided(files: PairFiles, table: str) -> dict[str, Any]:
    """One table of the recipe."""
    keys = {each.key: each.value for each in decide(facts_of([files], Path()))}
    return {key.removeprefix(f"{table}."): value for key, value in keys.items() if key.startswith(f"{table}.")}


def test_a_file_in_one_line_changes_nothing(tmp_path: Path) -> None:
    drawn = random.Random(1)
    pairs = [tuple(" ".join(drawn.choices(WORDS, k=9)) + "." for _ in "st") for _ in range(200)]
    usual = facts_of(written(tmp_path / "a.tsv", pairs), Path())
    assert usual.source.kind == "sentences"
    odd = facts_of(written(tmp_path / "b.tsv", [*pairs[:100], ("and " * 100_000, "x."), *pairs[100:]]), Path())
    assert odd == replace(usual, pairs=201)


def test_too_few_pairs_with_text_are_refused(tmp_path: Path) -> None:
    files = written(tmp_path / "a.tsv", [("a", "b"), ("", "b"), ("a", " "), ("c", "d")])
    with pytest.raises(InputError, match="expected at least 3 pairs with text on both sides; found 2"):
        facts_of(files, Path())


def test_new_words_are_those_that_occur_once(tmp_path: Path) -> None:
    closed = [(f"go {each}", each) for each in ("left", "right") * 50]
    assert facts_of(written(tmp_path / "a.tsv", closed), Path()).source.new == 0
    named = [*closed, *((f"go to town{number}", "left") for number in range(100))]
    assert facts_of(written(tmp_path / "b.tsv", named), Path()).source.new == 0.5


def three_columns(path: Path, rows: list[tuple[str, str, str]], separator: str | None = None) -> tuple[PairFiles]:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return (PairFiles(tsv=str(path), source_column=(0, 1), target_column=2, source_separator=separator),)


@pytest.mark.parametrize("separator", [None, "^", " ] "])
def test_tags_of_inflection_are_found_and_count_as_one_character(separator: str | None, tmp_path: Path) -> None:
    rows = [(f"word{'abcd'[n % 4]}", f"N;{'NOM' if n % 2 else 'DAT'};SG", "words") for n in range(80)]
    facts = facts_of(three_columns(tmp_path / "a.tsv", rows, separator), Path())
    between = BETWEEN_COLUMNS if separator is None else separator
    assert facts.tags is not None
    assert facts.tags.different == 4
    assert set(re.findall(facts.tags.pattern, f"worda{between}N;NOM;SG")) == {f"{between}N", ";NOM", ";SG"}
    assert facts.source.characters == len("worda") + 3
    assert facts.of_words


@pytest.mark.parametrize(
    "further",
    [
        pytest.param(lambda n: f"the {n} context of it", id="text"),
        pytest.param(lambda n: f"name{n}", id="another word a line"),
    ],
)
def test_further_columns_of_text_are_no_tags(further: Callable[[int], str], tmp_path: Path) -> None:
    rows = [(f"word{n}", further(n), "words") for n in range(80)]
    assert facts_of(three_columns(tmp_path / "a.tsv", rows), Path()).tags is None


def test_what_stands_in_words_does_not_part_tags(tmp_path: Path) -> None:
    rows = [("so, so" if n % 9 else "so", f"ADV;{'CMP' if n % 2 else 'SUP'}", "so") for n in range(80)]
    facts = facts_of(three_columns(tmp_path / "a.tsv", rows), Path())
    assert facts.tags is not None
    assert re.findall(facts.tags.pattern, "so, so | ADV;CMP") == [" | ADV", ";CMP"]


def facts_of_pairs(path: Path, pairs: list[tuple[str, str]]) -> Facts:
    return facts_of(written(path, pairs), Path())


def lines_of_gzip(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


@pytest.mark.parametrize("count", [100, 300, 1500])
def test_text_whose_words_stand_apart_is_running_text(count: int, data_root: Path, tmp_path: Path) -> None:
    """As others have segmented it, with punctuation as words of its own."""
    folder = data_root / "small_parallel_enja"
    english, japanese = (lines_of_gzip(folder / f"train.{code}.gz")[:count] for code in ("en", "ja"))
    facts = facts_of_pairs(tmp_path / "a.tsv", list(zip(english, japanese, strict=True)))
    assert (facts.source.kind, facts.target.kind) == ("sentences", "sentences")
    assert next(each.value for each in decide(facts) if each.key == "task.metrics") == ["bleu", "chrf"]


@pytest.mark.parametrize("count", [60, 500, 3000])
def test_chinese_with_spaces_between_characters_is_running_text(count: int, data_root: Path, tmp_path: Path) -> None:
    rows = [line.split("\t") for line in lines_of_gzip(data_root / "tatoeba_eng_cmn" / "cmn.txt.gz")]
    rows = rows[:: len(rows) // count][:count]
    facts = facts_of_pairs(tmp_path / "a.tsv", [(english, " ".join(chinese)) for english, chinese, *_ in rows])
    assert facts.target.kind == "sentences"


@pytest.mark.slow
def test_commands_and_formulas_are_small_sets_of_words(data_root: Path, tmp_path: Path) -> None:
    scan = [line[4:].split(" OUT: ") for line in lines_of_gzip(data_root / "scan" / "tasks_train_simple.txt.gz")]
    labelled = [(f"IN: {source}", target) for source, target in scan]  # as the files have it
    cogs = [line.split("\t")[:2] for line in lines_of_gzip(data_root / "cogs" / "train.tsv.gz")]  # "A dog slept ."
    queries = [(f"where is town{n}", f"SELECT A FROM T WHERE NAME = town{n} ;") for n in range(60)]  # many new words
    for name, rows in (("scan", scan), ("labelled", labelled), ("cogs", cogs), ("sql", queries)):
        facts = facts_of_pairs(tmp_path / f"{name}.tsv", [(source, target) for source, target in rows])
        assert (facts.source.kind, facts.target.kind) == ("closed", "closed"), name


ENDS = {
    "hi": ("।", "मैं तुम वह घर पानी किताब लड़का लड़की जाता है खाता था"),
    "ur": ("۔", "میں تم وہ گھر پانی کتاب لڑکا لڑکی جاتا ہے کھاتا تھا"),
    "am": ("።", "እኔ አንተ እሱ ቤት ውሃ መጽሐፍ ልጅ ሴት ሄደ ነው በላ ነበር"),
    "hy": ("։", "ես դու նա տուն ջուր գիրք տղա աղջիկ գնում է ուտում էր"),
    "my": ("။", "ကျွန်တော် ခင်ဗျား သူ အိမ် ရေ စာအုပ် ကလေး မိန်းကလေး သွား တယ် စား ခဲ့"),
    "mnk": ("߹", "ߒ ߌ ߊ ߓߏ߲ ߖߌ ߞߊߝߊ ߘߋ߲ ߡߛߏ ߕߊ߯ ߦߋ ߘߎ߲ ߕߎ߲"),
}


@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.parametrize("code", ENDS)
def test_text_of_any_script_ends_as_sentences_do(code: str, space: str, tmp_path: Path) -> None:
    """Where its words are few. Where spaces stand before the marks, too, some texts have new words."""
    mark, words = ENDS[code]
    drawn = random.Random(1)
    texts = [" ".join(drawn.choices(words.split(), k=5)) for _ in range(970)]
    texts += [f"{text} {text[:2]}{number}" if space else text for number, text in enumerate(texts[:30])]
    pairs = [(f"Sentence {number}.", f"{text}{space}{mark}") for number, text in enumerate(texts)]
    facts = facts_of_pairs(tmp_path / "a.tsv", pairs)
    assert facts.target.kind in ("sentences", "unspaced")
    assert next(each.value for each in decide(facts) if each.key == "task.metrics") == ["bleu", "chrf"]


@pytest.mark.parametrize(("texts", "closing"), [("{} {} है।", 1 / 3), ("IN: {} {}", 0), ("{} {} OUT:", 0)])
def test_a_word_of_most_texts_counts_as_their_end(texts: str, closing: float, tmp_path: Path) -> None:
    pairs = [(f"Sentence {number}.", texts.format(*WORDS[number % 9 :][:2])) for number in range(90)]
    target = facts_of_pairs(tmp_path / "a.tsv", pairs).target
    assert target.closing == pytest.approx(closing)
    assert target.kind == ("sentences" if closing else "closed")


def without_marks(text: str) -> str:
    """Without punctuation at the ends of words."""
    return regex.sub(r"\p{P}+(?=\s|$)", "", text).strip()


@pytest.mark.parametrize("count", [100, 300, 1000])
@pytest.mark.parametrize("name", ["multi30k", "tatoeba_eng_fra", "tatoeba_eng_cmn", "small_parallel_enja"])
def test_text_without_full_stops_is_running_text(name: str, count: int, data_root: Path, tmp_path: Path) -> None:
    file = {
        "multi30k": "raw/train.en.gz",
        "tatoeba_eng_fra": "fra.txt.gz",
        "tatoeba_eng_cmn": "cmn.txt.gz",
        "small_parallel_enja": "train.en.gz",
    }[name]
    lines = [line.split("\t")[0] for line in lines_of_gzip(data_root / name / file)]
    texts = [without_marks(line) for line in lines[:: len(lines) // count][:count]]
    facts = facts_of_pairs(tmp_path / "a.tsv", [(text, text) for text in texts if text])
    assert facts.target.kind == "sentences"


@pytest.mark.parametrize("count", [60, 300, 1000])
@pytest.mark.parametrize("name", ["advising", "geography"])
def test_queries_with_new_names_are_a_formal_language(name: str, count: int, data_root: Path, tmp_path: Path) -> None:
    entries = json.loads(gzip.decompress((data_root / "text2sql" / f"{name}.json.gz").read_bytes()))
    pairs = list[tuple[str, str]]()
    for entry in entries:
        for sentence in entry["sentences"]:
            source, target = sentence["text"], entry["sql"][0]
            for variable, value in sentence["variables"].items():
                source, target = source.replace(variable, value), target.replace(variable, value)
            pairs.append((source, target))
    facts = facts_of_pairs(tmp_path / "a.tsv", pairs[:: max(1, len(pairs) // count)][:count])
    assert facts.target.kind == "closed"


def test_a_sentence_with_its_style_is_no_inflection(data_root: Path, tmp_path: Path) -> None:
    rows = [line.split("\t") for line in lines_of_gzip(data_root / "tatoeba_eng_cmn" / "cmn.txt.gz")]
    rows = rows[:: len(rows) // 2000][:2000]
    styled = [(english, "formal" if n % 2 else "informal", chinese) for n, (english, chinese, *_) in enumerate(rows)]
    for name, table in (("en", styled), ("zh", [(chinese, style, chinese) for _, style, chinese in styled])):
        facts = facts_of(three_columns(tmp_path / f"{name}.tsv", table), Path())
        assert not facts.of_words
        decided = {each.key: each for each in decide(facts)}
        assert decided["task.metrics"].value == ["bleu", "chrf"]
        assert not any("letter by letter" in each.reason for each in decided.values())


FORMS = {"PRS": "る", "PST": "た", "NEG": "ない", "POL": "ます", "PASS": "られる", "CAUS": "させられた"}
STEMS = "食べ 見 起き 寝 教え 考え 覚え 忘れ 信じ 感じ 集め 始め 続け 決め 変え 答え 伝え 育て 捨て 建て"


@pytest.mark.parametrize("tags", ["V;{}", "V;FIN;IND;ACT;2;{}", "{}"])
def test_words_of_japanese_with_tags_are_inflected(tags: str, tmp_path: Path) -> None:
    rows = [(f"{stem}る", tags.format(tag), stem + end) for stem in STEMS.split() for tag, end in FORMS.items()]
    facts = facts_of(three_columns(tmp_path / "a.tsv", rows), Path())
    assert facts.of_words
    assert next(each.value for each in decide(facts) if each.key == "task.metrics") == ["exact_match", "cer"]


@pytest.mark.parametrize(
    "word",
    ["ང་ཁྲོམ་ལ་འགྲོ་", "ᨠᨶᩮᩬᩥᨦ", "ᦷᦎᦑᦺᦟᦈᦹᧈ", "ᥖᥭᥰᥘᥫᥴ", "ꦲꦏ꧀ꦱꦫꦗꦮ", "ᬅᬓ᭄ᬱᬭᬩᬮᬶ", "ສະບາຍດີ", "ขอบคุณ"],
    ids=["Tibetan", "Tai Tham", "New Tai Lue", "Tai Le", "Javanese", "Balinese", "Lao", "Thai"],
)
def test_texts_of_scripts_without_spaces_are_no_words(word: str, tmp_path: Path) -> None:
    pairs = [(word * 2 + word[: number % len(word)], f"It is {number} now.") for number in range(100)]
    assert facts_of_pairs(tmp_path / "a.tsv", pairs).source.kind == "unspaced"


def test_characters_that_occur_twice_are_counted(tmp_path: Path) -> None:
    facts = facts_of_pairs(tmp_path / "a.tsv", [("ab", "x"), ("ac", "y"), ("ad", "y")])
    assert (facts.source.alphabet, facts.source.repeated, facts.target.repeated) == (4, 1, 1)


LETTERS = "abcdefghijklmnopqrstuvwxyz"
CASES = ("NOM", "GEN", "DAT", "ACC", "ABL", "LOC", "INS", "VOC", "ESS", "ALL")
COLOURED = [
    (f"the {colour} {thing}", f"{colour} ( x ) and {thing.upper()} ( x )")
    for colour in WORDS[:30]
    for thing in WORDS[30:60]
]


def inflected(side: str) -> list[tuple[str, str, str]]:
    """Words, each with a letter that is rare, and that only one side has; and with a tag."""
    rows = list[tuple[str, str, str]]()
    for number in range(300):
        word, rare = LETTERS[number % 20 : number % 20 + 6], chr(ord("À") + number % 40) if number % 7 == 0 else ""
        lemma, form = (word + rare, word) if side == "source" else (word, word + rare)
        rows.append((lemma, f"N;{CASES[number % 10]};{'SG' if number % 2 else 'PL'}", form))
    return rows


@pytest.mark.parametrize("name", ["source", "target", "words"])
def test_there_is_room_for_what_only_one_side_has(name: str, tmp_path: Path) -> None:
    [files] = (
        written(tmp_path / "a.tsv", COLOURED) if name == "words" else three_columns(tmp_path / "a.tsv", inflected(name))
    )
    table = decided(files, "tokenizer")
    assert table["joint"] is True
    tokenizers = train_pair_tokenizers(TokenizerConfig.model_validate(table), [files], Path())
    pairs = [pair for _, *pair in read_pairs(files, Path())]
    for side, tokenizer in enumerate(tokenizers):
        texts = [pair[side] for pair in pairs]
        assert not any(tokenizer.unknown in ids for ids in tokenizer.encode(texts))
        assert tokenizer.decode(tokenizer.encode(texts)[0]) == texts[0]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("how big is {}", 'SELECT CITYalias0.POPULATION FROM CITY AS CITYalias0 WHERE CITYalias0.NAME = "{}" ;'),
        ("jump {} and left", "I_JUMP I_TURN_LEFT I_TURN_LEFT I_JUMP I_JUMP {} I_JUMP I_TURN_RIGHT I_TURN_RIGHT I_JUMP"),
        ("{}", "the word of this entry is {} , of which nothing else has been written down until now ."),
    ],
)
def test_a_search_has_room_for_targets_that_are_much_longer(tmp_path: Path, source: str, target: str) -> None:
    """Counted with the tokenizers themselves: all but one output in a hundred may have all of its tokens.

    One target in twenty is five times as long as the others.
    """
    drawn = random.Random(1)
    names = [f"{drawn.choice('bdfgklmn')}{drawn.choice('aeiou')}{drawn.choice('lmnrst')}as" for _ in range(600)]
    targets = [" ".join([target.format(name)] * (1 if number % 20 else 5)) for number, name in enumerate(names)]
    (files,) = written(tmp_path / "a.tsv", list(zip(map(source.format, names), targets, strict=True)))
    tokenizers = train_pair_tokenizers(TokenizerConfig.model_validate(decided(files, "tokenizer")), [files], Path())
    search = Search.model_validate(decided(files, "search"))
    sides = zip(*(pair for _, *pair in read_pairs(files, Path())), strict=True)
    encoded = [tokenizer.encode(side) for tokenizer, side in zip(tokenizers, sides, strict=True)]
    cut = sum(search.limit(len(source)) <= len(target) for source, target in zip(*encoded, strict=True))
    assert cut <= len(names) / 100
