"""Held-out parts: drawn by content, no near-duplicate on both sides, counted; checked by comparing all with all."""

import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from transduce.core.errors import InputError
from transduce.data.corpus import read_pairs
from transduce.data.hold_out import LEFT_OUT, TEST, TRAIN, VALIDATION, HoldOut, Split, split_pairs
from transduce.data.near_duplicates import NearDuplicatePairs
from transduce.data.pairs.pair_files import PairFiles
from transduce.recipe.recipe import parse_recipe

WORDS = [
    a + b for a in ("ba", "ke", "li", "mo", "nu", "sa", "te", "wi") for b in ("ra", "dol", "fim", "gus", "hep", "jot")
]
Pair = tuple[str, str]


def write(folder: Path, pairs: list[Pair], name: str = "pairs.tsv") -> PairFiles:
    (folder / name).write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return PairFiles(tsv=name)


def corpus(count: int = 800, seed: int = 1) -> list[Pair]:
    """Random sentences; every tenth is another one with a word changed, or in other letters on one side."""
    drawn = random.Random(seed)
    pairs = list[Pair]()
    for number in range(count):
        if number % 10 == 9:
            source, target = drawn.choice(pairs)
            words = source.split()
            words[drawn.randrange(len(words))] = drawn.choice(WORDS)
            pairs.append((" ".join(words) if number % 20 == 9 else source.upper() + " !", drawn.choice(WORDS) + target))
        else:
            sides = [[drawn.choice(WORDS) for _ in range(drawn.randint(8, 20))] for _ in range(2)]
            pairs.append((" ".join(sides[0]), " ".join(sides[1])))
    return pairs


def parts(split: Split, pairs: list[Pair]) -> dict[int, list[Pair]]:
    flat = [part for each in split.parts for part in each.tolist()]
    return {part: [pair for pair, at in zip(pairs, flat, strict=True) if at == part] for part in (0, 1, 2)}


def plain(text: str) -> list[str]:
    """Lower-case words, the slow and obvious way."""
    return re.sub(r"\s+", " ", "".join(each if each.isalpha() else " " for each in text.lower())).strip().split(" ")


@cache
def bigrams(text: str) -> set[tuple[str, str]]:
    return set(pairwise(["", *plain(text), ""]))


def jaccard(one: str, other: str) -> float:
    both = bigrams(one), bigrams(other)
    return len(both[0] & both[1]) / len(both[0] | both[1])


def test_no_text_is_nearly_the_same_on_two_sides(tmp_path: Path) -> None:
    pairs = corpus()
    split = split_pairs([write(tmp_path, pairs)], tmp_path, HoldOut(validation=40, test=40))
    found = parts(split, pairs)
    assert split.near > 0  # there are some, or nothing was tested
    for one, other in ((TRAIN, VALIDATION), (TRAIN, TEST), (VALIDATION, TEST)):
        for side in (0, 1):
            for here in found[one]:
                for there in found[other]:
                    assert jaccard(here[side], there[side]) <= 0.7, (here, there)


def test_it_is_counted(tmp_path: Path) -> None:
    pairs = corpus()
    split = split_pairs([write(tmp_path, pairs)], tmp_path, HoldOut(validation=40, test=20))
    found = parts(split, pairs)
    held = len(found[VALIDATION]) + len(found[TEST])
    assert 60 <= held - split.near <= 62  # a group of the same text is never cut
    assert held <= 120
    assert split.report() == (
        f"Held out of 800 pairs: {len(found[VALIDATION])} for validation and {len(found[TEST])} for the test, "
        f"{split.near} of which nearly repeat one that was drawn. Kept on one side: pairs whose source or target is "
        "the same or nearly so."
    )


@pytest.mark.parametrize(("amounts", "said"), [((20, 0), "20 for validation"), ((0, 20), "20 for the test")])
def test_a_part_of_which_nothing_is_drawn_is_not_told(tmp_path: Path, amounts: tuple[int, int], said: str) -> None:
    split = split_pairs([write(tmp_path, corpus())], tmp_path, HoldOut(validation=amounts[0], test=amounts[1]))
    assert re.match(rf"Held out of 800 pairs: \d+ {said[3:]}[,.] ", split.report()), split.report()


