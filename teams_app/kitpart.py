"""What a run has of the task board: the tools that read and change it."""

from __future__ import annotations

from pathlib import Path

from conversations.kitparts import Part
from conversations.models import Conversation
from harness.agentconfig import AgentConfig

from .tools.place import EXTRA
from .tools.tasks import TOOLS

_TOOLS = {tool.name: tool for tool in TOOLS}


def part(conversation: Conversation, config: AgentConfig, workspace: Path) -> Part:
    return Part(tools=_TOOLS, extras={EXTRA: conversation.pk})
