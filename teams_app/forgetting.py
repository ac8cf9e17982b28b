"""Takes out of mailboxes and requests what was taken out of the log that had it delivered, or of that of a
teammate whose last words a notice repeats."""

from __future__ import annotations

from conversations.forgetting import Removed, repeats
from harness.content import text_of
from harness.events import AgentMessage, UserMessage
from harness.redacted import REMOVED

from .models import Mail, TeamRequest
from .repeated import rests_told

_ASKED, _ANSWERED = "request", "closed"
"""How keys of mails about requests begin (`actions.requests`); the rest is the request's id."""


def forget(removed: Removed) -> None:
    said = [text_of(event.content) for event in removed.anew.of(AgentMessage).values()]
    for mail in rests_told(removed.conversation) if said else ():
        if repeats(mail.text, said):
            Mail.objects.filter(pk=mail.pk).update(text=REMOVED)
    for uid in removed.of(UserMessage):
        for mail in Mail.objects.filter(receiver=removed.conversation, event_uid=uid):
            Mail.objects.filter(pk=mail.pk).update(text=REMOVED)
            about, _colon, request = mail.key.partition(":")
            found = TeamRequest.objects.filter(team=mail.team_id, uid=request)
            if about == _ASKED:
                found.update(text=REMOVED)
            elif about == _ANSWERED:
                found.exclude(answer="").update(answer=REMOVED)
