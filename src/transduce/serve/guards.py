"""What every request passes before the routes: a door that can close, limits on bodies, headers on every answer."""

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import Awaitable, Callable
from html.parser import HTMLParser

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transduce.serve.keys import ApiKey, digest_of, keys_in
from transduce.serve.measures import ServerMetrics
from transduce.serve.settings import ServeSettings
from transduce.serve.turns import address_of, current_client

OPEN = ("/health", "/ready")  # for whoever watches the server, also while it stops
FOREIGN = (
    "web pages of {0} may not use this server; whoever runs it can allow them with --allow-origin {0}, or in Python "
    "with ServeSettings(origins=..)."
)
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS = {
    "content-security-policy": NOTHING,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


MICROPHONE = "camera=(), geolocation=(), microphone=(self)"  # of a page that records


FILES = "/translate_file"
TRANSCRIPTIONS = "/v1/audio/transcriptions"  # whose bodies are sound, and whose errors OpenAI's clients read


class ProblemResponse(JSONResponse):
    """An error: {"error": message}, as LibreTranslate has it; of OpenAI's API with its type and code."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        self.message, self.more = message, headers
        super().__init__({"error": message}, status, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it in the format of the path that was asked."""
        if scope["path"] != TRANSCRIPTIONS:
            await super().__call__(scope, receive, send)
            return
        kind = "invalid_request_error" if self.status_code < 500 else "server_error"
        told = {"message": self.message, "type": kind, "param": None, "code": str(self.status_code)}
        await JSONResponse({"error": told}, self.status_code, self.more)(scope, receive, send)


def problem(status: int, message: str, headers: dict[str, str] | None = None) -> ProblemResponse:
    """An error; characters that cannot be encoded are escaped."""
    return ProblemResponse(status, message.encode("utf-8", "backslashreplace").decode(), headers)


EXPLORED = tuple(
    f"/v1/explore/{name}" for name in ("predict", "heads", "rollout", "steps")
)  # and may hold it in base64


class Drain:
    """Lets requests in until it closes; those inside are counted."""

    def __init__(self) -> None:
        self.closed_at: float | None = None
        self.inside = 0

    def close(self) -> None:
        self.closed_at = self.closed_at or time.monotonic()


class Guards:
    """The outermost ASGI application.

    paths: the known routes; all others are counted under one name.
    hears: whether there is a model of speech.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServeSettings,
        measures: ServerMetrics,
        drain: Drain,
        paths: set[str],
        accepts_audio: Callable[[], bool],
    ) -> None:
        self._app, self._settings, self._measures, self._drain, self._paths = app, settings, measures, drain, paths
        self._accepts_audio = accepts_audio

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass a server's start and stop on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        current_client.set(address_of(scope, self._settings.proxies))
        status, begun = 499, time.monotonic()  # nginx's number for a client that left
        asked, only_head = scope["method"], scope["method"] == "HEAD"
        if only_head:  # what GET answers, without its body
            scope = {**scope, "method": "GET"}

        async def answered(message: Message) -> None:
            nonlocal status
            if only_head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._admit(scope, receive, answered)
        finally:
            path = scope["path"] if scope["path"] in self._paths else "other"
            method = asked if asked in ("GET", "HEAD", "POST") else "other"
            self._measures.request(path, method, status, time.monotonic() - begun)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope)
        if refusal:
            await refusal(scope, receive, send)
            return
        self._drain.inside += 1
        self._measures.open.set(self._drain.inside)
        try:
            body = await self._body(receive, self._longest(scope))
            if isinstance(body, JSONResponse):
                await body(scope, receive, send)
            elif body is not None:
                await self._app(scope, _replayed(body, receive), send)
        finally:
            self._drain.inside -= 1
            self._measures.open.set(self._drain.inside)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        if self._drain.closed_at is not None and scope["path"] not in OPEN:
            return problem(503, "the server is stopping.", {"retry-after": "5", "connection": "close"})
        if self._settings.hosts and _host(headers.get("host", "")) not in self._settings.hosts:
            known = ", ".join(self._settings.hosts)
            return problem(421, f"this server answers to {known} only; start it with --allow-host for other names.")
        if scope["path"] not in OPEN and not self._known_origin(headers):
            return problem(403, FOREIGN.format(headers["origin"][:100]))
        length = headers.get("content-length", "")
        longest = self._longest(scope)
        if length.isdecimal() and int(length[:20]) > longest:
            return self._too_large(longest)
        return None

    def _longest(self, scope: Scope) -> int:
        """Bytes of a body."""
        texts, sound, path = self._settings.longest_body, self._settings.audio_bytes, scope["path"]
        if path == TRANSCRIPTIONS:
            return sound + 65_536
        if path == FILES:
            return max(texts, self._settings.file_bytes + 65_536)
        return max(texts, sound * 4 // 3 + 65_536) if path in EXPLORED and self._accepts_audio() else texts

    def _known_origin(self, headers: Headers) -> bool:
        """Whether no web page asks, or one that may: the server's own, or of an origin that was allowed.

        A browser says whose page asks; it lets a page of anywhere send a form here. The scheme is not compared: before
        a proxy it is another one.
        """
        origin, allowed = headers.get("origin"), self._settings.origins
        if origin is None or "*" in allowed or origin.lower() in allowed:
            return True
        scheme, mark, host = origin.partition("://")
        return bool(scheme and mark) and host.lower() == headers.get("host", "").lower() != ""

    async def _body(self, receive: Receive, longest: int) -> bytes | JSONResponse | None:
        """The whole body; an answer if it is too long or too slow; None if the client left."""
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._settings.timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > longest:
                        return self._too_large(longest)
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError:
            return problem(408, "the request's body did not arrive in time.", {"connection": "close"})

    def _too_large(self, limit: int) -> JSONResponse:
        return problem(413, f"the body may have {limit:,} bytes at most.", {"connection": "close"})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Gives the body once, then what comes from the client: that it left."""
    waiting = [body]

    async def again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again


def _host(value: str) -> str:
    """A Host header without its port."""
    name = value.rsplit(":", 1)[0] if value.rsplit(":", 1)[-1].isdigit() else value
    return name.lower().rstrip(".")


def right_key(settings: ServeSettings, request: Request, body_key: object = None) -> bool:
    """Whether the request has a key, or needs none: as a header, in the query, or in its body.

    From now on it counts as its key's, or its address's.

    Raises:
        TooMany: it is one too many of this key or address.
    """
    keys = _given_keys(request, body_key)
    key = _known_key(settings, keys)
    if key is None and (settings.wants_key or (any(keys) and settings.keyless)):
        return False
    if key is not None and key.name:
        current_client.set(f"key {key.name}")
    limit = key.requests_per_minute if key and key.name else settings.requests_per_minute
    if limit is not None:
        request.app.state.service.rates.ask(current_client.get(), limit)
    return True


def may_see(settings: ServeSettings, request: Request) -> bool:
    """Whether a request may see what the key is for, without counting as one of its key's."""
    return not settings.wants_key or _known_key(settings, _given_keys(request)) is not None


def is_local(request: Request) -> bool:
    """Whether it comes from a program on this machine, and was not handed on by a proxy that says so."""
    peer = request.client.host if request.client else ""
    handed_on = any(name in request.headers for name in ("x-forwarded-for", "forwarded", "x-real-ip", "via"))
    return (peer == "::1" or peer.startswith("127.")) and not handed_on


def _given_keys(request: Request, body_key: object = None) -> list[str]:
    bearer = request.headers.get("authorization", "").partition(" ")
    given = [body_key, request.query_params.get("api_key"), request.headers.get("x-api-key")]
    given += [bearer[2]] if bearer[0].lower() == "bearer" else []
    return [each for each in given if isinstance(each, str)]


def _known_key(settings: ServeSettings, given: list[str]) -> ApiKey | None:
    """The key that was given; the server's only one has no name and no limits. Compared in constant time."""
    if settings.api_key is not None:
        wanted = digest_of(settings.api_key)
        if sum(hmac.compare_digest(digest_of(each), wanted) for each in given):
            return ApiKey("", wanted, "", None, None)
    return keys_in(settings.api_keys).known(given) if settings.api_keys is not None else None


def check_key(settings: ServeSettings, request: Request, body_key: object = None) -> None:
    """Raises HTTPException where the server wants a key, and the request has none or a wrong one; TooMany."""
    if not right_key(settings, request, body_key):
        raise HTTPException(403, "Invalid API key", {"www-authenticate": "Bearer"})


def key_needed(settings: ServeSettings) -> Callable[[Request], Awaitable[None]]:
    """What a route depends on that wants the key."""

    async def check(request: Request) -> None:
        check_key(settings, request)  # in the request's own task, which is then known as its key's

    return check


def page_policy(page: str) -> str:
    """The content security policy of a page that brings all it needs: its own scripts and styles, by their hashes."""
    found = _Inline()
    found.feed(page.replace("\r\n", "\n").replace("\r", "\n"))
    found.close()
    scripts, styles = (" ".join(map(_hash, each)) or "'none'" for each in (found.scripts, found.styles))
    return (
        f"{NOTHING}; script-src {scripts}; style-src {styles}; connect-src 'self'; img-src 'self' data: blob:; "
        "font-src data:"
    )


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


class _Inline(HTMLParser):
    """The contents of <script> and <style>."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._into: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kinds: dict[str, list[str]] = {"script": self.scripts, "style": self.styles}
        self._into = kinds.get(tag)
        if self._into is not None:
            self._into.append("")

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._into = None
