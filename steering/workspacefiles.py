"""Files at the top of a workspace that want to steer the agent, and whether somebody trusted their words.

Anybody may have written them: an upload, a repository, the agent itself. So none of them is told as an
instruction before a person has read it, and not in other words than she has read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from conversations.models import Conversation
from harness.errors import AgentError
from jobs.prepared import Prepared
from tools_app.workspace import Workspace

from .models import TrustedFile

NAMES = ("AGENTS.md", "CLAUDE.md")
"""The names that agents of others read as well; nothing below the top is looked for."""
LIMIT = 64 * 1024
"""Bytes of one; a longer one is left out."""

_TRUSTED = Prepared(lambda given: TrustedFile.objects.filter(conversation=given.conversation))


@dataclass(frozen=True, slots=True)
class Found:
    path: str
    text: str
    sha256: str
    trusted: bool


def files_of(conversation: Conversation, root: Path) -> list[Found]:
    """Those that are there now. Each is read once: what is told is what was judged."""
    there = list(_read(conversation, root))
    if not there:
        return []
    known = {row.path: row.sha256 for row in _TRUSTED.all(conversation=conversation.pk)}
    return [
        Found(path, data.decode(errors="replace"), digest, known.get(path) == digest)
        for path, data, digest in there
    ]


def _read(conversation: Conversation, root: Path) -> Iterator[tuple[str, bytes, str]]:
    if conversation.environment.has_workers or not root.is_dir():
        return
    workspace = Workspace(root)
    for name in NAMES:
        if not (root / name).exists():
            continue
        try:
            data = workspace.read_bytes(name, LIMIT)
        except AgentError:
            continue
        if data.strip():
            yield name, data, hashlib.sha256(data).hexdigest()
