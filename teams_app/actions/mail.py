"""What agents of a team write to each other: kept in a mailbox, delivered once, as a message that waits in
the receiver's log and joins its dialogue at the next step.

What is written to somebody whom a person stopped, or who has too much to read, is held back in the box.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.judging import history_of
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.ratelimits import count_message
from conversations.wakes import wake
from harness.content import Text
from harness.errors import Conflict, Invalid, LimitReached, NotFound, TooLarge
from harness.events import MessageSteered, UserMessage
from harness.history import Entry
from harness.ids import new_id
from teams_app.members import LEAD, Member, Status, hold_lead
from teams_app.models import Mail, Team, Teammate
from teams_app.models.team import TEXT_LIMIT

PERSON = "person"
"""How keys of what people write begin, so that none is a call's."""


def send_mail(
    *,
    actor: User,
    sender: Member,
    receivers: Sequence[Member],
    text: str,
    key: str,
    kind: str = Mail.Kind.MESSAGE,
) -> list[Mail]:
    """The same key reaches each mailbox once. Nobody has spoken by it, and what untrusted content the
    sender has read goes along.

    Raises NotFound for a team that is not the actor's, Invalid and TooLarge for the text, LimitReached
    when the agents have written too much to each other since a person last spoke.
    """
    text = checked(text)
    with transaction.atomic():
        team = held_team(actor, sender.team)
        others = [each for each in receivers if each.conversation.pk != sender.conversation.pk]
        boxes = {each.conversation.pk for each in others}
        if team.mails.filter(key=key, receiver__in=boxes).count() < len(boxes):
            _require_moderation(team)
        source = brought_by(sender)
        return [
            put_into_box(team, kind, sender.conversation, receiver, text, key, source)
            for receiver in others
        ]


def write_as_person(
    *, actor: User, team: Team, receivers: Sequence[Member], text: str, key: str | None = None
) -> list[Mail]:
    """A person writes to members of her team, each of whom hears it at the next step. She has spoken by it:
    it is her words, and what agents may write to each other counts anew. The same key writes once to each.

    Raises NotFound for a team that is not the actor's, Invalid and TooLarge for the text, TooMany when she
    writes too fast, and Conflict for a key of another message.
    """
    text = checked(text)
    own = f"{PERSON}:{key or new_id('key')}"
    with transaction.atomic():
        held = held_team(actor, team)
        boxes = {receiver.conversation.pk for receiver in receivers}
        if held.mails.filter(key=own).exclude(text=text).exists():
            raise Conflict(
                _("This key was used for another message."),
                hint=_("Use a new key for each message."),
            )
        known = held.mails.filter(key=own, receiver__in=boxes)
        if known.count() < len(boxes):
            # Before the person is: so does whoever says something in one of them.
            read = Conversation.objects.select_for_update(no_key=True).filter(pk__in=boxes)
            list(read.order_by("pk").values_list("pk"))
            count_message(actor)
        return [
            put_into_box(held, Mail.Kind.PERSON, None, receiver, text, own)
            for receiver in receivers
        ]


def put_into_box(
    team: Team,
    kind: str,
    sender: Conversation | None,
    receiver: Member,
    text: str,
    key: str,
    untrusted_by: str = "",
) -> Mail:
    """In the transaction of whoever holds the team."""
    mail, made = Mail.objects.get_or_create(
        team=team,
        receiver=receiver.conversation,
        key=key,
        defaults={
            "kind": kind,
            "sender": sender,
            "text": text,
            "untrusted_by": untrusted_by[:300],
        },
    )
    if made and receiver.status is not Status.STOPPED:
        deliver(mail)
    return mail


def deliver(mail: Mail) -> bool:
    """Whether the receiver hears of it: once, and not while too much waits there already."""
    room = Conversation.objects.filter(
        pk=mail.receiver_id, queued_count__lt=settings.AGENTSITE_QUEUED_MESSAGES
    ).exclude(status=Conversation.Status.TERMINATED)
    if mail.event_uid or not room.exists():
        return False
    owner = mail.team.lead.owner if mail.kind == Mail.Kind.PERSON else None
    said = Entry.of(
        UserMessage(
            content=(Text(text=mail.text if owner else in_words(mail)),),
            by_agent=owner is None,
            untrusted_by=mail.untrusted_by,
        )
    )
    append(mail.receiver_id, [said, Entry.of(MessageSteered(event_id=said.uid))], actor=owner)
    mail.event_uid = said.uid
    mail.save(update_fields=["event_uid"])
    wake(mail.receiver_id)
    return True


def deliver_held_back(receivers: Iterable[int]) -> None:
    """What waits in these mailboxes, the oldest first, as far as there is room; in the transaction of whoever
    holds the team."""
    for mail in Mail.objects.filter(receiver__in=list(receivers), event_uid="").order_by("pk"):
        if not deliver(mail):
            return


def in_words(mail: Mail) -> str:
    """As the receiver's agent reads it."""
    if mail.kind == Mail.Kind.NOTICE:
        return f"[Team] {mail.text}"
    if mail.kind == Mail.Kind.PERSON:
        return f"[Team] Message from {mail.team.lead.owner.username}, a person:\n{mail.text}"
    name = name_in_team(mail.team, mail.sender_id)
    to = " to all" if mail.kind == Mail.Kind.BROADCAST else ""
    return f"[Team] Message from {name}{to}:\n{mail.text}"


def name_in_team(team: Team, conversation_id: int | None) -> str:
    if conversation_id in {None, team.lead_id}:
        return LEAD
    found = Teammate.objects.filter(team=team, conversation=conversation_id)
    return found.values_list("name", flat=True).first() or LEAD


def held_team(actor: User, team: Team) -> Team:
    """Locked, before the conversations of its members are, and its lead's with it. NotFound for somebody
    else's."""
    mine = Conversation.objects.owned_by(actor)
    found = (
        Team.objects.select_for_update(of=("self",), no_key=True)
        .filter(pk=team.pk, lead__in=mine)
        .first()
    )
    if found is None:
        raise NotFound(_("There is no such team."))
    hold_lead(found)
    return found


def brought_by(sender: Member) -> str:
    """What untrusted content its words may hold. Of a teammate all it ever read counts: a word that a person
    said to it was not said to the others."""
    history = history_of(sender.conversation)
    source = history.read_anywhere if sender.teammate else history.tainted_by
    return f"{source}, by way of {sender.name}" if source else ""


def checked(text: str) -> str:
    text = text.replace("\0", "").strip()
    if not text:
        raise Invalid(_("The message is empty."), field="content", hint=_("Say something."))
    if len(text) > TEXT_LIMIT:
        raise TooLarge(
            _("The message is longer than %(limit)d characters.") % {"limit": TEXT_LIMIT},
            field="content",
            hint=_("Put long texts into a file and name it."),
        )
    return text


def _require_moderation(team: Team) -> None:
    here = Event.objects.filter(
        conversation=team.lead_id, type="user.message", payload__by_agent=False
    ).order_by("-seq")
    by_mail = team.mails.filter(kind=Mail.Kind.PERSON).order_by("-pk")
    written = team.mails.exclude(kind__in=[Mail.Kind.NOTICE, Mail.Kind.PERSON])
    for spoken in (here.first(), by_mail.first()):
        if spoken is not None:
            written = written.filter(created_at__gt=spoken.created_at)
    if written.count() >= settings.AGENTSITE_TEAM_MESSAGES:
        raise LimitReached(
            _("The team has written %(limit)d messages since a person last spoke.")
            % {"limit": settings.AGENTSITE_TEAM_MESSAGES},
            hint=_("Tell the person how far you are, and end your turn."),
        )
