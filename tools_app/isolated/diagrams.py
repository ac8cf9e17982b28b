"""Draws Mermaid as SVG; a script for `tools_app.isolation`, with libraries, kept warm.

A request is `{text, patience}` and is answered `{svg, seconds}`, or `{seconds}` where the text is no diagram,
would be too large, or the library is not installed (`make diagrams`). The process ends itself when a request
takes more than `PROCESSOR_SECONDS` times its patience.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from functools import cache
from typing import Any

PROCESSOR_SECONDS = 1.5
"""Of the processor. Ordinary diagrams take some thousandths."""
LONGEST = 200_000
"""Characters of a drawing."""
_LABEL = re.compile(r"<svg [^<>]{1,2000}>")
_CUT = "overflow:hidden;"
_VIEW = re.compile(r'viewBox="\S+ \S+ ([0-9.]{1,30}) ([0-9.]{1,30})"')


@cache
def _drawer() -> Any:
    """The library's client with its bounds for texts of strangers, or None."""
    try:
        import merman  # noqa: PLC0415 - it is an extra, and is there or not
    except ImportError:
        return None
    return merman.Merman()


@cache
def _options() -> str:
    # Texts as SVG's own: a picture shows no HTML within it.
    return json.dumps(
        {
            "version": 2,
            "resources": {"profile": "constrained"},
            "svg": {"pipeline": "resvg-safe"},
        }
    )


def drawn(text: str) -> dict[str, Any]:
    try:
        drawer = _drawer()
        svg = "" if drawer is None else sized(drawer.render_svg(text, _options()))
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
        _drawer()  # what starting costs is nobody's
        allow(PROCESSOR_SECONDS * request["patience"])
        began = time.process_time()
        reply = drawn(request["text"])
        reply["seconds"] = (time.process_time() - began) / PROCESSOR_SECONDS
        allow(0)
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
