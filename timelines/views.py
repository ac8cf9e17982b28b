"""The page of a turn's timeline: a row for each stretch of work, with a bar. No collector is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.requests import SignedInRequest
from chat.views.lookup import find_conversation

from .otlp import trace_id
from .reading import timeline, turns_of
from .spans import Span

WIDTH = 1_000
"""Of the whole turn, in the units of its drawing."""
MOST_ROWS = 500


@dataclass(frozen=True, slots=True)
class Row:
    span: Span
    depth: int
    words: str
    after: float
    """Seconds from the beginning of the turn."""
    seconds: float
    x: int
    width: int
    tokens: str


@login_required
@require_safe
@never_cache
def show_timeline(request: SignedInRequest, uid: str) -> HttpResponse:
    """Of the newest turn, or of the one that `turn` names."""
    conversation = find_conversation(request.user, uid)
    turns = turns_of(conversation)
    wanted = request.GET.get("turn", "")
    chosen = next((each for each in turns if each.uid == wanted), turns[0] if turns else None)
    root = timeline(conversation, chosen) if chosen else None
    rows = list(_rows(root))[:MOST_ROWS] if root else []
    context = {
        "conversation": conversation,
        "turns": turns,
        "chosen": chosen,
        "root": root,
        "rows": rows,
        "trace": trace_id(root.uid) if root else "",
        "width": WIDTH,
    }
    return render(request, "timelines/timeline.html", context)


def _rows(root: Span) -> Iterator[Row]:
    end = root.end if root.end is not None else time.time()
    whole = max(end - root.start, 0.001)

    def walk(span: Span, depth: int) -> Iterator[Row]:
        after = min(max(span.start - root.start, 0.0), whole)
        until = min((span.end if span.end is not None else end) - root.start, whole)
        seconds = max(until - after, 0.0)
        x = round(WIDTH * after / whole)
        width = max(round(WIDTH * seconds / whole), 3)
        x = min(x, WIDTH - width)
        yield Row(span, depth, _words(span), after, seconds, x, width, _tokens(span))
        for each in span.spans:
            yield from walk(each, depth + 1)

    yield from walk(root, 0)


def _words(span: Span) -> str:
    about = span.name.partition(" ")[2]
    match span.kind:
        case "turn":
            return _("Turn of %(agent)s") % {"agent": about}
        case "model":
            return _("Model %(model)s") % {"model": about or "?"}
        case "tool":
            return about
        case "child":
            return _("Subagent %(name)s") % {"name": about}
        case "hook":
            return _("Hook “%(name)s”") % {"name": about}
        case "judging":
            return _("Judging the outcome")
        case _:
            if about:
                return _("Wait for a decision on %(tool)s") % {"tool": about}
            return _("At rest")


def _tokens(span: Span) -> str:
    if "gen_ai.usage.input_tokens" not in span.facts:
        return ""
    given, said = (span.facts[f"gen_ai.usage.{name}_tokens"] for name in ("input", "output"))
    return f"{given:,} → {said:,}"
