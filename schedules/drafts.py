"""What somebody wants an order to be, and whether it can be that: every rule with its field and remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import Membership, Organisation, User
from agents.models import Agent, AgentVersion, Environment
from conversations.actions.conversations import find_agent, find_environment
from conversations.actions.lending import MOST_LENT
from conversations.actions.messages import checked_text
from conversations.actions.outcomes import checked_checks, checked_outcome
from conversations.kits import choose_provider
from conversations.models import StoredFile
from harness.content import Text, text_of
from harness.errors import Invalid, TooLarge
from harness.events import UserDefineOutcome, UserMessage
from harness.faults import place
from programs.actions.sending import check_inputs
from spending.actions.budgets import check_amount
from spending.models import Budget
from vaults.models import Vault
from wire.naming import named

from .mailaddresses import is_sender, takes_mail
from .models import StandingOrder
from .pins import pins_of
from .templates import check_places
from .times import LARGEST_JITTER, MOST_MISSED, read_cron, read_dates

MOST_MESSAGES = 50
MOST_FILES = 500
MOST_APPROVERS = 20
MOST_READERS = 20
MOST_SENDERS = 50
MOST_RESULT_FILES = 1_000
MOST_IN_A_ROW = 1_000
"""Failures or repeats after which it is paused."""
MOST_IN_A_CHAIN = 5
"""Orders that begin each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """All that people decide about an order."""

    name: str
    agent: Agent
    environment: Environment
    messages: tuple[UserMessage, ...]
    outcome: UserDefineOutcome | None = None
    """What it works towards behind them. Its id is each run's own."""
    version: int | None = None
    """None: the agent's current one, at the time of saving."""
    description: str = ""
    files: tuple[tuple[str, str], ...] = ()
    """Ids of stored files, and paths."""
    vaults: tuple[str, ...] = ()
    budget: int | None = None
    approvers: tuple[str, ...] = ()
    """Ids of members."""
    cron: str = ""
    timezone: str = "UTC"
    dates: tuple[datetime, ...] = ()
    after: StandingOrder | None = None
    after_outcome: str = StandingOrder.After.SUCCESS.value
    missed: str = StandingOrder.Missed.SKIP.value
    most_missed: int = 1
    overlap: str = StandingOrder.Overlap.SKIP.value
    jitter: int = 0
    failures_to_pause: int = 3
    idle_to_pause: int = 0
    works_queue: bool = False
    mails_owner: bool = False
    readers: tuple[str, ...] = ()
    """Ids of members."""
    result_files: int = 0
    mail_from: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


def draft_of(order: StandingOrder) -> Draft:
    """What the order is now, for a change of some of it: without people who have left, whom no change could
    name again."""
    people = _people(order.organisation)
    approvers = order.approvers.filter(pk__in=people.values("user"))
    readers = order.readers.filter(pk__in=people.values("user"))
    return Draft(
        name=order.name,
        agent=order.agent_version.agent,
        version=order.agent_version.number,
        environment=order.environment,
        messages=messages_of(order),
        outcome=outcome_of(order),
        description=order.description,
        files=tuple((uid, path) for uid, path in order.files),
        vaults=tuple(order.vaults),
        budget=order.budget,
        approvers=tuple(approvers.values_list("uid", flat=True)),
        cron=order.cron,
        timezone=order.timezone,
        dates=tuple(datetime.fromisoformat(at) for at in order.dates),
        after=order.after,
        after_outcome=order.after_outcome,
        missed=order.missed,
        most_missed=order.most_missed,
        overlap=order.overlap,
        jitter=order.jitter,
        failures_to_pause=order.failures_to_pause,
        idle_to_pause=order.idle_to_pause,
        works_queue=order.works_queue,
        mails_owner=order.mails_owner,
        readers=tuple(readers.values_list("uid", flat=True)),
        result_files=order.result_files,
        mail_from=tuple(order.mail_from),
        metadata=order.metadata,
    )


