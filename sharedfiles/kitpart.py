"""Shared files in a run: what the tools for them are handed, and the folder that commands see."""

from __future__ import annotations

from pathlib import Path

from django.db.models import Exists, OuterRef

from conversations.kitparts import Part
from conversations.models import Conversation
from harness.agentconfig import AgentConfig
from sandbox.contract import Mount
from tools_app.builtin.shared import EXTRA

from .access import TableSharedFiles
from .models import SharedVersion
from .versions import Shelf

SHOWN = Path("/shared")
"""Where commands find the files, read-only."""


def part(conversation: Conversation, config: AgentConfig, workspace: Path) -> Part:
    return Part(extras={EXTRA: TableSharedFiles(conversation, workspace)})


def shares_some() -> Exists:
    """Whether its agent shares files in its organisation, or ever did: a folder that was laid out is brought
    up to date also where nothing is left."""
    agent = OuterRef("agent_version__agent")
    return Exists(SharedVersion.objects.filter(organisation=OuterRef("organisation"), agent=agent))


def mounts(conversation: Conversation) -> tuple[Mount, ...]:
    """The folder of the agent's shared files, if there are any."""
    folder = Shelf.of(conversation).lay_out()
    if folder is None:
        return ()
    label = "what all conversations of this agent share"
    return (Mount(folder, SHOWN, writable=False, label=label),)
