"""Fills what a webhook or a mail brought into the texts of a message: `{{ payload }}`, `{{
payload.repository.name }}`.

No language: a place is a path of names and numbers, and what is filled in is never read again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from harness.content import Block, Text
from harness.errors import Invalid, TooLarge
from harness.events import UserMessage
from reading.digits import number_of

from .models import OrderRun

PAYLOAD = "payload"
UNTRUSTED = "the payload of a webhook"
UNTRUSTED_MAIL = "a mail"
MOST_FILLED = 64 * 1024
"""Characters that one place may take."""

_PLACE = re.compile(r"\{\{ {0,3}([A-Za-z0-9_.-]{1,200}) {0,3}\}\}", re.ASCII)


def places_in(messages: Sequence[UserMessage]) -> list[str]:
    """The paths that the texts ask for, in order."""
    texts = [block.text for said in messages for block in said.content if isinstance(block, Text)]
    return [found for text in texts for found in _PLACE.findall(text)]


def check_places(messages: Sequence[UserMessage]) -> None:
    """Raises Invalid for a place that nothing is ever filled into."""
    for path in places_in(messages):
        if path.split(".")[0] != PAYLOAD:
            raise Invalid(
                _("Nothing fills “{{ %(path)s }}”.") % {"path": path[:60]},
                field="initial_events",
                hint=_(
                    "Write {{ payload }} or {{ payload.name }} for what a webhook or mail brings."
                ),
            )


def strangers_of(run: OrderRun) -> str:
    """What brought strangers' words into this run, as messages name it."""
    return UNTRUSTED_MAIL if run.trigger == OrderRun.Trigger.MAIL else UNTRUSTED


def filled(
    messages: Sequence[UserMessage], payload: Any, *, by: str = UNTRUSTED
) -> list[UserMessage]:
    """The messages with the payload in their places; those that have any say that strangers (`by`) wrote it.

    What the payload does not have becomes empty, as all of it does where there is none. Raises TooLarge where
    what is filled in is longer than a message may be."""
    return [_filled(said, payload, by) for said in messages]


def _filled(said: UserMessage, payload: Any, by: str) -> UserMessage:
    if not places_in([said]):
        return said
    room: int = settings.AGENTSITE_MESSAGE_CHARACTERS

    def put_in(found: re.Match[str]) -> str:
        nonlocal room
        text = _found(found[1], payload)
        # Before the whole is put together: one payload stands in as many places as the text has.
        room -= len(text)
        if room < 0:
            raise TooLarge(
                _("With what was sent in its places, a message has more than %(limit)d characters.")
                % {"limit": settings.AGENTSITE_MESSAGE_CHARACTERS},
                field="initial_events",
                hint=_("Name the parts of the payload that are needed, each once."),
            )
        return text

    content: list[Block] = [
        Text(text=_PLACE.sub(put_in, block.text)) if isinstance(block, Text) else block
        for block in said.content
    ]
    return said.model_copy(update={"content": tuple(content), "untrusted_by": by})


def _found(path: str, payload: Any) -> str:
    value = payload
    for name in path.split(".")[1:]:
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, list) and (place := number_of(name, most=len(value))) is not None:
            value = value[place] if place < len(value) else None
        else:
            value = None
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[:MOST_FILLED]