def messages_of(order: StandingOrder) -> tuple[UserMessage, ...]:
    return tuple(UserMessage.model_validate({"content": content}) for content in order.messages)


def outcome_of(order: StandingOrder) -> UserDefineOutcome | None:
    if order.outcome is None:
        return None
    return UserDefineOutcome.model_validate({**order.outcome, "outcome_id": ""})


@dataclass(frozen=True, slots=True)
class Checked:
    """A draft that can be kept."""

    columns: dict[str, Any]
    version: AgentVersion
    approvers: list[User]
    readers: list[User]


def check_draft(
    draft: Draft, *, actor: User, organisation: Organisation, order: StandingOrder | None = None
) -> Checked:
    """Raises Invalid naming the field, TooLarge, and as `check_inputs`. `order`: what it is to change."""
    name, description = named(draft.name, draft.description, missing=_("A schedule needs a name."))
    agent = find_agent(
        actor=actor, organisation=organisation, wanted=draft.agent.uid, name=draft.agent.name
    )
    environment = find_environment(
        actor=actor,
        organisation=organisation,
        wanted=draft.environment.uid,
        name=draft.environment.name,
    )
    version = _version(actor, agent, draft.version)
    _check_messages(draft, actor)
    _check_things(draft, actor, organisation)
    cron = read_cron(draft.cron, draft.timezone) if draft.cron else None
    if cron is None:
        read_cron("0 0 * * *", draft.timezone)
    dates = read_dates(draft.dates)
    _check_rules(draft)
    _check_after(draft, actor, organisation, order)
    choice = choose_provider(version.config, actor, organisation)
    columns = {
        "name": name,
        "description": description,
        "agent_version": version,
        "provider": choice.provider,
        "model": choice.model,
        "pins": pins_of(version, organisation, order.owner if order is not None else actor),
        "environment": environment,
        "messages": [
            [block.model_dump(mode="json") for block in said.content] for said in draft.messages
        ],
        "outcome": _outcome(draft),
        "files": [list(pair) for pair in draft.files],
        "vaults": list(draft.vaults),
        "budget": draft.budget,
        "cron": cron.expression if cron else "",
        "timezone": draft.timezone,
        "dates": [at.isoformat() for at in dates],
        "after": draft.after,
        "after_outcome": draft.after_outcome,
        "missed": draft.missed,
        "most_missed": draft.most_missed,
        "overlap": draft.overlap,
        "jitter": draft.jitter,
        "failures_to_pause": draft.failures_to_pause,
        "idle_to_pause": draft.idle_to_pause,
        "works_queue": draft.works_queue,
        "mails_owner": draft.mails_owner,
        "result_files": draft.result_files,
        "mail_from": _mail_from(draft, order),
        "metadata": dict(draft.metadata),
    }
    approvers = _approvers(draft, actor, organisation)
    readers = _members("readers", draft.readers, actor, organisation, most=MOST_READERS)
    return Checked(columns, version, approvers, readers)


def _version(actor: User, agent: Agent, number: int | None) -> AgentVersion:
    if number is None:
        assert agent.current is not None, "what is on offer has one"  # noqa: S101
        return agent.current
    found = AgentVersion.objects.visible_to(actor).filter(agent=agent, number=number)
    version = found.select_related("agent__current").first()
    if version is None:
        raise Invalid(
            _("%(agent)s has no version %(number)d.") % {"agent": agent.name, "number": number},
            field="agent",
            hint=_("Leave the version out for the current one."),
        )
    return version


