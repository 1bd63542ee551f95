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


def hurting(characters: int = 20_000) -> dict[str, tuple[str, bytes, str]]:
    """Requests that are made to take long or to break something: by name the path, the body and its content type.

    characters: the most that the server takes; texts have as many.
    """
    runs = {
        "spaces": " ",
        "tabs": "\t",
        "nuls": "\0",
        "line ends": "a\n",
        "combining marks": "\u0301",
        "marks out of order": "\u0301\u0327",
        "zero width": "\u200b",
        "ZWJ chain": "👩\u200d",
        "no break": "a",
        "stops": "a. ",
    }
    texts = {name: ("x" + unit * (characters // len(unit)))[: characters - 1] + "x" for name, unit in runs.items()}
    asked = {name: {"q": text, "source": "auto", "target": "en"} for name, text in texts.items()}
    bodies: dict[str, tuple[str, Any]] = {name: ("/translate", values) for name, values in asked.items()}
    for name, markup in {"comments": "<p><!--x", "open tags": "<b>x ", "references": "&"}.items():
        document = markup * (characters // len(markup))
        bodies[name] = ("/translate", {"q": document, "source": "auto", "target": "en", "format": "html"})
    bodies["spaces, a megabyte"] = ("/translate", {"q": "a" + " " * 900_000 + "b", "source": "auto", "target": "en"})
    bodies["spaces, streamed"] = ("/v1/stream", {"text": texts["spaces"], "max_new": 512})
    bodies["spaces, explored"] = ("/v1/explore/predict", {"text": texts["spaces"]})
    bodies["all that beams hold"] = ("/v1/predict", {"texts": ["ba de"] * 128, "beam": 16, "nbest": 16, "max_new": 512})
    bodies["too wide a beam"] = ("/v1/predict", {"texts": ["ba"], "beam": 1000, "nbest": 1000, "max_new": 100_000})
    bodies["samples"] = ("/v1/predict", {"texts": ["ba"] * 128, "method": "sample", "nbest": 16, "max_new": 512})
    bodies["half a character"] = ("/v1/predict", {"texts": ["\ud800"]})
    bodies["numbers for texts"] = ("/v1/predict", {"texts": [0] * 450_000})
    bodies["keys nobody knows"] = ("/v1/predict", {str(number): 0 for number in range(70_000)})
    made = {
        name: (path, json.dumps(values, separators=(",", ":")).encode(), "application/json")
        for name, (path, values) in bodies.items()
    }
    made["a form of nothing"] = ("/translate", b"&" * 990_000, KINDS[1])
    made["a form of signs"] = ("/translate", b"q=" + b"%" * 990_000, KINDS[1])
    made["brackets"] = ("/v1/predict", b"[" * 990_000, KINDS[0])
    made["objects"] = ("/v1/predict", b"[" + b'{"a":{}},' * 100_000 + b"0]", KINDS[0])
    return made
