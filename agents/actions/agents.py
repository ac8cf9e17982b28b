"""Agents come into being, change by versions, are put away and, while nothing uses them, deleted.

A version is written once. Conversations keep the one they began with. How members make and change
agents of their own says `actions.own`.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Membership, Organisation, User
from accounts.permissions import require_manager, require_member
from accounts.provider_labels import provider_label
from accounts.staff import has_staff_permission, require_staff
from agents.holding import is_held
from agents.models import Agent, AgentVersion
from agents.rosters import pinned
from agents.uses import is_used
from audit import record as audit
from harness.agentconfig import AgentConfig
from harness.errors import Conflict, Forbidden, Invalid, NotFound
from providers.table import KINDS
from sandbox.policy import read_policy
from tools_app.catalogue import find
from webhooks import outbox
from wire.naming import named

AUTO = "auto"

ADD = "agents.add_agent"
CHANGE = "agents.change_agent"
DELETE = "agents.delete_agent"


def create_agent(
    *,
    actor: User,
    organisation: Organisation | None,
    name: str,
    description: str,
    config: AgentConfig,
) -> Agent:
    """An agent with its first version, for one organisation or, with none, for the whole server.

    An organisation's takes an owner or administrator of it, a server's staff with the permission.
    Raises Invalid, naming the field, for what `check_agent` refuses and for an agent of its roster that is
    not on offer there; the versions of those are fixed now.
    """
    _require_editor(actor, organisation, ADD)
    name, description = check_agent(name=name, description=description, config=config)
    config = pinned(config, organisation=organisation, name=name, before=None)
    with transaction.atomic():
        agent = Agent.objects.create(
            organisation=organisation, name=name, description=description, created_by=actor
        )
        _add_version(agent, config, actor)
        record_agent(audit.Action.AGENT_MADE, agent, actor)
        outbox.announce(agent.organisation_id, "agent.created", subject=agent.uid)
    return agent


def change_agent(
    *,
    actor: User,
    agent: Agent,
    name: str,
    description: str,
    config: AgentConfig,
    expected_version: int | None = None,
) -> Agent:
    """Give the agent this name, description and configuration; another configuration is a new version,
    which is a draft until it is released where versions of this agent are held (`holding`).

    Nothing is written when nothing differs. With `expected_version`, the number the change was made
    from, a newer one raises Conflict and nothing is written. Raises as `create_agent`, NotFound for an
    agent the actor may not see, and Forbidden for a member's own, which staff alone change like this.
    """
    with transaction.atomic():
        current = lock_agent(actor, agent, CHANGE)
        require_nobodys_own(actor, current)
        name, description = check_agent(name=name, description=description, config=config)
        require_version(current, expected_version)
        _write(current, name=name, description=description, config=config, actor=actor)
    return current


def restore_version(
    *, actor: User, agent: Agent, number: int, expected_version: int | None = None
) -> Agent:
    """Make an earlier configuration the current one, as a new version. History stays as it was."""
    with transaction.atomic():
        current = lock_agent(actor, agent, CHANGE)
        require_nobodys_own(actor, current)
        require_version(current, expected_version)
        version = AgentVersion.objects.filter(agent=current, number=number).first()
        if version is None:
            raise NotFound(
                _("%(agent)s has no version %(number)d.")
                % {"agent": current.name, "number": number}
            )
        _write(
            current,
            name=current.name,
            description=current.description,
            config=version.config,
            actor=actor,
        )
    return current


def archive_agent(*, actor: User, agent: Agent, archived: bool = True) -> Agent:
    """Offer it no longer for new conversations, or again. Those that use it go on."""
    with transaction.atomic():
        current = lock_agent(actor, agent, CHANGE)
        if archived != (current.archived_at is not None):
            current.archived_at = timezone.now() if archived else None
            current.save(update_fields=["archived_at", "updated_at"])
            action = audit.Action.AGENT_ARCHIVED if archived else audit.Action.AGENT_CHANGED
            record_agent(action, current, actor, archived=archived)
            event_type = "agent.archived" if archived else "agent.updated"
            announce_agent(current, event_type)
    return current


def delete_agent(*, actor: User, agent: Agent) -> None:
    """Delete an agent with all its versions. Raises Conflict for one that `may_be_deleted` keeps."""
    with transaction.atomic():
        current = lock_agent(actor, agent, DELETE)
        if not may_be_deleted(current):
            raise Conflict(
                _("%(agent)s is in use, or comes with this software.") % {"agent": current.name},
                hint=_("Archive it: it is no longer offered, and its conversations go on."),
            )
        # Versions that are in use protect themselves from deletion.
        current.current = current.canary = None
        current.save(update_fields=["current", "canary"])
        record_agent(audit.Action.AGENT_DELETED, current, actor)
        announce_agent(current, "agent.deleted")
        current.delete()


def may_be_deleted(agent: Agent) -> bool:
    """No conversation uses any version, no agent is bounded by one, and the next start would not bring it
    back."""
    bounds = AgentVersion.objects.filter(base__agent=agent).exclude(agent=agent)
    return agent.seed_name is None and not bounds.exists() and not is_used(agent=agent)


def check_agent(*, name: str, description: str, config: AgentConfig) -> tuple[str, str]:
    """Name and description tidied up; Invalid, naming the field, if one or the configuration breaks
    a rule that `AgentConfig` cannot know. Agents may share a name."""
    name, description = named(name, description, missing=_("An agent needs a name."))
    check_provider(config)
    _check_sandbox(config)
    _check_custom_tools(config)
    return name, description


def require_version(agent: Agent, expected: int | None) -> None:
    """Raise Conflict when the agent's current version is not the expected one."""
    number = agent.current.number if agent.current else 0
    if expected is not None and expected != number:
        raise Conflict(
            _("Somebody saved version %(number)d of this agent meanwhile; you began with %(own)d.")
            % {"number": number, "own": expected},
            hint=_("Open the agent again and make your change there."),
        )


