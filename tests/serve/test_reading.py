"""Bodies of requests: what would take far more memory than it has bytes is refused before it is parsed."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed (extra serve)")

import asyncio

from fastapi import Body, FastAPI
from starlette.exceptions import HTTPException

from transduce.serve.reading import BESIDES, KEYS, read_json, route_class

MOST = 20


def refused(body: str, parts: int = MOST) -> tuple[int, str]:
    with pytest.raises(HTTPException) as told:
        read_json(body.encode(), parts)
    return told.value.status_code, told.value.detail


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ("[" + ",".join(["1"] * 21) + "]", 21),  # 20 commas, a bracket
        ("[" * 21 + "]" * 21, 21),
        ('{"a":' * 21 + "1" + "}" * 21, 21),
        ("[" + ",".join(["[]"] * 10 + ["{}"]) + "]", 22),  # 10 commas, 11 brackets, a brace
        ('{"q": "' + "," * 10 + "[" * 6 + "{" * 4 + '"}', 21),  # in a text, too: nobody knows before it is parsed
    ],
)
def test_commas_brackets_and_braces_are_counted(body: str, parts: int) -> None:
    assert read_json(body.encode(), parts) == json.loads(body)
    assert refused(body, parts - 1) == (413, f"the body has more than {parts - 1} values; send less at once.")


def test_an_object_has_so_many_keys() -> None:
    def table(keys: int) -> dict[str, Any]:
        return {str(key): key for key in range(keys)}

    assert read_json(json.dumps(table(KEYS)).encode(), 1000) == table(KEYS)
    code, said = refused(json.dumps(table(KEYS + 1)), 1000)
    assert (code, "65 keys; no request has more than 64" in said) == (400, True)


def test_what_is_nested_too_deeply_is_refused() -> None:
    assert refused("[" * 200_000, 200_000) == (400, "Invalid request: the body is nested too deeply.")


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (r'{"q": ["a", "b\ud83d"]}', "body.q.1: its character 2 is U+D83D"),
        (r'{"q": {"\udc00": 1}}', "a key of body.q: its character 1 is U+DC00"),
        (r'"\ud800"', "body: its character 1 is U+D800"),
        (r'["\ud800", "\ud801"]', "body.0: "),
    ],
)
def test_half_a_character_is_named_with_its_place(body: str, place: str) -> None:
    code, said = refused(body)
    assert code == 400 and said.startswith(f"Invalid request: {place}")


def test_whole_characters_pass_and_what_is_no_json_does_not() -> None:
    assert read_json(rb'{"q": "\ud83d\ude00"}', MOST) == {"q": "\U0001f600"}
    with pytest.raises(ValueError, match="Expecting"):
        read_json(b"{q}", MOST)


async def at_once(do: Callable[[], Any]) -> Any:
    return do()


def test_a_route_reads_so_many_values_as_a_request_may_have_characters() -> None:
    app = FastAPI()
    app.router.route_class = route_class(at_once, characters=50)

    @app.post("/")
    async def count(values: list[int] = Body()) -> int:  # noqa: B008 (as FastAPI has it)
        return len(values)

    async def answer(values: int) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return await client.post("/", json=[1] * values)

    most = 50 + BESIDES  # with as many commas and brackets
    assert asyncio.run(answer(most)).json() == most
    assert asyncio.run(answer(most + 1)).status_code == 413