def test_the_order_of_the_lines_decides_nothing(tmp_path: Path) -> None:
    pairs = corpus()
    turned = pairs[::-1]
    there = tmp_path / "other"
    there.mkdir()
    amounts = HoldOut(validation=40, test=40)
    one = parts(split_pairs([write(tmp_path, pairs)], tmp_path, amounts), pairs)
    other = parts(split_pairs([write(there, turned)], there, amounts), turned)
    assert {part: sorted(each) for part, each in one.items()} == {part: sorted(each) for part, each in other.items()}


def test_two_files_are_one_corpus(tmp_path: Path) -> None:
    pairs = corpus()
    whole = split_pairs([write(tmp_path, pairs)], tmp_path, HoldOut(test=40))
    cut = split_pairs(
        [write(tmp_path, pairs[:300], "a.tsv"), write(tmp_path, pairs[300:], "b.tsv")], tmp_path, HoldOut(test=40)
    )
    assert [len(each) for each in cut.parts] == [300, 500]
    assert parts(whole, pairs) == parts(cut, pairs)


def test_texts_from_templates_are_kept_apart_by_the_same_text_alone(tmp_path: Path) -> None:
    pairs = [
        (f"run {a} {b} times and then jump twice to the left and once more to the right before you go", f"{a} x {b}")
        for a in WORDS[:20]
        for b in WORDS[:20]
    ]
    split = split_pairs([write(tmp_path, pairs)], tmp_path, HoldOut(validation=20, test=20))
    assert (split.count(VALIDATION), split.count(TEST), split.near) == (20, 20, 0)
    assert "too much alike" in split.report()


def test_few_targets_leave_the_sources_to_decide(tmp_path: Path) -> None:
    pairs = [(" ".join(sources), ("yes", "no")[number % 2]) for number, sources in enumerate(pairwise(WORDS))]
    pairs += pairs[:10]
    split = split_pairs([write(tmp_path, pairs)], tmp_path, HoldOut(test=6))
    found = parts(split, pairs)
    assert 5 <= len(found[TEST]) <= 8
    assert not {source for source, _ in found[TRAIN]} & {source for source, _ in found[TEST]}
    assert "the same source" in split.report()


@pytest.mark.parametrize(
    ("amounts", "counts"), [({"validation": 0.1}, (10, 0)), ({"test": 7}, (0, 7)), (0.25, (25, 0))]
)
def test_counts_and_shares(amounts: object, counts: tuple[int, int]) -> None:
    assert HoldOut.model_validate(amounts).counts(100) == counts


def test_half_a_pair_is_refused() -> None:
    with pytest.raises(ValueError, match=r"whole number of pairs, or a share below 1; got 2\.5"):
        HoldOut(validation=2.5)


def test_more_than_there_are_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected fewer than there are; got 20 of 10 pairs"):
        split_pairs([write(tmp_path, corpus(10))], tmp_path, HoldOut(test=20))


def test_a_file_that_is_sorted_by_length_is_still_compared_by_words(tmp_path: Path) -> None:
    pairs = [(one + two, two + one + two) for one in WORDS for two in WORDS][:1200] + corpus()
    split = split_pairs([write(tmp_path, pairs)], tmp_path, HoldOut(validation=40, test=40))
    found = parts(split, pairs)
    long = {part: [pair for pair in each if " " in pair[0]] for part, each in found.items()}
    assert split.near > 0
    assert all(jaccard(one[0], two[0]) <= 0.7 for one in long[TRAIN] for two in long[TEST] + long[VALIDATION])


@pytest.mark.parametrize(
    ("stage", "missing"),
    [
        ({"teachers": {"seeds": [1]}}, "name files"),
        ({"backtranslation": {"text": ["more.sw"], "tag": ""}}, r"a tag is missing\. Set backtranslation\.tag"),
    ],
)
def test_further_pairs_are_not_drawn_from(stage: dict[str, object], missing: str) -> None:
    data = {"train": [{"tsv": "a.tsv"}], "hold_out": {"test": 5}}
    wrong = rf"makes further training pairs, from which data\.hold_out would draw others: {missing}"
    with pytest.raises(InputError, match=wrong):
        parse_recipe({"data": data, **stage}, "here")
    tagged = {"data": data, "backtranslation": {"text": ["more.sw"]}}
    assert parse_recipe(tagged, "here").backtranslation


