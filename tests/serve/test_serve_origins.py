"""Whose web pages may ask: the server's own, and those of origins that whoever runs it allowed."""

from pathlib import Path

import pytest

from served import Server, serving
from transduce.serve.settings import ServeSettings

FORM = {"q": "ba de", "source": "de", "target": "en"}
COMPUTING = ["/translate", "/v1/predict", "/v1/stream", "/v1/explore/predict", "/v1/explore/heads", "/detect"]


def asked_from(server: Server, origin: str, path: str = "/translate") -> int:
    """What a page of `origin` gets, which sends a form as pages may send it anywhere."""
    return server.client.post(path, data=FORM, headers={"origin": origin}).status_code


@pytest.mark.parametrize("path", COMPUTING)
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "http://127.0.0.1", "http://localhost:1"])
def test_a_foreign_pages_form_is_not_computed(server: Server, path: str, origin: str) -> None:
    assert asked_from(server, origin, path) == 403


def test_what_is_refused_is_said(server: Server) -> None:
    answer = server.client.post("/translate", data=FORM, headers={"origin": "https://evil.example"})
    assert "--allow-origin https://evil.example" in answer.json()["error"]
    assert server.client.get("/v1/models", headers={"origin": "https://evil.example"}).status_code == 403
    assert server.client.get("/health", headers={"origin": "https://evil.example"}).status_code == 200


def test_the_servers_own_page_and_programs_are_answered(server: Server) -> None:
    assert server.client.post("/translate", data=FORM).status_code == 200
    assert asked_from(server, server.address) == 200
    named = {"origin": "https://translate.example", "host": "translate.example"}  # a proxy with TLS in front
    assert server.client.post("/translate", data=FORM, headers=named).status_code == 200


def test_allowed_origins_may_ask_and_read(served_file: Path) -> None:
    with serving([served_file], origins=("https://Site.example/", "null")) as running:
        for origin, status in {"https://site.example": 200, "null": 200, "http://site.example": 403}.items():
            assert asked_from(running, origin) == status
        asked = {"origin": "https://site.example", "access-control-request-method": "POST"}
        asked["access-control-request-headers"] = "content-type"
        before = running.client.options("/v1/predict", headers=asked)
        assert before.status_code == 200
        assert before.headers["access-control-allow-origin"] == "https://site.example"
        answer = running.client.post("/v1/predict", json={"texts": ["ba"]}, headers={"origin": "https://site.example"})
        assert answer.headers["access-control-allow-origin"] == "https://site.example"
    with serving([served_file], origins=("*",)) as running:
        assert asked_from(running, "https://anyone.example") == asked_from(running, "null") == 200


@pytest.mark.parametrize("wrong", ["site.example", "https://site.example/page", "https://", ""])
def test_what_is_no_origin_is_said(wrong: str) -> None:
    with pytest.raises(ValueError, match="expected scheme://host"):
        ServeSettings(origins=(wrong,))


@pytest.mark.parametrize("path", ["/", "/docs", "/health", "/openapi.json", "/v1/models", "/nowhere"])
def test_head_is_get_without_the_body(server: Server, path: str) -> None:
    got, head = server.client.get(path), server.client.head(path)
    assert head.status_code == got.status_code
    assert head.content == b""
    assert {**head.headers, "date": ""} == {**got.headers, "date": ""}
