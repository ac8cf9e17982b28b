"""Diagrams that agents write as Mermaid, drawn as pictures.

Drawing is done by a library in a process of its own (`tools_app/isolated/diagrams.py`), because the text is
anybody's. A picture loads nothing and runs nothing: it stands in the page as a data address. What cannot be
drawn stays the code that it is.
"""

from __future__ import annotations

from html import escape
from importlib.util import find_spec
from urllib.parse import quote

from django.utils.translation import gettext as _

from tools_app.warmprocesses import WarmProcesses

from .aside import Aside
from .cleaning import DRAWING, DRAWN

LANGUAGE = "mermaid"
LIBRARY = "merman"
"""An extra (`make diagrams`)."""
LONGEST = 10_000
"""Characters of a text that is drawn."""
MOST = 10
"""Diagrams of one text that are drawn."""
SECONDS = 15

_drawing = Aside("diagrams", WarmProcesses("diagrams", most=1, seconds=SECONDS, libraries=True))


def picture_of(text: str) -> str | None:
    """A figure with the diagram; empty where it cannot be drawn, None where no process was to be had at this
    moment. Waits for another process."""
    if not text.strip() or len(text) > LONGEST or find_spec(LIBRARY) is None:
        return ""
    answer = _drawing.ask(text, LANGUAGE, {"text": text})
    if answer is None:
        return None
    svg = str(answer.get("svg", ""))
    if not svg:
        return ""
    address = DRAWN + quote(svg, safe=" =:/;,()'")
    alt = escape(_("Diagram; its source stands below."))
    return f'<figure class="diagram"><img class="{DRAWING}" src="{escape(address)}" alt="{alt}"></figure>\n'
