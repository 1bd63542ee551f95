"""English names of languages by their ISO 639-1 code, and which of several codes one means."""

from collections.abc import Iterable

NAMES = """
aa Afar|ab Abkhazian|ae Avestan|af Afrikaans|ak Akan|am Amharic|an Aragonese|ar Arabic|as Assamese|av Avaric
ay Aymara|az Azerbaijani|ba Bashkir|be Belarusian|bg Bulgarian|bi Bislama|bm Bambara|bn Bengali|bo Tibetan|br Breton
bs Bosnian|ca Catalan|ce Chechen|ch Chamorro|co Corsican|cr Cree|cs Czech|cu Church Slavic|cv Chuvash|cy Welsh
da Danish|de German|dv Divehi|dz Dzongkha|ee Ewe|el Greek|en English|eo Esperanto|es Spanish|et Estonian|eu Basque
fa Persian|ff Fulah|fi Finnish|fj Fijian|fo Faroese|fr French|fy Western Frisian|ga Irish|gd Scottish Gaelic
gl Galician|gn Guarani|gu Gujarati|gv Manx|ha Hausa|he Hebrew|hi Hindi|ho Hiri Motu|hr Croatian|ht Haitian
hu Hungarian|hy Armenian|hz Herero|ia Interlingua|id Indonesian|ie Interlingue|ig Igbo|ii Sichuan Yi|ik Inupiaq
io Ido|is Icelandic|it Italian|iu Inuktitut|ja Japanese|jv Javanese|ka Georgian|kg Kongo|ki Kikuyu|kj Kuanyama
kk Kazakh|kl Kalaallisut|km Khmer|kn Kannada|ko Korean|kr Kanuri|ks Kashmiri|ku Kurdish|kv Komi|kw Cornish|ky Kyrgyz
la Latin|lb Luxembourgish|lg Ganda|li Limburgish|ln Lingala|lo Lao|lt Lithuanian|lu Luba-Katanga|lv Latvian
mg Malagasy|mh Marshallese|mi Maori|mk Macedonian|ml Malayalam|mn Mongolian|mr Marathi|ms Malay|mt Maltese
my Burmese|na Nauru|nb Norwegian Bokmål|nd North Ndebele|ne Nepali|ng Ndonga|nl Dutch|nn Norwegian Nynorsk
no Norwegian|nr South Ndebele|nv Navajo|ny Chichewa|oc Occitan|oj Ojibwa|om Oromo|or Odia|os Ossetian|pa Punjabi
pi Pali|pl Polish|ps Pashto|pt Portuguese|qu Quechua|rm Romansh|rn Rundi|ro Romanian|ru Russian|rw Kinyarwanda
sa Sanskrit|sc Sardinian|sd Sindhi|se Northern Sami|sg Sango|si Sinhala|sk Slovak|sl Slovenian|sm Samoan|sn Shona
so Somali|sq Albanian|sr Serbian|ss Swati|st Southern Sotho|su Sundanese|sv Swedish|sw Swahili|ta Tamil|te Telugu
tg Tajik|th Thai|ti Tigrinya|tk Turkmen|tl Tagalog|tn Tswana|to Tonga|tr Turkish|ts Tsonga|tt Tatar|tw Twi
ty Tahitian|ug Uyghur|uk Ukrainian|und Undetermined|ur Urdu|uz Uzbek|ve Venda|vi Vietnamese|vo Volapük|wa Walloon
wo Wolof|xh Xhosa|yi Yiddish|yo Yoruba|za Zhuang|zh Chinese|zu Zulu
"""
BY_CODE = {
    code: name for entry in NAMES.strip().replace("\n", "|").split("|") for code, _, name in [entry.partition(" ")]
}


def base_of(code: str) -> str:
    """The language without region or script, in small letters: en for en_US."""
    return code.replace("_", "-").partition("-")[0].lower()


def name_of(code: str) -> str:
    """The name of `code`, or of what stands before its region or script; an unknown code is its own name."""
    rest = code.replace("_", "-").partition("-")[2]
    name = BY_CODE.get(base_of(code))
    if name is None:
        return code
    return f"{name} ({rest})" if rest else name


def matching(code: str, known: Iterable[str]) -> str:
    """The one of `known` that a code means: `zh` for `zh-CN` or `ZH`, `pt_BR` for `pt-br`.

    It is the same but for case and `_`; or the language without the code's region or script; or, of a code that has
    neither, the only one of its language. The code itself where there is none: `zh-TW` does not mean `zh-CN`.
    """
    plain = {each: each.replace("_", "-").lower() for each in known}
    asked, base = code.replace("_", "-").lower(), base_of(code)
    for wanted in (asked, base):
        if found := [each for each, one in plain.items() if one == wanted]:
            return code if code in found else found[0]
    alike = [each for each in plain if asked == base == base_of(each)]
    return alike[0] if len(alike) == 1 else code


def same_language(one: str, other: str) -> bool:
    """Whether two codes may mean one language: case, and a region that only one of them has, do not matter."""
    plain = [each.replace("_", "-").lower() for each in (one, other)]
    return plain[0] == plain[1] or (base_of(one) == base_of(other) and any("-" not in each for each in plain))


def closest(code: str, known: Iterable[str]) -> str | None:
    """The one of `known` that is the very language, else the first that may be (`same_language`); None: no such."""
    alike = [each for each in known if same_language(each, code)]
    plain = code.replace("_", "-").lower()
    return next((each for each in alike if each.replace("_", "-").lower() == plain), alike[0] if alike else None)
