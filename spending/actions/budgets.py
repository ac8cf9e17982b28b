"""People set, change and lift budgets; what they stopped goes on.

The deployment's are a superuser's; an organisation's, its members' and any of its conversations' are
its owners' and administrators', or staff's. Whoever owns a conversation may hold it shorter.
"""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Membership, Organisation, User
from accounts.permissions import may_manage
from accounts.staff import has_staff_permission
from audit import record as audit
from conversations.branches import counting
from conversations.log import append
from conversations.models import Conversation
from conversations.wakes import wake
from harness.errors import Forbidden, Invalid, NotFound
from harness.events import RetryRequested, SessionStatusIdle
from harness.history import Entry
from jobs.apart import each_apart
from jobs.dispatch import dispatch
from spending import budgets, periods
from spending import stops as budgetstops
from spending.amounts import LARGEST_DOLLARS, LARGEST_TOKENS, amount_text, plain_amount, units_of
from spending.models import Budget, BudgetPeriod, BudgetStop, Reservation, Usage

CHANGE = "spending.change_budget"

AT_A_TIME = 50
"""Conversations that one job resumes; another one goes on."""

LARGEST = {Budget.Unit.TOKENS: LARGEST_TOKENS, Budget.Unit.MONEY: units_of(LARGEST_DOLLARS)}


def set_budget(
    *,
    actor: User,
    scope: Budget.Scope,
    unit: str,
    period: str,
    limit: int,
    organisation: Organisation | None = None,
    user: User | None = None,
    conversation: Conversation | None = None,
    begun_here: bool = False,
) -> Budget:
    """Make this budget, or change the limit of the one that holds for this unit and period.

    `limit` is in tokens or in hundred-millionths of a US dollar; 0 allows nothing. A new budget
    counts what was spent in its period before. When a limit rises, the conversations that the
    budget stopped go on. With `begun_here` the caller's transaction has made `conversation`, so that nothing
    was spent in it. Raises NotFound for what is not the actor's to see, Forbidden, and Invalid.
    """
    scope = Budget.Scope(scope)
    check_amount(unit, period, limit)
    subject = check_subject(scope, organisation, user, conversation)
    manages = _require_say(actor, scope, subject)
    about = subject["conversation"]
    if period == Budget.Period.RUN and isinstance(about, Conversation) and about.parent_id:
        raise Invalid(
            _("Runs are counted in the conversation that people began, with all its helpers."),
            field="period",
            hint=_("Set the budget there, or choose another period here."),
        )
    with transaction.atomic():
        if not begun_here:
            _hold_new_usage()
        matching = Budget.objects.in_force().filter(
            scope=scope, unit=unit, period=period, **_columns(subject)
        )
        current = matching.select_for_update(of=("self",), no_key=True).first()
        if not manages:
            _check_own(current, subject["conversation"], unit, period, limit)
        ceiling = current.ceiling if current else None
        if manages and scope == Budget.Scope.CONVERSATION:
            ceiling = limit
        now = timezone.now()
        if current is None:
            current = Budget.objects.create(
                scope=scope,
                unit=unit,
                period=period,
                limit=limit,
                ceiling=ceiling,
                created_by=actor,
                updated_by=actor,
                **_columns(subject),
            )
            periods.begin_period(current, now=now)
            _record(audit.Action.BUDGET_SET, current, actor)
            return current
        before, rises = current.limit, limit > current.limit
        differs = (limit, ceiling) != (current.limit, current.ceiling)
        current.limit = limit
        current.ceiling = ceiling
        current.updated_by = actor
        current.save(update_fields=["limit", "ceiling", "updated_by", "updated_at"])
        periods.set_limit(current, now=now)
        if differs:
            _record(audit.Action.BUDGET_SET, current, actor, before=plain_amount(unit, before))
        if rises:
            budgetstops.release_all(current, actor)
    return current


def remove_budget(*, actor: User, budget: Budget) -> None:
    """Lift it; the conversations it stopped go on. Its figures are kept."""
    with transaction.atomic():
        locked = Budget.objects.in_force().select_for_update(of=("self",), no_key=True)
        current = (
            locked.select_related("organisation", "user", "conversation__owner")
            .filter(pk=budget.pk)
            .first()
        )
        if current is None:
            raise NotFound(_("There is no such budget."))
        subject = {
            "organisation": current.organisation,
            "user": current.user,
            "conversation": current.conversation,
        }
        if not _require_say(actor, Budget.Scope(current.scope), subject):
            _check_ceiling(current)
        current.removed_at = timezone.now()
        current.updated_by = actor
        current.save(update_fields=["removed_at", "updated_by", "updated_at"])
        periods = BudgetPeriod.objects.select_for_update(no_key=True).filter(budget=current)
        keys = [period.pk for period in periods.order_by("pk")]
        Reservation.objects.filter(period__in=keys).delete()
        BudgetPeriod.objects.filter(pk__in=keys).update(reserved=0)
        _record(audit.Action.BUDGET_LIFTED, current, actor)
        budgetstops.release_all(current, actor)


