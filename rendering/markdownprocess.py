"""Reads Markdown into pieces of HTML; a script for `tools_app.isolation`, with libraries, kept warm.

A request is `{text, first_heading, language, patience}` and is answered `{pieces, seconds}`, or
`{seconds}` where the text is too tangled or its parser fails. The process ends itself when a request
takes too long.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.utils.translation import override

# It is started by its file, which makes it nobody's module, away from everything that it needs.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rendering.markdownpieces import pieces_of

WORDS = Path(__file__).resolve().parents[1] / "locale"
PROCESSOR_SECONDS = 6
"""Of the processor, times the patience that is asked for. The longest ordinary text takes half a second."""


def read(text: str, first_heading: int, language: str | None) -> dict[str, Any]:
    try:
        with override(language):
            return {"pieces": pieces_of(text, first_heading)}
    except Exception:  # too tangled, or a parser's fault: the text is shown plain
        return {}


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, PROCESSOR_SECONDS * request["patience"])
        began = time.process_time()
        reply = read(request["text"], request["first_heading"], request["language"])
        reply["seconds"] = (time.process_time() - began) / PROCESSOR_SECONDS
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    settings.configure(USE_I18N=True, LOCALE_PATHS=[WORDS])
    apps.populate(())  # none: the words are the site's own
    main()