def _check_messages(draft: Draft, actor: User) -> None:
    if not draft.messages and draft.outcome is None:
        raise Invalid(
            _("A schedule says something when it begins."),
            field="initial_events",
            hint=_("Write what the agent is to do."),
        )
    if not draft.messages and (draft.works_queue or draft.mail_from):
        raise Invalid(
            _(
                "What a queue or a mail brings stands in a first message; an outcome alone has none."
            ),
            field="initial_events",
            hint=_("Leave the criteria out, or add a message by /v1/deployments."),
        )
    if len(draft.messages) > MOST_MESSAGES:
        raise Invalid(
            _("There are more than %(limit)d first messages.") % {"limit": MOST_MESSAGES},
            field="initial_events",
            hint=_("Say it in fewer."),
        )
    for number, said in enumerate(draft.messages):
        if all(isinstance(block, Text) for block in said.content):
            try:
                checked_text(text_of(said.content))
            except Invalid as problem:
                field_name = place("initial_events", number, "content")
                raise Invalid(problem.message, field=field_name, hint=problem.hint) from problem
    check_places(draft.messages)
    outcome = () if draft.outcome is None else (draft.outcome,)
    check_inputs((*draft.messages, *outcome), actor=actor, field="initial_events")


def _outcome(draft: Draft) -> dict[str, Any] | None:
    """As it is kept."""
    if draft.outcome is None:
        return None
    wanted = draft.outcome
    try:
        description, rubric = checked_outcome(
            wanted.description, wanted.rubric, wanted.max_iterations
        )
        checks = checked_checks(wanted.checks, rubric)
    except (Invalid, TooLarge) as problem:
        part = "x_checks" if problem.field == "checks" else problem.field or "type"
        name = place("initial_events", len(draft.messages), part)
        raise Invalid(problem.message, field=name, hint=problem.hint) from problem
    return {
        "description": description,
        "rubric": rubric,
        "max_iterations": wanted.max_iterations,
        **({"checks": [each.model_dump() for each in checks]} if checks else {}),
    }


def _check_things(draft: Draft, actor: User, organisation: Organisation) -> None:
    if len(draft.files) > MOST_FILES:
        raise Invalid(
            _("There are more than %(limit)d files.") % {"limit": MOST_FILES},
            field="resources",
            hint=_("Name fewer."),
        )
    if draft.files and draft.environment.has_workers:
        raise Invalid(
            _("An environment with workers takes no files."),
            field="resources",
            hint=_("Leave them out, or choose another environment."),
        )
    mine = StoredFile.objects.visible_to(actor).filter(organisation=organisation)
    known = set(
        mine.filter(uid__in=[uid for uid, _path in draft.files]).values_list("uid", flat=True)
    )
    for number, (uid, _path) in enumerate(draft.files):
        if uid not in known:
            raise Invalid(
                _("There is no file “%(uid)s”.") % {"uid": uid[:60]},
                field=place("resources", number, "file_id"),
                hint=_("GET /v1/files lists yours."),
            )
    if len(draft.vaults) > MOST_LENT or len(set(draft.vaults)) < len(draft.vaults):
        raise Invalid(
            _("Name each vault once, and %(most)d at most.") % {"most": MOST_LENT},
            field="vault_ids",
            hint=_("Name each once."),
        )
    hers = Vault.objects.visible_to(actor).filter(organisation=organisation, archived_at=None)
    vaults = set(hers.filter(uid__in=draft.vaults).values_list("uid", flat=True))
    for number, uid in enumerate(draft.vaults):
        if uid not in vaults:
            raise Invalid(
                _("There is no vault “%(uid)s” in force.") % {"uid": uid[:60]},
                field=place("vault_ids", number),
                hint=_("GET /v1/vaults lists yours."),
            )
    if draft.budget is not None:
        check_amount(Budget.Unit.MONEY, Budget.Period.TOTAL, draft.budget)


def _check_rules(draft: Draft) -> None:
    numbers = (
        ("most_missed", draft.most_missed, 1, MOST_MISSED),
        ("jitter", draft.jitter, 0, LARGEST_JITTER),
        ("failures_to_pause", draft.failures_to_pause, 0, MOST_IN_A_ROW),
        ("idle_to_pause", draft.idle_to_pause, 0, MOST_IN_A_ROW),
        ("result_files", draft.result_files, 0, MOST_RESULT_FILES),
    )
    for name, value, least, most in numbers:
        if not least <= value <= most:
            raise Invalid(
                _("It is not between %(least)d and %(most)d.") % {"least": least, "most": most},
                field=name,
                hint=_("Give a number between these."),
            )
    choices = (
        ("missed", draft.missed, StandingOrder.Missed),
        ("overlap", draft.overlap, StandingOrder.Overlap),
        ("after_outcome", draft.after_outcome, StandingOrder.After),
    )
    for name, chosen, allowed in choices:
        if chosen not in allowed.values:
            raise Invalid(
                _("“%(value)s” is not among the values.") % {"value": chosen[:60]},
                field=name,
                hint=_("Choose from: %(names)s.") % {"names": ", ".join(allowed.values)},
            )


