"""Whether a page of a journey is accessible and fits its window, and pictures of it in light and dark for
who asks for some: `JOURNEY_PICTURES` names a folder."""

from __future__ import annotations

import os
from pathlib import Path

from tests.journeys.people import Person


def looks_right(person: Person, name: str) -> None:
    """`name` is the picture's, and stands in what is said where something is wrong."""
    page = person.page
    page.wait_for_load_state()
    if folder := os.environ.get("JOURNEY_PICTURES"):
        size = "phone" if person.phone else "desktop"
        page.screenshot(path=Path(folder) / f"{name}-{size}.png", full_page=True)
        page.emulate_media(color_scheme="dark")
        page.screenshot(path=Path(folder) / f"{name}-{size}-dark.png", full_page=True)
        page.emulate_media(color_scheme="light")
    assert person.audit() == ""
    # On a phone the window grows with what is too wide: it is compared with the screen.
    screen = page.viewport_size
    assert screen is not None
    width = page.evaluate("document.documentElement.scrollWidth") - screen["width"]
    assert width <= 0, f"{name} is wider than the screen by {width}"
