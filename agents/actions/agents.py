"""Agents come into being, change by versions, are put away and, while nothing uses them, deleted.

A version is written once. Conversations keep the one they began with.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import require_manager
from accounts.staff import has_staff_permission, require_staff
from agents.models import Agent, AgentVersion
from agents.uses import is_used
from audit import record as audit
from harness.agentconfig import AgentConfig
from harness.errors import Conflict, Invalid, NotFound
from harness.providers.table import KINDS
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
    Raises Invalid, naming the field, for what `check_agent` refuses.
    """
    _require_editor(actor, organisation, ADD)
    name, description = check_agent(name=name, description=description, config=config)
    with transaction.atomic():
        agent = Agent.objects.create(
            organisation=organisation, name=name, description=description, created_by=actor
        )
        _add_version(agent, config, actor)
        _record(audit.Action.AGENT_MADE, agent, actor)
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
    """Give the agent this name, description and configuration; another configuration is a new version.

    Nothing is written when nothing differs. With `expected_version`, the number the change was made
    from, a newer one raises Conflict and nothing is written. Raises as `create_agent`, and NotFound
    for an agent the actor may not see.
    """
    with transaction.atomic():
        current = _lock(actor, agent, CHANGE)
        name, description = check_agent(name=name, description=description, config=config)
        require_version(current, expected_version)
        _write(current, name=name, description=description, config=config, actor=actor)
    return current


def restore_version(
    *, actor: User, agent: Agent, number: int, expected_version: int | None = None
) -> Agent:
    """Make an earlier configuration the current one, as a new version. History stays as it was."""
    with transaction.atomic():
        current = _lock(actor, agent, CHANGE)
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
        current = _lock(actor, agent, CHANGE)
        if archived != (current.archived_at is not None):
            current.archived_at = timezone.now() if archived else None
            current.save(update_fields=["archived_at", "updated_at"])
            action = audit.Action.AGENT_ARCHIVED if archived else audit.Action.AGENT_CHANGED
            _record(action, current, actor, archived=archived)
            event_type = "agent.archived" if archived else "agent.updated"
            outbox.announce(current.organisation_id, event_type, subject=current.uid)
    return current


def delete_agent(*, actor: User, agent: Agent) -> None:
    """Delete an agent with all its versions. Raises Conflict for one that `may_be_deleted` keeps."""
    with transaction.atomic():
        current = _lock(actor, agent, DELETE)
        if not may_be_deleted(current):
            raise Conflict(
                _("%(agent)s is in use, or comes with this software.") % {"agent": current.name},
                hint=_("Archive it: it is no longer offered, and its conversations go on."),
            )
        # A version that is current protects itself from deletion.
        current.current = None
        current.save(update_fields=["current"])
        _record(audit.Action.AGENT_DELETED, current, actor)
        outbox.announce(current.organisation_id, "agent.deleted", subject=current.uid)
        current.delete()


def may_be_deleted(agent: Agent) -> bool:
    """No conversation uses any version, and the next start would not bring it back."""
    return agent.seed_name is None and not is_used(agent=agent)


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
            _("%(provider)s has no default model.") % {"provider": kind.label},
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
        _record(audit.Action.AGENT_CHANGED, agent, actor, version=version, changed=changed)
        outbox.announce(agent.organisation_id, "agent.updated", subject=agent.uid)


def _differing(before: AgentConfig, after: AgentConfig) -> list[str]:
    """The fields of the configuration that differ; both versions are kept with all they say."""
    return [
        field
        for field in AgentConfig.model_fields
        if getattr(before, field) != getattr(after, field)
    ]


def _record(action: audit.Action, agent: Agent, actor: User, **details: Any) -> None:
    audit.about_setting(
        action,
        actor=actor,
        organisation_id=agent.organisation_id,
        agent=agent.uid,
        name=agent.name,
        **details,
    )


def _add_version(agent: Agent, config: AgentConfig, actor: User) -> None:
    number = agent.current.number + 1 if agent.current else 1
    agent.current = AgentVersion.objects.create(
        agent=agent,
        number=number,
        stored_config=config.model_dump(mode="json"),
        created_by=actor,
    )
    agent.save(update_fields=["current", "updated_at"])


def _lock(actor: User, agent: Agent, permission: str) -> Agent:
    """The row as it is now, held until the transaction ends, if the actor may do this to it."""
    rows = Agent.objects.filter(pk=agent.pk)
    if not has_staff_permission(actor, permission):
        rows = Agent.objects.filter(pk__in=rows.visible_to(actor).values("pk"))
    current = rows.select_for_update(of=("self",)).select_related("current", "organisation").first()
    if current is None:
        raise NotFound(_("There is no such agent."))
    _require_editor(actor, current.organisation, permission)
    return current


def _require_editor(actor: User, organisation: Organisation | None, permission: str) -> None:
    if has_staff_permission(actor, permission):
        return
    if organisation is None:
        require_staff(actor, permission)
    else:
        require_manager(actor, organisation)