def _check_after(
    draft: Draft, actor: User, organisation: Organisation, order: StandingOrder | None
) -> None:
    """Orders begin each other in a line, never in a ring."""
    each = draft.after
    if each is None:
        return
    if (
        not StandingOrder.objects.visible_to(actor)
        .filter(pk=each.pk, organisation=organisation)
        .exists()
    ):
        raise Invalid(_("There is no such schedule."), field="after")
    for _step in range(MOST_IN_A_CHAIN - 1):
        if order is not None and each.pk == order.pk:
            raise Invalid(
                _("These schedules would begin each other for ever."),
                field="after",
                hint=_("Let the first of them begin at a time or by hand."),
            )
        if each.after is None:
            return
        each = each.after
    raise Invalid(
        _("More than %(most)d schedules would begin each other.") % {"most": MOST_IN_A_CHAIN},
        field="after",
        hint=_("Say what is to be done in fewer steps."),
    )


def _approvers(draft: Draft, actor: User, organisation: Organisation) -> list[User]:
    if not draft.approvers:
        return []
    if draft.vaults:
        raise Invalid(
            _("Whoever may decide in a run may write in it, and would have it use your vaults."),
            field="approvers",
            hint=_("Leave the vaults out, or decide alone."),
        )
    return _members("approvers", draft.approvers, actor, organisation, most=MOST_APPROVERS)


def _members(
    field: str, uids: Sequence[str], actor: User, organisation: Organisation, *, most: int
) -> list[User]:
    """Other people of the organisation, with whom a run can be shared. Raises Invalid naming the field."""
    if len(uids) > most:
        raise Invalid(
            _("These are more than %(most)d people.") % {"most": most},
            field=field,
            hint=_("Name fewer."),
        )
    members = _people(organisation).filter(user__uid__in=uids).select_related("user")
    found = {member.user.uid: member.user for member in members}
    for number, uid in enumerate(uids):
        if uid not in found or uid == actor.uid:
            raise Invalid(
                _("“%(uid)s” is no other member of this organisation.") % {"uid": uid[:60]},
                field=place(field, number),
                hint=_("Choose a member."),
            )
    return [found[uid] for uid in dict.fromkeys(uids)]


def _people(organisation: Organisation) -> QuerySet[Membership]:
    """Those with whom its conversations can be shared."""
    return Membership.objects.filter(
        organisation=organisation, user__is_active=True, user__kind=User.Kind.PERSON
    )


def _mail_from(draft: Draft, order: StandingOrder | None) -> list[str]:
    """Whose mails begin it, each once. Raises Invalid naming `mail_from`."""
    senders = list(dict.fromkeys(each.strip().lower() for each in draft.mail_from if each.strip()))
    if senders and not takes_mail() and not (order is not None and senders == order.mail_from):
        raise Invalid(
            _("No mails come in at this site."),
            field="mail_from",
            hint=_("Leave it empty, or ask the operator to set AGENTSITE_INBOUND_MAIL."),
        )
    if len(senders) > MOST_SENDERS:
        raise Invalid(
            _("These are more than %(most)d senders.") % {"most": MOST_SENDERS},
            field="mail_from",
            hint=_("Name a domain, as in @example.org."),
        )
    for sender in senders:
        if not is_sender(sender):
            raise Invalid(
                _("“%(sender)s” is no address.") % {"sender": sender[:60]},
                field="mail_from",
                hint=_("Write anna@example.org, or @example.org for everybody there."),
            )
    return senders
