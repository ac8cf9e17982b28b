"""Draws Mermaid as SVG; a script for `tools_app.isolation`, with libraries, kept warm.

A request is `{text, patience}` and is answered `{svg, seconds}`, or `{seconds}` where the text is no diagram
or would be too large. The process ends itself when a request takes more than `PROCESSOR_SECONDS` times its
patience. Whether the library is installed is asked before (`rendering.diagrams`).
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from typing import Any

from merman import Merman

PROCESSOR_SECONDS = 1.5
"""Of the processor. Ordinary diagrams take some thousandths."""
LONGEST = 200_000
"""Characters of a drawing."""
_LABEL = re.compile(r"<svg [^<>]{1,2000}>")
_CUT = "overflow:hidden;"
_VIEW = re.compile(r'viewBox="\S+ \S+ ([0-9.]{1,30}) ([0-9.]{1,30})"')


# For texts of strangers, and with texts as SVG's own: a picture shows no HTML within it.
_OPTIONS = json.dumps(
    {"version": 2, "resources": {"profile": "constrained"}, "svg": {"pipeline": "resvg-safe"}}
)
_drawer = Merman()


def drawn(text: str) -> dict[str, Any]:
    try:
        svg = sized(_drawer.render_svg(text, _OPTIONS))
    except Exception:  # no diagram, or the library's fault: the text is shown
        return {}
    return {"svg": svg} if 0 < len(svg) <= LONGEST else {}


def sized(svg: str) -> str:
    """As wide and high as it was laid out, in the place of as wide as there is room; labels are not cut where
    a browser's letters are wider than those that it was laid out with."""
    head, end, rest = svg.partition(">")
    if view := _VIEW.search(head):
        head = head.replace('width="100%"', f'width="{view[1]}" height="{view[2]}"', 1)
    return head + end + _LABEL.sub(lambda found: found[0].replace(_CUT, "overflow:visible;"), rest)


def allow(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        allow(PROCESSOR_SECONDS * request["patience"])
        began = time.process_time()
        reply = drawn(request["text"])
        reply["seconds"] = (time.process_time() - began) / PROCESSOR_SECONDS
        allow(0)
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
