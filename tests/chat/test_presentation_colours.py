"""Colours of the transcript reach a contrast of 4.5:1 on their ground, in light and in dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CSS = Path(__file__).parents[2] / "static" / "css"
COLOUR = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")
COLOURS = {
    name: schemes
    for sheet in ("tokens.css", "log.css")
    for name, *schemes in COLOUR.findall((CSS / sheet).read_text())
}

PAIRS = [
    *((f"code-{name}", "surface-2") for name in ("keyword", "string", "number", "name", "comment", "error")),
    *((text, ground) for text in ("text", "muted") for ground in ("bg", "surface", "surface-2")),
    *(("text", ground) for ground in ("diff-added", "diff-removed", "danger-soft", "warn-soft")),
    *((state, ground) for state in ("ok", "danger", "warn") for ground in ("bg", "surface")),
    ("danger", "danger-soft"),
]  # fmt: skip


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_can_be_read_on_its_ground(text: str, ground: str, scheme: int) -> None:
    assert contrast(COLOURS[text][scheme], COLOURS[ground][scheme]) >= 4.5
