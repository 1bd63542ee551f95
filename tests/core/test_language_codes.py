"""Which of a server's languages a client's code means."""

import pytest

from transduce.core.languages import matching


@pytest.mark.parametrize(
    ("code", "known", "meant"),
    [
        ("zh-CN", ["en", "zh"], "zh"),
        ("ZH", ["en", "zh"], "zh"),
        ("zh", ["zh-Hans", "en"], "zh-Hans"),
        ("zh-TW", ["zh-CN", "en"], "zh-TW"),
        ("zh", ["zh-Hans", "zh-Hant"], "zh"),
        ("pt-br", ["pt", "pt_BR"], "pt_BR"),
        ("pt", ["pt-PT", "pt"], "pt"),
        ("EN", ["en", "EN"], "EN"),
        ("fr", ["de", "en"], "fr"),
        ("", ["de"], ""),
    ],
)
def test_the_code_that_is_meant(code: str, known: list[str], meant: str) -> None:
    assert matching(code, known) == meant
