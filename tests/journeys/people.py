"""What a person does in a browser, and what the browser complained about meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff
from itertools import repeat
from pathlib import Path

from axe_playwright_python.base import AXE_SCRIPT, AxeResults
from playwright.sync_api import Browser, BrowserContext, Locator, Page, ViewportSize, expect

from tests.journeys.site import Site
from tests.patience import PATIENCE

PASSWORD = "correct horse battery staple"
DESKTOP: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 844}

DARK = ("color-contrast", "link-in-text-block")
"""What another theme can break, of what axe looks at."""

NARROW = (
    "aria-hidden-focus",
    "button-name",
    "link-name",
    "scrollable-region-focusable",
    "target-size",
)
"""What a narrow window can break: words give way to icons, tables scroll, targets move together."""

COLOURS = ("color-contrast",)
"""What looks behind each word: a fifth to a third of what an audit of a page costs."""

SCREEN = """() => ({
    log: document.getElementById("log").outerHTML,
    queue: document.getElementById("queue").outerHTML,
    status: document.getElementById("panel-status").outerHTML,
    todos: document.getElementById("panel-todos").outerHTML,
    meter: document.getElementById("panel-meter").outerHTML,
    title: document.querySelector("[data-conversation-title]").outerHTML,
    name: document.title,
})"""

AUDIT = """(options) => {
    // The end of one transition may begin those of the elements inside.
    for (let round = 0; round < 10; round++) {
        const changing = document.getAnimations().filter((one) => one instanceof CSSTransition);
        if (!changing.length) break;
        for (const one of changing) one.finish();
    }
    return axe.run(document, options).then(({violations}) => ({violations}));
}"""

_OPEN = re.compile(r'(<details\b[^>]*?) open=""')


class Person:
    """One browser window. `problems` holds what its console said that nobody should have to read."""

    def __init__(
        self,
        browser: Browser,
        site: Site,
        *,
        state: Path | None = None,
        phone: bool = False,
        dark: bool = False,
        turns: Iterator[bool] = repeat(True),  # noqa: B008 - it has no state
    ) -> None:
        """`turns` tells for each audit whether it is made (`forms.turns`)."""
        self.site = site
        self.turns = turns
        self.phone = phone
        self.problems: list[str] = []
        # A page that is left before its line stands says so; nobody was there to read it.
        self.expected = ["closed before the connection is established"]
        self.context: BrowserContext = browser.new_context(
            base_url=site.address,
            storage_state=state,
            viewport=PHONE if phone else DESKTOP,
            has_touch=phone,
            is_mobile=phone,
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id="UTC",
            permissions=["clipboard-read", "clipboard-write"],
        )
        self.context.add_init_script(
            "document.addEventListener('securitypolicyviolation', (event) => console.error("
            "`policy: ${event.violatedDirective} blocked ${event.blockedURI} ${event.sample}`));"
        )
        self.page = self.new_tab()

    def new_tab(self) -> Page:
        page = self.context.new_page()
        page.set_default_timeout(1_000 * PATIENCE)
        page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        page.on(
            "console",
            lambda message: (
                self.problems.append(f"{message.type}: {message.text}")
                if message.type in {"error", "warning"}
                else None
            ),
        )
        return page

    def leave(self) -> list[str]:
        """Close the window; what its console said that was not expected."""
        self.context.close()
        return [
            problem
            for problem in self.problems
            if not any(re.search(pattern, problem) for pattern in self.expected)
        ]

    # --- the conversation -------------------------------------------------------------------------

    def begin(self, message: str = "", *, switches: tuple[str, ...] = ()) -> str:
        """Start a conversation from the form; its uid."""
        page = self.page
        page.goto("/new/")
        page.locator("#id_message").fill(message)
        for name in switches:
            page.locator(f"input[name={name}]").check()
        page.get_by_role("button", name="Start").click()
        page.wait_for_url(re.compile(r"/c/sesn_"))
        expect(page.locator("#composer")).to_be_visible()
        return page.url.rstrip("/").rpartition("/")[2]

    def confirm(self, then: Locator) -> None:
        """Gives the password if it is asked before `then` shows: the windows of all journeys are one session,
        in which it may have been given just before."""
        field = self.page.locator("main input[name=password]")
        field.or_(then).first.wait_for()
        if field.is_visible():
            field.fill(PASSWORD)
            field.press("Enter")
            then.wait_for()

    def send(self, text: str, page: Page | None = None) -> None:
        page = page or self.page
        page.locator("#composer textarea").fill(text)
        if self.phone:
            page.get_by_role("button", name="Send", exact=True).tap()
        else:
            page.locator("#composer textarea").press("Enter")

    @property
    def log(self) -> Locator:
        return self.page.locator("#log")

    @property
    def answering(self) -> Locator:
        """The text that is arriving."""
        return self.page.locator("#log .live-text .live-body")

    def wait_for_status(self, status: str, page: Page | None = None) -> None:
        panel = (page or self.page).locator("#panel-status [data-status]")
        expect(panel).to_have_attribute("data-status", status)

    def screen(self, page: Page | None = None) -> dict[str, str]:
        """What the page shows, without whether a fold is open."""
        shown: dict[str, str] = (page or self.page).evaluate(SCREEN)
        return {name: _OPEN.sub(r"\1", html) for name, html in shown.items()}

    def looks_like(self, screen: dict[str, str], page: Page | None = None) -> None:
        """Fails, with the elements that differ, unless the page shows what `screen` showed."""
        now = self.screen(page)
        for part, html in screen.items():
            if now[part] != html:
                told = unified_diff(html.split("<"), now[part].split("<"), "before", "now", n=1)
                raise AssertionError(f"{part} looks different:\n" + "\n".join(told))

    def audit_by_night(self) -> str:
        """What axe finds wrong with the page in dark clothes, of what clothes can break; in its turn, as
        `audit` does."""
        if not next(self.turns):
            return ""
        self.page.emulate_media(color_scheme="dark")
        found = self.audit(rules=DARK, at_once=True)
        self.page.emulate_media(color_scheme="light")
        return found

    def audit(
        self,
        page: Page | None = None,
        *,
        rules: tuple[str, ...] = (),
        without: tuple[str, ...] = (),
        at_once: bool = False,
    ) -> str:
        """What axe finds wrong with the page, by these rules or all `without` some; empty when it is clean
        or when it is not this audit's turn (`turns`), which one `at_once` does not wait for.

        Only faults are carried over: what is in order is most of what axe would tell, and of its time.
        """
        if not (at_once or next(self.turns)):
            return ""
        page = page or self.page
        if page.evaluate("() => typeof window.axe === 'undefined'"):
            page.evaluate(AXE_SCRIPT)
        options: dict[str, object] = {
            "resultTypes": ["violations"],
            "rules": {name: {"enabled": False} for name in without},
        }
        if rules:
            options["runOnly"] = list(rules)
        results = AxeResults(page.evaluate(AUDIT, options))
        return results.generate_report() if results.violations_count else ""
