"""What a run has of the task board and of its team: the tools, and a section that says who leads."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from conversations.kitparts import Part, Section
from conversations.models import Conversation
from harness.agentconfig import AgentConfig
from jobs.prepared import Prepared

from .models import Teammate
from .tools import team
from .tools.place import EXTRA
from .tools.tasks import TOOLS

PLACE = 70
"""Behind the instructions and what an agent was given, before the facts of the conversation."""
SECTION = (
    "You are “{name}”, a teammate in a team that “lead” leads{role}. Work from the task board: claim a task, "
    "do it, and say with task_update that it is completed. Tell the lead with send_message what came of it, "
    "in few words. When nothing is left for you, end your turn: a message or a free task wakes you."
)

_TASKS = {tool.name: tool for tool in TOOLS}
_TEAMMATE = Prepared(
    lambda given: Teammate.objects.filter(conversation=given.conversation, dismissed_at=None)
)


def part(conversation: Conversation, config: AgentConfig, workspace: Path) -> Part:
    leads = conversation.parent_id is None
    teammate = None if leads else _TEAMMATE.first(conversation=conversation.pk)
    tools = {**_TASKS}
    if teammate is not None or (leads and settings.AGENTSITE_TEAMMATES):
        tools |= {tool.name: tool for tool in team.tools_for(conversation)}
    sections = (Section(PLACE, _words(teammate)),) if teammate is not None else ()
    return Part(tools=tools, extras={EXTRA: conversation.pk}, sections=sections)


def _words(teammate: Teammate) -> str:
    role = f"; your role: {teammate.role}" if teammate.role else ""
    return SECTION.format(name=teammate.name, role=role)
