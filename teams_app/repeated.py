"""What the log of a team's lead repeats of a teammate's: its last words, where it came to rest and had not
written by itself. What agents write to each other is no copy: they decided to (ADR 37)."""

from __future__ import annotations

from collections.abc import Iterator

from conversations.forgetting import Place, Removed, repeats
from conversations.models import Conversation, Event
from harness.content import text_of
from harness.events import AgentMessage, UserMessage

from .models import Mail

REST = "rest"
"""How keys of mails about a teammate's rest begin; the rest is the event's id."""


def said_elsewhere(removed: Removed) -> Iterator[Place]:
    said = [text_of(event.content) for event in removed.of(AgentMessage).values()]
    for mail in rests_told(removed.conversation) if said else ():
        told = Event.objects.filter(conversation=mail.receiver, uid=mail.event_uid).first()
        value = told.value if told is not None else None
        if isinstance(value, UserMessage) and repeats(text_of(value.content), said):
            yield mail.receiver, mail.event_uid
    for uid, event in removed.of(UserMessage).items():
        for mail in Mail.objects.filter(receiver=removed.conversation, event_uid=uid):
            last = _last_words(mail)
            if last is not None and repeats(text_of(event.content), [_words(last)]):
                yield last.conversation, last.subject


def rests_told(teammate: Conversation) -> Iterator[Mail]:
    rests = Event.objects.filter(conversation=teammate, type="session.status_idle")
    keys = {f"{REST}:{uid}" for uid in rests.values_list("uid", flat=True)}
    told = Mail.objects.filter(team__teammates__conversation=teammate, kind=Mail.Kind.NOTICE)
    for mail in told.select_related("receiver"):
        if mail.key in keys:
            yield mail


def _last_words(mail: Mail) -> Event | None:
    about, _colon, uid = mail.key.partition(":")
    rest = Event.objects.filter(uid=uid, conversation__teammate__team=mail.team_id).first()
    if about != REST or rest is None:
        return None
    log = Event.objects.filter(conversation=rest.conversation_id, seq__lt=rest.seq)
    said = log.filter(type="agent.message").order_by("-seq")
    return said.select_related("conversation").first()


def _words(row: Event) -> str:
    return text_of(row.value.content) if isinstance(row.value, AgentMessage) else ""
