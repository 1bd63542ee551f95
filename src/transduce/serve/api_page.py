"""The page at "/docs": every route with a command and a form that send a request, for each model that it is for.

It is made of the OpenAPI description of the server, and of an example of what each model reads.
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transduce.core.templates import self_contained
from transduce.serve.guards import TRANSCRIPTIONS
from transduce.serve.models import Loaded, Models

TEMPLATE = Path(__file__).parent / "page" / "api.html.jinja"
ADDRESS = "http://localhost:8000"
OPEN = (
    "/languages",
    "/frontend/settings",
    "/spec",
    "/download_file/{name}",
    "/health",
    "/ready",
)  # routes that want no key
SENTENCES = {"de": "Zwei Hunde laufen.", "fr": "Deux chiens courent.", "zh": "两只狗在跑。"}
ENGLISH = "Two dogs run."
TEXTS = {
    "extractive_qa": "Where do dogs run?\tTwo dogs run in the snow.",
    "question_answering": "1 Mary went to the kitchen.\n2 John went to the garden.\n3 Where is Mary?\t\t1",
    "tree_classification": "((Two) ((dogs) (run)))",
    "node_classification": "0",
    "graph_classification": '{"nodes": [0, 1, 0], "edges": [[0, 1], [1, 2]]}',
}
"""What models of a kind read that read no sentences, unless their files hold examples."""
CROSS = "decoder.blocks.0.cross_attention"  # of a Transformer that translates


class Example(NamedTuple):
    """A request of a route. model: that it is for; "" = any, or none. body: as JSON; None = there is none.

    file: the name of the file that is sent with the fields of the body; "" = none is.
    """

    model: str
    curl: str
    body: str | None = None
    file: str = ""


def api_page(
    description: dict[str, Any], base: str = ADDRESS, models: Models | Sequence[Any] = (), key: bool = False
) -> str:
    """A page with every path of an OpenAPI description: what it takes, what it answers, how to call it.

    Args:
        base: the address that the examples call, if it is a plain one.
        models: what there are to be examples for.
        key: whether the server wants a key.
    """
    schemas = description.get("components", {}).get("schemas", {})
    address = base.rstrip("/") if re.fullmatch(r"https?://[\w.:\[\]-]+(/[\w./-]*)?", base) else ADDRESS
    loaded = [each.current for each in models]
    runs = {each.name for each in models if each.run is not None}
    tags: dict[str, list[dict[str, Any]]] = {}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            body = _resolved(next(iter(content.values()))["schema"], schemas) if content else None
            command = _Command(address, path, method, key and path not in OPEN)
            shown = {
                "path": path,
                "method": method,
                "description": operation.get("description", ""),
                "examples": list(_examples(command, body, loaded, runs)),
                "body": body,
                "answers": [_answer(status, each, schemas) for status, each in operation["responses"].items()],
            }
            tags.setdefault(operation["tags"][0], []).append(shown)
    return self_contained(TEMPLATE, info=description["info"], tags=tags, key=key, type_of=_type, json=json.dumps)


class _Command(NamedTuple):
    """How a route is called. key: whether it wants one."""

    address: str
    path: str
    method: str
    key: bool

    def _curl(self, *options: str) -> str:
        header = ['-H "x-api-key: $TRANSDUCE_API_KEY"'] if self.key else []
        place = self.address + self.path.replace("{name}", "NAME")
        method = [f"-X {self.method.upper()}"] if self.method != "get" and not options else []
        return " ".join(["curl", *method, place, *header, *options])

    def plain(self) -> Example:
        """Without a body."""
        return Example("", self._curl())

    def json(self, model: str, body: dict[str, Any]) -> Example:
        """With JSON, in single quotes, which JSON can do without."""
        written = json.dumps(body, ensure_ascii=False)
        quoted = written.replace("'", "\\u0027")
        return Example(model, self._curl("-H 'content-type: application/json'", f"-d '{quoted}'"), written)

    def file(self, model: str, content: str, name: str, body: dict[str, Any]) -> Example:
        """With a file. content: what is in it; "" = a file of the user's."""
        fields = [f"-F {shlex.quote(f'{key}={value}')}" for key, value in body.items()]
        if not content:
            return Example(model, self._curl(f"-F file=@{name}", *fields), json.dumps(body), name)
        written = self._curl(f"-F 'file=@-;filename={name}'", *fields)
        return Example(model, f"printf %s {shlex.quote(content)} | {written}", json.dumps(body), name)


def _examples(
    command: _Command, body: dict[str, Any] | None, loaded: Sequence[Loaded], runs: set[str]
) -> Iterator[Example]:
    """One for each model that a route is for; of a route that needs none, one."""
    if command.path.startswith("/v1/explore") and loaded and not any(each.served.attends for each in loaded):
        return  # nothing can be looked into
    if body is None:
        yield command.plain()
    elif not loaded or command.path in ("/detect", "/suggest", "/v1/explore/positions"):
        yield command.json("", body.get("example", {}))
    else:
        for each in loaded:
            if _is_for(command.path, each, runs):
                yield _example(command, each, len(loaded) > 1)


def _example(command: _Command, model: Loaded, several: bool) -> Example:
    text, path = _text(model), command.path
    chosen = {"model": model.name} if several else {}
    spoken = {"source": model.source, "target": model.targets[0] if model.translates else model.target}
    if path == "/translate_file":
        return command.file(model.name, text, "letter.txt", spoken)
    if path == TRANSCRIPTIONS:
        return command.file(model.name, "", "recording.wav", chosen)
    bodies: dict[str, dict[str, Any]] = {
        "/translate": {"q": text, **spoken},
        "/v1/alternatives": {"q": text, **spoken, "start": 0, "end": 1},
        "/v1/predict": {"texts": [text], "scores": True},
        "/v1/generate": {"text": text, "temperature": 0.8},
        "/v1/explore/steps": {"text": text, "name": _attending(model), "query": 0},
        "/v1/explore/why": {"text": text, "other": text},
        "/v1/explore/training": {},
    }
    return command.json(model.name, {**bodies.get(path, {"text": text}), **chosen})


def _is_for(path: str, model: Loaded, runs: set[str]) -> bool:
    """Whether a route is for a model. runs: the names of models whose training is known."""
    kind, served = model.served.kind, model.served
    known = {
        "/translate": model.is_translator,
        "/translate_file": model.is_translator,
        "/v1/alternatives": model.is_translator and served.attends,
        "/v1/generate": kind == "language_modelling",
        "/v1/stream": kind in ("language_modelling", "translation"),
        "/v1/predict": not served.accepts_audio,
        "/v1/explore/predict": served.attends and not served.accepts_audio,
        "/v1/explore/training": model.name in runs,
        "/v1/explore/why": model.is_translator and served.attends,
        TRANSCRIPTIONS: served.accepts_audio,
    }
    if path in known:
        return known[path]
    return served.attends and not served.accepts_audio and bool(_attending(model))


def _attending(model: Loaded) -> str:
    """The name of a part that attends, whose numbers can be shown; "" where none is known."""
    from transduce.serve.kernels_model import KernelsModel

    if isinstance(model.served, KernelsModel):
        return CROSS
    from transduce.serve.attending import first_attending

    return first_attending(model.pipeline)


def _text(model: Loaded) -> str:
    """What the model reads: an example of its file, or one that suits its kind and its language."""
    language = model.source.partition("-")[0]
    return next(iter(model.served.examples), TEXTS.get(model.served.kind) or SENTENCES.get(language, ENGLISH))


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
    return schemas.get(name, schema)
