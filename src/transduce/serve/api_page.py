"""The OpenAPI description as a readable page, without scripts and without anything from another host."""

import json
import re
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; }
h3 { font: 600 1.05rem ui-monospace, monospace; margin: 1.5rem 0 .25rem; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid; border-radius: .4rem; font-size: .875rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid; }
summary { cursor: pointer; }
"""


ADDRESS = "http://localhost:8000"
EXAMPLE_LANGUAGES = ("en", "de")  # of the examples in `schemas.py`


def api_page(description: dict[str, Any]) -> str:
    """A page with every path of an OpenAPI description: what it takes, what it answers, how to call it."""
    schemas = description.get("components", {}).get("schemas", {})
    by_tag: dict[str, list[str]] = {}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation["tags"][0], []).append(_operation(path, method, operation, schemas))
    parts = [f"<h2>{escape(tag)}</h2>{''.join(operations)}" for tag, operations in by_tag.items()]
    title, about = escape(description["info"]["title"]), escape(description["info"].get("description", ""))
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    main = f'<h1>{title}</h1><p>{about}</p><p><a href="/openapi.json">openapi.json</a></p>{"".join(parts)}'
    head += f"<style>{STYLE}</style>"
    return f'<!doctype html><html lang="en"><head>{head}</head><body><main>{main}</main></body></html>'


def as_asked_at(page: str, base: str, languages: tuple[str, str] = EXAMPLE_LANGUAGES) -> str:
    """An `api_page` whose examples use the address of the request and a language pair of the server."""
    address = base.rstrip("/")
    page = page.replace(_asked_for(*EXAMPLE_LANGUAGES), _asked_for(*languages))
    return page.replace(ADDRESS, address) if re.fullmatch(r"https?://[\w.:\[\]-]+(/[\w./-]*)?", address) else page


def _asked_for(source: str, target: str) -> str:
    """What a request says of languages, as the page shows it."""
    return escape(json.dumps({"source": source, "target": target}, ensure_ascii=False)[1:-1].replace("'", "\\u0027"))


def _operation(path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    said = escape(operation.get("description", ""))
    parts = [f'<section><h3 id="{escape(method + path)}">{method.upper()} {escape(path)}</h3><p>{said}</p>']
    content = operation.get("requestBody", {}).get("content", {})
    body = _resolved(next(iter(content.values()))["schema"], schemas) if content else None
    parts.append(f"<pre>{escape(_curl(path, method, body))}</pre>")
    if body:
        parts.append(f"<details><summary>Keys of the request</summary>{_keys(body)}</details>")
    for status, answer in operation["responses"].items():
        kinds = ", ".join(answer.get("content", {}))
        parts.append(f"<p>{escape(status)}: {escape(answer['description'])} {escape(kinds)}</p>")
        found = _resolved(_first(answer.get("content", {})).get("schema", {}), schemas)
        if status == "200" and "properties" in found:
            parts.append(f"<details><summary>Keys of the answer</summary>{_keys(found)}</details>")
    return "".join([*parts, "</section>"])


def _curl(path: str, method: str, body: dict[str, Any] | None) -> str:
    if body is None:
        return f"curl {ADDRESS}{path}" if method == "get" else f"curl -X {method.upper()} {ADDRESS}{path}"
    example = json.dumps(body.get("example", {}), ensure_ascii=False)
    return f"curl {ADDRESS}{path} -H 'content-type: application/json' -d '{example}'"


def _keys(schema: dict[str, Any]) -> str:
    rows = []
    for name, value in schema.get("properties", {}).items():
        needed = "required" if name in schema.get("required", []) else f"default {json.dumps(value.get('default'))}"
        rows.append(
            f"<tr><td><code>{escape(name)}</code></td><td>{escape(_type(value))}</td><td>{escape(needed)}</td>"
            f"<td>{escape(value.get('description', ''))}</td></tr>"
        )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Key", "Type", "Default", "Meaning"))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f"<p>{escape(schema.get('description', ''))}</p>{table}"


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


def _first(content: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return next(iter(content.values()), {})
