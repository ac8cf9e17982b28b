"""People make, change, pause, put away and delete their standing orders. What they do is `running`'s."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from accounts import vault
from accounts.api.authentication import Caller
from accounts.models import Organisation, User
from accounts.permissions import require_member
from accounts.persons import hold_place
from approvals.decisions import is_looser_than_now, require_decider
from audit.models import AuditEntry
from harness.errors import Conflict, Invalid, LimitReached
from schedules.access import own_order
from schedules.auditing import about_order, announce_order
from schedules.drafts import Draft, check_draft, draft_of
from schedules.mailaddresses import new_key
from schedules.models import OrderRun, StandingOrder
from schedules.pausing import pause, resume
from schedules.times import read_dates
from webhooks.signing import new_secret

LONGEST_DELAY = timedelta(days=31)
"""By which a due time may be put off at once."""


def create_order(
    *,
    actor: User,
    organisation: Organisation,
    draft: Draft,
    caller: Caller | None = None,
    now: datetime | None = None,
) -> StandingOrder:
    """An order that is due from now on, for the actor and at her account. `caller`: the token that asks,
    which must be one that decides where an older version of the agent asks less than the current one.

    Raises NotFound for a stranger, Forbidden, LimitReached, and what `check_draft` raises.
    """
    require_member(actor, organisation)
    now = now or timezone.now()
    checked = check_draft(draft, actor=actor, organisation=organisation)
    if is_looser_than_now(checked.version):
        require_decider(caller)
    with transaction.atomic():
        hers = hold_place(actor, organisation)
        most = settings.AGENTSITE_SCHEDULES
        held = StandingOrder.objects.filter(
            owner__in=hers, organisation=organisation, archived_at=None
        )
        if held.count() >= most:
            raise LimitReached(
                _("You have %(most)d schedules here already.") % {"most": most},
                hint=_("Archive one, or ask the operator to raise AGENTSITE_SCHEDULES."),
            )
        order = StandingOrder(
            organisation=organisation, owner=actor, handled_at=now, **checked.columns
        )
        _address(order)
        order.foresee()
        order.save()
        order.approvers.set(checked.approvers)
        order.readers.set(checked.readers)
        about_order(AuditEntry.Action.SCHEDULE_MADE, actor, order)
        announce_order(order, "deployment.created")
    return order


def change_order(
    *,
    actor: User,
    order: StandingOrder,
    draft: Draft,
    caller: Caller | None = None,
    now: datetime | None = None,
) -> StandingOrder:
    """Runs that begin from now on are as the draft says; it is pinned anew to what its model means now.
    Raises NotFound, Conflict for one that is archived, and as `create_order`."""
    now = now or timezone.now()
    with transaction.atomic():
        held = _open(actor, order)
        checked = check_draft(draft, actor=actor, organisation=held.organisation, order=held)
        if is_looser_than_now(checked.version):
            require_decider(caller)
        before = held.timing
        for name, value in checked.columns.items():
            setattr(held, name, value)
        if held.timing != before:
            # A new timetable holds from now on; it makes nothing due in the past.
            held.handled_at = max(held.handled_at, now)
        _address(held)
        held.foresee()
        held.save()
        held.approvers.set(checked.approvers)
        held.readers.set(checked.readers)
        about_order(AuditEntry.Action.SCHEDULE_CHANGED, actor, held)
        announce_order(held, "deployment.updated")
    return held


def pin_order(*, actor: User, order: StandingOrder) -> StandingOrder:
    """Saved again as it is: its runs have what its agent's model, skills, prompts and instructions are
    now. Raises as `change_order`."""
    return change_order(actor=actor, order=order, draft=draft_of(order))


def pause_order(
    *, actor: User, order: StandingOrder, words: str = "", now: datetime | None = None
) -> StandingOrder:
    """Nothing of it begins until somebody resumes it; what is at work goes on. Raises NotFound, Conflict
    for one that is archived."""
    with transaction.atomic():
        held = _open(actor, order)
        if held.paused_at is None:
            pause(held, StandingOrder.Pause.MANUAL, now=now or timezone.now(), words=words)
            about_order(AuditEntry.Action.SCHEDULE_PAUSED, actor, held, reason="manual")
    return held


def put_off_order(
    *, actor: User, order: StandingOrder, by: timedelta, now: datetime | None = None
) -> StandingOrder:
    """Its next due time is left out, and it is due once so much later instead; the timetable stays. Raises
    NotFound, Invalid, and Conflict where nothing is to come."""
    if not timedelta(minutes=1) <= by <= LONGEST_DELAY:
        raise Invalid(
            _("It can be put off by a minute at least and %(days)d days at most.")
            % {"days": LONGEST_DELAY.days},
            field="minutes",
        )
    now = now or timezone.now()
    with transaction.atomic():
        held = _open(actor, order)
        due = held.next_due_at
        if due is None or held.paused_at is not None:
            raise Conflict(_("Nothing of this schedule is to come."))
        later = (max(due, now) + by).replace(microsecond=0)
        # Dates that have passed say nothing any more.
        coming = {at for at in held.timing.dates if at > due} | {later}
        held.dates = [at.isoformat() for at in read_dates(sorted(coming))]
        OrderRun.objects.bulk_create(
            [
                OrderRun(
                    order=held,
                    agent_version=held.agent_version,
                    trigger=OrderRun.Trigger.SCHEDULE,
                    due_at=due,
                    state=OrderRun.State.SKIPPED,
                    skip=OrderRun.Skip.PERSON,
                    ended_at=now,
                )
            ],
            ignore_conflicts=True,
        )
        held.handled_at = max(held.handled_at, due)
        held.foresee()
        held.save()
        about_order(AuditEntry.Action.SCHEDULE_CHANGED, actor, held, put_off=due.isoformat())
    return held


def resume_order(
    *, actor: User, order: StandingOrder, now: datetime | None = None
) -> StandingOrder:
    """It goes on with what is due from now on. Raises NotFound, Conflict for one that is archived."""
    with transaction.atomic():
        held = _open(actor, order)
        if held.paused_at is not None:
            resume(held, now=now or timezone.now())
            about_order(AuditEntry.Action.SCHEDULE_RESUMED, actor, held)
    return held


def archive_order(*, actor: User, order: StandingOrder) -> StandingOrder:
    """It ends for good and stays with its history. Raises NotFound."""
    with transaction.atomic():
        held = own_order(actor, order)
        if held.archived_at is None:
            held.archived_at = timezone.now()
            held.foresee()
            held.save(update_fields=["archived_at", "next_due_at", "next_start_at", "updated_at"])
            about_order(AuditEntry.Action.SCHEDULE_ARCHIVED, actor, held)
            announce_order(held, "deployment.archived")
    return held


def delete_order(*, actor: User, order: StandingOrder) -> None:
    """It goes with the history of its runs; their conversations stay. Raises NotFound, Conflict while a run
    is at work."""
    with transaction.atomic():
        held = own_order(actor, order)
        if OrderRun.objects.open().filter(order=held).exists():
            raise Conflict(
                _("A run of this schedule is at work."), hint=_("Stop it first, or wait.")
            )
        about_order(AuditEntry.Action.SCHEDULE_DELETED, actor, held)
        announce_order(held, "deployment.deleted")
        held.delete()


@sensitive_variables("secret")
def issue_hook(*, actor: User, order: StandingOrder) -> str:
    """A new secret with which others begin it by a signed request; an earlier one is good no more. Shown
    once. Raises NotFound, Conflict, and NotConfigured where secrets cannot be sealed."""
    secret = new_secret()
    sealed = vault.seal(secret)
    with transaction.atomic():
        held = _open(actor, order)
        held.hook_secret = sealed
        held.save(update_fields=["hook_secret", "updated_at"])
        about_order(AuditEntry.Action.SCHEDULE_HOOK_SET, actor, held)
    return secret


def remove_hook(*, actor: User, order: StandingOrder) -> StandingOrder:
    """No request begins it any more. Raises NotFound."""
    with transaction.atomic():
        held = own_order(actor, order)
        held.hook_secret = ""
        held.save(update_fields=["hook_secret", "updated_at"])
        about_order(AuditEntry.Action.SCHEDULE_HOOK_SET, actor, held, removed="yes")
    return held


def renew_address(*, actor: User, order: StandingOrder) -> StandingOrder:
    """Another address for the mails that begin it; what is sent to the earlier one comes to nothing. Raises
    NotFound, and Conflict for one that takes no mails or is archived."""
    with transaction.atomic():
        held = _open(actor, order)
        if not held.mail_key:
            raise Conflict(
                _("No mail begins this schedule."), hint=_("Say first whose mails may begin it.")
            )
        held.mail_key = new_key()
        held.save(update_fields=["mail_key", "updated_at"])
        about_order(AuditEntry.Action.SCHEDULE_CHANGED, actor, held, mail="address")
    return held


def _address(order: StandingOrder) -> None:
    """One that mails begin has an address, no other has one. It is not saved."""
    if not order.mail_from:
        order.mail_key = ""
    elif not order.mail_key:
        order.mail_key = new_key()


def _open(actor: User, order: StandingOrder) -> StandingOrder:
    held = own_order(actor, order)
    if held.archived_at is not None:
        raise Conflict(
            _("This schedule is archived and changes no more."), hint=_("Make a new one.")
        )
    return held
