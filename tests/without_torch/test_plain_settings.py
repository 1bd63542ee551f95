"""Settings of a search without torch are those of every search, as far as it has them."""

from typing import Any, get_args

import pytest

from transduce.core.errors import InputError
from transduce.search.keys import DEFAULTS, KEYS
from transduce.search.plain_settings import READ, PlainSearch
from transduce.search.settings import Search, search_settings

EVERY = Search()


def test_every_key_is_read_or_refused_or_means_nothing() -> None:
    assert {*KEYS} == {*Search.model_fields}
    assert EVERY.model_dump() == DEFAULTS
    for name, key in KEYS.items():
        kind = Search.model_fields[name].annotation
        optional = type(None) in get_args(kind)
        assert optional == (key.default is None)
        if isinstance(key.kind, type):
            assert key.kind in (get_args(kind) if optional else (kind,))
        else:
            assert {*key.kind} <= {*get_args(kind)}


@pytest.mark.parametrize("name", [name for name, key in READ.items() if key.bounds])
@pytest.mark.parametrize("value", [-1, 0, 0.5, 1, 2, 10, 11, 1001, 10_001, 100_001, None, True, "3", float("nan")])
def test_values_are_accepted_and_refused_alike(name: str, value: Any) -> None:
    if isinstance(value, bool | str) or (
        isinstance(value, float) and name not in ("prune", "alpha", "max_length_factor")
    ):
        with pytest.raises(InputError, match=rf"search\.{name}: expected"):  # pydantic turns some of these into numbers
            PlainSearch.of({name: value})
        return
    asked = {name: value, **({"beam": 10_000} if name == "nbest" else {})}
    try:
        expected = search_settings(EVERY, asked)
    except InputError:
        with pytest.raises(InputError, match=rf"search\.{name}: expected"):
            PlainSearch.of(asked)
    else:
        found = PlainSearch.of(asked)
        assert {key: getattr(found, key) for key in READ} == {key: getattr(expected, key) for key in READ}
        assert found.limit(7) == expected.limit(7)
        assert found.length == expected.length


@pytest.mark.parametrize(
    "asked",
    [{}, {"beam": 3}, {"method": "greedy"}, {"length_rule": "gnmt"}, {"length_rule": "power"}, {"nbest": 2, "beam": 2}],
)
@pytest.mark.parametrize(
    "recipe", [{}, {"method": "greedy", "nbest": 1}, {"prune": 1.5, "alpha": 1.0, "beam": 4}, {"length_rule": "none"}]
)
def test_what_is_asked_for_replaces_the_recipes(recipe: dict[str, Any], asked: dict[str, Any]) -> None:
    expected = search_settings(Search(**recipe), asked)
    found = PlainSearch.asked(Search(**recipe).model_dump(exclude_none=True), asked)
    assert {key: getattr(found, key) for key in READ} == {key: getattr(expected, key) for key in READ}


@pytest.mark.parametrize("asked", [{"method": "greedy", "nbest": 2}, {"beam": 2, "nbest": 3}])
def test_keys_that_do_not_go_together_are_told_alike(asked: dict[str, Any]) -> None:
    with pytest.raises(InputError) as every:
        search_settings(EVERY, asked)
    with pytest.raises(InputError) as plain:
        PlainSearch.asked({}, asked)
    assert str(plain.value).removeprefix("search: ").rstrip(".") in str(every.value)
