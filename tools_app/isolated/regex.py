"""Searches texts line by line for a regular expression; a script for `tools_app.isolation`.

The first request is `{pattern, ignore_case, context}` and is answered `{}` or `{error}`; each
further one is `{text, most}` and is answered with `[{line, text, before, after}]`, counting from 1.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

SNIPPET = 200
"""Longest piece of a line that is given back, in characters."""


def snippet(line: str, start: int = 0, end: int = 0) -> str:
    """At most `SNIPPET` characters of `line`, with the match in view."""
    if len(line) <= SNIPPET:
        return line
    room = SNIPPET - 2
    first = max(0, min(start - (room - min(end - start, room)) // 2, len(line) - room))
    last = first + room
    return ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")


def search(pattern: re.Pattern[str], text: str, *, most: int, context: int) -> list[dict[str, Any]]:
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    found: list[dict[str, Any]] = []
    for index, line in enumerate(lines):
        match = pattern.search(line)
        if match is None:
            continue
        found.append(
            {
                "line": index + 1,
                "text": snippet(line, match.start(), match.end()),
                "before": [snippet(near) for near in lines[max(0, index - context) : index]],
                "after": [snippet(near) for near in lines[index + 1 : index + 1 + context]],
            }
        )
        if len(found) >= most:
            break
    return found


def answer(reply: Any) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def main() -> None:
    setup = json.loads(sys.stdin.readline())
    try:
        pattern = re.compile(setup["pattern"], re.IGNORECASE if setup["ignore_case"] else 0)
    except (re.error, OverflowError) as problem:
        answer({"error": str(problem)})
        return
    except RecursionError:
        answer({"error": "it is nested too deeply"})
        return
    answer({})
    for line in sys.stdin:
        request = json.loads(line)
        answer(search(pattern, request["text"], most=request["most"], context=setup["context"]))


if __name__ == "__main__":
    main()
