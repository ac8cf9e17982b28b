"""Conversations come into being, are named, put away and deleted.

What is said in them is `actions.messages`; their files are `actions.files`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from agents.actions.agents import check_provider
from agents.models import Agent, AgentVersion, Environment
from agents.namesakes import SHOWN, only_one
from agents.narrowing import require_fewer_servers, require_narrower
from conversations import logsql, removals
from conversations.actions.own import own_even_ended, require_own
from conversations.background import end_here
from conversations.departures import is_member
from conversations.log import append
from conversations.models import BackgroundCommand, Conversation, Run
from conversations.sandboxing import end_shells
from conversations.search import index_title
from conversations.titled import automatic_title
from harness.agentconfig import STORED, AgentConfig, Features
from harness.errors import Conflict, Invalid, NotFound
from harness.events import SessionUpdated
from harness.history import Entry
from harness.ids import new_conversation_id
from harness.modelfaults import read_as
from jobs.prepared import Prepared
from live.hub import hub
from webhooks import outbox
from wire.naming import one_line

TITLE_LIMIT = 200
"""Characters; the width of the column."""
OVERRIDABLE = frozenset(
    {
        "instructions", "thinking", "effort", "provider", "model", "tools", "custom_tools",
        "mcp_servers",
    }
)  # fmt: skip
"""Fields of an agent's configuration that whoever begins a conversation may give for it alone. Rules
for tools may only be added to the agent's, and only such as allow less. Of MCP servers that its agent has
not, it uses those that are its own."""
OF_CHILDREN = frozenset({"limits", "prompts", "temperature"})
"""Further ones that a conversation below another may have, as whoever begins it there says: an agent, or an
evaluation."""
OFFERS_NAMED = 20
"""How many choices an error lists before it stops."""


def _agents(user: Any, organisation: Any) -> QuerySet[Agent]:
    offered = Agent.objects.visible_to(user).usable_in(organisation).on_offer()
    return offered.select_related("current")


def _environments(user: Any, organisation: Any) -> QuerySet[Environment]:
    return Environment.objects.visible_to(user).usable_in(organisation).on_offer()


_AGENT = Prepared(lambda given: _agents(given.user, given.organisation).filter(uid=given.wanted))
_AGENTS = Prepared(
    lambda given: _agents(given.user, given.organisation).filter(name=given.wanted)[: SHOWN + 1]
)
_RELEASED = Prepared(
    lambda given: AgentVersion.objects.filter(agent=given.agent, number=given.number, draft=False)
)
_ENVIRONMENT = Prepared(
    lambda given: _environments(given.user, given.organisation).filter(uid=given.wanted)
)
_ENVIRONMENTS = Prepared(
    lambda given: _environments(given.user, given.organisation).filter(name=given.wanted)[
        : SHOWN + 1
    ]
)


def create_conversation(
    *,
    actor: User,
    organisation: Organisation,
    agent: Agent,
    environment: Environment,
    features: Mapping[str, bool] | None = None,
    title: str = "",
    parent: Conversation | None = None,
    overrides: Mapping[str, Any] | None = None,
    version: int | None = None,
    uid: str | None = None,
    preset: str = "",
    as_child: Mapping[str, Any] | None = None,
    unlisted: bool = False,
    told_date: date | None = None,
) -> Conversation:
    """An empty conversation of `actor` with the agent's current version, or the one of that number. One that
    people begin as the agent is may be given its canary (`Agent.drawn_for`); it keeps what it began with.
    `uid` is an id that its door derived from a name the client gave; a new one otherwise. `preset` is
    what its maker called the agent by, kept to be read back. One that is `unlisted` is in no list of
    conversations and announced to nobody; `told_date` is what its agent takes for its first day.

    `features` changes the agent's own switches by name, `overrides` those fields of its
    configuration that are in `OVERRIDABLE`, `as_child`, below a parent, those in `OF_CHILDREN`, which are
    taken as they are. Raises NotFound for an organisation or a parent that is
    not the actor's, Invalid for an agent or an environment that is not on offer there, for an unknown
    switch or override and for too long a title; each lists what may be given.
    """
    if not is_member(actor.pk, organisation.pk):
        raise NotFound(_("There is no such organisation."))
    if parent is not None:
        require_own(actor, parent)
    title = _clean_title(title)
    agent = find_agent(actor=actor, organisation=organisation, wanted=agent.uid, name=agent.name)
    environment = find_environment(
        actor=actor, organisation=organisation, wanted=environment.uid, name=environment.name
    )
    uid = uid or new_conversation_id()
    if version is None and parent is None and not unlisted and not overrides:
        chosen = agent.drawn_for(uid)
    else:
        chosen = _version(actor, agent, version)
    with transaction.atomic():
        conversation = Conversation(
            uid=uid,
            organisation=organisation,
            owner=actor,
            parent=parent,
            agent_version=chosen,
            environment=environment,
            title=title,
            preset=preset,
            unlisted=unlisted,
            told_date=told_date,
            others_wrote=parent is not None and parent.others_wrote,
            stored_features=_features(chosen.config.features, features or {}).model_dump(),
            overrides={**_overrides(chosen, overrides or {}), **_of_child(parent, as_child or {})},
        )
        logsql.insert([conversation])
        if title:
            index_title(conversation.pk, title)
        if parent is None and not unlisted:
            outbox.announce(organisation.pk, "session.created", subject=conversation.uid)
    return conversation


def find_agent(*, actor: User, organisation: Organisation, wanted: str, name: str = "") -> Agent:
    """The agent on offer in `organisation` whose id or, failing that, name is `wanted`.

    Raises Invalid naming what is on offer, or the ids of those that share the name. `name` is what
    to call it in that error.
    """
    here = {"user": actor.pk, "organisation": organisation.pk, "wanted": wanted}
    agent = _AGENT.first(**here) or only_one(_AGENTS.all(**here), wanted=wanted, field="agent")
    if agent is None:
        offered = _agents(actor, organisation)
        raise Invalid(
            _("The agent “%(name)s” is not on offer.") % {"name": name or wanted},
            field="agent",
            hint=_choices([offer.name for offer in offered[: OFFERS_NAMED + 1]]),
        )
    return agent


def find_environment(
    *, actor: User, organisation: Organisation, wanted: str, name: str = ""
) -> Environment:
    """The environment on offer in `organisation`, as `find_agent` finds an agent."""
    here = {"user": actor.pk, "organisation": organisation.pk, "wanted": wanted}
    environment = _ENVIRONMENT.first(**here) or only_one(
        _ENVIRONMENTS.all(**here), wanted=wanted, field="environment"
    )
    if environment is None:
        offered = _environments(actor, organisation)
        raise Invalid(
            _("The environment “%(name)s” is not on offer.") % {"name": name or wanted},
            field="environment",
            hint=_choices([offer.name for offer in offered[: OFFERS_NAMED + 1]]),
        )
    return environment


def rename_conversation(*, actor: User, conversation: Conversation, title: str) -> Conversation:
    """Give it a title that no automatic one replaces. Raises Invalid for none or too long a one."""
    conversation = own_even_ended(actor, conversation)
    title = _clean_title(title)
    if not title:
        raise Invalid(
            _("A conversation needs a title."),
            field="title",
            hint=_("Type at least one character."),
        )
    # The same words are hers from now on.
    if title != conversation.title or automatic_title(conversation) is not None:
        append(conversation.pk, [Entry.of(SessionUpdated(title=title))], actor=actor)
        conversation.refresh_from_db()
    return conversation


def change_tools(
    *, actor: User, conversation: Conversation, overrides: Mapping[str, Any]
) -> Conversation:
    """From the next turn on these `tools` and `custom_tools` hold, as if they had been given when it
    began: they can only take away from the agent's. Nothing happens if they hold already.

    Raises NotFound, Invalid as `create_conversation`, and Conflict while it works, waits for an answer
    to a call, or has ended.
    """
    with transaction.atomic():
        held = own_even_ended(actor, conversation, lock=True)
        require_rest(held)
        checked = _overrides(held.agent_version, overrides)
        if any(held.overrides.get(name) != value for name, value in checked.items()):
            append(held.pk, [Entry.of(SessionUpdated(overrides=checked))], actor=actor)
            held.refresh_from_db()
    return held


def require_rest(held: Conversation) -> None:
    """Raises Conflict while it works, waits for an answer to a call, or has ended."""
    if held.archived_at is not None or held.status == Conversation.Status.TERMINATED:
        raise Conflict(_("This conversation has ended."), hint=_("Begin a new one."))
    if held.is_running or held.is_about_to_start:
        raise Conflict(
            _("This conversation is at work."),
            hint=_("Stop it, or wait until it rests, then change its tools."),
        )
    if held.waits_for_person:
        raise Conflict(
            _("A call of this conversation waits for an answer."),
            hint=_("Answer it or stop the turn, then change the tools."),
        )


def archive_conversation(
    *, actor: User, conversation: Conversation, archived: bool
) -> Conversation:
    """Put it out of the list, or back. Nothing in it changes; running work goes on."""
    with transaction.atomic():
        conversation = own_even_ended(actor, conversation)
        if archived != (conversation.archived_at is not None):
            conversation.archived_at = timezone.now() if archived else None
            conversation.save(update_fields=["archived_at"])
            event_type = "session.archived" if archived else "session.updated"
            outbox.announce(conversation.organisation_id, event_type, subject=conversation.uid)
            if archived:
                transaction.on_commit(partial(end_shells, [conversation.uid]))
    return conversation


def delete_conversation(*, actor: User, conversation: Conversation) -> None:
    """Delete it for good with its log, its files and the conversations it started.

    What was spent stays counted. Raises Conflict while it, or one it started, is at work.
    """
    with transaction.atomic():
        # The lock keeps a worker from claiming what is being deleted.
        own = own_even_ended(actor, conversation, lock=True)
        if not remove_held(own):
            raise Conflict(
                _("This conversation is at work."), hint=_("Stop it first, then delete it.")
            )


def remove_held(conversation: Conversation) -> bool:
    """Delete it as `delete_conversation`, whoever may; False, and nothing happened, while it or one that it
    started is at work. Needs a transaction that holds its row."""
    doomed = [conversation, *_descendants(conversation)]
    if Run.objects.filter(conversation__in=doomed, state=Run.State.RUNNING).exists():
        return False
    # Whoever is counted with it locks a conversation before a budget: those that forget it as well.
    forks = Conversation.objects.select_for_update(no_key=True).filter(origin__in=doomed)
    list(forks.order_by("pk").values_list("pk"))
    uids = [each.uid for each in doomed]
    ends = [(each.uid, each.last_seq + 1) for each in doomed]
    running = BackgroundCommand.objects.running().filter(conversation__in=doomed)
    carried = list(running.values_list("pk", flat=True))
    outbox.announce(conversation.organisation_id, "session.deleted", subject=conversation.uid)
    conversation.delete()
    transaction.on_commit(lambda: _nudge_followers(ends))
    transaction.on_commit(lambda: _let_go(uids, carried))
    return True


def _nudge_followers(ends: list[tuple[str, int]]) -> None:
    """Have whoever follows one of them look at once, and find that it is gone."""
    for uid, seq in ends:
        hub.nudge(uid, seq)


def _let_go(uids: list[str], carried: list[int]) -> None:
    """End what still runs, and delete the files."""
    end_shells(uids)
    for pk in carried:
        end_here(pk)
    removals.clear(uids)


def _descendants(conversation: Conversation) -> list[Conversation]:
    found: list[Conversation] = []
    generation = [conversation]
    while generation:
        below = Conversation.objects.select_for_update().filter(parent__in=generation)
        generation = list(below.order_by("pk"))
        found += generation
    return found


def _clean_title(title: str) -> str:
    title = one_line(title)
    if len(title) > TITLE_LIMIT:
        raise Invalid(
            _("The title is longer than %(limit)d characters.") % {"limit": TITLE_LIMIT},
            field="title",
            hint=_("Shorten it."),
        )
    return title


def _features(defaults: Features, changes: Mapping[str, bool]) -> Features:
    known = list(Features.model_fields)
    for name, enabled in changes.items():
        if name not in known:
            raise Invalid(
                _("There is no feature “%(name)s”.") % {"name": name},
                field="features",
                hint=_("Choose from: %(names)s.") % {"names": ", ".join(known)},
            )
        if not isinstance(enabled, bool):
            raise Invalid(
                _("The feature “%(name)s” is neither on nor off.") % {"name": name},
                field="features",
                hint=_("Give true or false."),
            )
    return defaults.model_copy(update=dict(changes))


def _version(actor: User, agent: Agent, number: int | None) -> AgentVersion:
    assert agent.current is not None, "on_offer() promises it"  # noqa: S101
    version: AgentVersion | None = agent.current
    if number is not None and (number != agent.current.number or agent.current.draft):
        # Whoever sees an agent sees its versions but for drafts.
        version = _RELEASED.first(agent=agent.pk, number=number)
        if version is None:
            seen = AgentVersion.objects.visible_to(actor)
            version = seen.filter(agent=agent, number=number).first()
    if version is None:
        raise Invalid(
            _("%(agent)s has no version %(number)d.") % {"agent": agent.name, "number": number},
            field="agent",
            hint=_("Leave the version out for the current one."),
        )
    version.agent = agent
    return version


def _overrides(version: AgentVersion, given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` as it is stored. What an agent may do is its staff's word and not among them."""
    for name in given:
        if name not in OVERRIDABLE:
            raise Invalid(
                _("“%(name)s” of an agent cannot be overridden.") % {"name": name},
                field=name,
                hint=_("Choose from: %(names)s.") % {"names": ", ".join(sorted(OVERRIDABLE))},
            )
    # The agent's own tools were judged when they were saved.
    context = None if "custom_tools" in given else STORED
    wanted = read_as({**version.stored_config, **given}, AgentConfig, context=context)
    check_provider(wanted)
    if "tools" in given:
        require_narrower(version.config.tools, wanted.tools)
    if "mcp_servers" in given:
        require_fewer_servers(version.config, wanted, others=True)
    return {
        name: value.replace("\0", "") if isinstance(value, str) else value
        for name, value in given.items()
    }


def _of_child(parent: Conversation | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` by the server's own code alone: a mistake there is no answer to anybody."""
    if given and (parent is None or not given.keys() <= OF_CHILDREN):
        raise TypeError(f"only conversations of agents have {sorted(given)}")
    return dict(given)


def _choices(names: list[str]) -> str:
    if not names:
        return _("Nothing is on offer yet; a member of staff can add one in the administration.")
    more = " …" if len(names) > OFFERS_NAMED else "."
    return _("Choose from: %(names)s") % {"names": ", ".join(names[:OFFERS_NAMED]) + more}