def check_provider(config: AgentConfig) -> None:
    """Raises Invalid for a provider that does not exist, and for one that needs a model's name."""
    if config.provider == AUTO:
        return
    kind = KINDS.get(config.provider)
    if kind is None:
        offered = [name for name, kind in KINDS.items() if kind.offered]
        raise Invalid(
            _("There is no provider “%(name)s”.") % {"name": config.provider[:60]},
            field="provider",
            hint=_("Choose one of: %(names)s.") % {"names": ", ".join([AUTO, *offered])},
        )
    if not config.model and not kind.default_model:
        raise Invalid(
            _("%(provider)s has no default model.") % {"provider": provider_label(kind)},
            field="model",
            hint=_("Name the model this agent uses."),
        )


def _check_sandbox(config: AgentConfig) -> None:
    try:
        read_policy(config.sandbox)
    except Invalid as problem:
        raise Invalid(problem.message, field="sandbox", hint=problem.hint) from problem


def _check_custom_tools(config: AgentConfig) -> None:
    for tool in config.custom_tools:
        if find(tool.name) is not None:
            raise Invalid(
                _("“%(name)s” is the name of a built-in tool.") % {"name": tool.name},
                field="custom_tools",
                hint=_("Give the custom tool another name."),
            )


def _write(agent: Agent, *, name: str, description: str, config: AgentConfig, actor: User) -> None:
    newest = agent.newest
    before = newest.config if newest is not None else None
    config = pinned(config, organisation=agent.organisation, name=name, before=before)
    changed = [
        field
        for field, value in (("name", name), ("description", description))
        if getattr(agent, field) != value
    ]
    renamed = bool(changed)
    if renamed:
        agent.name, agent.description = name, description
        agent.save(update_fields=["name", "description", "updated_at"])
    new_version = agent.current is None or agent.current.config != config
    if new_version:
        changed += _differing(agent.current.config, config) if agent.current else []
        _add_version(agent, config, actor)
    if renamed or new_version:
        version = agent.current.number if agent.current else 0
        record_agent(audit.Action.AGENT_CHANGED, agent, actor, version=version, changed=changed)
        announce_agent(agent, "agent.updated")


def announce_agent(agent: Agent, event_type: str) -> None:
    """To the webhooks of those who are offered it: a private one is nobody's business."""
    if not agent.private:
        outbox.announce(agent.organisation_id, event_type, subject=agent.uid)