def test_one_source_for_all_cannot_be_split(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too few sources are different"):
        split_pairs([write(tmp_path, [("same", word) for word in WORDS])], tmp_path, HoldOut(test=4))


def test_characters_where_words_are_not_written_apart(tmp_path: Path) -> None:
    drawn = random.Random(3)
    signs = [chr(code) for code in range(0x4E00, 0x4E80)]
    texts = ["".join(drawn.choice(signs) for _ in range(20)) for _ in range(300)]
    targets = [" ".join(drawn.choice(WORDS) for _ in range(9)) for _ in range(500)]
    pairs = list(zip([*texts, *(text[:-1] + "龘" for text in texts[:200])], targets, strict=True))
    files = write(tmp_path, pairs)
    split = split_pairs([files], tmp_path, HoldOut(test=60))
    held = {source[:-1] for source, _ in parts(split, pairs)[TEST]}
    assert not held & {source[:-1] for source, _ in parts(split, pairs)[TRAIN]}
    assert len(list(read_pairs(files, tmp_path))) == 500


def both_ways(folder: Path, pairs: list[Pair], named: bool) -> tuple[list[PairFiles], list[Pair]]:
    """The pairs in one file, read in both directions: by the languages' names, or by the columns alone."""
    files = write(folder, pairs)
    turned = files.model_copy(update={"source_column": 1, "target_column": 0})
    if named:
        files, turned = files.model_copy(update={"to": "fr"}), turned.model_copy(update={"to": "en"})
    return [files, turned], [*pairs, *((target, source) for source, target in pairs)]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("amount", [8, 80])
def test_in_both_directions_no_text_is_nearly_the_same_on_any_side(tmp_path: Path, named: bool, amount: int) -> None:
    files, pairs = both_ways(tmp_path, corpus(400), named)
    split = split_pairs(files, tmp_path, HoldOut(validation=amount // 2, test=amount // 2))
    found = parts(split, pairs)
    assert "in any direction" in split.report()
    assert amount <= len(found[VALIDATION]) + len(found[TEST]) <= 2 * amount
    for one, other in ((TRAIN, VALIDATION), (TRAIN, TEST), (VALIDATION, TEST)):
        held = [text for pair in found[other] for text in pair]
        for text in {text for pair in found[one] for text in pair}:
            assert all(jaccard(text, each) <= 0.7 for each in held), text


def test_in_both_directions_few_targets_leave_the_rarer_text_to_decide(tmp_path: Path) -> None:
    pairs = [(" ".join(sources), ("yes", "no")[number % 2]) for number, sources in enumerate(pairwise(WORDS))]
    files, pairs = both_ways(tmp_path, pairs, named=True)
    split = split_pairs(files, tmp_path, HoldOut(test=6))
    found = parts(split, pairs)
    assert 5 <= len(found[TEST]) <= 8
    assert {frozenset(pair) for pair in found[TRAIN]}.isdisjoint(frozenset(pair) for pair in found[TEST])
    assert "the rarer of their two texts" in split.report()


def test_characters_of_one_language_are_not_compared_by_the_words_of_another(tmp_path: Path) -> None:
    drawn = random.Random(3)
    signs = [chr(code) for code in range(0x4E00, 0x4E80)]
    texts = ["".join(drawn.choice(signs) for _ in range(20)) for _ in range(300)]
    targets = [" ".join(drawn.choice(WORDS) for _ in range(9)) for _ in range(500)]
    files, pairs = both_ways(
        tmp_path, list(zip([*texts, *(text[:-1] + "龘" for text in texts[:200])], targets, strict=True)), named=True
    )
    found = parts(split_pairs(files, tmp_path, HoldOut(test=60)), pairs)
    held, trained = ({text[:-1] for pair in found[part] for text in pair} for part in (TEST, TRAIN))
    assert held
    assert not held & trained


def test_what_is_copied_from_one_column_is_one_direction(tmp_path: Path) -> None:
    (tmp_path / "copied.tsv").write_text("".join(f"{word}\n" for word in WORDS))
    split = split_pairs([PairFiles(tsv="copied.tsv", target_column=0)], tmp_path, HoldOut(test=6))
    assert "any direction" not in split.report()


def machine_made(pairs: list[Pair], seed: int = 7) -> list[Pair]:
    """New targets with new sources; each tenth has the target of a given pair, each tenth nearly so, or its source."""
    drawn = random.Random(seed)
    made = list[Pair]()
    for number, (source, target) in enumerate(pairs):
        new = [" ".join(drawn.choice(WORDS) for _ in range(drawn.randint(8, 20))) for _ in range(2)]
        repeated = {0: (new[0], target + "."), 1: (new[0], target + " ba"), 2: (source, new[1])}
        made.append(repeated.get(number % 10, (new[0], new[1])))
    return made


@pytest.mark.parametrize("first", [True, False])
def test_pairs_with_a_tag_are_not_drawn_and_change_nothing(tmp_path: Path, first: bool) -> None:
    pairs, amounts = corpus(), HoldOut(validation=0.05, test=0.05)
    files, made = write(tmp_path, pairs), machine_made(pairs)
    tagged = write(tmp_path, made, "made.tsv").model_copy(update={"tag": "<BT>"})
    alone = split_pairs([files], tmp_path, amounts)
    entries = [tagged, files] if first else [files, tagged]
    split = split_pairs(entries, tmp_path, amounts)
    at = entries.index(tagged)
    assert split.parts[1 - at].tolist() == alone.parts[0].tolist()
    held = [pair for pair, part in zip(pairs, alone.parts[0].tolist(), strict=True) if part != TRAIN]
    near = [any(jaccard(one[side], other[side]) > 0.7 for side in (0, 1) for other in held) for one in made]
    assert split.parts[at].tolist() == [LEFT_OUT if each else TRAIN for each in near]
    assert sum(near) > 10
    told = (
        f"None is drawn from the 800 pairs with a tag or hold_out = false; {sum(near)} of them are too much like a "
        "held-out pair, and are"
    )
    assert split.report() == f"{alone.report()} {told} left out of training."


def test_pairs_with_a_tag_in_the_other_direction_are_left_out_where_they_repeat(tmp_path: Path) -> None:
    pairs = corpus(400)
    (files, turned), _ = both_ways(tmp_path, pairs, named=True)
    turned = turned.model_copy(update={"tag": "<BT>"})
    amounts = HoldOut(test=40)
    alone, split = split_pairs([files], tmp_path, amounts), split_pairs([files, turned], tmp_path, amounts)
    assert split.parts[0].tolist() == alone.parts[0].tolist()
    assert [part == LEFT_OUT for part in split.parts[1].tolist()] == [part == TEST for part in split.parts[0].tolist()]


def test_pairs_with_a_tag_that_share_the_source_are_left_out_where_that_decides(tmp_path: Path) -> None:
    pairs = [(" ".join(sources), ("yes", "no")[number % 2]) for number, sources in enumerate(pairwise(WORDS))]
    files, tagged = write(tmp_path, pairs), write(tmp_path, pairs, "made.tsv").model_copy(update={"tag": "<BT>"})
    split = split_pairs([files, tagged], tmp_path, HoldOut(test=6))
    assert [part == LEFT_OUT for part in split.parts[1].tolist()] == [part == TEST for part in split.parts[0].tolist()]


def test_where_all_have_a_tag_it_says_nothing(tmp_path: Path) -> None:
    pairs = corpus()
    files = write(tmp_path, pairs)
    alone, tagged = (
        split_pairs([files.model_copy(update={"tag": tag})], tmp_path, HoldOut(test=40)) for tag in (None, "<news>")
    )
    assert (tagged.report(), tagged.parts[0].tolist()) == (alone.report(), alone.parts[0].tolist())


def test_where_all_are_alike_the_search_ends_when_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strings over four letters all have the same bigrams: after twice the pairs that are wanted, no more are read."""
    drawn = random.Random(4)
    pairs = [("".join(drawn.choices("acgt", k=100)), "".join(drawn.choices("acgt", k=100))) for _ in range(1000)]
    looked: list[int] = []
    of = NearDuplicatePairs.of

    def counted(self: NearDuplicatePairs, entry: int, pair: Sequence[str]) -> Iterator[int]:
        looked.append(entry)
        return of(self, entry, pair)

    monkeypatch.setattr(NearDuplicatePairs, "of", counted)
    split = split_pairs([write(tmp_path, pairs)], tmp_path, HoldOut(validation=20, test=20))
    assert "too much alike" in split.report()
    assert (split.count(VALIDATION), split.count(TEST)) == (20, 20)
    assert len(looked) < 200


def test_one_that_is_near_to_two_held_out_pairs_keeps_them_together(tmp_path: Path) -> None:
    """Chains of texts: each is near to the next, and no further one. All of a chain are in one part."""
    drawn = random.Random(9)
    chains = [[" ".join(f"w{drawn.randrange(10**6)}x" for _ in range(30))] for _ in range(150)]
    for chain in chains:
        for _ in range(2):
            words = chain[-1].split()
            chain.append(" ".join(["new" + chr(97 + drawn.randrange(26)) * 3, *words[1:-4], *words[:1]]))
    pairs = [(text, f"{number}-{at}") for number, chain in enumerate(chains) for at, text in enumerate(chain)]
    pairs = [(re.sub(r"\d", lambda digit: chr(97 + int(digit[0])), source), target) for source, target in pairs]
    pairs = [(source, re.sub(r"\d", lambda digit: chr(97 + int(digit[0])), target)) for source, target in pairs]
    split = split_pairs([write(tmp_path, pairs)], tmp_path, HoldOut(validation=30, test=30))
    found = parts(split, pairs)
    for one, other in ((TRAIN, VALIDATION), (TRAIN, TEST), (VALIDATION, TEST)):
        assert not [1 for here in found[one] for there in found[other] if jaccard(here[0], there[0]) > 0.7]
    assert split.near > 10


def turned_about(files: PairFiles) -> PairFiles:
    return files.model_copy(update={"source_column": 1, "target_column": 0})


def with_templates() -> list[Pair]:
    return [
        (f"run {a} {b} times and then jump twice to the left and once more to the right before you go", f"{a} x {b}")
        for a in WORDS[:20]
        for b in WORDS[:20]
    ]


@pytest.mark.parametrize("pairs", [corpus(), with_templates()])
def test_a_model_and_its_reverse_hold_out_the_same_pairs(tmp_path: Path, pairs: list[Pair]) -> None:
    files = write(tmp_path, pairs)
    one, other = (
        split_pairs([each], tmp_path, HoldOut(validation=20, test=20)) for each in (files, turned_about(files))
    )
    assert one.count(TEST) >= 20
    assert one.parts[0].tolist() == other.parts[0].tolist()


@pytest.mark.parametrize("words", [True, False])
def test_so_do_those_of_both_directions(tmp_path: Path, words: bool) -> None:
    """Of texts, and of few different targets; the second file's sides are exchanged, so both have both directions."""
    pairs = [(" ".join(sources), ("yes", "no")[number % 2]) for number, sources in enumerate(pairwise(WORDS))]
    files, _ = both_ways(tmp_path, corpus(400) if words else pairs, named=False)
    one, other = (split_pairs(each, tmp_path, HoldOut(test=6)) for each in (files, [*map(turned, files)]))
    assert one.count(TEST) >= 5
    assert [each.tolist() for each in one.parts] == [each.tolist() for each in other.parts]


def turned(files: PairFiles) -> PairFiles:
    exchanged = {"source_column": files.target_column, "target_column": files.source_column}
    return files.model_copy(update=exchanged)


def test_both_directions_in_two_files_are_known_where_the_recipe_is_turned(tmp_path: Path) -> None:
    """`[backtranslation]` exchanges the columns of two files, too, where they mean nothing."""
    for side, name in enumerate(("one", "other")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in corpus(400)), encoding="utf-8")
    entries = [PairFiles(source="one", target="other"), PairFiles(source="other", target="one")]
    exchanged = [each.model_copy(update={"source_column": 1, "target_column": 0}) for each in reversed(entries)]
    one, other = (split_pairs(each, tmp_path, HoldOut(test=20)) for each in (entries, exchanged))
    assert "any direction" in one.report() and "any direction" in other.report()
    assert [each.tolist() for each in one.parts] == [each.tolist() for each in reversed(other.parts)]


@pytest.mark.parametrize("empty", ["", "  ", "\u00a0"])
@pytest.mark.parametrize("side", [0, 1])
def test_pairs_with_an_empty_side_are_not_drawn(tmp_path: Path, side: int, empty: str) -> None:
    """They change nothing else: they link no texts, and the same pairs are drawn without them."""
    pairs = corpus()
    others = corpus(30, seed=2) + pairs[:30]
    emptied = [(empty, target) if side == 0 else (source, empty) for source, target in others]
    amounts = HoldOut(validation=40, test=40)
    alone = split_pairs([write(tmp_path, pairs)], tmp_path, amounts).parts[0].tolist()
    split = split_pairs([write(tmp_path, [*emptied, *pairs], "more.tsv")], tmp_path, amounts)
    assert split.parts[0].tolist() == [TRAIN] * 60 + alone
    assert split.report().startswith("Held out of 860 pairs: ")


def test_a_share_is_one_of_pairs_with_two_sides(tmp_path: Path) -> None:
    pairs = [*corpus(100), *((f"{word} alone", "") for word in WORDS)]
    split = split_pairs([write(tmp_path, pairs)], tmp_path, HoldOut(test=0.1))
    assert split.drawn == 10


def test_pairs_with_a_tag_and_no_source_are_left_out_where_the_target_is_held_out(tmp_path: Path) -> None:
    """The tag is a source: they would be trained on."""
    pairs = corpus()
    made = [("", target) for _, target in pairs]
    tagged = write(tmp_path, made, "made.tsv").model_copy(update={"tag": "<BT>"})
    split = split_pairs([write(tmp_path, pairs), tagged], tmp_path, HoldOut(test=40))
    drawn = [number for number, part in enumerate(split.parts[0].tolist()) if part == TEST]
    assert len(drawn) >= 40
    assert all(split.parts[1][number] == LEFT_OUT for number in drawn)


@pytest.mark.parametrize("side", [0, 1])
def test_many_pairs_with_one_text_do_not_fill_the_held_out_parts(tmp_path: Path, side: int) -> None:
    """Also where one of them nearly repeats a pair that was drawn: then that one is trained on, too."""
    pairs = corpus(4000)
    wrong = "we use cookies to give you the best experience"
    others = [pair[1 - side] + " ba" for pair in pairs[:800:20]]
    pairs += [(wrong, other) if side == 0 else (other, wrong) for other in others]
    split = split_pairs([write(tmp_path, pairs)], tmp_path, HoldOut(validation=200, test=200))
    found = parts(split, pairs)
    assert "nearly so" in split.report()
    assert not [pair for part in (VALIDATION, TEST) for pair in found[part] if wrong in pair]
    assert split.near > 0 and 390 <= len(found[VALIDATION]) + len(found[TEST]) - split.near <= 402
    held = [pair[1 - side] for part in (VALIDATION, TEST) for pair in found[part]]
    assert all(jaccard(other, each) <= 0.7 for other in others for each in held)


def test_where_most_texts_come_many_times_they_are_drawn_all_the_same(tmp_path: Path) -> None:
    """As in corpora with many references of each source."""
    sources, targets = [source for source, _ in corpus(300)], [target for _, target in corpus(3000, seed=2)]
    pairs = [(sources[number // 10], target) for number, target in enumerate(targets)]
    split = split_pairs([write(tmp_path, pairs)], tmp_path, HoldOut(validation=150, test=150))
    assert split.count(VALIDATION) + split.count(TEST) >= 300
