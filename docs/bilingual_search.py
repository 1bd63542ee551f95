"""Search in English and Chinese: words of Latin letters by their stems, Chinese text by pairs of characters.

Sphinx's own search cuts the Chinese of pages into words with jieba, but not the Chinese of queries, so it finds only
what happens to be one word of jieba's dictionary. Pairs of neighbouring characters need no dictionary, and whatever a
page holds is found, as by Lucene's CJKAnalyzer.
"""

import re

from sphinx.search.en import SearchEnglish

HAN = r"\u3400-\u4dbf\u4e00-\u9fff"
WORD = re.compile(rf"[{HAN}]+|[^\W{HAN}]+")


class BilingualSearch(SearchEnglish):
    """The words of a page and, in `js_splitter_code`, those of a query. Pages have single characters, too."""

    # `var`, as Sphinx's script declares it once more.
    js_splitter_code = rf"""
var splitQuery = (query) =>
  (query.match(/[{HAN}]+|(?:(?![{HAN}])[\p{{L}}\p{{N}}_])+/gu) || []).flatMap((word) =>
    /[{HAN}]/.test(word) && word.length > 1
      ? Array.from({{ length: word.length - 1 }}, (_, first) => word.slice(first, first + 2))
      : [word]);
"""

    def split(self, input: str) -> list[str]:
        """The words of `input`: "束搜索 finds" -> 束, 搜, 索, 束搜, 搜索, finds."""
        return [part for word in WORD.findall(input) for part in parts(word)]


class ChineseSearch(BilingualSearch):
    """The same for pages whose language is Chinese."""

    lang = "zh"  # `language_name` stays English: it names the stemmer's script


def parts(word: str) -> list[str]:
    """The characters and pairs of characters of Chinese; another word as it is."""
    if not re.match(f"[{HAN}]", word):
        return [word]
    return [*word, *(word[first : first + 2] for first in range(len(word) - 1))]
