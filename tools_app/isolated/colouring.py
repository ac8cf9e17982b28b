"""Colours source code as HTML with classes; a script for `tools_app.isolation`, with libraries, kept warm.

A request is `{text, language, patience}` and is answered `{html, seconds}`, or `{seconds}` where the
language is not known or its lexer fails. The process ends itself when one request takes more than
`PROCESSOR_SECONDS` times its patience.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from functools import cache
from typing import Any

from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

PROCESSOR_SECONDS = 1.5
"""Of the processor and not of the clock, so that a busy machine decides nothing. Ordinary code of the
greatest length that is coloured takes a tenth."""


@cache
def lexer_of(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


@cache
def formatter() -> HtmlFormatter[str]:
    return HtmlFormatter(nowrap=True)


def coloured(text: str, language: str) -> dict[str, Any]:
    try:
        return {"html": highlight(text, lexer_of(language), formatter())}
    except Exception:  # a lexer's fault must not cost the text
        return {}


def allow(seconds: float) -> None:
    # The signal ends the process, also in the midst of an expression; no handler is ever set.
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        allow(PROCESSOR_SECONDS * request["patience"])
        began = time.process_time()
        reply = coloured(request["text"], request["language"])
        reply["seconds"] = (time.process_time() - began) / PROCESSOR_SECONDS
        allow(0)
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
