"""Texts and their words, which Python and the page must both find."""

WORDS_OF = {
    "The animal didn't cross.": ["The", "animal", "didn't", "cross", "."],
    "L'animal, aujourd'hui": ["L'animal", ",", "aujourd'hui"],
    "l’animal n’a pas": ["l’animal", "n’a", "pas"],
    "'tis the dogs' \"own\"": ["'", "tis", "the", "dogs", "'", '"', "own", '"'],
    "The hams, qu'ils": ["The", "hams", ",", "qu'ils"],
    "well-known peut-être, a - b -- c-": ["well-known", "peut-être", ",", "a", "-", "b", "-", "-", "c", "-"],
    "3.14 and 1,000.5 in 2024, no. 7.": ["3.14", "and", "1,000.5", "in", "2024", ",", "no", ".", "7", "."],
    "col·lecció snake_case": ["col·lecció", "snake_case"],
    "两只狗在跑。": list("两只狗在跑。"),
    "GPT-4很好": ["GPT-4", "很", "好"],
    "カメラと犬": list("カメラと犬"),
    "เด็ก": ["เ", "ด็", "ก"],
    "हिन्दी में": ["हिन्दी", "में"],
    "cafe\u0301s nai\u0308f": ["cafe\u0301s", "nai\u0308f"],
    "می\u200cخواهم": ["می\u200cخواهم"],
    "🧑‍💻🇫🇷🇩🇪👍🏽": ["🧑‍💻", "🇫🇷", "🇩🇪", "👍🏽"],
    "a 👩‍👩‍👧‍👦b 1️⃣": ["a", "👩‍👩‍👧‍👦", "b", "1️⃣"],
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 1👍": [
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "1",
        "👍",
    ],
    "한국어 문장": ["한국어", "문장"],
    " \n a\tb ": ["a", "b"],
    "": [],
}
