"""Markdown of agents as safe HTML.

Raw HTML is text, nothing is loaded from elsewhere (an image is shown as a link), and no input makes
it raise or run long: what is too long or too tangled is shown as plain text. People's own messages
are never rendered, they are shown as typed. Reading is `markdownpieces`'; long texts are read in another
process, because a thread that reads one keeps the event loop waiting.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from django.utils.safestring import SafeString
from django.utils.translation import get_language

from tools_app.warmprocesses import WarmProcesses

from .aside import Aside
from .cleaning import clean, plain
from .code import Blocks
from .effort import TooTangled
from .markdownpieces import Piece, pieces_of
from .notes import linked

LONGEST = 100_000
"""Characters; a longer text is shown plain. A reply has at most about 64,000."""
HERE = 3_000
"""Characters of a text that is read in this process: a few milliseconds, at worst a tenth of a second."""
SECONDS = 30
"""By the clock, for a longer one; its process allows itself less of the processor's time."""
FIRST_HEADING = 4
"""Level of a `#`: above it stand the page (1), the message (2) and the reply (3)."""
REMEMBERED = 512
"""Texts kept rendered, of at most `REMEMBERED_LENGTH` characters each."""
REMEMBERED_LENGTH = 20_000

logger = logging.getLogger(__name__)

_reading = Aside(
    "markdown",
    WarmProcesses(
        Path(__file__).parent / "markdownprocess.py", most=2, seconds=SECONDS, libraries=True
    ),
)


class _NotNow(Exception):
    """What is shown for the moment is not what will be shown."""

    def __init__(self, shown: SafeString) -> None:
        super().__init__()
        self.shown = shown


def to_html(text: str, *, first_heading: int = FIRST_HEADING, key: str = "") -> SafeString:
    """`text` as HTML that may be put on a page. The same text always gives the same HTML.

    `key`: a name that no other text on the page has, with which its footnotes are linked."""
    html = _either(text, first_heading)
    return linked(html, key) if key else html


def _either(text: str, first_heading: int) -> SafeString:
    try:
        if len(text) <= REMEMBERED_LENGTH:
            return _remembered(text, first_heading, get_language())
        return _to_html(text, first_heading)
    except _NotNow as meanwhile:
        return meanwhile.shown


@lru_cache(maxsize=REMEMBERED)
def _remembered(text: str, first_heading: int, language: str | None) -> SafeString:
    return _to_html(text, first_heading)


def _to_html(text: str, first_heading: int) -> SafeString:
    if len(text) > LONGEST:
        return plain(text)
    try:
        pieces = _pieces(text, first_heading)
        blocks = Blocks()
        html = clean("".join(one if isinstance(one, str) else blocks.block(*one) for one in pieces))
        if blocks.turned_away:
            raise _NotNow(html)
    except TooTangled:
        return plain(text)
    except _NotNow:
        raise
    except Exception:  # a parser's fault must not cost the text
        logger.exception("A text of %d characters could not be rendered.", len(text))
        return plain(text)
    # Definitions of links leave nothing behind; a text of nothing else is shown as it is.
    return html if html.strip() or not text.strip() else plain(text)


def _pieces(text: str, first_heading: int) -> Sequence[Piece]:
    if len(text) <= HERE:
        return pieces_of(text, first_heading)
    given = {"text": text, "first_heading": first_heading, "language": get_language()}
    answer = _reading.ask(text, str(first_heading), given)
    if answer is None:
        raise _NotNow(plain(text))
    if "pieces" not in answer:
        raise TooTangled
    return [one if isinstance(one, str) else (one[0], one[1]) for one in answer["pieces"]]