def _differing(before: AgentConfig, after: AgentConfig) -> list[str]:
    """The fields of the configuration that differ; both versions are kept with all they say."""
    return [
        field
        for field in AgentConfig.model_fields
        if getattr(before, field) != getattr(after, field)
    ]


def record_agent(action: audit.Action, agent: Agent, actor: User, **details: Any) -> None:
    """Tell the audit log what was done with this agent."""
    audit.about_setting(
        action,
        actor=actor,
        organisation_id=agent.organisation_id,
        agent=agent.uid,
        name=agent.name,
        **details,
    )


def _add_version(agent: Agent, config: AgentConfig, actor: User) -> None:
    """It comes into use, or waits as a draft where it is held."""
    if agent.current is not None and is_held(agent):
        newest = agent.newest
        if newest is None or newest.config != config:
            add_version(agent, config, actor, draft=True)
        return
    agent.current = add_version(agent, config, actor)
    agent.save(update_fields=["current", "updated_at"])


def bring_into_use(agent: Agent, version: AgentVersion) -> None:
    """Have all new conversations begin with this version, whatever share another one had. Whether it may is
    the caller's question; the row of `agent` is locked."""
    if version.draft:
        version.draft = False
        version.save(update_fields=["draft"])
    agent.current = version
    agent.canary, agent.canary_share = None, 0
    agent.save(update_fields=["current", "canary", "canary_share", "updated_at"])
    announce_agent(agent, "agent.updated")


def give_share(agent: Agent, version: AgentVersion | None, share: int) -> None:
    """Have so many percent of new conversations begin with this version; None: all with the one in use. The
    row of `agent` is locked."""
    if version is not None and version.draft:
        version.draft = False
        version.save(update_fields=["draft"])
    agent.canary, agent.canary_share = version, share
    agent.save(update_fields=["canary", "canary_share", "updated_at"])


def add_version(agent: Agent, config: AgentConfig, maker: User, **more: Any) -> AgentVersion:
    """The next version; what new conversations begin with stays. The row of `agent` is locked."""
    last = AgentVersion.objects.filter(agent=agent).aggregate(last=Max("number"))["last"]
    return AgentVersion.objects.create(
        agent=agent,
        number=(last or 0) + 1,
        stored_config=config.model_dump(mode="json"),
        created_by=maker,
        **more,
    )


def lock_agent(actor: User, agent: Agent, permission: str) -> Agent:
    """The row as it is now, held until the transaction ends, if the actor may do this to it. Raises as
    `require_editor`, and NotFound for an agent the actor may not see."""
    rows = Agent.objects.filter(pk=agent.pk)
    if not has_staff_permission(actor, permission):
        rows = Agent.objects.filter(pk__in=rows.visible_to(actor).values("pk"))
    current = rows.select_for_update(of=("self",)).select_related("current", "organisation").first()
    if current is None:
        raise NotFound(_("There is no such agent."))
    require_editor(actor, current, permission)
    return current


def require_editor(actor: User, agent: Agent, permission: str) -> None:
    """Pass its owner, who manages the organisation it is shared in, and staff with the permission."""
    if agent.organisation is not None and agent.owner_id == actor.pk:
        require_member(actor, agent.organisation)
    else:
        _require_editor(actor, agent.organisation, permission)


def is_somebodys_own(agent: Agent) -> bool:
    """Whether there is a member whose own it is: then she makes its versions."""
    return (
        agent.owner_id is not None
        and Membership.objects.filter(
            organisation=agent.organisation_id, user=agent.owner_id, user__is_active=True
        ).exists()
    )


def require_nobodys_own(actor: User, agent: Agent) -> None:
    if is_somebodys_own(agent) and not has_staff_permission(actor, CHANGE):
        raise Forbidden(
            _("%(agent)s is a member's own agent.") % {"agent": agent.name},
            hint=_(
                "Its owner changes it on the page “Agents” or at /api/agents. Others duplicate it."
            ),
        )


def _require_editor(actor: User, organisation: Organisation | None, permission: str) -> None:
    if has_staff_permission(actor, permission):
        return
    if organisation is None:
        require_staff(actor, permission)
    else:
        require_manager(actor, organisation)
