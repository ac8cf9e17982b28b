"""What members of a team ask of each other and of people, by an id: to end one's work, to look at a plan, to
take over a task, a question. Answered once, by whom it names; else it expires, which the asker is told."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.models import Conversation
from harness.errors import AlreadyDecided, Conflict, Forbidden, Invalid, LimitReached, NotFound
from teams_app.actions.mail import brought_by, checked, held_team, put_into_box
from teams_app.actions.tasks import Changes, change_task
from teams_app.actions.teams import dismiss_teammate
from teams_app.events import RequestClosed, RequestMade
from teams_app.members import Member, members_of
from teams_app.models import Mail, Task, Team, Teammate, TeamRequest
from teams_app.owners import Owner
from teams_app.telling import tell_team
from teams_app.waking import attend_soon

PENDING = 20
"""Requests of one team that wait at once."""
State = TeamRequest.State


def make_request(
    *,
    actor: User,
    asker: Member,
    kind: str,
    text: str,
    key: str,
    addressee: Member | None = None,
    person: User | None = None,
    task: Task | None = None,
) -> TeamRequest:
    """Ask one member, or one person, who finds it beside her approvals. The same key asks once.

    Raises NotFound for a team that is not the actor's, Invalid and TooLarge for what cannot be asked,
    Forbidden where only the lead may ask it, Conflict, LimitReached.
    """
    text = checked(text)
    with transaction.atomic():
        team = held_team(actor, asker.team)
        if known := team.requests.filter(key=key).first():
            return known
        _require_askable(team, asker, kind, addressee, person, task)
        if team.requests.pending().count() >= PENDING:
            raise LimitReached(_("%(limit)d requests wait in the team.") % {"limit": PENDING})
        made = TeamRequest.objects.create(
            team=team,
            kind=kind,
            asker=asker.conversation,
            addressee=addressee.conversation if addressee else None,
            person=person,
            task=task,
            text=text,
            key=key,
            expires_at=timezone.now() + timedelta(seconds=settings.AGENTSITE_TEAM_REQUEST_SECONDS),
        )
        if addressee is not None:
            put_into_box(
                team,
                Mail.Kind.REQUEST,
                asker.conversation,
                addressee,
                _asked_in_words(made),
                f"request:{made.uid}",
                brought_by(asker),
            )
        whom = addressee.name if addressee else person.username if person else ""
        tell_team(
            team,
            RequestMade(request_id=made.uid, kind=kind, asker=asker.name, addressee=whom),
        )
    return made


def answer_as_member(
    *, actor: User, member: Member, request_uid: str, approve: bool, text: str = ""
) -> TeamRequest:
    """Raises NotFound for no such request to this member, AlreadyDecided for one that waits no more, Conflict
    for agreeing to take over what is not the asker's any more."""
    with transaction.atomic():
        team = held_team(actor, member.team)
        found = team.requests.filter(
            uid=request_uid.replace("\0", ""), addressee=member.conversation
        ).first()
        if found is None:
            raise NotFound(
                _("Nobody has asked you this."), hint=_("The message with the request has its id.")
            )
        return _close(actor, team, found, approve, text, brought_by(member))


def answer_as_person(
    *, actor: User, request: TeamRequest, approve: bool, text: str = ""
) -> TeamRequest:
    """Raises NotFound for a question that was not asked of her, AlreadyDecided for one that waits no more."""
    with transaction.atomic():
        team = Team.objects.select_for_update(no_key=True).filter(pk=request.team_id).first()
        asked = TeamRequest.objects.filter(
            pk=request.pk, person=actor, team__in=Team.objects.visible_to(actor)
        ).first()
        if team is None or asked is None:
            raise NotFound(_("There is no such question."))
        owner = team.lead.owner
        source = "" if owner.pk == actor.pk else f"what {actor.username} answered"
        return _close(owner, team, asked, approve, text, source)


def expire_requests() -> None:
    """Close those that nobody answered in time, and tell who asked. Twice at once it says so once."""
    due = TeamRequest.objects.pending().filter(expires_at__lte=timezone.now())
    for request in due.select_related("team").order_by("expires_at")[:500]:
        with transaction.atomic():
            team = Team.objects.select_for_update(no_key=True).get(pk=request.team_id)
            if due.filter(pk=request.pk).update(state=State.EXPIRED, closed_at=timezone.now()):
                request.refresh_from_db()
                _tell_asker(team, request, "nobody", "")