def may_change(actor: User, budget: Budget) -> bool:
    """Whether `remove_budget` would let the actor."""
    subject = {
        "organisation": budget.organisation,
        "user": budget.user,
        "conversation": budget.conversation,
    }
    try:
        if not _require_say(actor, Budget.Scope(budget.scope), subject):
            _check_ceiling(budget)
    except (NotFound, Forbidden):
        return False
    return True


def resume_stopped() -> None:
    """Have conversations go on whose budget was raised or has room again: the job's whole work.

    One transaction each, so that none waits for another's; what is left over is the next job's.
    """
    budgetstops.pass_on_room()
    released = BudgetStop.objects.released().filter(
        conversation__status__in=[Conversation.Status.IDLE, Conversation.Status.TERMINATED]
    )
    found = list(released.order_by("id").values_list("pk", "conversation_id")[:AT_A_TIME])
    resumed = each_apart(_resume, found, told="what a budget stopped could not go on: %s")
    budgets.give_back_orphans()
    if resumed == AT_A_TIME:
        dispatch(budgetstops.RESUME)


def _record(action: audit.Action, budget: Budget, actor: User, **details: Any) -> None:
    if budget.user is not None:
        details["person"] = {"id": budget.user.uid, "name": budget.user.username}
    audit.about_setting(
        action,
        actor=actor,
        organisation_id=budget.organisation_id,
        conversation_uid=budget.conversation.uid if budget.conversation else "",
        budget=budget.uid,
        scope=Budget.Scope(budget.scope).name.lower(),
        limit=plain_amount(budget.unit, budget.limit),
        period=budget.period,
        **details,
    )


def _resume(found: tuple[int, int]) -> None:
    stop_id, conversation_id = found
    with transaction.atomic():
        rows = Conversation.objects.select_for_update(of=("self",), no_key=True)
        held = rows.filter(pk=conversation_id).first()
        stop = (
            BudgetStop.objects.released().filter(pk=stop_id).select_related("released_by").first()
        )
        if held is None or stop is None or held.is_running:
            return
        if not _rests_at_budget(held):
            budgetstops.take_away(held)
        else:
            stop.delete()
            append(held.pk, [Entry.of(RetryRequested(resumed=True))], actor=stop.released_by)
            wake(held.pk)


def _rests_at_budget(conversation: Conversation) -> bool:
    """Whether a budget is why it rests where it stands now: an agent's own limits end in the same way."""
    if conversation.status != Conversation.Status.IDLE:
        return False
    rests = counting(conversation).filter(type="session.status_idle")
    last = rests.order_by("-seq").first()
    value = last.value if last else None
    return (
        isinstance(value, SessionStatusIdle)
        and value.stop_details is not None
        and value.stop_details.code == budgets.CapReached.code
    )


# --- who may --------------------------------------------------------------------------------------

Subject = dict[str, Organisation | User | Conversation | None]
"""The columns of a budget that say whom it caps."""


def check_subject(
    scope: Budget.Scope,
    organisation: Organisation | None,
    user: User | None,
    conversation: Conversation | None,
) -> Subject:
    """Whom the budget caps; raises Invalid for one too many or too few."""
    if conversation is not None and scope == Budget.Scope.CONVERSATION:
        organisation = conversation.organisation
    needed = {
        Budget.Scope.DEPLOYMENT: (False, False, False),
        Budget.Scope.ORGANISATION: (True, False, False),
        Budget.Scope.USER: (True, True, False),
        Budget.Scope.CONVERSATION: (True, False, True),
        Budget.Scope.PERSON: (False, user is not None, False),
    }[scope]
    given = (organisation, user, conversation)
    for name, value, wanted in zip(
        ("organisation", "user", "conversation"), given, needed, strict=True
    ):
        if (value is not None) != wanted:
            raise Invalid(
                _("A budget for %(scope)s names exactly that.") % {"scope": scope.label},
                field=name,
                hint=_("Choose one.") if wanted else _("Leave this out."),
            )
    return {"organisation": organisation, "user": user, "conversation": conversation}


