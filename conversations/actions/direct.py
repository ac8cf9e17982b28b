"""Tools that people and programs call themselves, without a model and without a key.

Nothing is stored: such a tool only reads. Where it works on a conversation's workspace, the rules of that
conversation hold for it as for the agent.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import own_even_ended
from conversations.judging import judge
from conversations.models import Conversation
from harness.errors import Forbidden, Invalid, InvalidToolInput, NotFound
from harness.policy import Verdict
from harness.tools import Effect, Outcome, Tool, ToolContext, check_input, perform
from tools_app.catalogue import all_tools
from tools_app.workspace import workspace_for


def direct_tools() -> tuple[Tool, ...]:
    """Those that may be called so, in the catalogue's order."""
    return tuple(
        tool for tool in all_tools().values() if tool.direct and tool.effect is Effect.READ
    )


def use_tool(
    *,
    actor: User,
    name: str,
    arguments: Mapping[str, Any],
    conversation: Conversation | None = None,
) -> Outcome:
    """What the tool answers; its own refusals are an outcome with `is_error`.

    Without a conversation it sees an empty workspace. Raises NotFound for a tool that is not one of
    `direct_tools` and for a conversation that is not the actor's, Invalid for an input that breaks the
    schema, Forbidden where a rule of the conversation keeps the tool back.
    """
    tool = next((tool for tool in direct_tools() if tool.name == name), None)
    if tool is None:
        raise NotFound(
            _("There is no tool “%(name)s” that can be used directly.") % {"name": name[:64]},
            hint=_("There are: %(names)s.")
            % {"names": ", ".join(tool.name for tool in direct_tools())},
        )
    try:
        check_input(tool, arguments)
    except InvalidToolInput as problem:
        raise Invalid(problem.message, field="arguments", hint=_("Correct the input.")) from problem
    if conversation is None:
        with tempfile.TemporaryDirectory(prefix="agentsite-direct-") as folder:
            return _perform(tool, Path(folder), arguments)
    own = own_even_ended(actor, conversation)
    judgement = judge(own, name, arguments)
    if judgement.verdict is not Verdict.ALLOW:
        raise Forbidden(judgement.reason, hint=_("Staff can change the rules of the agent."))
    return _perform(tool, workspace_for(own.uid), arguments)


def _perform(tool: Tool, workspace: Path, arguments: Mapping[str, Any]) -> Outcome:
    context = ToolContext("direct", workspace)
    outcome: Outcome = async_to_sync(perform)(tool, context, dict(arguments))
    return outcome