def _require_askable(
    team: Team,
    asker: Member,
    kind: str,
    addressee: Member | None,
    person: User | None,
    task: Task | None,
) -> None:
    if (addressee is None) == (person is None):
        raise Invalid(_("Ask one member of the team, or one person."), field="to")
    if addressee is not None and addressee.conversation.pk == asker.conversation.pk:
        raise Invalid(_("Nobody asks herself."), field="to")
    if person is not None and kind != TeamRequest.Kind.QUESTION:
        raise Invalid(
            _("A person is asked questions."),
            field="to",
            hint=_("Hand her a task with task_create."),
        )
    if person is not None and not Conversation.objects.visible_to(person).contains(team.lead):
        raise NotFound(_("There is no such person."))
    leads = asker.teammate is None
    if kind == TeamRequest.Kind.SHUTDOWN and (
        not leads or addressee is None or addressee.teammate is None
    ):
        raise Forbidden(_("Only the lead asks teammates to end their work."))
    if kind == TeamRequest.Kind.HANDOVER:
        if task is None:
            raise Invalid(_("Which task is to be taken over?"), field="task")
        if task.owner_conversation_id != asker.conversation.pk:
            raise Conflict(
                _("Task #%(number)d is not yours to hand over.") % {"number": task.number}
            )


def _close(
    actor: User, team: Team, request: TeamRequest, approve: bool, text: str, source: str
) -> TeamRequest:
    """Answer it, once, and do what was agreed to. The team is held; `actor` owns its conversations."""
    text = checked(text) if text.strip() else ""
    if request.state != State.PENDING:
        raise AlreadyDecided(
            _("This request is %(state)s already.") % {"state": request.get_state_display()}
        )
    request.state = State.APPROVED if approve else State.REJECTED
    request.answer, request.closed_at = text, timezone.now()
    request.untrusted_by = source[:300] if text else ""
    request.save(update_fields=["state", "answer", "closed_at", "untrusted_by"])
    if approve and request.kind == TeamRequest.Kind.SHUTDOWN:
        teammate = Teammate.objects.get(conversation=request.addressee_id)
        # It is the one that answers, and ends its turn by itself.
        dismiss_teammate(actor=actor, teammate=teammate, interrupts=False)
    if approve and request.task is not None and request.addressee is not None:
        _require_still_askers(request, request.task)
        change_task(
            actor=actor,
            task=request.task,
            changes=Changes(owner=Owner(conversation=request.addressee)),
        )
    _tell_asker(team, request, _name_of_addressee(team, request), source)
    return request


def _require_still_askers(request: TeamRequest, task: Task) -> None:
    """Whoever has it by now has agreed to nothing."""
    if task.owner_conversation_id != request.asker_id:
        raise Conflict(
            _("Task #%(number)d does not belong to who asked any more.") % {"number": task.number},
            hint=_("Say no to the request."),
        )


def _tell_asker(team: Team, request: TeamRequest, who: str, source: str) -> None:
    # First, so that whose words these are is known where they are heard.
    tell_team(
        team,
        RequestClosed(request_id=request.uid, kind=request.kind, state=request.state, by=who),
        actor=None if request.state == State.EXPIRED else request.person,
    )
    asker = next((m for m in members_of(team) if m.conversation.pk == request.asker_id), None)
    if asker is not None:
        text = {
            State.APPROVED: f"{who} agreed",
            State.REJECTED: f"{who} said no",
            State.EXPIRED: "Nobody answered in time",
        }[State(request.state)]
        if request.kind == TeamRequest.Kind.QUESTION and request.state != State.EXPIRED:
            text = f"{who} answered"
        said = f":\n{request.answer}" if request.answer else "."
        put_into_box(
            team,
            Mail.Kind.NOTICE,
            None,
            asker,
            f"Request {request.uid} ({request.kind}): {text}{said}",
            f"closed:{request.uid}",
            source,
        )
    attend_soon(team)


def _name_of_addressee(team: Team, request: TeamRequest) -> str:
    if request.person is not None:
        return request.person.username
    found = Teammate.objects.filter(team=team, conversation=request.addressee_id).first()
    return found.name if found else "lead"


def _asked_in_words(request: TeamRequest) -> str:
    asked = {
        TeamRequest.Kind.SHUTDOWN: "asks you to end your work",
        TeamRequest.Kind.PLAN: "asks you to review a plan",
        TeamRequest.Kind.HANDOVER: "asks you to take over task #{number}",
        TeamRequest.Kind.QUESTION: "asks you",
    }[TeamRequest.Kind(request.kind)].format(number=request.task.number if request.task else 0)
    return (
        f"Request {request.uid}: {asked}.\n{request.text}\n"
        "Answer it once with answer_request and this id."
    )