def _columns(subject: Subject) -> dict[str, int | None]:
    return {f"{name}_id": value.pk if value else None for name, value in subject.items()}


def _require_say(actor: User, scope: Budget.Scope, subject: Subject) -> bool:
    """Whether the actor manages such budgets; False for the owner of a conversation, who may only
    hold it shorter. Raises NotFound or Forbidden for everybody else."""
    if scope in {Budget.Scope.DEPLOYMENT, Budget.Scope.PERSON}:
        if not (actor.is_active and actor.is_superuser):
            raise Forbidden(
                _("Only administrators of this server may set its budget."),
                hint=_("Ask one of them."),
            )
        return True
    organisation, user = subject["organisation"], subject["user"]
    conversation = subject["conversation"]
    assert isinstance(organisation, Organisation)  # noqa: S101 - the scope has one
    if isinstance(user, User) and not _belongs(user, organisation):
        if may_manage(actor, organisation) or has_staff_permission(actor, CHANGE):
            raise Invalid(
                _("This person does not belong to %(name)s.") % {"name": organisation},
                field="user",
                hint=_("Choose a member."),
            )
        raise NotFound(_("There is no such budget."))
    if may_manage(actor, organisation) or has_staff_permission(actor, CHANGE):
        return True
    if isinstance(conversation, Conversation):
        if Conversation.objects.owned_by(actor).filter(pk=conversation.pk).exists():
            return False
        raise NotFound(_("There is no such conversation."))
    if not _belongs(actor, organisation):
        raise NotFound(_("There is no such organisation."))
    if isinstance(user, User) and user != actor:
        raise NotFound(_("There is no such budget."))
    raise Forbidden(
        _("Only the owners and administrators of %(name)s may set its budgets.")
        % {"name": organisation},
        hint=_("Ask one of them."),
    )


def _belongs(user: User, organisation: Organisation) -> bool:
    return Membership.objects.role_in(organisation, user) is not None


def _check_own(
    current: Budget | None,
    conversation: object,
    unit: str,
    period: str,
    limit: int,
) -> None:
    """What the owner of a conversation may set: anything up to what somebody who manages it set, and
    to what the wider budgets of that unit and period allow."""
    assert isinstance(conversation, Conversation)  # noqa: S101 - asked before
    if current is not None:
        _check_ceiling(current, limit)
    owner = conversation.owner_id
    wider = Budget.objects.applying_to(conversation, owner, asker=owner).filter(
        unit=unit, period=period
    )
    lowest = wider.exclude(scope=Budget.Scope.CONVERSATION).order_by("limit").first()
    if lowest is not None and limit > lowest.limit:
        raise Invalid(
            _("%(whose)s allows no more than %(limit)s %(period)s.")
            % {
                "whose": lowest.whose,
                "limit": amount_text(unit, lowest.limit),
                "period": lowest.get_period_display(),
            },
            field="limit",
            hint=_("Give that much or less."),
        )


def _check_ceiling(budget: Budget, limit: int | None = None) -> None:
    """For the owner of a conversation. Without a limit: whether she may lift it."""
    if budget.ceiling is None or (limit is not None and limit <= budget.ceiling):
        return
    raise Forbidden(
        _(
            "An owner or administrator of %(name)s set this budget to %(limit)s; you may only lower it."
        )
        % {"name": budget.organisation, "limit": amount_text(budget.unit, budget.ceiling)},
        hint=_("Ask one of them to raise it."),
    )


def check_amount(unit: str, period: str, limit: int) -> None:
    """Raise Invalid for what is no limit, unit or period."""
    for field, value, choices in (
        ("unit", unit, Budget.Unit.values),
        ("period", period, Budget.Period.values),
    ):
        if value not in choices:
            raise Invalid(
                _("There is no such %(field)s.") % {"field": field},
                field=field,
                hint=_("Choose from: %(names)s.") % {"names": ", ".join(choices)},
            )
    largest = LARGEST[Budget.Unit(unit)]
    if not 0 <= limit <= largest:
        raise Invalid(
            _("A limit is 0 or more, and at most %(most)s.") % {"most": amount_text(unit, largest)},
            field="limit",
            hint=_("Give a limit in that range."),
        )


def _hold_new_usage() -> None:
    """Keep usage rows from being written until this transaction ends, so that each is counted once:
    in what a new budget begins with, or when its call is settled. First of all locks."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            table = connection.ops.quote_name(Usage._meta.db_table)  # noqa: SLF001
            cursor.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")
