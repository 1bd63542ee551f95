"""A page of the explorer in a real browser, and what it did wrong while a test looked at it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlsplit
from weakref import WeakKeyDictionary

from playwright.sync_api import Browser, BrowserContext, Locator, Page, Request, expect

VIEWS = ("attention", "probabilities", "beam", "steps", "masks", "positions", "compare", "training")
TEXT = "3 1 4 1 5"  # the trained model spells numbers from behind
PATIENCE = 120_000  # milliseconds: a busy machine is no bug

expect.set_options(timeout=PATIENCE)

# Before the page's own scripts: what the content security policy refused.
LISTENER = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.refused.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
});
"""


class Visit:
    """One tab. `problems` gathers errors of scripts, refusals of the policy and requests to other hosts."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.context, self.address = context, address
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page: Page = context.new_page()
        self.page.add_init_script(LISTENER)
        self.page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        self.page.on("console", self._heard)
        self.page.on("request", self._asked)

    def _heard(self, message: Any) -> None:
        refused = self._expected and "Failed to load resource" in message.text
        if message.type in ("error", "warning") and not refused:
            self.problems.append(f"console: {message.text}")

    _expected = False

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """The server may answer 400 meanwhile, which browsers write to their console."""
        self._expected = True
        yield
        self._expected = False

    def _asked(self, request: Request) -> None:
        self.requests.append(request.url)
        scheme, host = urlsplit(request.url)[:2]
        if scheme not in ("data", "blob", "file") and host != urlsplit(self.address)[1]:
            self.problems.append(f"another host: {request.url}")

    def open(self, **state: object) -> "Visit":
        """The page at a state, drawn."""
        link = "&".join(f"{name}={quote(str(value))}" for name, value in state.items())
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}#{link}")
        return self.drawn()

    def drawn(self) -> "Visit":
        """Waits until the view is there."""
        self.page.wait_for_selector('#view[aria-busy="false"]', timeout=PATIENCE)
        self.page.locator("#view > *").first.wait_for(state="attached", timeout=PATIENCE)
        return self

    def go(self, **state: object) -> "Visit":
        """Another state of the open page, as its own controls make it."""
        self.page.evaluate("(state) => Transduce.go(state)", {name: str(value) for name, value in state.items()})
        self.page.wait_for_timeout(30)
        return self.drawn()

    def find(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.inner_text()

    def focus(self, selector: str) -> None:
        """Focus it, and wait for the scrolling that this may start: what scrolls, hides the tip."""
        self.page.locator(selector).first.focus()
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def state(self) -> dict[str, str]:
        """What the page holds to be its state."""
        found: dict[str, str] = self.page.evaluate("Transduce.state()")
        return found

    def close(self) -> None:
        """Everything that went wrong fails the test."""
        if self.page.is_closed():
            return
        refused = self.page.evaluate("window.refused || []")
        self.page.close()
        assert not self.problems and not refused, "\n".join([*self.problems, *refused])


Open = Callable[..., Visit]


@contextmanager
def visiting(browser: Browser, address: str, alone: bool = False, **options: Any) -> Iterator[Visit]:
    """A fresh tab; reduced motion, an English browser, unless asked otherwise.

    alone: in a profile of its own, for who changes that. Else tabs of the same options share one, as each window costs
        half a second; the page keeps nothing in it.
    """
    options = {"viewport": {"width": 1300, "height": 900}, "locale": "en-US", "reduced_motion": "reduce", **options}
    profiles = _profiles.setdefault(browser, {})
    context = None if alone else profiles.get(repr(options))
    if context is None:
        context = browser.new_context(accept_downloads=True, **options)
        context.set_default_timeout(PATIENCE)
        if not alone:
            context.new_page()  # keeps the window open between two visits
            profiles[repr(options)] = context
    visit = Visit(context, address)
    yield visit
    visit.close()
    if alone:
        context.close()


_profiles: WeakKeyDictionary[Browser, dict[str, BrowserContext]] = WeakKeyDictionary()
