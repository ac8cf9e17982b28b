"""A person attaches what an MCP server has to her message: a resource, or a prompt with its arguments.

What the server says is kept for the message like a file of hers (`conversations.actions.attachments`), and
stands in it as strangers'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.attachments import keep_foreign
from conversations.actions.own import require_writable
from conversations.models import Conversation, StoredFile
from harness.content import Block
from harness.errors import Invalid, NotFound
from jobs.turnstile import Turnstile
from mcpservers.attaching import ask_prompt, ask_resource, server_in
from mcpservers.models import McpServer
from mcpservers.offers import OfferedPrompt, offers_of

LONGEST = 4_000
"""Characters of an argument."""
_asking = Turnstile(4, slow=5)
"""Who waits in a request for a server, in this process; each person once, those of an organisation in half
of all places."""


def attach_resource(
    *, actor: User, conversation: Conversation, server_uid: str, label: str
) -> list[StoredFile]:
    """Raises NotFound for what is not offered there, Forbidden for who only reads, Busy, Unanswered, and what
    `keep_foreign` raises."""
    server = _server(actor, conversation, server_uid)
    found = next((each for each in offers_of(server).resources if each.label == label), None)
    if found is None:
        raise _none()
    return _kept(
        actor, conversation, server, found.label, lambda: ask_resource(conversation, server, found)
    )


def attach_prompt(
    *,
    actor: User,
    conversation: Conversation,
    server_uid: str,
    name: str,
    arguments: Mapping[str, str],
) -> list[StoredFile]:
    """The same; Invalid names the argument that is missing or too long. Such as are empty are not sent."""
    server, prompt = find_prompt(
        actor=actor, conversation=conversation, server_uid=server_uid, name=name
    )
    given: dict[str, str] = {}
    for argument in prompt.arguments:
        value = arguments.get(argument.name, "").replace("\0", "")
        if argument.required and not value.strip():
            raise Invalid(
                _("“%(name)s” is missing.") % {"name": argument.name},
                field=argument.name,
                hint=_("Type something."),
            )
        if len(value) > LONGEST:
            raise Invalid(
                _("“%(name)s” is longer than %(most)d characters.")
                % {"name": argument.name, "most": LONGEST},
                field=argument.name,
                hint=_("Shorten it."),
            )
        if value.strip():
            given[argument.name] = value
    return _kept(
        actor,
        conversation,
        server,
        prompt.name,
        lambda: ask_prompt(conversation, server, prompt, given),
    )


def find_prompt(
    *, actor: User, conversation: Conversation, server_uid: str, name: str
) -> tuple[McpServer, OfferedPrompt]:
    """Raises NotFound, and Forbidden for who only reads."""
    server = _server(actor, conversation, server_uid)
    found = next((each for each in offers_of(server).prompts if each.name == name), None)
    if found is None:
        raise _none()
    return server, found


def _server(actor: User, conversation: Conversation, uid: str) -> McpServer:
    require_writable(actor, conversation)
    server = server_in(conversation, uid)
    if server is None:
        raise _none()
    return server


def _kept(
    actor: User,
    conversation: Conversation,
    server: McpServer,
    name: str,
    ask: Callable[[], tuple[Block, ...]],
) -> list[StoredFile]:
    with _asking.place(actor.pk, among=conversation.organisation_id):
        blocks = ask()
    return keep_foreign(
        actor=actor,
        organisation=conversation.organisation,
        name=f"{server.name}-{name}",
        source=f"MCP server “{server.name}”: {name}",
        blocks=blocks,
    )


def _none() -> NotFound:
    return NotFound(
        _("There is nothing of that name to attach."),
        hint=_("The server may have changed, or not be used in this conversation any more."),
    )
