"""Nothing that a client sends makes the server fail."""

import json
import random
import string
from typing import Any

import pytest
from served import Server, serving

PATHS = ("/translate", "/v1/predict", "/v1/stream", "/detect")
KINDS = (
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain",
    "",
    "é",
)
GOOD: list[dict[str, Any]] = [
    {"q": "ba de", "source": "de", "target": "en", "format": "html", "alternatives": 1, "api_key": "", "model": "tiny"},
    {"texts": ["ba", "de"], "beam": 2, "nbest": 2, "alpha": 0.5, "scores": True, "attention": True, "seed": 1},
    {"text": "ba", "max_new": 3},
]
ODD: list[Any] = [
    *(
        None,
        True,
        -1,
        0,
        10**400,
        -(10**20),
        1e308,
        float("nan"),
        float("inf"),
        "",
        "\x00",
        "\ud800",
        "../../etc/passwd",
    ),
    *(
        "<b><",
        "&#xD800;",
        "é" * 300,
        " " * 300,
        "\u202e\u2028",
        [],
        {},
        [[]],
        [None],
        ["ba"] * 200,
        {"a": {"b": []}},
        "sample",
    ),
]


def malformed(drawn: random.Random) -> tuple[bytes, str]:
    """A body and its content type: damaged in shape, in values, in bytes or in kind."""
    values = dict(drawn.choice(GOOD))
    for _ in range(drawn.randint(0, 3)):
        key = drawn.choice(
            [*values, drawn.choice(string.printable), "method", "top_p", "temperature", "long", "top_k", "\ud800"]
        )
        values[key] = drawn.choice(ODD)
    for _ in range(drawn.randint(0, 1)):
        values.pop(drawn.choice(list(values)), None)
    body = json.dumps(values).encode()
    shape = drawn.randrange(8)
    if shape == 0:
        body = json.dumps(drawn.choice(ODD)).encode()
    elif shape == 1:
        body = b"[" * drawn.choice([10, 5000]) + body
    elif shape == 2:
        place = drawn.randrange(len(body) + 1)
        body = body[:place] + drawn.randbytes(drawn.randint(1, 9)) + body[place + 1 :]
    elif shape == 3:
        body = body[: drawn.randrange(len(body) + 1)]
    elif shape == 4:
        body = (
            b"&".join(b"%b=%b" % (key.encode("utf-8", "replace"), drawn.randbytes(5)) for key in values) + b"&q=%ff%00"
        )
    elif shape == 5:
        body = (
            b'--x\r\nContent-Disposition: form-data; name="q"; filename="/etc/passwd"\r\n\r\nx\r\n--x'
            + drawn.randbytes(3)
        )
    return body, drawn.choice(KINDS) if shape > 3 else drawn.choice(KINDS[:3])


def test_malformed_bodies_are_never_the_servers_fault(server: Server) -> None:
    drawn = random.Random(7)
    seen = set()
    for _ in range(500):
        body, kind = malformed(drawn)
        path = drawn.choice(PATHS)
        headers = {"content-type": kind.encode("latin-1")} if kind else {}
        answer = server.client.post(path, content=body, headers=headers)  # type: ignore[arg-type]
        assert answer.status_code < 500, (path, kind, body)
        if answer.status_code >= 400:
            assert set(answer.json()) == {"error"}
        seen.add(answer.status_code)
    assert seen >= {200, 400, 404}
    assert server.client.get("/health").status_code == 200


def test_the_description_holds(served_file: Any) -> None:
    """schemathesis: answers to what the OpenAPI description allows, and to what it does not, are as described."""
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from hypothesis import HealthCheck, Phase, given, settings

    with serving([served_file], characters=300) as running:
        schema = schemathesis.openapi.from_url(f"{running.address}/openapi.json")
        for found in schema.get_all_operations():
            operation = found.ok()

            @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
            @given(case=operation.as_strategy())
            def check(case: Any) -> None:
                answer = case.call()
                assert answer.status_code < 500, (case.path, case.body, answer.text)
                if case.path != "/detect":
                    case.validate_response(answer, checks=[schemathesis.checks.not_a_server_error])

            check()
