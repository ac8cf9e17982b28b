"""Models' replies by everything that could have changed them, so that what is tried again is not paid again.

One stands in front of the provider in trials and judgements alone (`layering`). A reply from here costs
nothing, and the log says so (`cached`). The first of several writers wins; all of them read its reply then.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.utils import timezone

from harness.messages import (
    CompactionDone,
    ModelRequest,
    Piece,
    ReplyDone,
    TextDelta,
    TextDone,
    ThinkingDelta,
    ThinkingDone,
    ToolAnswer,
    ToolCall,
    ToolCallDone,
    Usage,
)
from harness.provider import Provider
from jobs.engine import engine

from .models import CachedReply

FORM = 1
"""Of keys and of what is kept; another one finds nothing of the old."""
AT_A_TIME = 1_000
"""Expired replies that one sweep takes away."""


@dataclass(frozen=True, slots=True)
class Place:
    """For whom replies are kept, and which of several tries asks."""

    organisation_id: int
    service: str
    """The address of the model service; empty: the provider's own."""
    sample: str
    """Tries of one case are tries of their own."""
    own_ids: tuple[str, ...]
    """Ids that are other ones in each run and mean the same."""


def key_of(request: ModelRequest, provider: str, place: Place) -> str:
    """The digest of all that could change the reply. Ids that a run makes up count by their order."""
    ids = list(place.own_ids)
    messages = []
    for message in request.messages:
        parts = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                ids.append(part.id)
            parts.append(_plain(part))
        messages.append([message.role, parts])
    text = json.dumps(
        [
            FORM,
            place.organisation_id,
            provider,
            place.service,
            place.sample,
            request.model,
            request.system,
            messages,
            [
                [tool.name, tool.description, _plain(tool.input_schema), tool.trained]
                for tool in request.tools
            ],
            request.tool_choice,
            request.max_output_tokens,
            asdict(request.settings),
            request.purpose,
            request.edits and asdict(request.edits),
        ],
        sort_keys=True,
        default=_plain,
    )
    for number, uid in enumerate(ids):
        text = text.replace(uid, f"#{number}")
    return sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return [type(value).__name__, value.model_dump(mode="json")]
    if isinstance(value, ToolCall | ToolAnswer):
        return [type(value).__name__, {name: getattr(value, name) for name in value.__slots__}]
    if hasattr(value, "__dataclass_fields__"):
        return [type(value).__name__, asdict(value)]
    return dict(value) if isinstance(value, Mapping) else value


def find_reply(key: str) -> list[Piece] | None:
    """What is kept under this key and has not expired."""
    row = CachedReply.objects.filter(key=key, expires_at__gt=timezone.now()).first()
    return None if row is None else [_read(piece) for piece in row.pieces]


def keep_reply(
    key: str, request: ModelRequest, provider: str, place: Place, kept: list[Piece]
) -> None:
    """Keep a whole reply. One that is there already stays, unless it has expired."""
    row = CachedReply(
        key=key,
        organisation_id=place.organisation_id,
        provider=provider,
        model=request.model[:100],
        pieces=[[type(piece).__name__, asdict(piece)] for piece in kept],
        expires_at=timezone.now() + timedelta(days=settings.AGENTSITE_EVAL_CACHE_DAYS),
    )
    CachedReply.objects.bulk_create([row], ignore_conflicts=True)
    CachedReply.objects.filter(key=key, expires_at__lte=timezone.now()).update(
        pieces=row.pieces, expires_at=row.expires_at
    )


def prune() -> None:
    """Take expired replies away, some at a time."""
    old = CachedReply.objects.filter(expires_at__lte=timezone.now()).values("pk")[:AT_A_TIME]
    CachedReply.objects.filter(pk__in=[row["pk"] for row in old]).delete()


_KEPT: dict[str, Any] = {
    kind.__name__: kind
    for kind in (TextDone, ThinkingDone, ToolCallDone, CompactionDone, ReplyDone)
}


def _read(stored: Any) -> Piece:
    name, fields = stored
    if name == ReplyDone.__name__:
        made = fields.get("compaction")
        counted = {"usage": Usage(**fields["usage"]), "compaction": made and Usage(**made)}
        fields = {**fields, **counted}
    piece: Piece = _KEPT[name](**fields)
    return piece


class Cached:
    """Answers from the cache, and keeps what the provider behind it answers."""

    def __init__(self, beneath: Provider, place: Place) -> None:
        self.name = beneath.name
        self._beneath = beneath
        self._place = place

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        key, known = await engine.in_database(self._look, request)
        if known is not None:
            for piece in known:
                for shown in _played(piece):
                    yield shown
            return
        kept: list[Piece] = []
        async for piece in self._beneath.stream(request):
            if type(piece).__name__ in _KEPT:
                kept.append(piece)
            if isinstance(piece, ReplyDone):
                await engine.in_database(keep_reply, key, request, self.name, self._place, kept)
            yield piece

    async def aclose(self) -> None:
        """The provider behind it is closed by whom it belongs to."""

    def _look(self, request: ModelRequest) -> tuple[str, list[Piece] | None]:
        key = key_of(request, self.name, self._place)
        return key, find_reply(key)


def _played(piece: Piece) -> tuple[Piece, ...]:
    match piece:
        case TextDone(index=index, text=text):
            return TextDelta(index, text), piece
        case ThinkingDone(index=index, text=text) if text:
            return ThinkingDelta(index, text), piece
        case ReplyDone():
            return (replace(piece, cached=True),)
        case _:
            return (piece,)
