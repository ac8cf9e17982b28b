"""What a model service may have meant when it refused a prompt: a pure function of the log.

Services name places in the request, each in its own words, or nothing. The log knows better what is
new: what has been in no request that was answered. Setting aside is a person's word, not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.content import Block, Text
from harness.errors import BadCredentials, BadRequest, BillingRefused, ContextTooLong, NotConfigured
from harness.events import (
    ContentSetAside,
    InputTaken,
    MessageEdited,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    ToolResult,
    UserMessage,
    answered_call,
)
from harness.history import Entry

CONTENT_REFUSED = (BadRequest, ContextTooLong)
KEY_REFUSED = (BadCredentials, BillingRefused, NotConfigured)
"""What another key would mend."""
"""Errors that what was said may have caused."""
NAMED = 20
"""At most so many are named, the newest."""


def suspects(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Ids of messages and calls, oldest first.

    What has never been taken and holds a picture or a document, if there is any. Else whatever has
    not been taken, and every picture and document before it: the service may be another one by now.
    """
    said: dict[str, tuple[Block, ...]] = {}
    aside: set[str] = set()
    in_dialogue: list[str] = []
    untaken: set[str] = set()
    purposes: dict[str, str] = {}
    for entry in entries:
        match entry.event:
            case UserMessage(content=content):
                said[entry.uid] = content
            case MessageEdited(event_id=uid, content=content):
                said[uid] = content
            case ContentSetAside(event_id=uid):
                aside.add(uid)
            case InputTaken(event_ids=uids):
                in_dialogue += uids
                untaken.update(uids)
            case SpanModelRequestStart(purpose=purpose):
                purposes[entry.uid] = purpose
            case SpanModelRequestEnd(is_error=False, model_request_start_id=uid, end=end):
                if purposes.get(uid) == "main" and end != "interrupted":
                    untaken.clear()
            case event if isinstance(event, ToolResult):
                call_uid = answered_call(event) or ""
                said[call_uid] = event.content
                in_dialogue.append(call_uid)
                untaken.add(call_uid)
    named = [uid for uid in in_dialogue if uid in said and uid not in aside]
    media = [uid for uid in named if _holds_media(said, uid)]
    found = [uid for uid in media if uid in untaken]
    if not found:
        wanted = untaken.union(media)
        found = [uid for uid in named if uid in wanted]
    return tuple(dict.fromkeys(found[-NAMED:]))


def _holds_media(said: Mapping[str, tuple[Block, ...]], uid: str) -> bool:
    return any(not isinstance(block, Text) for block in said[uid])
