"""What scrolls sideways is reached and named without a mouse, also where no journey makes it overflow."""

from __future__ import annotations

import re
from pathlib import Path

TEMPLATES = Path(__file__).parents[2] / "templates"
SCROLLING = re.compile(r'<[a-z]+ class="scrolling[^>]*>')


def test_what_scrolls_can_be_focused_and_says_what_it_holds():
    found = [
        (path.name, tag)
        for path in TEMPLATES.rglob("*.html")
        for tag in SCROLLING.findall(path.read_text())
    ]
    assert len(found) > 20
    lacking = [
        (name, tag)
        for name, tag in found
        if 'tabindex="0"' not in tag or "role=" not in tag or "aria-label" not in tag
    ]
    assert lacking == []
