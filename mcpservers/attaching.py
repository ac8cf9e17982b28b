"""What people attach of MCP servers in a conversation: what is offered there, and what a server says when one
chooses it.

Only servers that the conversation's agent uses, or that are its owner's own where nobody else writes. No
approval is asked for: the person herself asks the server. What comes is strangers'. Keeping it is
`actions.attaching`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from asgiref.sync import async_to_sync
from django.urls import reverse
from django.utils.translation import gettext as _

from chat.attachables import Attachable
from chat.commands import Command
from conversations.models import Conversation
from conversations.provenance import TableProvenance
from conversations.sandboxing import plan_sandbox
from harness.content import Block
from harness.errors import AgentError, Declined
from jobs.garbage import keeping_what_is_imported
from tools_app.workspace import workspace_for

from .connecting import Lapsed, connected_in, token_of
from .kitpart import servers_in
from .models import McpServer
from .offers import OfferedPrompt, OfferedResource, offers_of
from .programs import Terms, mark_workspace, on_trial, require_programs
from .secrets import headers_of

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from .sessions import Where

    Ask = Callable[[], Coroutine[object, object, CallToolResult]]

SECONDS = 30.0
"""Until a server has said what was chosen; a person waits for it."""


class Unanswered(Declined):
    """The server said nothing that could be attached; says why, for a person."""

    code = "mcp_unanswered"


def offered_prompts(conversation: Conversation) -> Iterator[Command]:
    for server in _servers(conversation):
        for prompt in offers_of(server).prompts:
            address = reverse("mcpservers:attach-prompt", args=[conversation.uid, server.uid])
            yield Command(
                f"{server.name}:{prompt.name}",
                prompt.about or _("A prompt of the MCP server"),
                dialog=f"{address}?{urlencode({'name': prompt.name})}",
                writers_alone=True,
            )


def offered_resources(conversation: Conversation) -> Iterator[Attachable]:
    for server in _servers(conversation):
        address = reverse("mcpservers:attach-resource", args=[conversation.uid, server.uid])
        for resource in offers_of(server).resources:
            label = f"{server.name}:{resource.label}"
            asked = urlencode({"label": resource.label})
            yield Attachable(label, resource.about, f"{address}?{asked}")


def server_in(conversation: Conversation, uid: str) -> McpServer | None:
    """One that may be asked there."""
    return next((each for each in _servers(conversation) if each.uid == uid), None)


def ask_resource(
    conversation: Conversation, server: McpServer, resource: OfferedResource
) -> tuple[Block, ...]:
    """It connects, so outside of any transaction. Raises Unanswered."""
    _prepare()
    from .sessions import read_once  # noqa: PLC0415 - heavy

    where = _where(conversation, server)
    return _asked(server, where, partial(read_once, where, resource.uri, SECONDS))


def ask_prompt(
    conversation: Conversation,
    server: McpServer,
    prompt: OfferedPrompt,
    arguments: Mapping[str, str],
) -> tuple[Block, ...]:
    """The same."""
    _prepare()
    from .sessions import prompt_once  # noqa: PLC0415 - heavy

    where = _where(conversation, server)
    return _asked(server, where, partial(prompt_once, where, prompt.name, arguments, SECONDS))


def _servers(conversation: Conversation) -> list[McpServer]:
    return [server for server, _only in servers_in(conversation, conversation.config)]


def _where(conversation: Conversation, server: McpServer) -> Where:
    """As a call of the conversation would reach it. Raises Unanswered."""
    from .sessions import Where  # noqa: PLC0415 - heavy

    try:
        secrets = headers_of(server)
        if server.argv:
            require_programs()
            workspace = workspace_for(conversation.uid)
            plan = plan_sandbox(conversation, conversation.config, workspace)
            if plan.problem is not None:
                raise plan.problem
            mark_workspace(TableProvenance(conversation.pk), server.uid, server.name)
            terms = Terms(plan.backend, plan.policy, plan.mounts)
            program = on_trial(terms, server.argv, secrets)
            return Where(server.pk, conversation.uid, "", program=program)
        where = Where(server.pk, conversation.uid, server.url, secrets)
        connected = connected_in(conversation, server)
        if connected is None:
            return where
        return where.authorised_by(async_to_sync(token_of)(connected))
    except Lapsed:
        raise _unanswered(server, _("What you allowed there is over.")) from None
    except AgentError as problem:
        raise _unanswered(server, problem.message) from None


def _asked(server: McpServer, where: Where, work: Ask) -> tuple[Block, ...]:
    from .results import blocks_of  # noqa: PLC0415 - heavy
    from .sessions import Unreachable  # noqa: PLC0415 - heavy

    try:
        # A loop of its own, in a thread of its own: the caller's thread may have one already.
        with ThreadPoolExecutor(1, thread_name_prefix="agentsite-mcp-ask") as pool:
            result = pool.submit(lambda: asyncio.run(work())).result()
    except Unreachable as problem:
        raise _unanswered(server, str(problem)) from None
    return blocks_of(result, where.without_secrets)


def _unanswered(server: McpServer, why: str) -> Unanswered:
    return Unanswered(
        _("“%(name)s” gave nothing to attach: %(why)s") % {"name": server.name, "why": why},
        hint=_("Try again, or go on without it."),
    )


def _prepare() -> None:
    with keeping_what_is_imported():
        from . import results, sessions  # noqa: F401, PLC0415 - heavy
