"""What a client can do wrong, for tests and benchmarks/serve_load.py."""

import json
import random
import string
from typing import Any

EXPLORED = tuple(f"/v1/explore/{name}" for name in ("predict", "heads", "rollout", "steps", "positions", "training"))
PATHS = ("/translate", "/v1/predict", "/v1/stream", "/detect", *EXPLORED)
KINDS = (
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain",
    "",
    "é",
)
GOOD: list[dict[str, Any]] = [
    {"q": "ba de", "source": "de", "target": "en", "format": "html", "alternatives": 1, "api_key": ""},
    {"texts": ["ba", "de"], "beam": 2, "nbest": 2, "alpha": 0.5, "scores": True, "attention": True, "seed": 1},
    {"text": "ba", "max_new": 3},
    {"text": "ba de", "target": ["ba"], "name": "decoder.blocks.0.cross_attention", "head": 1, "query": 0},
    {"text": "ba de", "target": "de ba"},
    {"length": 9, "width": 4},
    {"from": 0},
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
            [
                *values,
                drawn.choice(string.printable),
                "method",
                "model",
                "top_p",
                "temperature",
                "long",
                "top_k",
                "\ud800",
            ]
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


def send_malformed(client: Any, count: int, seed: int = 7) -> dict[int, int]:
    """How many answers had which status. No status may be 5xx, and every error says what is wrong."""
    drawn = random.Random(seed)
    seen: dict[int, int] = {}
    for _ in range(count):
        body, kind = malformed(drawn)
        path = drawn.choice(PATHS)
        headers = {"content-type": kind.encode("latin-1")} if kind else {}
        answer = client.post(path, content=body, headers=headers)
        assert answer.status_code < 500, (path, kind, body)
        if answer.status_code >= 400:
            assert set(answer.json()) == {"error"}
        seen[answer.status_code] = seen.get(answer.status_code, 0) + 1
    return seen


def check_description(address: str, examples: int) -> int:
    """schemathesis: what the OpenAPI description allows, and what it does not, never gives 5xx. The number of calls."""
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings

    calls = 0
    for found in schemathesis.openapi.from_url(f"{address}/openapi.json").get_all_operations():

        @settings(
            max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
        )
        @given(case=found.ok().as_strategy())
        def check(case: Any) -> None:
            nonlocal calls
            calls += 1
            answer = case.call()
            assert answer.status_code < 500, (case.path, case.body, answer.text)
            if case.path != "/detect" and answer.status_code < 300:
                case.validate_response(answer)

        check()
    return calls
