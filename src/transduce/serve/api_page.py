"""The OpenAPI description as a readable page, without scripts and without anything from another host."""

import json
import re
from pathlib import Path
from typing import Any

from transduce.core.templates import render

TEMPLATE = Path(__file__).with_name("api_page.html.jinja")
ADDRESS = "http://localhost:8000"


def api_page(description: dict[str, Any], base: str = ADDRESS, languages: tuple[str, str] = ("en", "de")) -> str:
    """A page with every path of an OpenAPI description: what it takes, what it answers, how to call it.

    Args:
        base: the address that the examples call, if it is a plain one.
        languages: what the examples translate from and to.
    """
    schemas = description.get("components", {}).get("schemas", {})
    address = base.rstrip("/") if re.fullmatch(r"https?://[\w.:\[\]-]+(/[\w./-]*)?", base) else ADDRESS
    tags: dict[str, list[dict[str, Any]]] = {}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            body = _resolved(next(iter(content.values()))["schema"], schemas) if content else None
            shown = {
                "path": path,
                "method": method,
                "description": operation.get("description", ""),
                "curl": _curl(address + path, method, body, languages),
                "body": body,
                "answers": [_answer(status, each, schemas) for status, each in operation["responses"].items()],
            }
            tags.setdefault(operation["tags"][0], []).append(shown)
    return render(TEMPLATE, info=description["info"], tags=tags, type_of=_type, json=json.dumps)


def _curl(url: str, method: str, body: dict[str, Any] | None, languages: tuple[str, str]) -> str:
    if body is None:
        return f"curl {url}" if method == "get" else f"curl -X {method.upper()} {url}"
    spoken = dict(zip(("source", "target"), languages, strict=True))
    example = {key: spoken.get(key, value) for key, value in body.get("example", {}).items()}
    written = json.dumps(example, ensure_ascii=False).replace("'", "\\u0027")
    return f"curl {url} -H 'content-type: application/json' -d '{written}'"


def _answer(status: str, answer: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    content = answer.get("content", {})
    schema = _resolved(next((each["schema"] for each in content.values() if "schema" in each), {}), schemas)
    return {"status": status, "description": answer["description"], "kinds": ", ".join(content), "schema": schema}


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[-1])
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"] if each.get("type") != "null")
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    found: dict[str, Any] = schemas.get(name, schema)
    return found
