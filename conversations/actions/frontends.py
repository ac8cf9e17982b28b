"""Which of what a front end sends along is taken: nothing that could be mistaken for the agent's own.

That its schemas are sound is checked where they are read (`harness.agentconfig.CustomTool`).
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from conversations.models import Conversation
from harness.errors import Invalid, TooLarge
from harness.faults import place
from harness.frontends import FrontEnd
from tools_app.catalogue import find

TOOLS_CHARACTERS = 200_000
"""Of all the tools' declarations together: each turn stores them anew."""
NOTES_CHARACTERS = 50_000
"""Of context and state together: the model reads them with each message."""


def check_front_end(held: Conversation, front_end: FrontEnd) -> None:
    """Raises Invalid for a tool whose name is taken, and TooLarge; each names the field."""
    own = {tool.name for tool in held.config.custom_tools}
    seen: set[str] = set()
    for number, tool in enumerate(front_end.tools):
        if tool.name in own or tool.name in seen or find(tool.name) is not None:
            raise Invalid(
                _("There is another tool called “%(name)s”.") % {"name": tool.name},
                field=place("tools", number, "name"),
                hint=_("Give the front end's tool a name of its own."),
            )
        seen.add(tool.name)
    declared = sum(len(tool.model_dump_json()) for tool in front_end.tools)
    if declared > TOOLS_CHARACTERS:
        raise TooLarge(
            _("The front end's tools have %(size)d characters; at most %(limit)d are taken.")
            % {"size": declared, "limit": TOOLS_CHARACTERS},
            field="tools",
            hint=_("Offer fewer, or shorten what describes them."),
        )
    size = sum(len(each.description) + len(each.value) for each in front_end.notes)
    if size > NOTES_CHARACTERS:
        raise TooLarge(
            _("Context and state have %(size)d characters together; at most %(limit)d are taken.")
            % {"size": size, "limit": NOTES_CHARACTERS},
            field="context" if front_end.context else "state",
            hint=_("Send what the agent needs for this message."),
        )
