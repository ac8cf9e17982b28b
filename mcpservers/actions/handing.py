"""Servers that come with an agent or a conversation, by name and address, as programs hand them over: those
that are not there yet are added, those at another address are moved, and of a conversation the rest is
taken away.

What the agent or the conversation makes of them stands in its configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from agents.models import Agent
from conversations.bearers import Found
from conversations.models import Conversation
from harness.agentconfig import ToolRule
from harness.errors import AgentError, Busy, Conflict, Invalid
from harness.policy import MCP
from mcpservers.actions.servers import add_server, change_server, remove_server, waiting_for
from mcpservers.addresses import check_url
from mcpservers.looking import Looked, keep_look, look_at_all
from mcpservers.models import McpServer
from mcpservers.whose import serving_in
from vaults.oauth import RefreshFailed, fresh_token

Scope = McpServer.Scope


@dataclass(frozen=True, slots=True)
class Handed:
    name: str
    url: str


def hand_to_agent(
    *, actor: User, organisation: Organisation, agent: Agent, servers: Iterable[Handed]
) -> None:
    """A name that a server of the organisation, or everybody's, has means that one. One of the agent's own at
    another address is held until somebody looked at it. Those that are not named stay with earlier versions.

    Raises Invalid, on `mcp_servers`, where a name means another address here, and as `add_server`.
    """
    with transaction.atomic():
        known = _first_of_name(
            McpServer.objects.serving(agent.organisation_id or 0, 0, agents=[agent.pk])
        )
        for each in servers:
            with _named(each):
                there = known.get(each.name)
                if _is_there(each, there, own=there is not None and there.agent_id == agent.pk):
                    continue
                if there is not None:
                    change_server(actor=actor, server=there, url=each.url)
                else:
                    add_server(
                        actor=actor,
                        organisation=organisation,
                        scope=Scope.AGENT,
                        agent=agent,
                        name=each.name,
                        url=each.url,
                        look=False,
                    )


def hand_to_conversation(
    *,
    actor: User,
    conversation: Conversation,
    servers: Iterable[Handed],
    uses: Collection[str],
    looked: Mapping[str, Looked] | None = None,
) -> None:
    """Those that its agent has not are the conversation's own from now on; those of its own that are not
    among the names of `uses` are taken away. `looked`: what was found at their addresses just now.

    Raises as `hand_to_agent`: nobody brings a conversation a server of others that its agent does not use.
    """
    with transaction.atomic():
        own = {row.name: row for row in McpServer.objects.filter(conversation=conversation)}
        for name, row in own.items():
            if name not in uses:
                remove_server(actor=actor, server=row)
        agents = {use.name for use in conversation.agent_version.config.mcp_servers}
        known = _first_of_name(serving_in(conversation).exclude(conversation=conversation))
        for each in servers:
            with _named(each):
                if each.name in agents:
                    _is_there(each, known.get(each.name), own=False, missing=True)
                    continue
                there = own.get(each.name)
                if _is_there(each, there, own=True):
                    continue
                if there is not None:
                    change_server(actor=actor, server=there, url=each.url)
                    continue
                add_server(
                    actor=actor,
                    organisation=conversation.organisation,
                    scope=Scope.CONVERSATION,
                    conversation=conversation,
                    name=each.name,
                    url=each.url,
                    look=False,
                    looked=(looked or {}).get(check_url(each.url)),
                )


def asking(rules: Iterable[ToolRule], names: Iterable[str]) -> list[ToolRule]:
    """What is added to an agent's `rules` so that each call of servers of these names asks: nothing for those
    that none of the rules would let run."""
    allowing = [
        rule.tool
        for rule in rules
        if rule.permission == "always_allow" and rule.tool.startswith(MCP)
    ]
    return [
        ToolRule(tool=f"mcp:{name}:*", permission="always_ask")
        for name in names
        if any(_may_mean(address, name) for address in allowing)
    ]


def require_agents_own(*, conversation: Conversation, servers: Iterable[Handed]) -> None:
    """Raises Invalid, on `mcp_servers`, for a name of the agent's servers that is given with the address of
    another one."""
    agents = {use.name for use in conversation.agent_version.config.mcp_servers}
    known = _first_of_name(serving_in(conversation).exclude(conversation=conversation))
    for each in servers:
        if each.name in agents:
            with _named(each):
                _is_there(each, known.get(each.name), own=False, missing=True)


def look_ahead(
    *,
    actor: User,
    organisation: Organisation,
    rows: Iterable[McpServer],
    servers: Iterable[Handed],
    bearer: Callable[[str], Found | None],
) -> dict[str, Looked]:
    """What is at the addresses of `servers`, before a conversation has them, so that its first turn has their
    tools; `rows` that never told what they have are looked at where there is a credential for them, and kept.
    `bearer`: which one a call would carry. It connects, so outside of any transaction; nothing is looked at
    where too many wait already or people add no servers of their own, and nothing is said of an address that
    is none.
    """
    wanted: dict[str, str] = {}
    for each in servers if settings.AGENTSITE_MCP_PERSONAL else ():
        try:
            url = check_url(each.url)
        except Invalid:
            continue
        wanted[url] = _token(bearer, url)
    unknown = [row for row in rows if row.url and row.listed_at is None]
    for row in unknown:
        if token := _token(bearer, row.url):
            wanted[row.url] = token
    if not wanted:
        return {}
    try:
        with waiting_for.place(actor.pk, among=organisation.pk):
            found = look_at_all(wanted)
    except Busy:
        return {}
    for row in unknown:
        if row.url in found:
            keep_look(row.pk, found[row.url])
    return found


def _may_mean(address: str, server: str) -> bool:
    """Whether a rule so addressed may be about a tool of that server: of a pattern nobody knows."""
    parts = address.split(":")
    plain = len(parts) == 3 and not set("*?[") & set(parts[1])
    return not plain or parts[1] == server


def _token(bearer: Callable[[str], Found | None], url: str) -> str:
    try:
        found = bearer(url)
        if found is None:
            return ""
        return async_to_sync(fresh_token)(found.credential_id) if found.is_over else found.token
    except (AgentError, RefreshFailed):
        return ""


def _first_of_name(rows: Iterable[McpServer]) -> dict[str, McpServer]:
    found: dict[str, McpServer] = {}
    for row in rows:
        found.setdefault(row.name, row)
    return found


def _is_there(each: Handed, there: McpServer | None, *, own: bool, missing: bool = False) -> bool:
    """Whether that name means that address already. Raises Invalid where it means another one that is not
    one's `own` to move, or, with `missing`, none."""
    url = check_url(each.url)
    if there is not None and there.url == url:
        return True
    if (there is not None and not own) or (there is None and missing):
        raise Invalid(
            _("“%(name)s” is another server here.") % {"name": each.name},
            field="name",
            hint=_("Give the server another name."),
        )
    return False


@contextmanager
def _named(each: Handed) -> Iterator[None]:
    """What is wrong with one of them is said with its name, in the place that callers know."""
    try:
        yield
    except (Invalid, Conflict) as problem:
        message = f"{each.name[:60]}: {problem.message}"
        raise Invalid(message, field="mcp_servers", hint=problem.hint) from None
