"""Looks at one team after something happened: tells how its members stand, has the lead hear of who came to
rest, gives free tasks to idle members, and says when the whole team stands still.

It holds the team meanwhile, so that two who look at once say everything once. Nothing runs for a team at
which nothing happens; a sweep makes up for lost hints, and dismisses who was idle for too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from conversations.branches import counting
from conversations.models import Conversation, Event
from harness.content import text_of
from harness.errors import Declined, LimitReached
from harness.events import AgentMessage, InputTaken

from .actions.mail import brought_by, deliver_held_back, put_into_box
from .actions.requests import expire_requests
from .actions.tasks import claim_task
from .actions.teams import dismiss_teammate
from .events import TeammateStatus, TeamStuck
from .members import Member, Status, hold_lead, members_of
from .models import Board, Mail, Team, Teammate
from .owners import Owner
from .repeated import REST
from .standstill import standstill
from .telling import tell_team
from .waking import attend_soon

LAST_WORDS = 2_000
"""Characters of what a teammate said last that the lead is told."""
AT_A_TIME = 200
"""Teams and teammates that one sweep looks at; the next one goes on."""


def attend(team_id: int) -> None:
    with transaction.atomic():
        team = Team.objects.select_for_update(no_key=True).filter(pk=team_id).first()
        if team is None:
            return
        hold_lead(team)
        _tell_statuses(team)
        members = members_of(team)
        deliver_held_back(
            member.conversation.pk for member in members if member.status is not Status.STOPPED
        )
        for member in members:
            if member.teammate is not None and member.status is Status.IDLE:
                _note_rest(team, members[0], member.teammate, member)
        if not _hand_out_tasks(team, members):
            _tell_standstill(team)


def sweep() -> None:
    """Close what nobody answered, dismiss who was idle for too long, and look where a hint was lost."""
    expire_requests()
    limit = timezone.now() - timedelta(seconds=settings.AGENTSITE_TEAMMATE_IDLE_SECONDS)
    idle = Teammate.objects.active().filter(idle_since__lte=limit, told=Status.IDLE)
    for teammate in idle.select_related("team__lead__owner", "conversation")[:AT_A_TIME]:
        if Member(teammate.team, teammate.conversation, teammate).status is Status.IDLE:
            dismiss_teammate(actor=teammate.team.lead.owner, teammate=teammate, interrupts=False)
    running = Q(conversation__status=Conversation.Status.RUNNING)
    unseen_end = Q(told=Status.WORKING) & ~running
    unseen_rest = Q(told=Status.IDLE, conversation__news_seq__gt=F("rest_seq"))
    lost = Teammate.objects.active().filter(unseen_end | unseen_rest)
    for team in Team.objects.filter(teammates__in=lost).distinct()[:AT_A_TIME]:
        attend_soon(team)


def _tell_statuses(team: Team) -> None:
    rows = team.teammates.exclude(told=Status.DISMISSED).select_related("conversation")
    for teammate in rows:
        status = Member(team, teammate.conversation, teammate).status
        if status == teammate.told:
            continue
        event = TeammateStatus(
            name=teammate.name,
            status=status,
            role=teammate.role or teammate.name if not teammate.told else "",
            conversation_id=teammate.conversation.uid,
        )
        tell_team(team, event)
        teammate.told = status
        teammate.idle_since = timezone.now() if status is Status.IDLE else None
        teammate.save(update_fields=["told", "idle_since"])


def _note_rest(team: Team, lead: Member, teammate: Teammate, member: Member) -> None:
    """Look at each rest once. A rest that the log got after the conversation was read has a later `news_seq`,
    and is looked at again."""
    seen = member.conversation.news_seq
    if seen == teammate.rest_seq:
        return
    _tell_of_rest(team, lead, member)
    teammate.rest_seq = seen
    teammate.save(update_fields=["rest_seq"])


def _tell_of_rest(team: Team, lead: Member, member: Member) -> None:
    """The lead hears that a teammate is done with what it had, once for each time, unless the teammate has
    written to it meanwhile."""
    conversation = member.conversation
    log = counting(conversation)
    rest = log.filter(type="session.status_idle").order_by("-seq").first()
    begun = next(
        (
            row
            for row in log.filter(type="x.input_taken").order_by("-seq")[:50]
            if isinstance(row.value, InputTaken) and not row.value.steered
        ),
        None,
    )
    if rest is None or begun is None:
        return
    wrote = team.mails.filter(
        sender=conversation, receiver=lead.conversation, created_at__gte=begun.created_at
    )
    if not wrote.exists():
        said = _last_words(log.filter(type="agent.message", seq__gt=begun.seq).last())
        text = f"{member.name} has come to rest{said}"
        put_into_box(
            team, Mail.Kind.NOTICE, None, lead, text, f"{REST}:{rest.uid}", brought_by(member)
        )


def _last_words(row: Event | None) -> str:
    value = row.value if row is not None else None
    text = text_of(value.content) if isinstance(value, AgentMessage) else ""
    if not text:
        return "."
    cut = f"{text[:LAST_WORDS]}…" if len(text) > LAST_WORDS else text
    return f" and says:\n{cut}"


def _hand_out_tasks(team: Team, members: Sequence[Member]) -> bool:
    """Each idle teammate without work of its own takes the first task that is free; whether any did."""
    board = Board.objects.filter(conversation=team.lead_id).first()
    if board is None:
        return False
    handed = False
    for member in members[1:]:
        conversation = member.conversation
        conversation.refresh_from_db()
        if member.status is not Status.IDLE:
            continue
        if board.tasks.open().filter(owner_conversation=conversation).exists():
            continue
        if not board.tasks.claimable().exists():
            break
        try:
            task = claim_task(
                actor=conversation.owner,
                board=board,
                claimant=Owner(conversation=conversation),
                by=conversation,
            )
        except (Declined, LimitReached):
            break
        text = (
            f"You were idle, and task #{task.number} is yours now: {task.subject}\n{task.description}\n"
            f"Say with task_update that it is completed (or give it back to nobody)."
        )
        put_into_box(
            team,
            Mail.Kind.NOTICE,
            None,
            member,
            text,
            f"task:{task.uid}:{board.version}:{task.changed_at.timestamp()}",
            task.strangers_for(conversation.owner_id),
        )
        handed = True
    return handed


def _tell_standstill(team: Team) -> None:
    members = members_of(team)
    found = standstill(team, members)
    if found is None:
        # While somebody works it may be about what was told: only what is gone at rest is over.
        if team.told_stuck and not any(member.status is Status.WORKING for member in members):
            Team.objects.filter(pk=team.pk).update(told_stuck="")
        return
    if found.signature == team.told_stuck:
        return
    Team.objects.filter(pk=team.pk).update(told_stuck=found.signature)
    tell_team(team, TeamStuck(reasons=found.reasons))
    text = "Nobody of the team works, and this is left:\n" + "\n".join(found.reasons)
    text += (
        "\nDecide what becomes of it: do it, give it to somebody, cancel it, or tell the person."
    )
    key = f"stuck:{found.signature}:{members[0].conversation.last_seq}"
    lead = members[0]
    put_into_box(team, Mail.Kind.NOTICE, None, lead, text, key, found.untrusted_by)
